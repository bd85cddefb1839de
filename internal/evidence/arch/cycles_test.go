// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNoFilesNeedEachOther fails if files of a package use each other's declarations in a cycle, because such files can only be
// understood together.
func TestNoFilesNeedEachOther(t *testing.T) {
	checked := 0
	for _, pkg := range packages(t) {
		found := pkg.cycles(t)
		checked++
		assert.Empty(t, found, "%s: files that need each other", pkg.ImportPath)
	}
	require.GreaterOrEqual(t, checked, 15)
}

// listed is a package as the go command lists it, with the code that its importers need.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
	exports                 map[string]string // the export data of every package, by its path
}

// packages returns the packages of this module as built for Linux, where they have the most files.
func packages(t *testing.T) []listed {
	t.Setenv("GOOS", "linux")
	t.Setenv("CGO_ENABLED", "0")
	out := goCommand(t, "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,DepOnly", "./...")
	exports := map[string]string{}
	var own []listed
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		pkg := listed{exports: exports}
		require.NoError(t, dec.Decode(&pkg))
		exports[pkg.ImportPath] = pkg.Export
		if !pkg.DepOnly && len(pkg.GoFiles) > 0 {
			own = append(own, pkg)
		}
	}
	require.NotEmpty(t, own)
	return own
}

// cycles returns the cycles: groups of files that need each other.
func (p listed) cycles(t *testing.T) []cycle {
	needs := p.needs(t)
	var found []cycle
	seen := map[string]bool{}
	for _, file := range p.GoFiles {
		if seen[file] {
			continue
		}
		c := cycle{needs: needs}
		for _, other := range p.GoFiles {
			if other == file || reaches(needs, file, other) && reaches(needs, other, file) {
				c.files = append(c.files, other)
				seen[other] = true
			}
		}
		if len(c.files) > 1 {
			found = append(found, c)
		}
	}
	return found
}

// uses has, for each file, the files that it needs, with the name of one declaration for which it needs them.
type uses map[string]map[string]string

// A reach is the use of a declaration in one file by another.
type reach struct {
	from, to string // the files
	object   types.Object
}

// reaches returns the uses of declarations in other files of the module.
func (p listed) reaches(t *testing.T) (found []reach) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	_, err := (&types.Config{Importer: p.importer(fset)}).Check(p.ImportPath, fset, files, info)
	require.NoError(t, err)
	place := func(pkg string, pos token.Pos) string {
		return filepath.ToSlash(filepath.Join("."+strings.TrimPrefix(pkg, module), filepath.Base(fset.Position(pos).Filename)))
	}
	for name, object := range info.Uses {
		if object.Pkg() == nil || !object.Pos().IsValid() || !strings.HasPrefix(object.Pkg().Path(), module) {
			continue
		}
		from, to := place(p.ImportPath, name.Pos()), place(object.Pkg().Path(), object.Pos())
		if from != to {
			found = append(found, reach{from, to, object})
		}
	}
	return found
}

// importer returns an importer for the package's dependencies.
func (p listed) importer(fset *token.FileSet) types.Importer {
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(p.exports[path]) })
}

// needs returns which files of the package need which other ones.
func (p listed) needs(t *testing.T) uses {
	found := uses{}
	for _, r := range p.reaches(t) {
		if r.object.Pkg().Path() != p.ImportPath {
			continue
		}
		from, to := filepath.Base(r.from), filepath.Base(r.to)
		if found[from] == nil {
			found[from] = map[string]string{}
		}
		if known := found[from][to]; known == "" || r.object.Name() < known {
			found[from][to] = r.object.Name()
		}
	}
	return found
}

// reaches reports whether from needs to, directly or through other files.
func reaches(needs uses, from, to string) bool {
	seen := map[string]bool{from: true}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		for file := range needs[next[0]] {
			if file == to {
				return true
			}
			if !seen[file] {
				seen[file] = true
				next = append(next, file)
			}
		}
	}
	return false
}

// cycle is a cycle: a group of files that all need each other.
type cycle struct {
	files []string
	needs uses
}

func (c cycle) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d files: %s", len(c.files), strings.Join(c.files, " "))
	for _, from := range c.files {
		for _, to := range c.files {
			if name, ok := c.needs[from][to]; ok {
				fmt.Fprintf(&b, "\n\t%s needs %s of %s", from, name, to)
			}
		}
	}
	return b.String()
}

func TestCyclesAreFound(t *testing.T) {
	chain := uses{"a.go": {"b.go": "B"}, "b.go": {"c.go": "C"}}
	require.True(t, reaches(chain, "a.go", "c.go"))
	require.False(t, reaches(chain, "c.go", "a.go"))
	chain["c.go"] = map[string]string{"a.go": "A"}
	require.True(t, reaches(chain, "c.go", "b.go"))
	text := cycle{[]string{"a.go", "b.go", "c.go"}, chain}.String()
	require.Contains(t, text, "c.go needs A of a.go")
}
