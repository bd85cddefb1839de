// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Passage is a paragraph, a list item, a table cell, a comment or a string literal, with its words separated by
// single spaces.
type Passage struct {
	File string
	Text string

	starts []int // where each of its lines begins in Text
	lines  []int // the number of each of its lines in File
}

// At returns the file and the line of the word at an offset in Text.
func (p Passage) At(offset int) string {
	i := len(p.starts) - 1
	for i > 0 && p.starts[i] > offset {
		i--
	}
	return fmt.Sprintf("%s:%d", p.File, p.lines[i])
}

// Prose returns the passages of all files below root that people read: comments and string literals of Go files, and the
// whole text of documents, scripts, pages and models. It leaves out testdata and measured results.
func Prose(root string) ([]Passage, error) {
	var all []Passage
	err := eachFile(root, isProse, func(name string, data []byte) error {
		found, err := PassagesOf(name, data)
		all = append(all, found...)
		return err
	})
	return all, err
}

// eachFile calls read with the name below root, with slashes, and the text of each file whose name is wanted.
func eachFile(root string, wanted func(name string) bool, read func(name string, data []byte) error) error {
	return filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(unread, entry.Name()) && file != root {
				return fs.SkipDir
			}
			return nil
		}
		name, err := filepath.Rel(root, file)
		if err != nil || !wanted(filepath.ToSlash(name)) {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return read(filepath.ToSlash(name), data)
	})
}

// unread are directories that hold no text of ours.
var unread = []string{".git", "testdata", "results", "bin", "dist", ".compare", "node_modules", "__pycache__"}

// isProse reports whether a file has text that people read. A file without an extension is a script.
func isProse(name string) bool {
	switch path.Ext(name) {
	case ".go", ".md", ".yml", ".yaml", ".html", ".css", ".js", ".py", ".java", ".pml", ".svg":
		return true
	case "":
		return path.Base(name) != "LICENSE"
	case ".txt":
		return name == "internal/evidence/surface/reasons.txt"
	}
	return name == "adapters/prometheus/dashboard.json"
}

// PassagesOf splits the text of a file into passages.
func PassagesOf(name string, data []byte) ([]Passage, error) {
	if path.Ext(name) != ".go" {
		return split(name, 1, string(data)), nil
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, data, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var all []Passage
	for _, group := range file.Comments {
		for _, c := range joined(group) {
			all = append(all, split(name, files.Position(c.Slash).Line, c.Text)...)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.KeyValueExpr: // the edits of a mutant are code
			key, ok := n.Key.(*ast.Ident)
			return !ok || key.Name != "Edits"
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				all = append(all, split(name, files.Position(n.Pos()).Line, text)...)
			}
		}
		return true
	})
	return all, nil
}

// joined returns the comments of a group, with successive // comments as one.
func joined(group *ast.CommentGroup) []ast.Comment {
	var all []ast.Comment
	for i, c := range group.List {
		switch {
		case directive.MatchString(c.Text):
			all = append(all, ast.Comment{Slash: c.Slash})
		case i > 0 && strings.HasPrefix(c.Text, "//"):
			all[len(all)-1].Text += "\n" + c.Text
		default:
			all = append(all, *c)
		}
	}
	return all
}

var (
	directive = regexp.MustCompile(`^//[a-z0-9]+:[a-z0-9]`)
	leader    = regexp.MustCompile(`^(?://+|/\*+|\*+/|#+|<!--)?\s*`)
	// item begins a passage of its own: a list item, a table row, a fence or a numbered step.
	item    = regexp.MustCompile("^(?:- |\\* |\\d+\\. |\\||```)")
	heading = regexp.MustCompile(`^#+ `)
)

// split returns the passages of a text that begins at a line of a file.
func split(name string, line int, text string) []Passage {
	var all []Passage
	open := false
	add := func(number int, words string) {
		if !open {
			all = append(all, Passage{File: name})
			open = true
		}
		p := &all[len(all)-1]
		if p.Text != "" {
			p.Text += " "
		}
		p.starts, p.lines = append(p.starts, len(p.Text)), append(p.lines, number)
		p.Text += words
	}
	for i, raw := range strings.Split(text, "\n") {
		raw = strings.TrimSpace(raw)
		stripped := strings.TrimSpace(leader.ReplaceAllString(raw, ""))
		title := path.Ext(name) == ".md" && heading.MatchString(raw)
		if stripped == "" || title || item.MatchString(raw) || item.MatchString(stripped) {
			open = false
		}
		for j, cell := range strings.Split(stripped, " | ") {
			if j > 0 {
				open = false
			}
			if words := strings.Join(strings.Fields(cell), " "); words != "" {
				add(line+i, words)
			}
		}
		open = open && !title
	}
	return all
}
