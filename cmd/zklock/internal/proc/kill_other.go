// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package proc

import "os/exec"

// KillWithGroup does nothing: the end of the command's context ends the command alone.
func KillWithGroup(*exec.Cmd) {}
