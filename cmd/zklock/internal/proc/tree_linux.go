// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
)

// NewTree returns the tree that a guardian manages.
func NewTree() Tree {
	if GroupOnly {
		return &group{}
	}
	return newReaper()
}

func newReaper() *reaper {
	t := &reaper{}
	t.quiet = sync.NewCond(&t.mu)
	return t
}

// Adopt returns the tree of a guardian that is gone or hangs, for zklock itself. started is the event that the command was
// started, and foreign are processes that do not belong to the tree.
func Adopt(guardian int, started Event, foreign []Process) Tree {
	if GroupOnly {
		return &group{pid: started.Started}
	}
	t := newReaper()
	t.cgroup, t.foreign, t.guardian = cgroup(started.Cgroup), foreign, guardian
	return t
}

// RemoveGroup removes the control group of a command that was started, if it is empty.
func RemoveGroup(started Event) { cgroup(started.Cgroup).remove() }

// BecomeReaper makes this process the parent of every descendant that loses its own parent. A descendant can therefore leave
// its process group and its session, but not this tree.
func BecomeReaper() error {
	if GroupOnly {
		return nil
	}
	const setChildSubreaper = 36
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		return fmt.Errorf("prctl(PR_SET_CHILD_SUBREAPER): %w", errno)
	}
	return nil
}

// reaper is a tree whose root is this process: it consists of all descendants.
type reaper struct {
	mu     sync.Mutex
	pid    int    // guarded by mu: the command; zero before it was started
	ended  bool   // guarded by mu: the command has exited; other processes may still run
	group  int    // guarded by mu: the command's process group
	own    bool   // guarded by mu: only processes of the tree are in group
	cgroup cgroup // guarded by mu until the command was started

	tty *os.File // the terminal, if the command has a foreground group of its own; otherwise nil

	killing bool       // guarded by mu: the tree is being killed
	dying   bool       // guarded by mu: processes of the tree were alive at the last call of kill
	quiet   *sync.Cond // signaled when dying becomes false

	// Descendants that do not belong to the tree, if zklock has taken it over.
	foreign  []Process
	guardian int // process ID of the guardian, which is being ended; a debugger can keep it from being reaped
}

func (t *reaper) Run(s Spec, tell func(Event)) {
	// Pdeathsig kills the command when the thread that started it ends. This goroutine therefore keeps its thread until the
	// end.
	runtime.LockOSThread()
	before := raisePriority()
	syscall.Setpriority(syscall.PRIO_PROCESS, 0, before) // for this thread, from which the command inherits it
	pid, err := t.start(s)
	if err != nil {
		tell(Event{Failed: Raw(err.Error())})
		return
	}
	tell(Event{Started: pid, Cgroup: Raw(t.cgroup)})
	for t.await() {
		r, ok := t.reap()
		if r.Exited != nil && t.tty != nil {
			terminal.GiveForeground(t.tty, s.Group)
			t.tty.Close()
		}
		if ok {
			tell(r)
		}
	}
	t.cgroup.remove()
	tell(Event{Empty: true})
}

func (t *reaper) start(s Spec) (pid int, err error) {
	if err := BecomeReaper(); err != nil {
		return 0, err
	}
	if _, ok := readProcess(0, "/proc/self/stat"); !ok {
		return 0, errors.New("/proc is not mounted: the command's processes could not be found")
	}
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// Only members of the terminal's foreground group can read from it, and Ctrl-C goes to them. The command therefore joins
	// zklock's group, with whatever else runs there. If zklock leads the session, nothing else can run there: the command
	// then gets a foreground group of its own, and signals to zklock are meant for the command.
	shares := s.Terminal && !s.Leader
	switch {
	case shares:
		attr.Pgid = s.Group
	case s.Terminal:
		t.tty = terminal.OpenForeground(s.Group)
		if t.tty != nil {
			attr.Foreground, attr.Ctty = true, int(t.tty.Fd())
		}
	}
	c := newCgroup()
	pid, err = startIn(c, s, attr)
	if err != nil && c != "" {
		c.remove()
		c = ""
		pid, err = startIn(c, s, attr)
	}
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cgroup = c
	t.pid, t.group, t.own = pid, pid, true
	if shares {
		t.group, t.own = s.Group, false
	}
	return pid, nil
}

func startIn(c cgroup, s Spec, attr *syscall.SysProcAttr) (pid int, err error) {
	with := *attr
	if c != "" {
		dir, err := os.Open(string(c))
		if err != nil {
			return 0, err
		}
		defer dir.Close()
		with.UseCgroupFD, with.CgroupFD = true, int(dir.Fd())
	}
	return forkExec(s, &with)
}

// await waits until reap has something to do. It returns false if no child is left. There are no descendants then either,
// because this process inherits every descendant whose parent has ended.
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

// reap reaps one child, and returns an event if it is the command. It holds mu, so no signal is sent meanwhile: the process
// ID of a reaped process can be reused at once. While the tree is being killed, reap waits: processes that are dead but not
// reaped count towards a limit on the number of processes, so fewer can be started, and they keep their group ID in use.
func (t *reaper) reap() (r Event, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.dying {
		t.quiet.Wait()
	}
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
	if err != nil || pid == 0 || pid != t.pid {
		return Event{}, false
	}
	r, ok = became(status)
	t.ended = t.ended || r.Exited != nil
	return r, ok && !(t.killing && r.Stopped != 0)
}

func (t *reaper) Signal(sig syscall.Signal, to Reach) (denied []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pid == 0 {
		return nil
	}
	found := below(os.Getpid())
	moved := t.group // the command's current group: timeout(1), for example, creates its own
	for _, p := range found {
		if p.PID == t.pid {
			moved = p.group
		}
	}
	// Signal the whole group at once, as long as its ID cannot have been reused.
	atOnce := t.own && !t.ended
	if atOnce {
		syscall.Kill(-t.group, sig)
	}
	for _, p := range found {
		var err error
		switch shared := p.group == t.group && !t.own; {
		case p.group == t.group && atOnce:
			err = p.signal(0)
		case to == OwnOnly && shared:
			continue
		case p.group == t.group, p.group == moved, to == All:
			err = p.signal(sig)
		default:
			continue
		}
		if p.stopped && (sig == syscall.SIGTERM || sig == syscall.SIGHUP) {
			p.signal(syscall.SIGCONT) // a stopped process would not handle the signal
		}
		if errors.Is(err, syscall.EPERM) {
			denied = append(denied, p.PID)
		}
	}
	return denied
}

func (t *reaper) Empty() bool { return len(below(os.Getpid(), t.foreign...)) == 0 }

// Kill stops the processes that it finds until it finds no new ones, and then kills them. A stopped process starts no
// others, and it still counts towards a limit on the number of processes.
func (t *reaper) Kill() (ending int, denied []int) {
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
			denied = append(denied, p.PID)
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

// stopTime is how long kill tries to stop all processes before it kills those that it found.
const stopTime = 50 * time.Millisecond

func (t *reaper) stopAll() {
	stopped := map[int]string{} // start times of the processes that were sent SIGSTOP, by process ID
	for begun := time.Now(); time.Since(begun) < stopTime; {
		all, more := t.processes(), false
		for _, group := range t.wholeGroups(all) {
			syscall.Kill(-group, syscall.SIGSTOP)
		}
		for _, p := range living(all) {
			if !p.stopped && stopped[p.PID] != p.since {
				stopped[p.PID], more = p.since, true
				p.signal(syscall.SIGSTOP)
			}
		}
		if !more {
			return
		}
	}
}

// processes returns all processes of the machine and marks those of the tree. The guardian does not belong to the tree.
func (t *reaper) processes() []Process {
	all := processes(os.Getpid(), t.foreign)
	for i := range all {
		all[i].below = all[i].below && all[i].PID != t.guardian
	}
	return all
}

// wholeGroups returns the process groups that contain living processes of the tree and none from outside it. Each contains a
// child of this process: until that is reaped, the group's ID is not reused.
func (t *reaper) wholeGroups(all []Process) (groups []int) {
	if reaps() {
		return nil // at any time
	}
	ours, alive, others := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, p := range all {
		ours[p.group] = ours[p.group] || p.below && p.Parent == os.Getpid()
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
