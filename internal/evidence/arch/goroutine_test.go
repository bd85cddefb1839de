// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNoTestEndsFromAnotherGoroutine looks for calls that end a test (require, t.Fatal and
// functions that call them) in functions that do not run in the test's goroutine. There,
// such a call ends only that goroutine, and code that waits for it hangs or has no result.
//
// The check uses names within each package: it covers functions in go statements, functions
// passed to Go of a group, to AfterFunc or Intercept, and functions passed to functions of the
// package that call their parameter in a goroutine.
func TestNoTestEndsFromAnotherGoroutine(t *testing.T) {
	packages := map[string]map[string]*ast.File{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		key := filepath.Dir(path) + " " + file.Name.Name
		if packages[key] == nil {
			packages[key] = map[string]*ast.File{}
		}
		packages[key][path] = file
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, packages)
	for _, files := range packages {
		for _, found := range endsElsewhere(fset, files) {
			assert.Fail(t, "another goroutine ends the test", found)
		}
	}
}

// endsElsewhere returns the places in a package where another goroutine ends the test.
func endsElsewhere(fset *token.FileSet, files map[string]*ast.File) (found []string) {
	p := testPackage{enders: map[string]bool{}, closures: map[string]bool{}, runners: map[string]bool{"Go": true, "AfterFunc": true, "Intercept": true}}
	for known := -1; known < p.size(); { // until there are no more indirect ones
		known = p.size()
		p.learn(files)
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			for _, fn := range p.elsewhere(n) {
				p.eachEnd(fn, func(at ast.Node, what string) {
					found = append(found, fmt.Sprintf("%v: %s", fset.Position(at.Pos()), what))
				})
			}
			return true
		})
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// testPackage has the functions of a package that matter for the check, by name.
type testPackage struct {
	enders   map[string]bool // functions that may end the test
	closures map[string]bool // local variables with such functions
	runners  map[string]bool // functions that call a parameter in another goroutine
}

func (p *testPackage) size() int { return len(p.enders) + len(p.closures) + len(p.runners) }

func (p *testPackage) learn(files map[string]*ast.File) {
	for _, file := range files {
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			name := fn.Name.Name
			if !strings.HasPrefix(name, "Test") && takesT(fn.Type) {
				p.eachEnd(fn.Body, func(ast.Node, string) { p.enders[name] = true })
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				p.learnClosure(n)
				for _, body := range p.elsewhere(n) {
					if callsParameter(body, fn.Type) {
						p.runners[name] = true
					}
				}
				return true
			})
		}
	}
}

// learnClosure records a variable whose function may end the test.
func (p *testPackage) learnClosure(n ast.Node) {
	set, ok := n.(*ast.AssignStmt)
	if !ok || set.Tok != token.DEFINE || len(set.Lhs) != 1 {
		return
	}
	if fn, ok := set.Rhs[0].(*ast.FuncLit); ok && !takesT(fn.Type) {
		p.eachEnd(fn.Body, func(ast.Node, string) { p.closures[set.Lhs[0].(*ast.Ident).Name] = true })
	}
}

// takesT reports whether a function has the test as a parameter.
func takesT(fn *ast.FuncType) bool {
	return slices.ContainsFunc(fn.Params.List, func(f *ast.Field) bool {
		if s, ok := f.Type.(*ast.StarExpr); ok {
			f = &ast.Field{Type: s.X}
		}
		s, ok := f.Type.(*ast.SelectorExpr)
		return ok && (s.Sel.Name == "T" || s.Sel.Name == "TB")
	})
}

// callsParameter reports whether a body calls one of a function's parameters.
func callsParameter(body ast.Node, fn *ast.FuncType) (calls bool) {
	params := map[string]bool{}
	for _, f := range fn.Params.List {
		if _, ok := f.Type.(*ast.FuncType); ok {
			for _, name := range f.Names {
				params[name.Name] = true
			}
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name, _ := nameOf(call)
			calls = calls || params[name]
		}
		return true
	})
	return calls
}

// elsewhere returns the function bodies that n runs in another goroutine.
func (p *testPackage) elsewhere(n ast.Node) (bodies []ast.Node) {
	switch n := n.(type) {
	case *ast.GoStmt:
		bodies = append(bodies, n.Call)
	case *ast.CallExpr:
		if name, _ := nameOf(n); p.runners[name] {
			for _, arg := range n.Args {
				if fn, ok := arg.(*ast.FuncLit); ok {
					bodies = append(bodies, fn.Body)
				}
			}
		}
	}
	return bodies
}

// eachEnd calls fn for all calls in a body that may end the test. It skips subtests in the body,
// because such calls end only the subtest.
func (p *testPackage) eachEnd(body ast.Node, fn func(at ast.Node, what string)) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name, of := nameOf(call)
		switch {
		case of == "require" && name != "New":
			fn(call, "require."+name)
		case (of == "t" || of == "tb") && slices.Contains([]string{"Fatal", "Fatalf", "FailNow", "Skip", "Skipf", "SkipNow"}, name):
			fn(call, of+"."+name)
		case p.enders[name] && givesT(call), of == "" && p.closures[name]:
			fn(call, name)
		case of == "t" && name == "Run", of == "synctest" && name == "Test", name == "virtual":
			return false
		}
		return true
	})
}

// givesT reports whether a call passes the test as an argument.
func givesT(call *ast.CallExpr) bool {
	return slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
		x, ok := arg.(*ast.Ident)
		return ok && (x.Name == "t" || x.Name == "tb" || x.Name == "b")
	})
}

// nameOf returns the name of the called function, and of the variable or package before the dot.
func nameOf(call *ast.CallExpr) (name, of string) {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return fn.Name, ""
	case *ast.SelectorExpr:
		if x, ok := fn.X.(*ast.Ident); ok {
			return fn.Sel.Name, x.Name
		}
		return fn.Sel.Name, "?"
	}
	return "", ""
}

// TestEndsInOtherGoroutinesAreFound shows that the check can fail.
func TestEndsInOtherGoroutinesAreFound(t *testing.T) {
	const source = `package x
func helper(t *testing.T) { require.True(t, false) }
func indirect(t *testing.T) { helper(t) }
func later(fn func()) { go fn() }
func wrapped(fn func()) { var wg sync.WaitGroup; wg.Go(func() { fn() }) }
func here(fn func()) { fn() }
func TestX(t *testing.T) {
	require.True(t, true) // in its own goroutine
	go func() { require.NoError(t, nil) }() // 1
	go helper(t) // 2
	var wg sync.WaitGroup
	wg.Go(func() { indirect(t) }) // 3
	later(func() { t.Fatal() }) // 4
	wrapped(func() { require.True(t, true) }) // 5
	here(func() { require.True(t, true) })
	go func() { assert.True(t, true) }()
	go func() { t.Run("", func(t *testing.T) { require.True(t, true) }) }()
	context.AfterFunc(ctx, func() { t.FailNow() }) // 6
	local := func() { require.True(t, true) }
	go func() { local() }() // 7
}`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x_test.go", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	found := endsElsewhere(fset, map[string]*ast.File{"x_test.go": file})
	assert.Len(t, found, 7, "%q", found)
}
