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

// inForeground says whether f is the terminal that we may read from.
func inForeground(f *os.File) bool {
	var group int32
	return ioctl(f, syscall.TIOCGPGRP, unsafe.Pointer(&group)) && int(group) == syscall.Getpgrp()
}

// takeForeground takes the terminal back from a command that had it.
func takeForeground(f *os.File) {
	group := int32(syscall.Getpgrp())
	ioctl(f, syscall.TIOCSPGRP, unsafe.Pointer(&group))
}
