package main

import (
	"runtime"
	"syscall"
)

// tie has the kernel end the command if we are ended by force: nobody would watch the
// lock for it any more. The kernel means the thread that has started the command, so
// this goroutine, which waits for the command, keeps its thread for itself.
func tie(attr *syscall.SysProcAttr) {
	runtime.LockOSThread()
	attr.Pdeathsig = syscall.SIGKILL
}

const tied = true
