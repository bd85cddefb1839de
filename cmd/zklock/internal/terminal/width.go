// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Width returns the number of screen columns that text takes.
func Width(text string) int {
	n := 0
	for _, r := range text {
		n += columnsOfRune(r)
	}
	return n
}

// wideRunes are the characters that take two columns, and blocks of nearly only such characters: those with the property
// East_Asian_Width=W or F, which the emoji among the symbols have. A library for this would be a dependency of zklock's own module.
var wideRunes = [][2]rune{
	{0x1100, 0x115f}, {0x231a, 0x231b}, {0x2329, 0x232a}, {0x23e9, 0x23ec}, {0x23f0, 0x23f0}, {0x23f3, 0x23f3}, {0x25fd, 0x25fe}, {0x2614, 0x2615},
	{0x2648, 0x2653}, {0x267f, 0x267f}, {0x2693, 0x2693}, {0x26a1, 0x26a1}, {0x26aa, 0x26ab}, {0x26bd, 0x26be}, {0x26c4, 0x26c5}, {0x26ce, 0x26ce},
	{0x26d4, 0x26d4}, {0x26ea, 0x26ea}, {0x26f2, 0x26f3}, {0x26f5, 0x26f5}, {0x26fa, 0x26fa}, {0x26fd, 0x26fd}, {0x2705, 0x2705}, {0x270a, 0x270b},
	{0x2728, 0x2728}, {0x274c, 0x274c}, {0x274e, 0x274e}, {0x2753, 0x2755}, {0x2757, 0x2757}, {0x2795, 0x2797}, {0x27b0, 0x27b0}, {0x27bf, 0x27bf},
	{0x2b1b, 0x2b1c}, {0x2b50, 0x2b50}, {0x2b55, 0x2b55}, {0x2e80, 0x303e}, {0x3041, 0xa4cf}, {0xa960, 0xa97c}, {0xac00, 0xd7a3}, {0xf900, 0xfaff},
	{0xfe10, 0xfe19}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x16fe0, 0x18cff}, {0x1aff0, 0x1b2fb}, {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf},
	{0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f265}, {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f7e0, 0x1f7eb}, {0x1f90c, 0x1f9ff},
	{0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
}

func columnsOfRune(r rune) int {
	if unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) || 0x1160 <= r && r <= 0x11ff { // marks, and the ends of Hangul syllables
		return 0
	}
	if slices.ContainsFunc(wideRunes, func(block [2]rune) bool { return block[0] <= r && r <= block[1] }) {
		return 2
	}
	return 1
}

// Shorten cuts text to at most most columns and ends it with "…" if something is missing.
func Shorten(text string, most int) string {
	if Width(text) <= most {
		return text
	}
	n := 0
	for i, r := range text {
		n += columnsOfRune(r)
		if n >= most {
			return text[:i] + strings.Repeat("…", min(1, max(0, most)))
		}
	}
	return text
}

// ShortenLeft is like Shorten, but keeps the end, where paths and node names differ.
func ShortenLeft(text string, most int) string {
	n := Width(text)
	if n <= most {
		return text
	}
	for i, r := range text {
		n -= columnsOfRune(r)
		if n < most {
			return "…" + text[i+utf8.RuneLen(r):]
		}
	}
	return ""
}
