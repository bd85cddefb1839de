// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
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
	assert.Equal(t, "1", rows["max concurrent workers"][1])
	assert.Equal(t, "yes", rows["first come, first served"][1])
	assert.Equal(t, 1, strings.Count(out, "CRASHES"))
	assert.Equal(t, 1, strings.Count(out, "IS CUT OFF"))
	assert.NotContains(t, out, "\x1b", "a log has no terminal's codes")
	assert.Regexp(t, `worker (\d)  reconnects\n(.*\n)*.*worker \d  waits for the lock\n`, out)
	assert.NotContains(t, out, "is back")
	code, out, err = run(t, "", "demo", "--html", file)
	assert.Zero(t, code, "it replaces its own timeline: %s%s", out, err)
	assertSelfContained(t, content(t, file))
}

func TestDemoShowsHowShardsMove(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: plays the demo")
	}
	t.Parallel()
	code, out, err := run(t, "", "demo", "--shards")
	require.Zero(t, code, out+err)
	assert.Empty(t, err)
	assert.Regexp(t, `(?s)4 workers run 20 shards:.*worker 5 joins.*5 workers run 20 shards:.*worker 2 is killed.*4 workers run 20 shards:.*\n\n`, out)
	_, drawn, _ := strings.Cut(out, "\n\n")
	lines := strings.Split(strings.TrimSpace(drawn), "\n")
	require.Len(t, lines, 21, out)
	for _, line := range lines[1:] {
		assert.Regexp(t, `^ *\d+  [1-5.]{64}$`, line)
		assert.NotRegexp(t, `2$`, line, "worker 2 was killed")
	}
	assert.Regexp(t, `[1-4]5`, drawn, "shards move to the one that joins")
	assert.Regexp(t, `2\.*[1345]`, drawn, "shards move from the one that was killed")
	code, _, err = run(t, "", "demo", "--shards", "--web")
	assert.EqualValues(t, outcome.Usage, code)
	assert.Contains(t, err, "--shards and --web cannot be combined")
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
	for _, want := range []string{`class="waits"`, `class="holds"`, `class="dead"`, `class="cut"`, `class="lost"`, `class="token"`, ">partitioned<", ">crashes<", ">notified ", " before the next holder<"} {
		assert.Contains(t, locked, want)
	}
	assert.Equal(t, 2, strings.Count(html, "The axis shows the time since the start of the sale, in seconds; the full width is "))
	assert.Contains(t, html, ".wide { overflow-x: auto; }")
	assert.NotContains(t, drawings[1], `class="waits"`)
}

func TestDemoReportsAtOnceThatItCannotWrite(t *testing.T) {
	code, out, err := run(t, "", "demo", "--html", "/no/such/directory/sale.html")
	assert.EqualValues(t, outcome.Usage, code)
	assert.Empty(t, out, "before anything was sold")
	assert.Contains(t, err, "the timeline cannot be written")
}

func TestDemoReplacesNothingButATimeline(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notes.html")
	require.NoError(t, os.WriteFile(file, []byte("my notes"), 0o600))
	code, out, err := run(t, "", "demo", "--html", file)
	assert.EqualValues(t, outcome.Usage, code)
	assert.Empty(t, out)
	assert.Contains(t, err, "notes.html exists and is no timeline: choose another file with --html")
	assert.Equal(t, "my notes", content(t, file))
}

func TestDemoHelpDoesNotContradictItself(t *testing.T) {
	_, help, _ := run(t, "", "help", "demo")
	assert.NotContains(t, help, servers.Local)
	assert.Regexp(t, `start\s+one\s+in\s+this\s+process`, help)
}

func TestDemoRunsAgainstAGivenEnsemble(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Options{Servers: 3, TickTime: 50 * time.Millisecond})
	code, out, err := run(t, strings.Join(srv.Addrs(), ","), "demo", "--html", "", "--session-timeout", "1s", "--path", "/shops/1")
	require.Zero(t, code, out+err)
	assert.NotContains(t, out, "Timeline")
	assert.NotZero(t, srv.Requests()[zktest.OpCreate])
	assert.Zero(t, queued(srv, "/shops/1"))
}
