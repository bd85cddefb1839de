// SPDX-License-Identifier: Apache-2.0

package show

import (
	"testing"
	"unicode/utf8"
)

// hostile is what a contender may say of itself to mislead those who look.
const hostile = "\x1b]0;x\a\u009b2J\u202egnp\nHOLDS\r\u2028\x7f\xff"

func assertHarmless(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && (r < ' ' || r >= 0x7f && r <= 0x9f || r == '\u202e' || r == '\u2028') {
			t.Fatalf("%.300q has %U", text, r)
		}
	}
	if !utf8.ValidString(text) {
		t.Fatalf("%.300q is not UTF-8", text)
	}
}
