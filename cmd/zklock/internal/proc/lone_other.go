// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package proc

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/signals"
)

// Lone is a tree without a guardian process.
type Lone struct {
	cmd   *exec.Cmd
	job   *jobObject
	mu    sync.Mutex
	alive bool // guarded by mu: the command was started and has not exited
	none  bool // guarded by mu: the command could not be started
}

// NewLone returns the tree of cmd.
func NewLone(cmd *exec.Cmd) (*Lone, error) {
	job, err := newJobObject()
	if err != nil {
		return nil, fmt.Errorf("job object: %w", err)
	}
	return &Lone{cmd: cmd, job: job}, nil
}

// Close ends the processes that are left.
func (l *Lone) Close() { l.job.close() }

func (l *Lone) Run(_ Spec, tell func(Event)) {
	l.mu.Lock()
	err := l.job.start(l.cmd)
	l.alive, l.none = err == nil, err != nil
	l.mu.Unlock()
	if err != nil {
		tell(Event{Failed: Raw(err.Error())})
		return
	}
	tell(Event{Started: l.cmd.Process.Pid})
	err = l.cmd.Wait()
	l.mu.Lock()
	l.alive = false
	l.mu.Unlock()
	code := 0
	var status *exec.ExitError
	if errors.As(err, &status) {
		code = status.ExitCode()
	} else if err != nil {
		code = int(outcome.Failure)
	}
	tell(Event{Exited: &code})
	for l.job.active() > 0 {
		time.Sleep(20 * time.Millisecond) // there is no simple notification for an empty job
	}
	tell(Event{Empty: true})
}

func (l *Lone) Empty() bool { return l.job.active() == 0 }

func (l *Lone) Signal(sig syscall.Signal, _ Reach) (denied []int) {
	if sig == signals.Terminate {
		l.Kill()
	}
	return nil
}

func (l *Lone) Kill() (ending int, denied []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ending = l.job.active()
	switch {
	case l.none:
		return 0, nil
	case l.cmd.Process == nil:
		return 1, nil // it is being started
	case l.alive:
		ending = max(1, ending)
	}
	if ending > 0 {
		l.job.kill()
	}
	return ending, nil
}
