// SPDX-License-Identifier: Apache-2.0

//go:build unix

package docs

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a command a process group of its own, and returns what ends all that it has started.
func ownGroup(cmd *exec.Cmd) (end func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
