// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"strings"
)

// surface returns the exported names of the package in dir.
func surface(dir string) (lines []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no package in %s: %w", dir, err)
	}
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.FileExports(file)
		for _, d := range file.Decls {
			lines = append(lines, declared(set, d)...)
		}
	}
	return lines, nil
}

func declared(set *token.FileSet, d ast.Decl) (lines []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Body = nil; d.Recv != nil && !isExported(d.Recv.List[0].Type) {
			return nil
		}
		return []string{text(set, d)}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			lines = append(lines, specified(set, d.Tok, spec)...)
		}
	}
	return lines
}

// isExported reports whether the type that a method belongs to has an exported name.
func isExported(receiver ast.Expr) bool {
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	name, ok := receiver.(*ast.Ident)
	return ok && name.IsExported()
}

func specified(set *token.FileSet, tok token.Token, spec ast.Spec) (lines []string) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			lines = append(lines, tok.String()+" "+name.Name)
		}
	case *ast.TypeSpec:
		fields, ok := s.Type.(*ast.StructType)
		if !ok {
			return []string{"type " + text(set, s)}
		}
		lines = append(lines, "type "+s.Name.Name+" struct")
		for _, f := range fields.Fields.List {
			for _, name := range f.Names {
				lines = append(lines, "field "+s.Name.Name+"."+name.Name+" "+text(set, f.Type))
			}
		}
	}
	return lines
}

// text prints a node in one line.
func text(set *token.FileSet, node any) string {
	var out bytes.Buffer
	if err := printer.Fprint(&out, set, node); err != nil {
		panic(err) // the node is not of package ast
	}
	return strings.Join(strings.Fields(out.String()), " ")
}
