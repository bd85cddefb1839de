// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package docs

import "os/exec"

func ownGroup(cmd *exec.Cmd) (end func()) { return func() { _ = cmd.Process.Kill() } }
