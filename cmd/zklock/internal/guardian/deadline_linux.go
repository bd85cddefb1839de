// SPDX-License-Identifier: Apache-2.0

package guardian

import (
	"syscall"
	"time"
	"unsafe"
)

// sinceBoot returns the time since the machine was started, including the time it was suspended. It returns zero if the
// kernel does not provide it.
func sinceBoot() time.Duration {
	const clockBoottime = 7
	var t syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&t)), 0)
	if errno != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}
