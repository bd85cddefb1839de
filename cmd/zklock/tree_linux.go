package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// newTree returns the tree that a guardian looks after. adopt returns the one of a
// guardian that is no more, for zklock itself.

func newTree() tree {
	if groupOnly {
		return &group{}
	}
	return newReaper()
}

func newReaper() *reaper {
	t := &reaper{}
	t.quiet = sync.NewCond(&t.mu)
	return t
}

func adopt(guardian int, started report, foreign []process) tree {
	if groupOnly {
		return &group{pid: started.Started}
	}
	t := newReaper()
	t.cgroup, t.foreign, t.guardian = cgroup(started.Cgroup), foreign, guardian
	return t
}

// sharesGroup reports whether a command that has a terminal is in zklock's own process group.
func sharesGroup() bool { return !groupOnly }

// leadsSession reports whether this process leads its session: it is not a shell that has started it on a terminal.
func leadsSession() bool {
	session, _, errno := syscall.Syscall(syscall.SYS_GETSID, 0, 0, 0)
	return errno == 0 && int(session) == os.Getpid()
}

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

	tty *os.File // of the command, which is in a foreground group of its own; nil: it is not

	killing bool       // guarded by mu: the tree is being killed
	dying   bool       // guarded by mu: and something of it lived when that was last looked at
	quiet   *sync.Cond // signalled when dying ends

	// What is below this process and not of the tree, for one that took it over.
	foreign  []process
	guardian int // which has been killed; a debugger can keep what is left of it
}

func (t *reaper) run(a assignment, tell func(report)) {
	// The command is killed when the thread ends that has started it: this goroutine
	// keeps its thread for itself until the end.
	runtime.LockOSThread()
	before := raisePriority()
	syscall.Setpriority(syscall.PRIO_PROCESS, 0, before) // of this thread, and so of the command
	pid, err := t.start(a)
	if err != nil {
		tell(report{Failed: raw(err.Error())})
		return
	}
	tell(report{Started: pid, Cgroup: raw(t.cgroup)})
	for t.await() {
		r, ok := t.reap()
		if r.Exited != nil && t.tty != nil {
			giveForeground(t.tty, a.Group)
			t.tty.Close()
		}
		if ok {
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
	if _, ok := readProcess(0, "/proc/self/stat"); !ok {
		return 0, errors.New("/proc is not there: processes could not be found again")
	}
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// Only members of the terminal's foreground group may read from it, and Ctrl-C goes to
	// them. The command belongs where zklock is, with whatever else runs there, or into that
	// group alone if nothing else can run there: what zklock is sent is meant for the command then.
	shares := a.Terminal && !a.Leader
	switch {
	case shares:
		attr.Pgid = a.Group
	case a.Terminal:
		if t.tty = openForeground(a.Group); t.tty != nil {
			attr.Foreground, attr.Ctty = true, int(t.tty.Fd())
		}
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
	if shares {
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

// reap takes what one child has left, if it is of interest. While it does, nothing is signalled: the number of a process
// that was reaped may be another's at once. While the tree is killed it waits: what is dead and not reaped leaves no room
// for others where the number of processes is limited, and keeps the number of its group.
func (t *reaper) reap() (r report, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.dying {
		t.quiet.Wait()
	}
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
	if err != nil || pid == 0 || pid != t.pid {
		return report{}, false
	}
	r, ok = became(status)
	t.ended = t.ended || r.Exited != nil
	return r, ok && !(t.killing && r.Stopped != 0)
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

// kill stops what it finds until it finds nothing new, and then kills that: a process that is stopped starts no others,
// and where their number is limited it leaves no room for them.
func (t *reaper) kill() (ending int, denied []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.killing = true
	t.cgroup.kill()
	t.stopAll()
	all := t.processes()
	for _, group := range t.wholeGroups(all) {
		syscall.Kill(-group, syscall.SIGKILL)
	}
	for _, p := range living(all) {
		if errors.Is(p.signal(syscall.SIGKILL), syscall.EPERM) {
			denied = append(denied, p.pid)
		} else {
			ending++
		}
	}
	t.dying = ending > 0
	if !t.dying {
		t.quiet.Broadcast()
	}
	return ending, denied
}

// stopTime is how long kill tries to stop all before it kills what it has found.
const stopTime = 50 * time.Millisecond

func (t *reaper) stopAll() {
	stopped := map[int]string{} // since when the processes are that were told
	for begun := time.Now(); time.Since(begun) < stopTime; {
		all, more := t.processes(), false
		for _, group := range t.wholeGroups(all) {
			syscall.Kill(-group, syscall.SIGSTOP)
		}
		for _, p := range living(all) {
			if !p.stopped && stopped[p.pid] != p.since {
				stopped[p.pid], more = p.since, true
				p.signal(syscall.SIGSTOP)
			}
		}
		if !more {
			return
		}
	}
}

// processes returns those of the machine. A guardian that was killed is not of the tree.
func (t *reaper) processes() []process {
	all := processes(os.Getpid(), t.foreign)
	for i := range all {
		all[i].below = all[i].below && all[i].pid != t.guardian
	}
	return all
}

// wholeGroups returns the process groups that living processes of the tree are in and no others. Each has a child of
// this process in it: while that is not reaped, nobody else gets the group's number.
func (t *reaper) wholeGroups(all []process) (groups []int) {
	if os.Getpid() == 1 {
		return nil // reapStrangers reaps at any time
	}
	ours, alive, others := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, p := range all {
		ours[p.group] = ours[p.group] || p.below && p.parent == os.Getpid()
		alive[p.group] = alive[p.group] || p.below && !p.dead
		others[p.group] = others[p.group] || !p.below
	}
	for group := range ours {
		if ours[group] && alive[group] && !others[group] {
			groups = append(groups, group)
		}
	}
	return groups
}
