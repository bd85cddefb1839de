// SPDX-License-Identifier: Apache-2.0

//go:build unix

package proc

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
)

// Unguarded is a warning for systems on which not all processes of the command are ended. It is empty here.
const Unguarded = ""

// group is a tree that consists of a process group: it cannot find a process that leaves the group. While the command runs,
// the group is the terminal's foreground group.
type group struct {
	mu    sync.Mutex
	pid   int  // guarded by mu: the ID of the command and of its group; zero before it was started
	ended bool // guarded by mu: the command has exited; other processes may still run

	refused time.Time // guarded by mu: when KILL was first refused, or zero
}

func (g *group) Run(s Spec, tell func(Event)) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	tty := (*os.File)(nil)
	if s.Terminal {
		tty = terminal.OpenForeground(s.Group)
		if tty != nil {
			defer tty.Close()
			attr.Foreground, attr.Ctty = true, int(tty.Fd())
		}
	}
	pid, err := forkExec(s, attr)
	if err != nil {
		tell(Event{Failed: Raw(err.Error())})
		return
	}
	g.mu.Lock()
	g.pid = pid
	g.mu.Unlock()
	tell(Event{Started: pid})
	for ended := false; !ended; {
		r := waitFor(pid)
		ended = r.Exited != nil
		if ended {
			g.mu.Lock()
			g.ended = true
			g.mu.Unlock()
			if tty != nil {
				terminal.GiveForeground(tty, s.Group)
			}
		}
		tell(r)
	}
	for !g.Empty() {
		time.Sleep(20 * time.Millisecond) // there is no notification for an empty group
	}
	tell(Event{Empty: true})
}

// waitFor waits until a child has stopped or ended.
func waitFor(pid int) Event {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			code := int(outcome.Failure)
			return Event{Exited: &code}
		}
		if r, ok := became(status); ok {
			return r
		}
	}
}

func (g *group) Empty() bool { return errors.Is(syscall.Kill(-g.pid, 0), syscall.ESRCH) }

func (g *group) Signal(sig syscall.Signal, _ Reach) (denied []int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pid == 0 {
		return nil
	}
	if errors.Is(syscall.Kill(-g.pid, sig), syscall.EPERM) {
		return []int{-g.pid}
	}
	if sig == syscall.SIGTERM || sig == syscall.SIGHUP {
		syscall.Kill(-g.pid, syscall.SIGCONT) // stopped processes would not handle the signal
	}
	return nil
}

func (g *group) Kill() (ending int, denied []int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pid == 0 {
		return 1, nil // it is being started
	}
	err := syscall.Kill(-g.pid, syscall.SIGKILL)
	switch {
	case errors.Is(err, syscall.ESRCH):
		return 0, nil
	case !errors.Is(err, syscall.EPERM):
		g.refused = time.Time{}
		return 1, nil
	case g.refused.IsZero():
		g.refused = time.Now()
	}
	// Some systems also refuse it for processes that have ended but are not reaped.
	if time.Since(g.refused) < 100*time.Millisecond {
		return 1, nil
	}
	return 0, []int{-g.pid}
}

const shellPath = "/bin/sh"

// forkExec starts a command with this process's environment and standard streams.
func forkExec(s Spec, attr *syscall.SysProcAttr) (pid int, err error) {
	path, args := string(s.Path), allStrings(s.Args)
	with := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: attr}
	pid, err = syscall.ForkExec(path, args, with)
	if errors.Is(err, syscall.ENOEXEC) { // a script without a #! line: run it with a shell, as execvp(3) does
		pid, err = syscall.ForkExec(shellPath, append([]string{shellPath, path}, args[1:]...), with)
	}
	if _, missing := os.Stat(path); errors.Is(err, syscall.ENOENT) && missing == nil {
		return 0, fmt.Errorf("%s: its interpreter does not exist", s.Path)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.Path, err)
	}
	return pid, nil
}

// became returns the event for a child's status. ok is false if the status needs no event.
func became(status syscall.WaitStatus) (r Event, ok bool) {
	code := status.ExitStatus()
	switch {
	case status.Stopped():
		return Event{Stopped: int(status.StopSignal())}, true
	case status.Signaled(): // the exit code is that of a shell
		code = outcome.SignalBase + int(status.Signal())
		r.EndedBy = int(status.Signal())
	case !status.Exited():
		return Event{}, false
	}
	r.Exited = &code
	return r, true
}
