//go:build !unix && !(windows && (amd64 || arm64))

package main

import "os/exec"

const unguarded = "on this system only the command itself is ended when the lock is lost, not what it has started; and nothing ends it if zklock is killed or stands still"

// jobObject is the command alone.
type jobObject struct{ cmd *exec.Cmd }

func newJobObject() (*jobObject, error) { return &jobObject{}, nil }

func (j *jobObject) start(cmd *exec.Cmd) error {
	j.cmd = cmd
	return cmd.Start()
}

func (j *jobObject) active() int { return 0 }

func (j *jobObject) kill() { j.cmd.Process.Kill() }

func (j *jobObject) close() {}
