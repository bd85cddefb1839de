// SPDX-License-Identifier: Apache-2.0

//go:build !unix && !(windows && (amd64 || arm64))

package proc

import "os/exec"

// Unguarded is a warning for systems on which not all processes of the command are ended.
const Unguarded = "on this system only the command itself is ended when the lock is lost, not the processes it started, and nothing ends it if zklock is killed or hangs"

// jobObject consists of the command alone on these systems.
type jobObject struct{ cmd *exec.Cmd }

func newJobObject() (*jobObject, error) { return &jobObject{}, nil }

func (j *jobObject) start(cmd *exec.Cmd) error {
	j.cmd = cmd
	return cmd.Start()
}

func (j *jobObject) active() int { return 0 }

func (j *jobObject) kill() { j.cmd.Process.Kill() }

func (j *jobObject) close() {}
