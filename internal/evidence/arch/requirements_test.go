// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPublishedModulesRequireOnlyWhatTheyImport keeps the drivers and kits of tests out of programs: a requirement raises the version
// that a program builds with, even if only a test imports the module. Tests with such imports are in a module of their own, next to
// the adapter. Testify is the exception, because the library's own go.mod requires it.
func TestPublishedModulesRequireOnlyWhatTheyImport(t *testing.T) {
	mods, err := filepath.Glob(root + "/adapters/*/go.mod")
	require.NoError(t, err)
	require.NotEmpty(t, mods)
	for _, mod := range append(mods, root+"/zkcontainer/go.mod") {
		imports := productImports(t, filepath.Dir(mod))
		for _, required := range directRequirements(t, mod) {
			used := required == "github.com/stretchr/testify"
			for path := range imports {
				used = used || in(path, required)
			}
			assert.True(t, used, "%s: no product file imports %s: move the tests that do to a module of their own", mod, required)
		}
	}
}

// directRequirements returns the modules that a go.mod requires directly.
func directRequirements(t *testing.T, file string) (all []string) {
	absolute, err := filepath.Abs(file)
	require.NoError(t, err)
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(goCommand(t, "mod", "edit", "-json", absolute)), &mod))
	for _, r := range mod.Require {
		if !r.Indirect {
			all = append(all, r.Path)
		}
	}
	require.NotEmpty(t, all, file)
	return all
}

// productImports returns what the files of a module import that are not tests. Modules within it are left out.
func productImports(t *testing.T, dir string) map[string]bool {
	imports := map[string]bool{}
	for _, pattern := range []string{"*.go", "internal/*.go", "internal/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			require.NoError(t, err)
			for _, i := range parsed.Imports {
				path, err := strconv.Unquote(i.Path.Value)
				require.NoError(t, err)
				imports[path] = true
			}
		}
	}
	require.NotEmpty(t, imports, dir)
	return imports
}
