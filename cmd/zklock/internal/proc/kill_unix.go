// SPDX-License-Identifier: Apache-2.0

//go:build unix

package proc

import (
	"os/exec"
	"syscall"
)

// KillWithGroup makes the end of the command's context end the processes that it has started as well, as long as they stay in
// its process group.
func KillWithGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			return err // it has been reaped, and its ID can be that of another group
		}
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
