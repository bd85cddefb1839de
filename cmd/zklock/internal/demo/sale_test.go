// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
	"github.com/zklock-go/zklock/internal/evidence/docs/drawing"
)

// luminance is how light a color is, by the definition of WCAG.
func luminance(t *testing.T, hex string) float64 {
	if len(hex) == 4 {
		hex = "#" + strings.Repeat(hex[1:2], 2) + strings.Repeat(hex[2:3], 2) + strings.Repeat(hex[3:4], 2)
	}
	var l float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		require.NoError(t, err)
		c := float64(n) / 255
		if c <= 0.04045 {
			l += weight * c / 12.92
		} else {
			l += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return l
}

func TestTextOfTheTimelineCanBeRead(t *testing.T) {
	themes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(pageSource, -1)
	require.Len(t, themes, 2, "light and dark")
	for _, theme := range themes {
		colors := map[string]float64{}
		for _, m := range regexp.MustCompile(`--(\w+): (#[0-9a-f]+);`).FindAllStringSubmatch(theme[1], -1) {
			colors[m[1]] = luminance(t, m[2])
		}
		for _, text := range []string{"ink", "soft", "dead"} {
			l, ground := colors[text], colors["ground"]
			contrast := (max(l, ground) + 0.05) / (min(l, ground) + 0.05)
			assert.GreaterOrEqual(t, contrast, 4.5, text)
		}
	}
}

// story is a sale of which is known what to make of it.
func story(events ...event) *sale {
	s := newSale(10)
	for i := range events {
		events[i].at = time.Duration(i) * time.Second
	}
	s.log.events = events
	return s
}

func TestSummaryNoticesTwoAtWork(t *testing.T) {
	m := summarize(10, story(
		event{worker: 0, kind: begins, node: "/l/x-0000000001"},
		event{worker: 1, kind: begins, node: "/l/x-0000000002"},
		event{worker: 0, kind: ends},
		event{worker: 1, kind: ends},
	))
	assert.Equal(t, 2, m.together)
	assert.True(t, m.ordered)
}

func TestSummaryCountsAWorkerThatIsCutOffUntilItIsNotified(t *testing.T) {
	cut := []event{
		{worker: 0, kind: begins, node: "/l/x-0000000001"},
		{worker: 0, kind: isCutOff},
		{worker: 0, kind: isTold},
		{worker: 1, kind: begins, node: "/l/x-0000000002"},
	}
	m := summarize(10, story(cut...))
	assert.Equal(t, 1, m.together)
	assert.Equal(t, 2*time.Second, m.afterCut)
	assert.Equal(t, time.Second, m.toldBefore)

	cut[2], cut[3] = cut[3], cut[2]
	assert.Equal(t, 2, summarize(10, story(cut...)).together)
}

func TestSummaryNoticesOvertaking(t *testing.T) {
	assert.False(t, summarize(10, story(
		event{worker: 0, kind: begins, node: "/l/x-0000000002"},
		event{worker: 0, kind: ends},
		event{worker: 1, kind: begins, node: "/l/x-0000000001"},
	)).ordered)
}

func TestSummaryMeasuresHandOffsAndRecovery(t *testing.T) {
	m := summarize(10, story(
		event{worker: 0, kind: begins, node: "/l/x-0000000001"},
		event{worker: 0, kind: ends},
		event{worker: 1, kind: asks},
		event{worker: 1, kind: begins, node: "/l/x-0000000002"},
		event{worker: 1, kind: crashes},
		event{worker: 0, kind: begins, node: "/l/x-0000000003"},
	))
	assert.Equal(t, 1, m.handOffs)
	assert.Equal(t, 2*time.Second, m.handOff)
	assert.Equal(t, time.Second, m.afterCrash)
	assert.Equal(t, 1, m.together)
}

func TestShopRefusesAnOlderToken(t *testing.T) {
	s := shop{left: 10}
	require.NoError(t, s.sell(9, 7))
	assert.ErrorIs(t, s.sell(8, 6), errStaleToken)
	assert.Equal(t, 9, s.look())
	assert.Equal(t, 1, s.soldSoFar())
}

func TestFrameFitsTheTerminal(t *testing.T) {
	s := story(
		event{worker: 0, kind: asks},
		event{worker: 1, kind: asks},
		event{worker: 0, kind: begins, node: "/l/x-0000000001", token: 17},
		event{worker: 0, kind: isCutOff},
		event{worker: 0, kind: isTold},
	)
	colors := regexp.MustCompile("\x1b\\[[0-9]+m")
	colored := (&terminal.Display{}).Paint
	for _, columns := range []int{30, 40, 60, 80, 132, 300} {
		lines := frame(s.log.events, 5*time.Second, 2, 10, columns, colored)
		require.Len(t, lines, 4)
		for _, line := range lines {
			assert.LessOrEqual(t, len([]rune(colors.ReplaceAllString(line, ""))), columns)
		}
	}
	lines := frame(s.log.events[:3], 3*time.Second, 2, 10, 100, colored)
	assert.Contains(t, lines[1], "HOLDS, token 17")
	assert.Contains(t, lines[2], "waits")
}

// No two texts overlap, whenever the worker that was cut off is back, and its text is there whenever
// there is room for it.
func TestTheTextsOfATimelineDoNotOverlap(t *testing.T) {
	const end = 10 * time.Second
	for back := 4200 * time.Millisecond; back < end; back += 50 * time.Millisecond {
		events := []event{
			{worker: 1, kind: begins, at: time.Second, token: 4294967341}, {worker: 1, kind: isCutOff, at: 4 * time.Second}, {worker: 1, kind: isTold, at: back - 100*time.Millisecond},
			{worker: 1, kind: isBack, at: back}, {worker: 1, kind: begins, at: back + 20*time.Millisecond, token: 4294967342},
			{worker: 0, kind: begins, at: end - time.Millisecond, token: 4294967343}, {worker: 0, kind: crashes, at: end},
		}
		var b strings.Builder
		require.NoError(t, writePage(&b, page{Locked: newTimeline(events, 2), Free: newTimeline(nil, 2)}))
		texts, err := drawing.Texts(regexp.MustCompile(`(?s)<svg.*?</svg>`).FindString(b.String()))
		require.NoError(t, err)
		assert.Empty(t, drawing.Overlapping(texts), back)
		shown := ""
		for _, text := range texts {
			assert.LessOrEqual(t, text.Right, float64(newTimeline(events, 2).Width), "%v: %q", back, text.Text)
			assert.GreaterOrEqual(t, text.Left, 0.0, "%v: %q", back, text.Text)
			shown += text.Text + "\n"
		}
		wants := []string{"worker 1\n", "worker 2\n", "…341\n", "crashes\n", "partitioned\n"}
		if back > 4300*time.Millisecond && back < 9750*time.Millisecond {
			wants = append(wants, "notified", "back\n")
		}
		for _, want := range wants {
			assert.Contains(t, shown, want, back)
		}
	}
}
