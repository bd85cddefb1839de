// SPDX-License-Identifier: Apache-2.0

package terminal

import "syscall"

// SessionID returns the ID of this process's session, or zero if it is not known.
func SessionID() int {
	session, _, errno := syscall.Syscall(syscall.SYS_GETSID, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(session)
}
