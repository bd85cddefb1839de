// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// show is the interval at which the running tests are shown.
const show = 20 * time.Second

// progress is the state of the lanes while they run.
type progress struct {
	usual map[string]float64 // by lane: its duration in the last run, in seconds
	begun time.Time

	mu      sync.Mutex
	out     io.Writer                // guarded by mu
	running map[string]func() string // guarded by mu: by lane: returns its current test
	ended   []result                 // guarded by mu
	skipped map[string]bool          // guarded by mu: skipped tests, with the reasons
	failed  []string                 // guarded by mu: failed tests, with their output
}

// result is the result of a lane.
type result struct {
	name    string
	seconds float64
	cpu     float64 // processor time of its processes, without containers
	well    bool
}

func newProgress(out io.Writer, usual map[string]float64) *progress {
	return &progress{usual: usual, begun: time.Now(), out: out, running: map[string]func() string{}, skipped: map[string]bool{}}
}

// say prints a line of a lane.
func (p *progress) say(lane, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%-8s| %s\n", lane, strings.TrimRight(text, "\n"))
}

// skip records a skipped test, with the reason.
func (p *progress) skip(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skipped[what] = true
}

// told is the number of lines of a failed test that are repeated at the end.
const told = 12

// fail records a failed test and its output. It skips a test that failed only because of a subtest.
func (p *progress) fail(test, text string) {
	lines := []string{strings.TrimSpace(test)}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 1 && !strings.HasSuffix(test, " ") {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = append(p.failed, lines[:min(len(lines), told)]...)
}

// takeNotes adds the tests on real servers that were skipped.
func (p *progress) takeNotes(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		p.skip("the notes of the tests on real servers cannot be read: " + err.Error())
	}
	for line := range strings.Lines(string(text)) {
		p.skip(strings.TrimSpace(line))
	}
}

// showUntil periodically shows the running tests.
func (p *progress) showUntil(over <-chan struct{}) {
	tick := time.NewTicker(show)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			p.say("", p.line())
		}
	}
}

// line returns a line with the running tests.
func (p *progress) line() string {
	p.mu.Lock()
	running := maps.Clone(p.running)
	p.mu.Unlock()
	parts := []string{fmt.Sprintf("%.0f s", time.Since(p.begun).Seconds())}
	for _, name := range slices.Sorted(maps.Keys(running)) {
		part := name
		if usual := p.usual[name]; usual > 0 {
			part += fmt.Sprintf(" (usually %.0f s)", usual)
		}
		if at := running[name](); at != "" {
			part += " at " + at
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// table prints the duration of each lane, then the skipped tests, and then the failures, because a reader may see only the end.
func (p *progress) table() {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortFunc(p.ended, func(a, b result) int { return cmp.Compare(b.seconds, a.seconds) })
	total := result{name: "all", seconds: time.Since(p.begun).Seconds(), well: true}
	fmt.Fprintf(p.out, "\n%-10s %8s %10s\n", "lane", "seconds", "processor")
	for _, r := range p.ended {
		fmt.Fprintln(p.out, r)
		total.cpu += r.cpu
		total.well = total.well && r.well
	}
	fmt.Fprintln(p.out, total)
	if len(p.skipped) > 0 {
		fmt.Fprintf(p.out, "\n**********  NOT TESTED  **********\n%s\n**********************************\n",
			strings.Join(slices.Sorted(maps.Keys(p.skipped)), "\n"))
	}
	for _, line := range p.failed {
		fmt.Fprintln(p.out, "FAILED:", line)
	}
}

func (r result) String() string {
	verdict := "ok"
	if !r.well {
		verdict = "FAILED"
	}
	return fmt.Sprintf("%-10s %8.0f %10.0f  %s", r.name, r.seconds, r.cpu, verdict)
}

// well reports whether every lane succeeded.
func (p *progress) well() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !slices.ContainsFunc(p.ended, func(r result) bool { return !r.well })
}

// remember records the durations of the lanes that succeeded.
func (p *progress) remember() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.ended {
		if r.well {
			p.usual[r.name] = r.seconds
		}
	}
	remember(p.usual)
}
