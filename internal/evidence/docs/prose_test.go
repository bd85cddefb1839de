// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func texts(passages []Passage) []string {
	var all []string
	for _, p := range passages {
		all = append(all, p.At(0)+" "+p.Text)
	}
	return all
}

func TestPassagesOfGoFilesAreCommentsAndStrings(t *testing.T) {
	const source = "package p\n\nimport \"no passage\"\n\n//go:generate no passage\n\n// f does\n// this.\n//\n//   - an item\nfunc f() {\n" +
		"\t_ = \"a string\" // the end of a line\n\t_ = m{Name: \"a name\", Edits: \"code\"}\n\t_ = `first\nsecond`\n}\n"
	passages, err := PassagesOf("f.go", []byte(source))
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"f.go:7 f does this.", "f.go:10 - an item", "f.go:12 a string", "f.go:12 the end of a line", "f.go:13 a name", "f.go:14 first second"}, texts(passages))
}

func TestPassagesOfDocumentsAreParagraphsItemsAndCells(t *testing.T) {
	passages, err := PassagesOf("f.md", []byte("# Title\nA paragraph\nof two lines.\n\n- item\n- next\n\n| cell | other |\n"))
	require.NoError(t, err)
	assert.Equal(t, []string{"f.md:1 Title", "f.md:2 A paragraph of two lines.", "f.md:5 - item", "f.md:6 - next", "f.md:8 | cell", "f.md:8 other |"}, texts(passages))
	assert.Equal(t, "f.md:3", passages[1].At(len("A paragraph ")))
}

func TestPassagesOfScriptsAreComments(t *testing.T) {
	passages, err := PassagesOf("setup", []byte("#!/bin/sh\n# one\n# comment\n\nls\n"))
	require.NoError(t, err)
	assert.Equal(t, []string{"setup:1 !/bin/sh one comment", "setup:5 ls"}, texts(passages))
}
