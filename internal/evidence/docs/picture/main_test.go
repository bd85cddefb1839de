// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/docs/drawing"
)

const page = `<style>
  svg { width: 100%; min-width: 760px; height: auto; font: 11px sans-serif; } .holds { fill: var(--holds); } :root { --holds: #0f0; } .dark { --holds: #070; }
</style>
<svg viewBox="0 0 100 40" role="img">
<rect class="holds"/></svg>
<svg viewBox="0 0 100 40" role="img">
<rect class="second"/></svg>`

func TestThePictureIsTheFirstTimeline(t *testing.T) {
	picture, err := draw(page)
	require.NoError(t, err)
	assert.Contains(t, picture, `width="100" height="90" viewBox="0 0 100 90"`)
	assert.Contains(t, picture, `<rect class="holds" fill="#0f0"/>`)
	assert.NotContains(t, picture, "second")
	assert.Contains(t, picture, "svg { font: 11px sans-serif; }")
	wellFormed(t, picture)
}

func TestAPageWithoutATimelineIsRefused(t *testing.T) {
	_, err := draw("<html></html>")
	assert.Error(t, err)
}

// TestTheCommittedPictureShowsTheStory finds in docs/demo.svg what the README says of it.
func TestTheCommittedPictureShowsTheStory(t *testing.T) {
	data, err := os.ReadFile("../../../../docs/demo.svg")
	require.NoError(t, err)
	picture := string(data)
	wellFormed(t, picture)
	for _, text := range []string{">worker 8<", ">crashes<", ">partitioned<"} {
		assert.Contains(t, picture, text)
	}
	assert.Regexp(t, `>notified \d+\.\d\d s before the next holder<`, picture)
	texts, err := drawing.Texts(picture)
	require.NoError(t, err)
	assert.Greater(t, len(texts), 30, "workers, times, tokens, faults and the legend")
	assert.Empty(t, drawing.Overlapping(texts))
	for _, m := range regexp.MustCompile(`class="([a-z]+)"`).FindAllStringSubmatch(picture, -1) {
		assert.True(t, strings.Contains(picture, "."+m[1]+" "), "no style for the class %s", m[1])
		assert.Regexp(t, `class="`+m[1]+`" (fill|stroke)="#`, picture, "the class %s has no color without variables of CSS", m[1])
	}
}

func wellFormed(t *testing.T, picture string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}
