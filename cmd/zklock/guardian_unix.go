//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// guardianName is what the second process is called: a `pkill zklock` should not end both.
const guardianName = "lock-guardian"

// beGuardian is the second process, started with the descriptors of its two pipes.
func beGuardian(args []string) {
	var fds [2]int
	for i := range fds {
		fd, err := 0, error(nil)
		if len(args) == len(fds) {
			fd, err = strconv.Atoi(args[i])
		}
		if fd <= 2 || err != nil {
			fmt.Fprintln(os.Stderr, "zklock: guard is what zklock starts for itself")
			os.Exit(codeUsage)
		}
		syscall.CloseOnExec(fd) // else the command would keep the pipes open
		syscall.SetNonblock(fd, true)
		fds[i] = fd
	}
	if runtime.GOOS == "linux" {
		os.WriteFile("/proc/self/comm", []byte(guardianName), 0)
	}
	ignoreSignals()
	reserveThreads()
	in, out := os.NewFile(uintptr(fds[0]), "orders"), os.NewFile(uintptr(fds[1]), "reports")
	c := newPrinter(os.Stderr)
	answer := func(r report) {
		out.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // zklock may be stopped
		out.Write(encode(r))
	}
	g := guard{tree: newTree(), answer: answer, notice: c.print}
	g.keep(receive[order](in))
	c.wait()
}

// ignoreSignals drops the signals that this process is sent, except those that end it in any case. Commands that it
// starts get them.
func ignoreSignals() {
	drop := make(chan os.Signal, 1)
	for s := syscall.Signal(1); s < 32; s++ {
		switch s {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGURG,
			syscall.SIGILL, syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGTRAP, syscall.SIGABRT,
			syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU: // zklock decides about these
		default:
			if !signal.Ignored(s) {
				signal.Notify(drop, s)
			}
		}
	}
	ignoreWhatWasIgnored()
}

// guardian is the second process as zklock sees it.
type guardian struct {
	reports <-chan report // closed when the guardian is no more
	orders  *os.File
	process *os.Process
	dead    chan struct{} // closed when the process is no more
	foreign []process     // what was below us before: the program that became zklock can have had children
	unheard bool          // an order was not answered yet
}

// startGuardian starts a guardian with the environment and the standard streams that the
// command is to have. It waits for its assignment.
func startGuardian(cmd *exec.Cmd) (*guardian, error) {
	g := &guardian{dead: make(chan struct{}), foreign: descendantsNow()}
	if err := becomeReaper(); err != nil {
		return nil, err
	}
	theirOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirOrders.Close()
	reports, theirReports, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirReports.Close()
	second, err := secondProcess(cmd, theirOrders, theirReports)
	if err != nil {
		return nil, err
	}
	g.orders, g.process, g.reports = orders, second, receive[report](reports)
	// Owned by the guardian; ends with its process, which stop waits for.
	go func() {
		second.Wait()
		// A process that hangs between fork and exec can have the other end open still.
		reports.SetReadDeadline(time.Now().Add(time.Second))
		close(g.dead)
	}()
	return g, nil
}

// secondProcess starts this very binary once more, also if its file was replaced since.
func secondProcess(cmd *exec.Cmd, orders, reports *os.File) (*os.Process, error) {
	self, err := ownBinary()
	if err != nil {
		return nil, err
	}
	args := []string{guardianName, guardCommand}
	for _, end := range []*os.File{orders, reports} {
		// Under a number that nothing has: there can be files for the command at 3 and above.
		fd, err := syscall.Dup(int(end.Fd()))
		if err != nil {
			return nil, err
		}
		defer syscall.Close(fd)
		args = append(args, strconv.Itoa(fd))
	}
	second := exec.Command(self)
	second.Args, second.Env = args, cmd.Env
	second.Stdin, second.Stdout, second.Stderr = cmd.Stdin, cmd.Stdout, cmd.Stderr
	second.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what our group is sent is not meant for it
	if err := second.Start(); err != nil {
		return nil, err
	}
	return second.Process, nil
}

// tell sends an order, without waiting for a guardian that does not read.
func (g *guardian) tell(o order) {
	if g.unheard {
		g.process.Signal(syscall.SIGCONT) // was it stopped?
	}
	g.unheard = true
	line := encode(o)
	if o.Assignment == nil {
		g.orders.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	}
	g.orders.Write(line)
}

// heard notes that an order was answered.
func (g *guardian) heard() { g.unheard = false }

// stop ends the guardian, which has nothing left to do.
func (g *guardian) stop() {
	g.orders.Close()
	g.process.Kill()
	select {
	case <-g.dead:
	case <-time.After(100 * time.Millisecond): // a debugger keeps what is left of it
	}
}

// takeOver ends what the guardian was to end, and the guardian. That may only be slow: while it lives, it works on beside
// us, and alone if zklock is killed now. takeOver returns the processes that it cannot end.
func (g *guardian) takeOver(started report) (denied []int) {
	t := adopt(g.process.Pid, started, g.foreign)
	endAll(t)
	g.stop()
	if denied = endAll(t); denied == nil {
		cgroup(started.Cgroup).remove()
	}
	return denied
}

// endAll kills until nothing is left that could be ended, and returns what is left then.
func endAll(t tree) (denied []int) {
	var alone time.Time // since when only what cannot be ended was seen
	for clear := 0; clear < 2; time.Sleep(killAgain) {
		var ending int
		ending, denied = t.kill()
		switch {
		case ending == 0 && len(denied) == 0:
			clear++
			continue
		case ending > 0:
			alone = time.Time{}
		case alone.IsZero():
			alone = time.Now()
		case time.Since(alone) > patience:
			return denied
		}
		clear = 0
	}
	return nil
}
