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

// show is how often what runs is shown.
const show = 20 * time.Second

// progress is what is known of the lanes while they run.
type progress struct {
	usual map[string]float64 // seconds of each lane the last time
	begun time.Time

	mu      sync.Mutex
	out     io.Writer                // guarded by mu
	running map[string]func() string // guarded by mu: each returns the test that its lane is at
	ended   []result                 // guarded by mu
	skipped map[string]bool          // guarded by mu: what was not tested, and why
	failed  []string                 // guarded by mu: which tests failed, and what they said
}

// result is how a lane ended.
type result struct {
	name    string
	seconds float64
	cpu     float64 // of its processes; what runs in containers is not among them
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

// skip notes what was not tested, and why.
func (p *progress) skip(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skipped[what] = true
}

// told is how many lines of a failed test are told again at the end.
const told = 12

// fail notes a test that failed, and what it said. One that only contains another says nothing itself.
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

// takeNotes adds what the tests on real servers have left out.
func (p *progress) takeNotes(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		p.skip("the notes of the tests on real servers cannot be read: " + err.Error())
	}
	for line := range strings.Lines(string(text)) {
		p.skip(strings.TrimSpace(line))
	}
}

// showUntil shows again and again what runs.
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

// line tells what runs.
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

// table prints how long each lane took, then what was not tested, and last what failed: a reader may see only the end.
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

// well reports whether every lane is.
func (p *progress) well() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !slices.ContainsFunc(p.ended, func(r result) bool { return !r.well })
}

// remember keeps the seconds of the lanes that are well.
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
