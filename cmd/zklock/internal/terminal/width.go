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

// wideRunes are the blocks in which nearly all characters take two columns.
var wideRunes = [][2]rune{
	{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6},
	{0x1f300, 0x1faff}, {0x20000, 0x3fffd},
}

func columnsOfRune(r rune) int {
	if unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) {
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
