// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A figure is a passage with the result of a measurement.
type figure struct {
	where, command, commit string
}

var (
	dateOfFigure   = regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b`)
	commitOfFigure = regexp.MustCompile("commit `([0-9a-f]{7,40})\\+?`")
	codeSpan       = regexp.MustCompile("`[^`]*`")
	errNoCommit    = errors.New("the commit is not in this clone")
)

// measured reads what each command measures.
func measured(t *testing.T) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(read(t, "internal/evidence/docs/testdata/figures.txt")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		command, paths, ok := strings.Cut(strings.TrimSpace(line), "\t")
		require.True(t, ok, line)
		all[command] = strings.Fields(paths)
	}
	require.NotEmpty(t, all)
	return all
}

// figuresOf returns the figures of a page, and the places of dates without a commit or a command.
func figuresOf(passages []Passage, commands map[string][]string) (all []figure, bare []string) {
	for _, p := range passages {
		at := dateOfFigure.FindStringIndex(codeSpan.ReplaceAllString(p.Text, "`"))
		if at == nil {
			continue
		}
		commit := commitOfFigure.FindStringSubmatch(p.Text)
		var named []string
		for command := range commands {
			if strings.Contains(p.Text, "`"+command+"`") {
				named = append(named, command)
			}
		}
		if commit == nil || len(named) != 1 {
			bare = append(bare, p.At(0)+" "+p.Text)
			continue
		}
		all = append(all, figure{p.At(0), named[0], commit[1]})
	}
	return all, bare
}

// changedSince returns a file below one of the paths whose code has changed since a commit, or "" if there is none. Tests, documents and
// comments do not count. Neither does a path after "!".
func changedSince(dir, commit string, paths []string) (string, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).Output()
		return string(out), err
	}
	if _, err := git("merge-base", "--is-ancestor", commit, "HEAD"); err != nil {
		return "", errNoCommit
	}
	args := []string{"diff", "--name-only", "--no-renames", commit, "HEAD", "--", ":(exclude,glob)**/*_test.go", ":(exclude,glob)**/*.md"}
	for _, path := range paths {
		magic := ":(glob)"
		if rest, out := strings.CutPrefix(path, "!"); out {
			magic, path = ":(exclude,glob)", rest
		}
		args = append(args, magic+path, magic+path+"/**")
	}
	names, err := git(args...)
	if err != nil {
		return "", err
	}
	for _, name := range strings.Fields(names) {
		before, err := git("show", commit+":"+name)
		after, err2 := git("show", "HEAD:"+name)
		if err != nil || err2 != nil || filepath.Ext(name) != ".go" || codeOf(before) != codeOf(after) {
			return name, nil
		}
	}
	return "", nil
}

// codeOf returns the tokens of a Go file, without comments.
func codeOf(source string) string {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(source)), []byte(source), nil, 0)
	var all strings.Builder
	for {
		_, kind, text := s.Scan()
		if kind == token.EOF {
			return all.String()
		}
		fmt.Fprintf(&all, "%s %q ", kind, strings.TrimSpace(text))
	}
}

// TestEachFigureIsAsNewAsWhatItMeasures skips an old figure, so that it is listed with its reason. At a release (ZKLOCK_RELEASE=1) it
// fails, and it also fails if the history does not tell.
func TestEachFigureIsAsNewAsWhatItMeasures(t *testing.T) {
	commands := measured(t)
	var all []figure
	for page, text := range written(t) {
		if strings.HasPrefix(page, "internal/") || strings.HasPrefix(page, "integration/") || strings.HasPrefix(page, "docs/maintainers/") {
			continue
		}
		passages, err := PassagesOf(page, []byte(text))
		require.NoError(t, err)
		found, bare := figuresOf(passages, commands)
		assert.Empty(t, bare, "a date stands with \"commit `abc1234`\" and one command of testdata/figures.txt")
		all = append(all, found...)
	}
	require.GreaterOrEqual(t, len(all), 5)
	for _, f := range all {
		t.Run(strings.ReplaceAll(f.where, "/", "_"), func(t *testing.T) {
			old := t.Skipf
			if os.Getenv("ZKLOCK_RELEASE") != "" {
				old = t.Fatalf
			}
			change, err := changedSince(root, f.commit, commands[f.command])
			if err != nil {
				old("%s: %s (%s): %v", f.where, f.command, f.commit, err)
			}
			if change != "" {
				old("%s: run %s again: it was measured at %s, and %s has changed since", f.where, f.command, f.commit, change)
			}
		})
	}
}

func TestADateNeedsACommitAndACommand(t *testing.T) {
	commands := map[string][]string{"make a": nil, "make b": nil}
	passages, err := PassagesOf("p.md", []byte("It took 1 s (`make a`, 2026-01-02, commit `abcdef1`).\n\nIt took 2 s (2026-01-02).\n\nRun `x 2026-01-02`.\n\n"+
		"It took 3 s (`make a`, `make b`, 2026-01-02, commit `abcdef1`).\n"))
	require.NoError(t, err)
	found, bare := figuresOf(passages, commands)
	assert.Equal(t, []figure{{"p.md:1", "make a", "abcdef1"}}, found)
	assert.Len(t, bare, 2)
}

// TestAFigureIsOldWhenWhatItMeasuresHasChanged uses a repository of its own.
func TestAFigureIsOldWhenWhatItMeasuresHasChanged(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	commit := func(file, text string) string {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		git("add", ".")
		git("commit", "-q", "-m", file)
		return git("rev-parse", "--short", "HEAD")
	}
	git("init", "-q")
	paths := []string{"*.go", "internal/lease", "!internal/lease/other.go"}
	commit("a.go", "package a\n")
	first := commit("internal/lease/l.go", "package lease\n")
	for _, other := range []string{"docs/a.md", "internal/lease/README.md", "other/a.go", "a_test.go", "internal/lease/l_test.go", "internal/lease/other.go"} {
		commit(other, "package a\n")
		change, err := changedSince(dir, first, paths)
		require.NoError(t, err)
		assert.Empty(t, change, other)
	}
	commit("a.go", "// A comment.\n\npackage a\n")
	change, err := changedSince(dir, first, paths)
	require.NoError(t, err)
	assert.Empty(t, change, "only a comment")
	for _, file := range []string{"a.go", "internal/lease/l.go", "internal/lease/new.go"} {
		before := git("rev-parse", "HEAD")
		commit(file, "package changed\n")
		change, err := changedSince(dir, before, paths)
		require.NoError(t, err)
		assert.Equal(t, file, change)
	}
	_, err = changedSince(dir, "0123456", paths)
	assert.ErrorIs(t, err, errNoCommit)
}
