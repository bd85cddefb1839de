// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/escape"
)

func TestOrdinaryTextIsNotChanged(t *testing.T) {
	for _, s := range []string{"", "host-7.example", "größer 日本語 ∀x 🙂", "a b", "\ufffd itself", `"quoted" 'text'`} {
		assert.Equal(t, s, escape.Text(s))
	}
}

func TestControlCharactersAreEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[2J\x1b]0;owned\a": `\x1b[2J\x1b]0;owned\x07`,
		"\u009b31m":             `\u009b31m`,
		"two\nlines\r\tx\x7f":   `two\nlines\r\tx\x7f`,
		"\u202egnp.exe":         `\u202egnp.exe`,
		"a\u200bb\u2066c\ufeff": `a\u200bb\u2066c\ufeff`,
		"\u2028\u2029\u00a0":    `\u2028\u2029\u00a0`,
		"\U000e0041tag":         `\U000e0041tag`,
		"\ufe0f\u3164\u2800":    `\ufe0f\u3164\u2800`,
		"\x9b\xff":              `\x9b\xff`,
		`C:\x`:                  `C:\\x`,
	} {
		assert.Equal(t, want, escape.Text(in), "%q", in)
	}
}

func TestDifferentTextsStayDifferent(t *testing.T) {
	assert.NotEqual(t, escape.Text("\x1b"), escape.Text(`\x1b`))
	assert.NotEqual(t, escape.Text("\x9b"), escape.Text("\u009b"))
}

func TestShortCutsBetweenCharacters(t *testing.T) {
	assert.Equal(t, "grö", escape.Short("grö", 4))
	assert.Equal(t, "gr...", escape.Short("größer", 3))
	assert.Equal(t, `\x1b...`, escape.Short("\x1b[2J", 1))
	assert.Equal(t, "...", escape.Short("ö", 1))
}

//zklock:promise P8.3
func FuzzText(f *testing.F) {
	f.Add("\x1b[31m\u202e\u009b\xffhost\n\\")
	f.Fuzz(func(t *testing.T, s string) {
		out := escape.Text(s)
		require.True(t, utf8.ValidString(out))
		for _, r := range out {
			require.True(t, unicode.IsPrint(r), "%U in %q", r, out)
		}
		back, err := strconv.Unquote(`"` + strings.ReplaceAll(out, `"`, `\"`) + `"`)
		require.NoError(t, err)
		require.Equal(t, s, back, "nothing is lost")
	})
}

// Marks that are stacked are drawn over the lines above and below.
func TestFewCombiningMarksAreShownInARow(t *testing.T) {
	const acute = "\u0301"
	for text, want := range map[string]string{
		"e" + acute:                      "e" + acute,
		"e" + strings.Repeat(acute, 3):   "e" + strings.Repeat(acute, 3),
		"e" + strings.Repeat(acute, 5):   "e" + strings.Repeat(acute, 3) + `\u0301\u0301`,
		"\n" + strings.Repeat(acute, 4):  `\n` + strings.Repeat(acute, 3) + `\u0301`,
		strings.Repeat("e"+acute, 100):   strings.Repeat("e"+acute, 100),
		"\u05d1\u05bc\u05b8\u05a1\u05d0": "\u05d1\u05bc\u05b8\u05a1\u05d0",
		"x\u20dd\u20dd\u20dd\u20dd":      "x\u20dd\u20dd\u20dd" + `\u20dd`,
	} {
		require.Equal(t, want, escape.Text(text), "%q", text)
	}
}
