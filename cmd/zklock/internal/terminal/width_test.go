// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Emoji among the symbols counted as one column, so that tables with them were not aligned.
func TestWidthCountsColumns(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "é": 1, "e\u0301": 1, "日本": 4, "ｆｕｌｌ": 8, "한국": 4, "\u1112\u1161\u11ab": 2, "…": 1, "→": 1, "─": 1, "±": 1,
		"✅": 2, "❌": 2, "⏰": 2, "⚡": 2, "⭐": 2, "🚀": 2, "🦄": 2, "🟢": 2, "🈁": 2, "✓": 1, "☎": 1, "🇩🇪": 2, "\U00020000": 2,
	} {
		assert.Equal(t, want, Width(text), text)
	}
}
