// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"encoding/json"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readLayers returns the packages of layers.txt from top to bottom.
func readLayers(t *testing.T) (layers []string) {
	text, err := os.ReadFile("layers.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if dir, _, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, "#") {
			layers = append(layers, path.Join(module, dir))
		}
	}
	return layers
}

// TestEachPackageImportsOnlyLowerLayers compares layers.txt with the imports: each package of the library has a layer, and
// imports only packages of lower layers. Files of one package may use each other in any way.
func TestEachPackageImportsOnlyLowerLayers(t *testing.T) {
	layers := readLayers(t)
	imports := map[string][]string{}
	for _, p := range packages(t) {
		imports[p.ImportPath] = p.Imports
	}
	for i, pkg := range layers {
		require.Contains(t, imports, pkg, "layers.txt has a package that does not exist")
		for _, other := range imports[pkg] {
			if in(other, module) {
				assert.Contains(t, layers[i+1:], other, "%s imports a package that is not in a lower layer", pkg)
			}
		}
	}
	for _, pkg := range library(t) {
		if in(pkg, module) {
			assert.Contains(t, layers, pkg, "the package has no layer")
		}
	}
	sorted := slices.Clone(layers)
	slices.Sort(sorted)
	assert.Len(t, slices.Compact(sorted), len(layers), "a package has two layers")
}

// listed is a package as the go command lists it.
type listed struct {
	ImportPath, Export string
	Imports            []string
	DepOnly            bool
}

// packages returns the packages of this module and their dependencies.
func packages(t *testing.T, flags ...string) (found []listed) {
	args := slices.Concat([]string{"list", "-json=ImportPath,Export,Imports,DepOnly"}, flags, []string{"./..."})
	for dec := json.NewDecoder(strings.NewReader(goCommand(t, args...))); dec.More(); {
		var p listed
		require.NoError(t, dec.Decode(&p))
		found = append(found, p)
	}
	require.NotEmpty(t, found)
	return found
}

// TestUserPackagesDoNotImportTheEvidence checks that no package outside internal/evidence depends on it.
func TestUserPackagesDoNotImportTheEvidence(t *testing.T) {
	const evidence = module + "/internal/evidence"
	for pkg, all := range deps(t) {
		if in(pkg, evidence) {
			continue
		}
		for _, dep := range all {
			assert.False(t, in(dep, evidence), "%s must not import %s", pkg, dep)
		}
	}
}

// TestNoInternalMethodIsPromotedToUsers fails if an exported type has a promoted method or field of a package that users cannot
// import, which embedding does implicitly.
func TestNoInternalMethodIsPromotedToUsers(t *testing.T) {
	exports := map[string]string{} // the export data of every package, by its path
	all := packages(t, "-deps", "-export")
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	checked := 0
	for _, p := range all {
		if p.DepOnly || strings.Contains(p.ImportPath, "/internal") || strings.Contains(p.ImportPath, "/cmd/") {
			continue
		}
		pkg, err := imports.Import(p.ImportPath)
		require.NoError(t, err)
		for _, name := range pkg.Scope().Names() {
			object, ok := pkg.Scope().Lookup(name).(*types.TypeName)
			if !ok || !object.Exported() {
				continue
			}
			checked++
			all := types.NewMethodSet(types.NewPointer(object.Type()))
			for i := range all.Len() {
				if method := all.At(i).Obj(); method.Exported() {
					assert.NotContains(t, method.Pkg().Path(), "/internal", "%s.%s shows %s", pkg.Path(), name, method.Name())
				}
			}
		}
	}
	require.Greater(t, checked, 30)
}
