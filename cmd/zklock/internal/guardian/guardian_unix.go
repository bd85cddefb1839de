// SPDX-License-Identifier: Apache-2.0

//go:build unix

package guardian

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/proc"
	"github.com/zklock-go/zklock/cmd/zklock/internal/signals"
)

// guardianName is the name of the second process. It differs from zklock so that `pkill zklock` does not end both.
const guardianName = "lock-guardian"

// Main is the main function of the second process. Its arguments are the descriptors of its two pipes.
func Main(args []string) {
	var fds [2]int
	for i := range fds {
		fd, err := 0, error(nil)
		if len(args) == len(fds) {
			fd, err = strconv.Atoi(args[i])
		}
		if fd <= 2 || err != nil {
			fmt.Fprintln(os.Stderr, "zklock: guard is for internal use only")
			os.Exit(int(outcome.Usage))
		}
		syscall.CloseOnExec(fd) // otherwise the command would keep the pipes open
		syscall.SetNonblock(fd, true)
		fds[i] = fd
	}
	if runtime.GOOS == "linux" {
		os.WriteFile("/proc/self/comm", []byte(guardianName), 0)
	}
	told := signals.Catch()
	ReserveThreads()
	in, out := os.NewFile(uintptr(fds[0]), "orders"), os.NewFile(uintptr(fds[1]), "reports")
	c := newPrinter(os.Stderr)
	answer := func(r report) {
		out.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // zklock may be stopped
		out.Write(encode(r))
	}
	g := guard{tree: proc.NewTree(), told: told, answer: answer, notice: c.print}
	g.keep(receive[order](in))
	c.wait()
}

// guardian is zklock's side of the second process.
type guardian struct {
	reports        <-chan report // closed when the guardian is gone
	orders         *os.File
	process        *os.Process
	dead           chan struct{}  // closed when the process has ended
	foreign        []proc.Process // descendants from before: the program that exec'd zklock can have had children
	unacknowledged bool           // an order has not been acknowledged yet
}

// left returns the processes that the guardian watches, as far as the system shows them.
func (g *guardian) left() (pids []int) {
	for _, p := range proc.Descendants(g.process.Pid) {
		pids = append(pids, p.PID)
	}
	return pids
}

// startGuardian starts a guardian with the environment and the standard streams of cmd. The guardian then waits for its
// assignment.
func startGuardian(cmd *exec.Cmd) (*guardian, error) {
	g := &guardian{dead: make(chan struct{}), foreign: proc.Descendants(os.Getpid())}
	if err := proc.BecomeReaper(); err != nil {
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
		// A process that hangs between fork and exec may still have the other end open.
		reports.SetReadDeadline(time.Now().Add(time.Second))
		close(g.dead)
	}()
	return g, nil
}

// secondProcess starts a second process from this binary, on Linux even if the file has been replaced in the meantime.
func secondProcess(cmd *exec.Cmd, orders, reports *os.File) (*os.Process, error) {
	self, err := ownBinary()
	if err != nil {
		return nil, err
	}
	args := []string{guardianName, Command}
	for _, end := range []*os.File{orders, reports} {
		// Use an unused descriptor number: the command may inherit files at 3 and above.
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
	second.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals to zklock's group are not meant for the guardian
	if err := second.Start(); err != nil {
		return nil, err
	}
	return second.Process, nil
}

// ownBinary returns a path of this binary. On Linux it stays valid if the file is replaced.
func ownBinary() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// tell sends an order. It does not wait for a guardian that does not read.
func (g *guardian) tell(o order) {
	if g.unacknowledged {
		g.process.Signal(syscall.SIGCONT) // was it stopped?
	}
	g.unacknowledged = true
	line := encode(o)
	if o.Assignment == nil {
		g.orders.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	}
	g.orders.Write(line)
}

// acknowledged records that an order was acknowledged.
func (g *guardian) acknowledged() { g.unacknowledged = false }

// stop ends the guardian.
func (g *guardian) stop() {
	g.orders.Close()
	g.process.Kill()
	select {
	case <-g.dead:
	case <-time.After(100 * time.Millisecond): // a debugger can keep the dead process from being reaped
	}
}

// takeOver ends the processes that the guardian should have ended, and then the guardian. The guardian may merely be slow:
// while it lives, both end processes, and if zklock is killed now, the guardian still does. takeOver returns the processes
// that it cannot end.
func (g *guardian) takeOver(started proc.Event) (denied []int) {
	t := proc.Adopt(g.process.Pid, started, g.foreign)
	endAll(t)
	g.stop()
	denied = endAll(t)
	if denied == nil {
		proc.RemoveGroup(started)
	}
	return denied
}

// endAll kills until no process is left that can be ended, and returns those that are left.
func endAll(t proc.Tree) (denied []int) {
	var alone time.Time // since when only processes that cannot be ended are left
	for clear := 0; clear < 2; time.Sleep(killAgain) {
		var ending int
		ending, denied = t.Kill()
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
