// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package terminal

import (
	"os"
	"syscall"
	"unsafe"
)

func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) bool {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(arg))
	return errno == 0
}

// Size returns the size of a terminal. ok is false if f is not a terminal.
func Size(f *os.File) (columns, rows int, ok bool) {
	var size struct{ rows, columns, x, y uint16 }
	ok = ioctl(f, syscall.TIOCGWINSZ, unsafe.Pointer(&size))
	return int(size.columns), int(size.rows), ok
}

// OpenForeground opens the controlling terminal if group is its foreground group, and returns nil otherwise.
func OpenForeground(group int) *os.File {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	var now int32
	if !ioctl(tty, syscall.TIOCGPGRP, unsafe.Pointer(&now)) || int(now) != group {
		tty.Close()
		return nil
	}
	return tty
}

// GiveForeground makes group the terminal's foreground group, the only one that can read from it.
func GiveForeground(tty *os.File, group int) {
	now := int32(group)
	ioctl(tty, syscall.TIOCSPGRP, unsafe.Pointer(&now))
}

func ProcessGroup() int { return syscall.Getpgrp() }
