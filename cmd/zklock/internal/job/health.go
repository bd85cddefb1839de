// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/proc"
	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/internal/health"
)

// healthFlags describe a health check: the job holds its lock only while the last check has succeeded.
type healthFlags struct {
	command string
	every   time.Duration
}

const (
	usualHealthEvery    = 5 * time.Second
	shortestHealthEvery = 100 * time.Millisecond
)

func (h *healthFlags) flags(f *cli.Flags) {
	f.StringVar(&h.command, "health-cmd", "", "run this `command` with sh -c every --health-every, from before the lock is acquired; if it fails, leave the queue, or end the command as --max-run does and exit with 82")
	f.DurationVar(&h.every, "health-every", usualHealthEvery, "time between two starts of --health-cmd, and the longest that it may take")
}

func (h *healthFlags) check(f *cli.Flags) error {
	switch {
	case f.Given("health-cmd") && strings.TrimSpace(h.command) == "":
		return outcome.Misuse("%s: --health-cmd is empty", f.Name())
	case f.Given("health-every") && h.command == "":
		return outcome.Misuse("%s: --health-every requires --health-cmd", f.Name())
	case h.every < shortestHealthEvery:
		return outcome.Misuse("%s: --health-every %v is shorter than %v", f.Name(), h.every, shortestHealthEvery)
	}
	return nil
}

// errUnhealthy is wrapped by the errors of a health check that has failed.
var errUnhealthy = errors.New("the health check failed")

// checks begins the health checks, or returns nil if there are none. stop ends them, with the processes of a check that is under way.
func (j *Job) checks() (c *health.Checks, stop func()) {
	if j.health.command == "" {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	idle := make(chan struct{}, 1) // has an element while no check is under way
	idle <- struct{}{}
	c = health.New(func(ctx context.Context) error {
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { idle <- struct{}{} }()
		return j.runHealthCheck(ctx)
	}, j.health.every, errUnhealthy)
	// Owned by the job; ends with ctx. stop waits for what it has started.
	go c.Run(ctx)
	return c, func() {
		cancel()
		select {
		case <-idle:
		case <-time.After(checkEnds):
		}
	}
}

// checkEnds is how long the end of a job waits for the processes of a health check, which were killed.
const checkEnds = 2 * time.Second

// runHealthCheck runs the check once. If ctx ends first, it ends the processes of the check.
func (j *Job) runHealthCheck(ctx context.Context) error {
	shell := []string{"sh", "-c"}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/C"}
	}
	cmd := exec.CommandContext(ctx, shell[0], shell[1], j.health.command)
	cmd.Env = append(environment(), "ZKLOCK_PATH="+j.Path)
	cmd.WaitDelay = time.Second // for processes that the check has left running, which keep its output open
	said := &firstLine{}
	cmd.Stdout, cmd.Stderr = said, said
	proc.KillWithGroup(cmd)
	err := proc.Run(cmd)
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if text := said.String(); text != "" {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// firstLine keeps the beginning of what a check prints. One goroutine writes to it at a time: its two streams are one writer.
type firstLine struct{ kept bytes.Buffer }

const longestLine = 200

func (l *firstLine) Write(p []byte) (int, error) {
	l.kept.Write(p[:min(len(p), 4*longestLine-l.kept.Len())])
	return len(p), nil
}

func (l *firstLine) String() string {
	line, _, _ := strings.Cut(strings.TrimSpace(l.kept.String()), "\n")
	return escape.Short(line, longestLine)
}

// whileHealthy calls take once the health check has succeeded. If a check fails while take waits, that ends its wait, and
// whileHealthy calls it again once a check has succeeded. The returned context ends when a check fails after take has returned.
func (j *Job) whileHealthy(ctx context.Context, checks *health.Checks, take func(context.Context) (*zklock.Hold, error)) (*zklock.Hold, context.Context, error) {
	if checks == nil {
		hold, err := take(ctx)
		return hold, context.Background(), err
	}
	for {
		round, end := context.WithCancelCause(ctx)
		healthy, fail := context.WithCancelCause(context.Background())
		sick := func(why error) { fail(why); end(why) }
		if err := j.awaitHealth(ctx, checks, sick); err != nil {
			sick(err)
			return nil, nil, err
		}
		hold, err := take(round)
		if err == nil || healthy.Err() == nil || ctx.Err() != nil {
			end(nil)
			return hold, healthy, err
		}
		j.say(fmt.Sprintf("%v: not waiting for the lock until it succeeds", context.Cause(healthy)))
	}
}

// awaitHealth waits until a check has succeeded, or fails if the job must not wait for that.
func (j *Job) awaitHealth(ctx context.Context, checks *health.Checks, sick context.CancelCauseFunc) error {
	wait := checks.Await
	if j.NoWait() {
		wait = checks.Now
	}
	err := wait(ctx, sick)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errUnhealthy), errors.Is(err, context.DeadlineExceeded):
		return outcome.Unhealthy.Errorf("%s: %w", j.not(), err)
	}
	return err
}

func (j *Job) say(text string) { fmt.Fprintln(j.std.Err, "zklock: "+text) }
