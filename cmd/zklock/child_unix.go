//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

const terminate = syscall.SIGTERM

// passedOn are the signals that the command gets when we get them.
var passedOn = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT,
}

// endsWaiting says whether sig ends us while there is no command yet, and with which code.
func endsWaiting(sig os.Signal) (code int, ends bool) {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return codeSignal + int(sig.(syscall.Signal)), true
	}
	return 0, false
}

// ignoreSuspension keeps Ctrl-Z from stopping us or, since it inherits this, the
// command: who is stopped cannot keep a lock and must not go on when it has passed.
func ignoreSuspension() { signal.Ignore(syscall.SIGTSTP, syscall.SIGTTOU) }

// child is a running command in a process group of its own, so that what it starts can be ended with it.
type child struct {
	pid      int
	exited   chan error // gets what Wait has returned
	terminal *os.File   // which the command has as its own, nil for none
}

// startChild must be called on a goroutine that waits for the child, see tie.
func startChild(cmd *exec.Cmd) (*child, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	tie(cmd.SysProcAttr)
	c := &child{exited: make(chan error, 1)}
	if in, ok := cmd.Stdin.(*os.File); ok && inForeground(in) {
		c.terminal = in
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, int(in.Fd())
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c.pid = cmd.Process.Pid
	// Owned by the child; ends with it; supervise waits for what it sends.
	go func() {
		err := cmd.Wait()
		if c.terminal != nil {
			takeForeground(c.terminal)
		}
		c.exited <- err
	}()
	return c, nil
}

// signal sends sig to the command and all that it has started.
func (c *child) signal(sig os.Signal) {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	if err := syscall.Kill(-c.pid, s); errors.Is(err, syscall.EPERM) {
		syscall.Kill(c.pid, s) // part of the group is another user's: at least the command
	}
}

func (c *child) kill() { c.signal(syscall.SIGKILL) }

// exitCode is the shell's: 128 plus the signal's number for who was ended by one.
func exitCode(status *exec.ExitError) int {
	if ws, ok := status.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return codeSignal + int(ws.Signal())
	}
	return status.ExitCode()
}
