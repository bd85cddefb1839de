// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// documented returns the documentation of a package.
func documented(t *testing.T, pkg string) *doc.Package {
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*.go"))
	require.NoError(t, err)
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	found, err := doc.NewFromFiles(set, files, pkg)
	require.NoError(t, err)
	return found
}

// functions returns all functions and methods of a package.
func functions(p *doc.Package) []*doc.Func {
	all := p.Funcs
	for _, t := range p.Types {
		all = append(append(all, t.Funcs...), t.Methods...)
	}
	return all
}

// TestEveryExportedNameIsDocumented checks that each exported name has a comment that begins with the name.
func TestEveryExportedNameIsDocumented(t *testing.T) {
	for pkg := range reasons(t) {
		p := documented(t, pkg)
		for _, f := range functions(p) {
			assert.True(t, strings.HasPrefix(f.Doc, f.Name+" "), "%s: the comment of %s begins with its name", pkg, f.Name)
		}
		for _, of := range p.Types {
			assert.Regexp(t, `^(A |An )?`+of.Name+` `, of.Doc, "%s: the comment of %s begins with its name", pkg, of.Name)
		}
		for _, v := range append(p.Consts, p.Vars...) {
			for _, spec := range v.Decl.Specs {
				assert.True(t, v.Doc != "" || spec.(*ast.ValueSpec).Doc != nil, "%s: %s has a comment", pkg, v.Names)
			}
		}
	}
}

// TestConstructorsSayThatTheySendNothing looks for functions that take a path and return a handle and no error.
func TestConstructorsSayThatTheySendNothing(t *testing.T) {
	found := 0
	for _, pkg := range []string{".", "slots"} {
		for _, f := range functions(documented(t, pkg)) {
			if !givesHandle(f.Decl.Type.Results) || !takesPath(f.Decl.Type.Params.List) {
				continue
			}
			found++
			text := strings.Join(strings.Fields(f.Doc), " ")
			assert.Contains(t, text, "sends nothing; an invalid path", "%s: %s", pkg, f.Name)
			assert.Contains(t, text, "reported by the first call", "%s: %s", pkg, f.Name)
		}
	}
	assert.GreaterOrEqual(t, found, 9)
}

// givesHandle reports whether a function returns a pointer and nothing else. A hold is the result of a call, not a handle.
func givesHandle(results *ast.FieldList) bool {
	if results == nil || len(results.List) != 1 {
		return false
	}
	pointer, ok := results.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	to, ok := pointer.X.(*ast.Ident)
	return !ok || to.Name != "Hold"
}

func takesPath(params []*ast.Field) bool {
	for _, p := range params {
		for _, name := range p.Names {
			if name.Name == "path" {
				return true
			}
		}
	}
	return false
}
