// SPDX-License-Identifier: Apache-2.0

// Package escape makes untrusted text safe to print in a terminal, a log or an error. Node names,
// their data and server replies can come from anyone with write access below a lock's path.
package escape

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// Text returns s with every character escaped that is not shown as itself: control characters (C0,
// DEL and C1, so also line breaks and escape sequences); bidirectional and other invisible format
// characters; spaces other than U+0020; variation selectors, fillers, and bytes that are not UTF-8; and
// more than three combining marks in a row, which would be drawn over the lines above and below.
// The escapes are those of Go (\n, \x1b, \u202e), and a backslash is doubled, so different texts
// stay different. A text without any of these characters is returned unchanged.
func Text(s string) string {
	clean := prefix(s)
	if clean == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:clean])
	m := marksAtEnd(s[:clean])
	for i := clean; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		m = m.after(r)
		switch {
		case r == utf8.RuneError && size == 1:
			escape(&b, 'x', 2, rune(s[i]))
		case shows(r) && m <= mostMarks:
			b.WriteString(s[i : i+size])
		default:
			escapeRune(&b, r)
		}
		i += size
	}
	return b.String()
}

// Short is like Text for at most n bytes of s. If it cuts s, it appends "...".
func Short(s string, n int) string {
	if len(s) <= n {
		return Text(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return Text(s[:n]) + "..."
}

// prefix returns the length of the part of s before the first character to escape.
func prefix(s string) int {
	var m marks
	for i, r := range s {
		m = m.after(r)
		if !shows(r) || m > mostMarks || r == utf8.RuneError {
			return i // s may contain U+FFFD itself: Text decides
		}
	}
	return len(s)
}

// marks is a number of combining marks in a row.
type marks int

// mostMarks is enough for any script: Hebrew letters have up to three.
const mostMarks marks = 3

// after returns the number of marks in a row after the next character.
func (m marks) after(r rune) marks {
	if r >= utf8.RuneSelf && unicode.In(r, unicode.Mn, unicode.Me) {
		return m + 1
	}
	return 0
}

func marksAtEnd(s string) (m marks) {
	for _, r := range s {
		m = m.after(r)
	}
	return m
}

// shows reports whether r appears in the output unchanged.
func shows(r rune) bool {
	if r < utf8.RuneSelf {
		return ' ' <= r && r < 0x7f && r != '\\'
	}
	return unicode.IsPrint(r) && r != brailleBlank && !unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// brailleBlank is the only symbol that looks blank.
const brailleBlank = '\u2800'

func escapeRune(b *strings.Builder, r rune) {
	switch {
	case r == '\\':
		b.WriteString(`\\`)
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\r':
		b.WriteString(`\r`)
	case r == '\t':
		b.WriteString(`\t`)
	case r < utf8.RuneSelf:
		escape(b, 'x', 2, r)
	case r <= 0xffff:
		escape(b, 'u', 4, r)
	default:
		escape(b, 'U', 8, r)
	}
}

func escape(b *strings.Builder, letter byte, digits int, r rune) {
	b.WriteByte('\\')
	b.WriteByte(letter)
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		b.WriteByte(hexDigits[r>>shift&0xf])
	}
}
