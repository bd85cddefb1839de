// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A phrase is an expression that makes a reader stop, and what to write instead.
type phrase struct {
	*regexp.Regexp
	plain string
	needs []string // a match contains one of these
}

// in returns where the phrase occurs in a text. Most texts contain none of the words that it needs, and are not searched.
func (p phrase) in(text string) [][]int {
	if !slices.ContainsFunc(p.needs, func(word string) bool { return strings.Contains(text, word) }) {
		return nil
	}
	return p.FindAllStringIndex(text, -1)
}

// phrases reads the list: an expression, a tab, and the plain form in each line.
func phrases(t *testing.T) []phrase {
	var all []phrase
	for line := range strings.Lines(read(t, "internal/evidence/docs/testdata/phrases.txt")) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		expression, plain, ok := strings.Cut(line, "\t")
		require.True(t, ok && plain != "", "no tab, or no plain form: %s", line)
		parsed, err := syntax.Parse(expression, syntax.Perl)
		require.NoError(t, err)
		p := phrase{regexp.MustCompile(expression), plain, needed(parsed)}
		require.NotEmpty(t, p.needs, "it has no word of its own: %s", line)
		all = append(all, p)
	}
	return all
}

// needed returns texts of which each match of an expression contains one, or nil if it finds none.
func needed(e *syntax.Regexp) (words []string) {
	switch e.Op {
	case syntax.OpLiteral:
		return []string{string(e.Rune)}
	case syntax.OpCapture, syntax.OpPlus:
		return needed(e.Sub[0])
	case syntax.OpConcat:
		for _, sub := range e.Sub {
			if found := needed(sub); shortest(found) > shortest(words) {
				words = found
			}
		}
	case syntax.OpAlternate:
		for _, sub := range e.Sub {
			found := needed(sub)
			if found == nil {
				return nil
			}
			words = append(words, found...)
		}
	}
	return words
}

func shortest(words []string) int {
	if len(words) == 0 {
		return 0
	}
	return len(slices.MinFunc(words, func(a, b string) int { return len(a) - len(b) }))
}

// TestNoTextHasAPhraseOfTheList holds the list against every comment, string literal, document, script and page of every module.
func TestNoTextHasAPhraseOfTheList(t *testing.T) {
	t.Parallel()
	list := phrases(t)
	passages, err := Prose(root)
	require.NoError(t, err)
	require.Greater(t, len(passages), 20000)
	for _, passage := range passages {
		for _, p := range list {
			for _, at := range p.in(passage.Text) {
				assert.Fail(t, "not plain", "%s: %q: write %s", passage.At(at[0]), passage.Text[max(0, at[0]-40):min(len(passage.Text), at[1]+40)], p.plain)
			}
		}
	}
}

// TestThePhrasesAreFound finds phrases in stiff sentences, and none in plain ones.
func TestThePhrasesAreFound(t *testing.T) {
	list := phrases(t)
	for line := range strings.Lines(read(t, "internal/evidence/docs/testdata/sentences.txt")) {
		found := slices.ContainsFunc(list, func(p phrase) bool { return p.in(strings.TrimSpace(line[2:])) != nil })
		assert.Equal(t, line[0] == '-', found, line)
	}
}
