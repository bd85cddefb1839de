// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// Process describes a process of this machine, according to /proc.
type Process struct {
	PID, Parent, group int
	stopped, dead      bool
	since              string // start time, which together with the pid identifies the process
	below              bool   // it is a descendant of the root passed to processes
}

func (p Process) is(other Process) bool { return p.PID == other.PID && p.since == other.since }

// Descendants returns the living descendants of a process.
func Descendants(pid int) []Process { return below(pid) }

// below returns the living descendants of a process, without the foreign processes and their descendants.
func below(pid int, foreign ...Process) []Process {
	return living(processes(pid, foreign))
}

// living returns the descendants that are alive.
func living(all []Process) []Process {
	return slices.DeleteFunc(slices.Clone(all), func(p Process) bool { return !p.below || p.dead })
}

// processes returns every process in /proc, including zombies, and marks the descendants of root. The foreign processes and
// their descendants are not marked.
func processes(root int, foreign []Process) []Process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	all := make([]Process, 0, len(names))
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		if p, ok := readProcess(int(dir.Fd()), name+"/stat"); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b Process) int { return a.PID - b.PID })
	markBelow(all, root, foreign)
	return all
}

// markBelow marks the descendants of root in a list sorted by pid.
func markBelow(all []Process, root int, foreign []Process) {
	const unknown, no, yes = 0, 1, 2
	state := make([]byte, len(all))
	var find func(pid int) byte
	find = func(pid int) byte {
		i, ok := slices.BinarySearchFunc(all, pid, func(p Process, pid int) int { return p.PID - pid })
		switch {
		case pid == root:
			return yes
		case !ok:
			return no
		case state[i] != unknown:
			return state[i]
		}
		state[i] = no // also breaks a cycle, which reused process IDs can produce
		if !slices.ContainsFunc(foreign, all[i].is) {
			state[i] = find(all[i].Parent)
		}
		return state[i]
	}
	for i, p := range all {
		all[i].below = p.PID != root && find(p.PID) == yes
	}
}

// readProcess reads a stat file of /proc. ok is false if the process is gone.
func readProcess(dir int, name string) (p Process, ok bool) {
	file, err := syscall.Openat(dir, name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return Process{}, false
	}
	defer syscall.Close(file)
	var buffer [512]byte
	n, err := syscall.Read(file, buffer[:])
	if err != nil {
		return Process{}, false
	}
	return parseProcess(buffer[:n])
}

// parseProcess parses "pid (name) state ppid pgrp ...". The name may contain any character.
func parseProcess(stat []byte) (p Process, ok bool) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return Process{}, false
	}
	pid, _, _ := bytes.Cut(stat, []byte(" "))
	state, threads := fields[0][0], string(fields[17])
	p.PID, _ = strconv.Atoi(string(pid))
	p.Parent, _ = strconv.Atoi(string(fields[1]))
	p.group, _ = strconv.Atoi(string(fields[2]))
	p.since = string(fields[19])
	p.stopped = state == 'T' || state == 't'
	// A process whose first thread has ended looks like a zombie while other threads run.
	p.dead = state == 'X' || state == 'Z' && (threads == "0" || threads == "1")
	return p, true
}

// signal sends sig to the process, but not to another one that has its process ID now: an open directory of /proc refers to
// one process. On kernels before 5.1, and if the system call is forbidden, signal uses the process ID.
func (p Process) signal(sig syscall.Signal) error {
	const pidfdSendSignal = 424 // the same on every architecture that the command is released for
	dir, err := syscall.Open("/proc/"+strconv.Itoa(p.PID), syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil // it is gone
	}
	defer syscall.Close(dir)
	if now, ok := readProcess(dir, "stat"); !ok || !now.is(p) {
		return nil
	}
	_, _, errno := syscall.Syscall6(pidfdSendSignal, uintptr(dir), uintptr(sig), 0, 0, 0, 0)
	if errno == syscall.EPERM || errno == syscall.ENOSYS {
		return syscall.Kill(p.PID, sig)
	}
	return nil
}
