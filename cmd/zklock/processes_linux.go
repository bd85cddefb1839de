package main

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// process is one of this machine, as /proc describes it.
type process struct {
	pid, parent, group int
	stopped, dead      bool
	since              string // when it began: with the pid, this is what it is
	below              bool   // it is a descendant of the process that was asked for
}

func (p process) is(other process) bool { return p.pid == other.pid && p.since == other.since }

// descendantsNow returns what is below this process before it starts anything.
func descendantsNow() []process { return below(os.Getpid()) }

// below returns the living descendants of a process, without foreign and what is below that.
func below(pid int, foreign ...process) []process {
	return living(processes(pid, foreign))
}

// living returns the descendants that live.
func living(all []process) []process {
	return slices.DeleteFunc(slices.Clone(all), func(p process) bool { return !p.below || p.dead })
}

// processes returns every process that /proc shows, and notes which of them are below root. What is below foreign
// processes is not. The dead that were not reaped are included.
func processes(root int, foreign []process) []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	all := make([]process, 0, len(names))
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		if p, ok := readProcess(int(dir.Fd()), name+"/stat"); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b process) int { return a.pid - b.pid })
	markBelow(all, root, foreign)
	return all
}

// markBelow notes who is below root in a list that is sorted by pid.
func markBelow(all []process, root int, foreign []process) {
	const unknown, no, yes = 0, 1, 2
	state := make([]byte, len(all))
	var find func(pid int) byte
	find = func(pid int) byte {
		i, ok := slices.BinarySearchFunc(all, pid, func(p process, pid int) int { return p.pid - pid })
		switch {
		case pid == root:
			return yes
		case !ok:
			return no
		case state[i] != unknown:
			return state[i]
		}
		state[i] = no // also ends a circle, which numbers that were given anew can show
		if !slices.ContainsFunc(foreign, all[i].is) {
			state[i] = find(all[i].parent)
		}
		return state[i]
	}
	for i, p := range all {
		all[i].below = p.pid != root && find(p.pid) == yes
	}
}

// readProcess reads what a stat file of /proc says; ok is false if the process is gone.
func readProcess(dir int, name string) (p process, ok bool) {
	file, err := syscall.Openat(dir, name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return process{}, false
	}
	defer syscall.Close(file)
	var buffer [512]byte
	n, err := syscall.Read(file, buffer[:])
	if err != nil {
		return process{}, false
	}
	return parseProcess(buffer[:n])
}

// parseProcess reads "pid (name) state ppid pgrp ...", where the name may contain anything.
func parseProcess(stat []byte) (p process, ok bool) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return process{}, false
	}
	pid, _, _ := bytes.Cut(stat, []byte(" "))
	state, threads := fields[0][0], string(fields[17])
	p.pid, _ = strconv.Atoi(string(pid))
	p.parent, _ = strconv.Atoi(string(fields[1]))
	p.group, _ = strconv.Atoi(string(fields[2]))
	p.since = string(fields[19])
	p.stopped = state == 'T' || state == 't'
	// One whose first thread has ended looks dead while others run.
	p.dead = state == 'X' || state == 'Z' && (threads == "0" || threads == "1")
	return p, true
}

// signal sends sig to the process, and to no other that has got its number meanwhile: an open directory of /proc is that
// of one process. On kernels before 5.1, and where the call is forbidden, the number is all there is.
func (p process) signal(sig syscall.Signal) error {
	const pidfdSendSignal = 424 // on every system that the command is released for
	dir, err := syscall.Open("/proc/"+strconv.Itoa(p.pid), syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil // it is gone
	}
	defer syscall.Close(dir)
	if now, ok := readProcess(dir, "stat"); !ok || !now.is(p) {
		return nil
	}
	_, _, errno := syscall.Syscall6(pidfdSendSignal, uintptr(dir), uintptr(sig), 0, 0, 0, 0)
	if errno == syscall.EPERM || errno == syscall.ENOSYS {
		return syscall.Kill(p.pid, sig)
	}
	return nil
}
