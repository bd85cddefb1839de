// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextsThatOverlapAreFound(t *testing.T) {
	for svg, want := range map[string][]string{
		`<svg><text x="0" y="20" data-width="10">a</text><text x="10" y="20" data-width="5">b</text></svg>`:                                    nil,
		`<svg><text x="0" y="20" data-width="11">a</text><text x="10" y="20" data-width="5">b</text></svg>`:                                    {`"a" and "b"`},
		`<svg><text x="0" y="20" data-width="11">a</text><text x="0" y="33" data-width="11">b</text></svg>`:                                    nil,
		`<svg><text x="0" y="20" data-width="11">a</text><text x="0" y="31" data-width="11">b</text></svg>`:                                    {`"a" and "b"`},
		`<svg><g transform="translate(50 0)"><text x="0" y="20" data-width="11">a</text></g><text x="55" y="20" data-width="1">b</text></svg>`: {`"a" and "b"`},
	} {
		all, err := Texts(svg)
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, want, Overlapping(all), svg)
	}
}

func TestATextOfUnknownWidthIsAnError(t *testing.T) {
	for _, svg := range []string{
		`<svg><text x="0" y="20">a</text></svg>`,
		`<svg><text x="0" y="20" data-width="5" text-anchor="end">a</text></svg>`,
		`<svg><text y="20" data-width="5">a</text></svg>`,
	} {
		_, err := Texts(svg)
		require.Error(t, err, svg)
	}
}
