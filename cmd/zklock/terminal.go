//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"os"
	"syscall"
	"unsafe"
)

func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) bool {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(arg))
	return errno == 0
}

// windowSize is false for what is no terminal.
func windowSize(f *os.File) (columns, rows int, ok bool) {
	var size struct{ rows, columns, x, y uint16 }
	ok = ioctl(f, syscall.TIOCGWINSZ, unsafe.Pointer(&size))
	return int(size.columns), int(size.rows), ok
}

// openForeground opens the controlling terminal if group is the one that may read from it, and returns nil otherwise.
func openForeground(group int) *os.File {
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

// giveForeground lets group read from the terminal, and no other one.
func giveForeground(tty *os.File, group int) {
	now := int32(group)
	ioctl(tty, syscall.TIOCSPGRP, unsafe.Pointer(&now))
}

func processGroup() int { return syscall.Getpgrp() }
