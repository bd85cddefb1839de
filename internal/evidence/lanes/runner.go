// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// runner is the state of a running lane.
type runner struct {
	p    *progress
	lane lane
	well bool
	cpu  time.Duration

	mu     sync.Mutex
	now    string                      // guarded by mu: the test that started last
	output map[string]*strings.Builder // guarded by mu: the output of the running tests, by package and name
}

// run runs a lane and records its result.
func (p *progress) run(ctx context.Context, l lane) {
	r := &runner{p: p, lane: l, well: true, output: map[string]*strings.Builder{}}
	p.mu.Lock()
	p.running[l.name] = r.at
	p.mu.Unlock()
	start := time.Now()
	for _, s := range l.steps {
		if err := r.do(ctx, s); err != nil {
			r.well = false
			p.say(l.name, fmt.Sprintf("FAILED in %s: %s: %v", s.dir, strings.Join(s.args, " "), err))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, l.name)
	p.ended = append(p.ended, result{l.name, time.Since(start).Seconds(), r.cpu.Seconds(), r.well})
}

// do runs one command and shows its output.
func (r *runner) do(ctx context.Context, s step) error {
	args := s.args
	if nice, err := exec.LookPath("nice"); r.lane.nice && err == nil {
		args = append([]string{nice, "-n", "10"}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = s.dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	read := make(chan struct{})
	// Owned by this call, which waits for it; ends when the command has ended and the pipe is closed.
	go func() {
		defer close(read)
		r.read(out)
	}()
	err := cmd.Run()
	in.Close()
	<-read
	if state := cmd.ProcessState; state != nil {
		r.cpu += state.UserTime() + state.SystemTime()
	}
	return err
}

// read reads the output of a command.
func (r *runner) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(bytes.TrimSpace(line)) == 0:
		case json.Unmarshal(line, &e) == nil && e.Action != "":
			r.take(e)
		default:
			r.p.say(r.lane.name, string(line))
		}
		if err != nil {
			return
		}
	}
}

// at returns the test that started last.
func (r *runner) at() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output string }

// take shows the relevant parts of an event: the result of each package, and the output of failed tests.
func (r *runner) take(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := e.Package + " " + e.Test
	switch e.Action {
	case "run":
		r.now = e.Test
	case "output", "build-output":
		r.keep(key, e)
	case "fail":
		text := r.drop(key)
		r.p.say(r.lane.name, text)
		r.p.fail(e.Package+" "+e.Test, text)
	case "skip":
		r.skipped(e, r.drop(key))
	case "pass":
		r.drop(key)
	}
}

// keep holds back a test's output until its result is known, and shows a package's output at once.
func (r *runner) keep(key string, e event) {
	if e.Test == "" {
		if line := strings.TrimSpace(e.Output); line != "PASS" && !strings.HasSuffix(line, "[no test files]") {
			r.p.say(r.lane.name, line)
		}
		return
	}
	if r.output[key] == nil {
		r.output[key] = &strings.Builder{}
	}
	r.output[key].WriteString(e.Output)
}

// drop returns what was kept, and keeps it no longer.
func (r *runner) drop(key string) string {
	kept := r.output[key]
	delete(r.output, key)
	if kept == nil {
		return key
	}
	return kept.String()
}

// skipped records a skipped test with its reason, unless the test runs only with a flag.
func (r *runner) skipped(e event, output string) {
	if e.Test == "" || strings.Contains(output, ": only with -") {
		return
	}
	why := ""
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			why = line
		}
	}
	r.p.skip(fmt.Sprintf("%s %s: %s", e.Package, e.Test, why))
}
