// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// load type-checks the modules' packages, their tests and all dependencies, from source.
func load(modules []string) ([]*packages.Package, error) {
	temp, err := os.MkdirTemp("", "lint")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	work := filepath.Join(temp, "go.work")
	if err := writeWorkspace(work, modules); err != nil {
		return nil, err
	}
	var patterns []string
	for _, m := range modules {
		dir, err := filepath.Abs(m)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, filepath.Join(dir, "..."))
	}
	cfg := packages.Config{
		Mode:  packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports,
		Tests: true,
		Env:   append(os.Environ(), "GOWORK="+work, "GOFLAGS=", "CGO_ENABLED=0"),
	}
	listed, err := packages.Load(&cfg, patterns...)
	if err != nil {
		return nil, err
	}
	whole := filesOf(listed)
	cfg.Mode = packages.LoadAllSyntax | packages.NeedModule
	cfg.ParseFile = func(fset *token.FileSet, name string, text []byte) (*ast.File, error) {
		return parse(fset, name, text, whole[name])
	}
	pkgs, err := packages.Load(&cfg, patterns...)
	if err != nil {
		return nil, err
	}
	if len(pkgs) == 0 {
		return nil, errors.New("no packages")
	}
	pkgs = slices.DeleteFunc(pkgs, func(p *packages.Package) bool { return strings.HasSuffix(p.ID, ".test") }) // generated main packages
	forgive(pkgs)
	return pkgs, nil
}

// writeWorkspace writes a go.work file of the modules, so that one load covers all of them.
func writeWorkspace(name string, modules []string) error {
	text := "go 1.26.0\n" // as the newest of them needs
	for _, m := range modules {
		dir, err := filepath.Abs(m)
		if err != nil {
			return err
		}
		text += fmt.Sprintf("use %q\n", dir)
	}
	return os.WriteFile(name, []byte(text), 0o600)
}

// filesOf returns the files of the packages and of the packages that they import.
func filesOf(pkgs []*packages.Package) map[string]bool {
	files := map[string]bool{}
	add := func(p *packages.Package) {
		for _, name := range p.CompiledGoFiles {
			files[name] = true
		}
	}
	for _, p := range pkgs {
		add(p)
		for _, imported := range p.Imports {
			add(imported)
		}
	}
	return files
}

// parse parses a file. If it is not needed whole, it drops the bodies of functions. With the bodies of the packages that ours
// import, the analyzers know which functions never return, have no side effects, or never return nil.
func parse(fset *token.FileSet, name string, text []byte, whole bool) (*ast.File, error) {
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if file == nil || whole {
		return file, err
	}
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && !isVariadic(fn) {
			fn.Body = nil
		}
	}
	return file, err
}

// isVariadic reports whether a function's last parameter is variadic. Such a function may be a wrapper of fmt.Printf, which
// only its body shows.
func isVariadic(fn *ast.FuncDecl) bool {
	params := fn.Type.Params.List
	if len(params) == 0 {
		return false
	}
	_, is := params[len(params)-1].Type.(*ast.Ellipsis)
	return is
}

// forgive removes the errors of dependencies, whose imports are unused without the function bodies, and the error flags that
// these leave on the packages that import them.
func forgive(pkgs []*packages.Package) {
	initial := map[*packages.Package]bool{}
	for _, p := range pkgs {
		initial[p] = true
	}
	packages.Visit(pkgs, nil, func(p *packages.Package) {
		if !initial[p] {
			p.Errors, p.TypeErrors = nil, nil
		}
		p.IllTyped = len(p.Errors) > 0
	})
}
