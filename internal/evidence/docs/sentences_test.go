package docs

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const longest = 30 // words of a sentence

// public are the Go packages that a user imports, and whose documentation is read.
var public = []string{".", "observe", "operate", "slots", "lockprofile", "zktest", "zkcontainer", "adapters/*"}

// TestSentencesAreShort counts the words of every sentence of what users read: the documents, and the comments of the
// packages that they import.
func TestSentencesAreShort(t *testing.T) {
	total := 0
	for file, text := range written(t) {
		if place, _, _ := strings.Cut(file, "/"); !slices.Contains([]string{"internal", "compare", "tools", "integration"}, place) {
			total += short(t, file, text)
		}
	}
	for _, pkg := range public {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, pkg)
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				total += short(t, filepath.Base(file), comments(t, file))
			}
		}
	}
	assert.Greater(t, total, 3_000)
}

// short complains of each long sentence, and returns how many there are of any length.
func short(t *testing.T, where, text string) int {
	all := Sentences(text)
	for _, s := range all {
		assert.LessOrEqual(t, len(strings.Fields(s)), longest, "%s: make two sentences of: %s", where, s)
	}
	return len(all)
}

// comments returns those of a file, without their marks.
func comments(t *testing.T, file string) string {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	var all []string
	for _, group := range parsed.Comments {
		all = append(all, group.Text())
	}
	return strings.Join(all, "\n")
}

func TestSentencesAreFound(t *testing.T) {
	assert.Equal(t, []string{"One two", "Three code four", "a", "b\tc", "link", "Not this", "e.g this"},
		Sentences("One two. Three `x. y` four.\n\n| a | b\tc |\n- [link](u)\n```go\nno. no\n```\n\n\tno\n\n    no\n\nNot this: e.g. this."))
}
