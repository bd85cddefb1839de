package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"unsafe"
)

// newTree returns the tree that a guardian looks after. adopt returns the one of a
// guardian that is no more, for zklock itself.

func newTree() tree {
	if groupOnly {
		return &group{}
	}
	return &reaper{}
}

func adopt(guardian int, started report, spare []process) tree {
	if groupOnly {
		return &group{pid: started.Started}
	}
	return &reaper{cgroup: cgroup(started.Cgroup), spare: spare, guardian: guardian}
}

// sharesGroup reports whether a command that has a terminal is in zklock's own process group.
func sharesGroup() bool { return !groupOnly }

func ownBinary() (string, error) { return "/proc/self/exe", nil }

// groupOnly has Linux treated as other systems are, in tests.
var groupOnly = false

// becomeReaper makes this process the parent of every descendant that loses its own. So
// a process that was started under it can leave its group and its session, but not this tree.
func becomeReaper() error {
	if groupOnly {
		return nil
	}
	const setChildSubreaper = 36
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		return fmt.Errorf("prctl(PR_SET_CHILD_SUBREAPER): %w", errno)
	}
	return nil
}

// reapStrangers takes what processes leave that become ours because we are the first of a
// container: those that somebody has started in there and whose parent has ended. What the
// guardian leaves may be taken, too: nobody asks for that.
func reapStrangers() {
	if os.Getpid() != 1 {
		return
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	// Owned by the process, and ends with it.
	go func() {
		for range ended {
			for pid := 1; pid > 0; {
				pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			}
		}
	}()
}

// reaper is a tree whose root is this process: all that it has started, directly or not.
type reaper struct {
	mu     sync.Mutex
	pid    int    // guarded by mu: the command, zero before it was started
	ended  bool   // guarded by mu: the command has, others may live
	group  int    // guarded by mu: the command's process group
	own    bool   // guarded by mu: no process of others is in it
	cgroup cgroup // guarded by mu until the command was started

	// What is below this process and not of the tree, for one that took it over.
	spare    []process
	guardian int // which has been killed; a debugger can keep what is left of it
}

func (t *reaper) run(a assignment, tell func(report)) {
	// The command is killed when the thread ends that has started it: this goroutine
	// keeps its thread for itself until the end.
	runtime.LockOSThread()
	pid, err := t.start(a)
	if err != nil {
		tell(report{Failed: err.Error()})
		return
	}
	tell(report{Started: pid, Cgroup: string(t.cgroup)})
	for t.await() {
		for _, r := range t.reap() {
			tell(r)
		}
	}
	t.cgroup.remove()
	tell(report{Empty: true})
}

func (t *reaper) start(a assignment) (pid int, err error) {
	if err := becomeReaper(); err != nil {
		return 0, err
	}
	if _, _, ok := lookAt(os.Getpid()); !ok {
		return 0, errors.New("/proc is not there: processes could not be found again")
	}
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if a.Terminal {
		// Only members of the terminal's foreground group may read from it, and Ctrl-C goes
		// to them: the command belongs where zklock is, with whatever else runs there.
		attr.Pgid = a.Group
	}
	c := newCgroup()
	if pid, err = startIn(c, a, attr); err != nil && c != "" {
		c.remove()
		c = ""
		pid, err = startIn(c, a, attr)
	}
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cgroup = c
	t.pid, t.group, t.own = pid, pid, true
	if a.Terminal {
		t.group, t.own = a.Group, false
	}
	return pid, nil
}

func startIn(c cgroup, a assignment, attr *syscall.SysProcAttr) (pid int, err error) {
	with := *attr
	if c != "" {
		dir, err := os.Open(string(c))
		if err != nil {
			return 0, err
		}
		defer dir.Close()
		with.UseCgroupFD, with.CgroupFD = true, int(dir.Fd())
	}
	return forkExec(a, &with)
}

// await waits until reap has something to do. It reports false when no child is left:
// then there are no descendants either, for a child without a parent becomes ours.
func (t *reaper) await() bool {
	const (
		all                  = 0
		stopped, exited, not = 0x2, 0x4, 0x01000000 // WSTOPPED, WEXITED, WNOWAIT
	)
	var info [128]byte
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, all, 0, uintptr(unsafe.Pointer(&info)), exited|stopped|not, 0, 0)
		if errno != syscall.EINTR {
			return errno == 0
		}
	}
}

// reap takes what children have left. While it does, nothing is signalled: the number of
// a process that was reaped may be another's at once.
func (t *reaper) reap() (reports []report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid == 0 {
			return reports
		}
		if pid != t.pid {
			continue
		}
		if r, ok := became(status); ok {
			t.ended = t.ended || r.Exited != nil
			reports = append(reports, r)
		}
	}
}

func (t *reaper) signal(sig syscall.Signal, to reach) (denied []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pid == 0 {
		return nil
	}
	found := below(os.Getpid())
	moved := t.group // where the command is now: timeout(1), for one, makes a group of its own
	for _, p := range found {
		if p.pid == t.pid {
			moved = p.group
		}
	}
	// At once, to everybody in the group, as long as its number is certainly its own.
	atOnce := t.own && !t.ended
	if atOnce {
		syscall.Kill(-t.group, sig)
	}
	for _, p := range found {
		var err error
		switch shared := p.group == t.group && !t.own; {
		case p.group == t.group && atOnce:
			err = p.signal(0)
		case to == ownOnly && shared:
			continue
		case p.group == t.group, p.group == moved, to == all:
			err = p.signal(sig)
		default:
			continue
		}
		if p.stopped && (sig == syscall.SIGTERM || sig == syscall.SIGHUP) {
			p.signal(syscall.SIGCONT) // it would not see the signal otherwise
		}
		if errors.Is(err, syscall.EPERM) {
			denied = append(denied, p.pid)
		}
	}
	return denied
}

func (t *reaper) kill() (ending int, denied []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.own && !t.ended {
		syscall.Kill(-t.group, syscall.SIGKILL)
	}
	t.cgroup.kill()
	for _, p := range below(os.Getpid(), t.spare...) {
		if p.pid == t.guardian {
			continue
		}
		if errors.Is(p.signal(syscall.SIGKILL), syscall.EPERM) {
			denied = append(denied, p.pid)
		} else {
			ending++
		}
	}
	return ending, denied
}

// process is one that lives, as /proc describes it.
type process struct {
	pid, parent, group int
	stopped            bool
	since              string // when it began: with the pid, this is what it is
}

// bystanders returns what is below this process before it starts anything.
func bystanders() []process { return below(os.Getpid()) }

// below returns the living descendants of a process, without spare and what is below that.
func below(pid int, spare ...process) []process {
	entries, _ := os.ReadDir("/proc")
	children := map[int][]process{}
	dead := map[int]bool{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, alive, ok := lookAt(pid); ok {
			children[p.parent] = append(children[p.parent], p)
			dead[pid] = !alive
		}
	}
	var found []process
	for next := children[pid]; len(next) > 0; {
		p := next[0]
		next = next[1:]
		if slices.ContainsFunc(spare, func(s process) bool { return s.pid == p.pid && s.since == p.since }) {
			continue
		}
		next = append(next, children[p.pid]...)
		found = append(found, p)
	}
	return slices.DeleteFunc(found, func(p process) bool { return dead[p.pid] })
}

// lookAt reads what /proc says of a process; ok is false if it is gone.
func lookAt(pid int) (p process, alive, ok bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, false, false
	}
	// "pid (name) state ppid pgrp ...": the name may contain anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return process{}, false, false
	}
	state, threads := fields[0][0], string(fields[17])
	p = process{pid: pid, stopped: state == 'T' || state == 't', since: string(fields[19])}
	p.parent, _ = strconv.Atoi(string(fields[1]))
	p.group, _ = strconv.Atoi(string(fields[2]))
	// One whose first thread has ended looks dead while others run.
	return p, state != 'Z' && state != 'X' || state == 'Z' && threads != "0" && threads != "1", true
}

// signal sends sig to the process, and to no other that has got its number meanwhile.
func (p process) signal(sig syscall.Signal) error {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return nil // it is gone
	}
	defer handle.Release()
	if now, _, ok := lookAt(p.pid); !ok || now.since != p.since {
		return nil
	}
	return handle.Signal(sig)
}
