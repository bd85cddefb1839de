//go:build !unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// Without process groups and TERM the command is ended at once, and alone.

const terminate = syscall.SIGTERM

var passedOn = []os.Signal{os.Interrupt}

func endsWaiting(os.Signal) (code int, ends bool) { return codeSignal + 2, true }

func ignoreSuspension() {}

type child struct {
	process *os.Process
	exited  chan error
}

func startChild(cmd *exec.Cmd) (*child, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd.Process, make(chan error, 1)}
	// Owned by the child; ends with it; supervise waits for what it sends.
	go func() { c.exited <- cmd.Wait() }()
	return c, nil
}

func (c *child) signal(sig os.Signal) {
	if sig == terminate {
		c.kill()
		return
	}
	c.process.Signal(sig)
}

func (c *child) kill() { c.process.Kill() }

func exitCode(status *exec.ExitError) int { return status.ExitCode() }
