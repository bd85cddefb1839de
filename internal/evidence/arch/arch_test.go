// SPDX-License-Identifier: Apache-2.0

// Package arch checks which packages of this repository may import which (docs/maintainers/design.md).
package arch

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	module = "github.com/zklock-go/zklock"
	client = "github.com/go-zookeeper/zk"
	zktest = module + "/zktest"
	wiring = module + "/internal/lab/wiring" // the parts of zktest that only package lab uses
	root   = "../../.."
)

// deps returns every package of the root module with all dependencies of its non-test code, including itself.
func deps(t *testing.T) map[string][]string {
	out := goCommand(t, "list", "-json=ImportPath,Deps", "./...")
	found := map[string][]string{}
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var p struct {
			ImportPath string
			Deps       []string
		}
		require.NoError(t, dec.Decode(&p))
		found[p.ImportPath] = append(p.Deps, p.ImportPath)
	}
	return found
}

// library returns all dependencies of the root package.
func library(t *testing.T) []string {
	all := deps(t)
	require.Contains(t, all, module)
	return all[module]
}

// standard reports whether a path belongs to the standard library: its first element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func goCommand(t *testing.T, args ...string) string {
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go %s: %s", strings.Join(args, " "), stderr.String())
	return string(out)
}

// in reports whether path is pkg or lies below it.
func in(path, pkg string) bool { return path == pkg || strings.HasPrefix(path, pkg+"/") }

func TestServerUsesOnlyTheStandardLibrary(t *testing.T) {
	all := deps(t)
	require.Contains(t, all, zktest)
	for pkg := range all {
		if !in(pkg, zktest) && pkg != wiring {
			continue
		}
		for _, dep := range all[pkg] {
			assert.True(t, standard(dep) || in(dep, zktest) || dep == wiring, "%s must not import %s", pkg, dep)
		}
	}
}

func TestLibraryNeverImportsTheServer(t *testing.T) {
	for _, dep := range library(t) {
		assert.False(t, in(dep, zktest), "the library must not import %s", dep)
	}
}

func TestLibraryNeedsNothingButTheClient(t *testing.T) {
	for _, dep := range library(t) {
		assert.True(t, standard(dep) || in(dep, module) || in(dep, client), "the library must not import %s", dep)
	}
}

func TestRootModuleRequiresClientAndTestifyOnly(t *testing.T) {
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(goCommand(t, "mod", "edit", "-json")), &mod))
	var direct []string
	for _, r := range mod.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	slices.Sort(direct)
	assert.Equal(t, []string{client, "github.com/stretchr/testify"}, direct)
}

// The test parses the files of the nested modules, because go list would download their dependencies, which this module's tests must
// not need.
func TestNothingImportsIntegrationOrCompare(t *testing.T) {
	files := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		files++
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			for _, leaf := range []string{"integration", "compare"} {
				inside := in(filepath.ToSlash(rel), leaf)
				assert.False(t, in(imported, module+"/"+leaf) && !inside, "%s must not import %s", rel, imported)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NotZero(t, files)
}
