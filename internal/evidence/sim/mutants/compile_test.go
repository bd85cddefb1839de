// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// library has the files and export data for type-checking the packages that mutants change.
type library struct {
	files   map[string][]string // by directory below the root
	exports map[string]string   // by import path
}

func listLibrary(t *testing.T) library {
	list := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles", ".", "./shards", "./slots", "./cmd/zklock/...")
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err)
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	lib := library{map[string][]string{}, map[string]string{}}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
		}
		require.NoError(t, dec.Decode(&p))
		lib.exports[p.ImportPath] = p.Export
		if rel, err := filepath.Rel(here, p.Dir); err == nil {
			lib.files[filepath.ToSlash(rel)] = p.GoFiles
		}
	}
	return lib
}

// check type-checks the package in dir with the mutated files.
func (lib library) check(dir string, mutated map[string]string) error {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range lib.files[dir] {
		var text any // nil reads the file
		if t, ok := mutated[path.Join(dir, name)]; ok {
			text = t
		}
		file, err := parser.ParseFile(fset, filepath.Join(root, dir, name), text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(lib.exports[path]) }
	_, err := (&types.Config{Importer: importer.ForCompiler(fset, "gc", open)}).Check(dir, fset, files, nil)
	return err
}

// A mutant that does not compile cannot be found. With -short, the test checks every tenth mutant.
func TestEveryMutantCompiles(t *testing.T) {
	lib := listLibrary(t)
	require.Error(t, lib.check(".", map[string]string{"recipe.go": "package zklock"}), "the check must find missing declarations")
	for i, m := range Table {
		if testing.Short() && i%10 > 0 {
			continue
		}
		mutated, err := m.Apply(root)
		require.NoError(t, err)
		for name := range mutated {
			dir := path.Dir(name)
			require.NotEmpty(t, lib.files[dir], "%s: no package in %s", m.Name, dir)
			assert.NoError(t, lib.check(dir, mutated), m.Name)
		}
	}
}
