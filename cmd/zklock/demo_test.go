package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

func TestDemoOversellsWithoutALockAndNeverWithOne(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: plays the demo")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sale.html")
	code, out, err := run(t, "", "demo", "--html", file)
	require.Zero(t, code, out+err)
	assert.Empty(t, err)
	rows := tableOf(out)
	assert.NotEqual(t, "0", rows["oversold"][0], "eight workers at once must oversell")
	assert.Equal(t, []string{"10", "10"}, rows["sold"][1:])
	assert.Equal(t, "0", rows["oversold"][1])
	assert.Equal(t, "1", rows["most at work at one time"][1])
	assert.Equal(t, "yes", rows["order of asking kept"][1])
	assert.Equal(t, 1, strings.Count(out, "CRASHES"))
	assert.Equal(t, 1, strings.Count(out, "IS CUT OFF"))
	assert.NotContains(t, out, "\x1b", "a log has no terminal's codes")
	assertSelfContained(t, content(t, file))
}

// tableOf reads the table at the end: by label, the value without a lock and the one with, then that again.
func tableOf(out string) map[string][]string {
	rows := map[string][]string{}
	gap := regexp.MustCompile(` {3,}`)
	for line := range strings.Lines(out) {
		if cells := gap.Split(strings.TrimSpace(line), -1); len(cells) == 3 {
			rows[cells[0]] = []string{cells[1], cells[2], cells[2]}
		}
	}
	return rows
}

// assertSelfContained says that a page needs nothing from elsewhere and has a well-formed drawing of both sales.
func assertSelfContained(t *testing.T, html string) {
	for _, outside := range []string{"<script", "<link", "src=", "href=", "url(", "@import"} {
		assert.NotContains(t, html, outside)
	}
	drawings := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(html, -1)
	require.Len(t, drawings, 2)
	for _, svg := range drawings {
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
	}
	locked := drawings[0]
	for _, want := range []string{`class="waits"`, `class="holds"`, `class="dead"`, `class="cut"`, `class="lost"`, `class="token"`, ">cut off<", ">crashes<", ">told ", " before the next one held<"} {
		assert.Contains(t, locked, want)
	}
	assert.Equal(t, 2, strings.Count(html, "The axis is time since the sale opened, in seconds; the whole width is "))
	assert.Contains(t, html, ".wide { overflow-x: auto; }")
	assert.NotContains(t, drawings[1], `class="waits"`)
}

// luminance is how light a colour is, by the definition of WCAG.
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
		colours := map[string]float64{}
		for _, m := range regexp.MustCompile(`--(\w+): (#[0-9a-f]+);`).FindAllStringSubmatch(theme[1], -1) {
			colours[m[1]] = luminance(t, m[2])
		}
		for _, text := range []string{"ink", "soft", "dead"} {
			l, ground := colours[text], colours["ground"]
			contrast := (max(l, ground) + 0.05) / (min(l, ground) + 0.05)
			assert.GreaterOrEqual(t, contrast, 4.5, text)
		}
	}
}

func TestDemoSaysAtOnceThatItCannotWrite(t *testing.T) {
	code, out, err := run(t, "", "demo", "--html", "/no/such/directory/sale.html")
	assert.Equal(t, codeUsage, code)
	assert.Empty(t, out, "before anything was sold")
	assert.Contains(t, err, "the timeline cannot be written")
}

func TestDemoHelpDoesNotContradictItself(t *testing.T) {
	_, help, _ := run(t, "", "help", "demo")
	assert.NotContains(t, help, localServer)
	assert.Regexp(t, `one\s+in\s+this\s+process`, help)
}

func TestDemoRunsAgainstAnEnsembleOfOnesOwn(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Options{Servers: 3, TickTime: 50 * time.Millisecond})
	code, out, err := run(t, strings.Join(srv.Addrs(), ","), "demo", "--html", "", "--session-timeout", "1s", "--path", "/shops/1")
	require.Zero(t, code, out+err)
	assert.NotContains(t, out, "Timeline")
	assert.NotZero(t, srv.Requests()[zktest.OpCreate])
	assert.Zero(t, queued(srv, "/shops/1"))
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

func TestSummarySeesTwoAtWork(t *testing.T) {
	m := summarize(10, story(
		event{worker: 0, kind: begins, node: "/l/x-0000000001"},
		event{worker: 1, kind: begins, node: "/l/x-0000000002"},
		event{worker: 0, kind: ends},
		event{worker: 1, kind: ends},
	))
	assert.Equal(t, 2, m.together)
	assert.True(t, m.ordered)
}

func TestSummaryCountsWhoIsCutOffAsAtWorkUntilToldSo(t *testing.T) {
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

func TestSummarySeesSomebodyOvertake(t *testing.T) {
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
	colours := regexp.MustCompile("\x1b\\[[0-9]+m")
	coloured := (&display{}).paint
	for _, columns := range []int{30, 40, 60, 80, 132, 300} {
		lines := frame(s.log.events, 5*time.Second, 2, 10, columns, coloured)
		require.Len(t, lines, 4)
		for _, line := range lines {
			assert.LessOrEqual(t, len([]rune(colours.ReplaceAllString(line, ""))), columns)
		}
	}
	lines := frame(s.log.events[:3], 3*time.Second, 2, 10, 100, coloured)
	assert.Contains(t, lines[1], "HOLDS, token 17")
	assert.Contains(t, lines[2], "waits")
}

func TestTheTextsOfATimelineDoNotMeet(t *testing.T) {
	const end = 10 * time.Second
	for back := 4200 * time.Millisecond; back < end; back += 100 * time.Millisecond {
		events := []event{
			{worker: 1, kind: begins, at: time.Second}, {worker: 1, kind: isCutOff, at: 4 * time.Second}, {worker: 1, kind: isTold, at: back - 100*time.Millisecond},
			{worker: 1, kind: isBack, at: back}, {worker: 0, kind: begins, at: end - time.Millisecond}, {worker: 0, kind: crashes, at: end},
		}
		line := newTimeline(events, 2)
		ends := map[float64]float64{} // of the last text of each row
		for _, m := range line.Marks {
			length := float64(letterWidth * len(strings.TrimSpace(m.Text)))
			from := m.X + float64(m.Shift)
			if m.Anchor == "end" {
				from -= length
			}
			assert.GreaterOrEqual(t, from, ends[m.Y+float64(m.TextY)], "%v: %q", back, m.Text)
			assert.LessOrEqual(t, from+length, float64(line.Width), "%v: %q", back, m.Text)
			ends[m.Y+float64(m.TextY)] = from + length
		}
		assert.Equal(t, "cut", line.Marks[0].Text[:3])
	}
}
