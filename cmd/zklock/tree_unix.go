//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// group is a tree that is known by its process group alone: a process that leaves the
// group is out of reach. The group has the terminal as its own while the command runs.
type group struct {
	mu    sync.Mutex
	pid   int  // guarded by mu: the command's and the group's, zero before it was started
	ended bool // guarded by mu: the command has; others may live

	refused time.Time // guarded by mu: when KILL was first refused; zero: it was not
}

func (g *group) run(a assignment, tell func(report)) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	tty := (*os.File)(nil)
	if a.Terminal {
		if tty = openForeground(a.Group); tty != nil {
			defer tty.Close()
			attr.Foreground, attr.Ctty = true, int(tty.Fd())
		}
	}
	pid, err := forkExec(a, attr)
	if err != nil {
		tell(report{Failed: raw(err.Error())})
		return
	}
	g.mu.Lock()
	g.pid = pid
	g.mu.Unlock()
	tell(report{Started: pid})
	for ended := false; !ended; {
		r := waitFor(pid)
		if ended = r.Exited != nil; ended {
			g.mu.Lock()
			g.ended = true
			g.mu.Unlock()
			if tty != nil {
				giveForeground(tty, a.Group)
			}
		}
		tell(r)
	}
	for !g.empty() {
		time.Sleep(20 * time.Millisecond) // nothing tells when a group is empty
	}
	tell(report{Empty: true})
}

// waitFor waits until something has happened to a child.
func waitFor(pid int) report {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			code := codeFailure
			return report{Exited: &code}
		}
		if r, ok := became(status); ok {
			return r
		}
	}
}

func (g *group) empty() bool { return errors.Is(syscall.Kill(-g.pid, 0), syscall.ESRCH) }

func (g *group) signal(sig syscall.Signal, _ reach) (denied []int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pid == 0 {
		return nil
	}
	if errors.Is(syscall.Kill(-g.pid, sig), syscall.EPERM) {
		return []int{-g.pid}
	}
	if sig == syscall.SIGTERM || sig == syscall.SIGHUP {
		syscall.Kill(-g.pid, syscall.SIGCONT) // what is stopped would not see the signal otherwise
	}
	return nil
}

func (g *group) kill() (ending int, denied []int) {
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
	// Some systems refuse it also for what has ended and is not reaped yet.
	if time.Since(g.refused) < 100*time.Millisecond {
		return 1, nil
	}
	return 0, []int{-g.pid}
}

const shellPath = "/bin/sh"

// forkExec starts a command with this process's environment and standard streams.
func forkExec(a assignment, attr *syscall.SysProcAttr) (pid int, err error) {
	path, args := string(a.Path), allStrings(a.Args)
	with := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: attr}
	pid, err = syscall.ForkExec(path, args, with)
	if errors.Is(err, syscall.ENOEXEC) { // a script that does not say of which shell: as execvp(3) does
		pid, err = syscall.ForkExec(shellPath, append([]string{shellPath, path}, args[1:]...), with)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", a.Path, err)
	}
	return pid, nil
}

// became returns what a child's status says; ok is false if it is nothing of interest.
func became(status syscall.WaitStatus) (r report, ok bool) {
	code := status.ExitStatus()
	switch {
	case status.Stopped():
		return report{Stopped: int(status.StopSignal())}, true
	case status.Signaled(): // as a shell says it
		code = codeSignal + int(status.Signal())
		r.EndedBy = int(status.Signal())
	case !status.Exited():
		return report{}, false
	}
	r.Exited = &code
	return r, true
}
