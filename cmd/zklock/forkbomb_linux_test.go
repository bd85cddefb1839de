// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

// beForkBomb is what this binary is told to be a fork bomb by: `forkbomb KIND SIGN SECONDS`. Its processes start others
// until none can be started, and write the time into the file SIGN, again and again. They ignore TERM and leave nothing to
// be reaped. Only the first has more than one thread: the others make system calls and nothing else. All end after
// SECONDS, whatever the test does.
const beForkBomb = "forkbomb"

// forkBombs are the ways in which the processes of a fork bomb continue.
var forkBombs = map[string]bombKind{
	"stays":  {},
	"leaves": {leaves: true},
	"hops":   {leaves: true, hops: true},
	"idle":   {idle: true},
}

type bombKind struct {
	leaves bool // each in a session of its own
	hops   bool // a process that has started another one ends
	idle   bool // only the first one starts others, and none is busy
}

// bombState is what the processes of a fork bomb inherit from the first one.
type bombState struct {
	bombKind
	sign  uintptr // the file
	until int64   // seconds
	now   syscall.Timespec
	pause syscall.Timespec
	first bool
	seeds int // processes that keep running after they have started another one
}

func beForkBombIfAsked() {
	if len(os.Args) != 5 || os.Args[1] != beForkBomb {
		return
	}
	runtime.LockOSThread()
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGCHLD)
	file, err := os.OpenFile(os.Args[3], os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(int(outcome.Failure))
	}
	seconds, _ := strconv.Atoi(os.Args[4])
	b := &bombState{
		bombKind: forkBombs[os.Args[2]], sign: file.Fd(), until: time.Now().Unix() + int64(seconds),
		pause: syscall.Timespec{Nsec: 1e6}, first: true, seeds: 40,
	}
	b.explode()
}

// explode never returns. Nothing in it may need the Go runtime, which a process that was forked has not.
//
//go:nosplit
//go:norace
func (b *bombState) explode() {
	for {
		if b.first || !b.idle {
			b.fork()
		}
		syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 0, uintptr(unsafe.Pointer(&b.now)), 0)
		if b.now.Sec > b.until {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
		syscall.RawSyscall6(syscall.SYS_PWRITE64, b.sign, uintptr(unsafe.Pointer(&b.now)), unsafe.Sizeof(b.now), 0, 0, 0)
		if b.idle {
			syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&b.pause)), 0, 0)
		}
	}
}

//go:nosplit
//go:norace
func (b *bombState) fork() {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	switch {
	case errno != 0:
	case pid == 0:
		b.first, b.seeds = false, b.seeds/2
		b.pause.Nsec = 2e7
		if b.leaves {
			syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
		}
	case b.hops && b.seeds <= 0:
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	default:
		b.seeds--
	}
}
