// SPDX-License-Identifier: Apache-2.0

//go:build darwin || freebsd || netbsd || openbsd

package terminal

import "syscall"

// SessionID returns the ID of this process's session, or zero if it is not known.
func SessionID() int {
	session, err := syscall.Getsid(0)
	if err != nil {
		return 0
	}
	return session
}
