// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A pkg is a product package with its mutations.
type pkg struct {
	dir       string // relative to the module's directory
	name      string
	files     []string // without tests
	hasTests  bool
	mutations []mutation
	texts     map[string]string // the files that replace the package's own, by name
}

// listed is what `go list -json` prints of a package.
type listed struct {
	Dir, ImportPath, Name, Export      string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

// productPackages returns the root, slots and the packages below internal without the evidence.
func productPackages(root string) ([]*pkg, error) {
	all, err := goList(root, "-json=Dir,ImportPath,Name,GoFiles,TestGoFiles,XTestGoFiles", ".", "./slots", "./internal/...")
	if err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	var packages []*pkg
	for _, l := range all {
		dir, err := filepath.Rel(absolute, l.Dir)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(dir, "internal/evidence") {
			continue
		}
		packages = append(packages, &pkg{dir: dir, name: l.Name, files: l.GoFiles, hasTests: len(l.TestGoFiles)+len(l.XTestGoFiles) > 0})
	}
	return packages, nil
}

func goList(root string, args ...string) (all []listed, _ error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		err := d.Decode(&l)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
}

// mutate finds the package's mutations.
func (p *pkg) mutate() error {
	fset := token.NewFileSet()
	var sources []*source
	var parsed []*ast.File
	for _, name := range p.files {
		name = filepath.Join(p.dir, name)
		text, err := os.ReadFile(filepath.Join(*root, name))
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, file)
		sources = append(sources, &source{name: name, text: string(text), fset: fset, file: file})
	}
	info, err := typesOf(fset, *root, p.dir, parsed)
	if err != nil {
		return err
	}
	p.texts, p.mutations = map[string]string{}, nil
	for _, s := range sources {
		s.types, s.next = info, len(p.mutations)+1
		s.collect()
		if len(s.all) == 0 {
			continue
		}
		p.mutations = append(p.mutations, s.all...)
		p.texts[s.name] = s.rewritten()
	}
	p.texts[filepath.Join(p.dir, "mutated.go")] = fmt.Sprintf(switches, p.name)
	return nil
}

// typesOf returns the types of a package's expressions. The packages that it imports come from the build cache.
func typesOf(fset *token.FileSet, root, dir string, files []*ast.File) (map[ast.Expr]types.TypeAndValue, error) {
	all, err := goList(root, "-export", "-deps", "-json=ImportPath,Export", "./"+dir)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup)}
	if _, err := config.Check(dir, fset, files, info); err != nil {
		return nil, err
	}
	return info.Types, nil
}
