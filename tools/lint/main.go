// SPDX-License-Identifier: Apache-2.0

// Command lint runs the analyzers of `go vet` and of staticcheck over several modules, from source and in one load. Nothing is
// compiled. Dependencies are type-checked without the bodies of their functions, which is why it takes a tenth of the time.
//
//	lint MODULE...    MODULE are directories with a go.mod
//
// It does not know staticcheck.conf or //lint:ignore: the code has no exceptions.
package main

import (
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
	"honnef.co/go/tools/unused"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("lint: ")
	findings, err := lint(os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}

// lint returns what the analyzers find in the modules, sorted, each finding once.
func lint(modules []string) ([]string, error) {
	pkgs, err := load(modules)
	if err != nil {
		return nil, err
	}
	if broken := errorsOf(pkgs); len(broken) > 0 {
		return broken, nil
	}
	graph, err := checker.Analyze(analyzers(), pkgs, nil)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, root := range graph.Roots {
		if root.Err != nil {
			return nil, fmt.Errorf("%s: %w", root, root.Err)
		}
		for _, d := range root.Diagnostics {
			found[fmt.Sprintf("%s: %s: %s", relative(root.Package.Fset.Position(d.Pos).String()), root.Analyzer.Name, d.Message)] = true
		}
	}
	maps.Copy(found, unusedObjects(graph.Roots))
	return slices.Sorted(maps.Keys(found)), nil
}

// errorsOf returns the errors of packages that do not build.
func errorsOf(pkgs []*packages.Package) []string {
	found := map[string]bool{}
	for _, p := range pkgs {
		for _, e := range p.Errors {
			found[relative(e.Error())] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// unusedObjects returns the objects that no variant of their package uses: a package alone does not use what only its tests
// use.
func unusedObjects(roots []*checker.Action) map[string]bool {
	used, candidates := map[string]bool{}, map[string]string{}
	for _, root := range roots {
		result, ok := root.Result.(unused.Result)
		if !ok {
			continue
		}
		for _, o := range slices.Concat(result.Used, result.Quiet) {
			used[o.Position.String()+o.Name] = true
		}
		for _, o := range result.Unused {
			candidates[o.Position.String()+o.Name] = fmt.Sprintf("%s: U1000: %s %s is unused", relative(o.DisplayPosition.String()), o.Kind, o.Name)
		}
	}
	found := map[string]bool{}
	for key, text := range candidates {
		if !used[key] {
			found[text] = true
		}
	}
	return found
}

// relative shortens a text that begins with a path below the working directory.
func relative(text string) string {
	dir, err := os.Getwd()
	if err != nil {
		return text
	}
	return strings.TrimPrefix(text, dir+string(filepath.Separator))
}
