package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const longest = 30 // words of a sentence

// TestSentencesAreShort counts the words of every sentence of the documents, and of every comment.
func TestSentencesAreShort(t *testing.T) {
	total := 0
	for file, text := range written(t) {
		total += short(t, file, text)
	}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, ".go") {
			total += short(t, file, comments(t, file))
		}
		return err
	})
	require.NoError(t, err)
	assert.Greater(t, total, 15_000)
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
