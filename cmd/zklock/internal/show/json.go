// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/zklock-go/zklock/internal/escape"
)

// JSON writes v on one line, or indented. It escapes characters that a terminal would interpret, in the form that JSON
// provides, so the values do not change.
func JSON(w io.Writer, v any, pretty bool) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if pretty {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return err
	}
	var safe bytes.Buffer
	for _, r := range b.String() {
		switch text := string(r); {
		case r < utf8.RuneSelf && r != 0x7f, escape.Text(text) == text:
			safe.WriteString(text)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&safe, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&safe, `\u%04x`, r)
		}
	}
	_, err := w.Write(safe.Bytes())
	return err
}
