// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// jsonFolders print JSON that programs parse; metricFolders define metrics and attributes.
var (
	jsonFolders   = []string{"cmd/zklock", "adapters/readiness"}
	metricFolders = []string{"adapters/prometheus", "adapters/otel"}
)

// private are folders whose JSON only this module's own programs read.
var private = []string{"web", "browser"}

// metric matches the names of metrics, and of attributes of metrics and spans.
var metric = regexp.MustCompile(`^zklock[._][a-z_.]+$`)

// outsideNames returns the other names on which programs depend, sorted: the keys of JSON, and the
// names of metrics and attributes.
func outsideNames(root string) ([]string, error) {
	var lines []string
	for _, folder := range jsonFolders {
		err := eachFile(filepath.Join(root, folder), func(file *ast.File) { lines = append(lines, jsonKeys(file)...) })
		if err != nil {
			return nil, err
		}
	}
	for _, folder := range metricFolders {
		err := eachFile(filepath.Join(root, folder), func(file *ast.File) {
			for _, name := range metricNames(file) {
				lines = append(lines, "metric "+folder+" "+name)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

// eachFile calls use for each Go file of a folder that is neither a test nor private.
func eachFile(folder string, use func(file *ast.File)) error {
	set := token.NewFileSet()
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(private, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err == nil {
			use(file)
		}
		return err
	})
}

// jsonKeys returns a line for each field that has a key of its own in JSON.
func jsonKeys(file *ast.File) (lines []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, f := range fields.Fields.List {
			tag, err := strconv.Unquote(cmp.Or(f.Tag, &ast.BasicLit{Value: "``"}).Value)
			key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			if err == nil && key != "" && key != "-" {
				lines = append(lines, "json "+spec.Name.Name+" "+key)
			}
		}
		return false
	})
	return lines
}

// metricNames returns the names among a file's strings.
func metricNames(file *ast.File) (names []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		name, err := strconv.Unquote(lit.Value)
		if err == nil && metric.MatchString(name) {
			names = append(names, name)
		}
		return true
	})
	return names
}
