// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Register returns the text of the pages that list promises: docs/promises.md, and docs/capacity.md for those about costs.
func Register(root string) (string, error) {
	var all []byte
	for _, page := range []string{"promises.md", "capacity.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			return "", err
		}
		all = append(all, text...)
	}
	return string(all), nil
}

// A Claim is a promise or an assumption of the register: P2.1 is a promise, and A1 is an assumption.
type Claim struct {
	ID     string
	Text   string
	Tested bool // whether its row does not say that it is not tested
}

// Claims returns the rows of a page in its order.
func Claims(page string) []Claim {
	var all []Claim
	for _, row := range regexp.MustCompile(`(?m)^\| (P\d+\.\d+|A\d+) \| (.*?) \| ?(.*?) ?\|$`).FindAllStringSubmatch(page, -1) {
		all = append(all, Claim{row[1], row[2], !strings.Contains(row[0], "*not tested*")})
	}
	return all
}

// A Backing is a test, a fuzz target or a benchmark with the claims that it backs.
type Backing struct {
	Name string
	File string // below the repository's root, with slashes
	IDs  []string
}

const promiseDirective = "//zklock:promise "

var errNoDoc = errors.New("a directive that is not in the doc comment of a test")

// Backings returns the tests below root whose doc comments have a //zklock:promise directive, by file and line. It
// returns an error if a directive is anywhere else.
func Backings(root string) ([]Backing, error) {
	var all []Backing
	isTestFile := func(name string) bool { return strings.HasSuffix(name, "_test.go") }
	err := eachFile(root, isTestFile, func(name string, data []byte) error {
		if !bytes.Contains(data, []byte("\n"+promiseDirective)) {
			return nil
		}
		found, err := BackingsIn(name, data)
		all = append(all, found...)
		return err
	})
	return all, err
}

// BackingsIn returns the tests of one file.
func BackingsIn(name string, data []byte) ([]Backing, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []Backing
	lines := 0
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Doc == nil || !isTest.MatchString(f.Name.Name) {
			continue
		}
		var ids []string
		for _, line := range f.Doc.List {
			if rest, ok := strings.CutPrefix(line.Text, promiseDirective); ok {
				lines++
				ids = append(ids, strings.Fields(rest)...)
			}
		}
		if ids != nil {
			all = append(all, Backing{f.Name.Name, name, ids})
		}
	}
	if lines != bytes.Count(data, []byte("\n"+promiseDirective)) {
		return nil, fmt.Errorf("%s: %w", name, errNoDoc)
	}
	return all, nil
}

var isTest = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]`)

// Runs reports whether "go test -run" runs b: it does not run benchmarks.
func (b Backing) Runs() bool { return !strings.HasPrefix(b.Name, "Benchmark") }
