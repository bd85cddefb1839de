//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// Without process groups, reapers and TERM the command alone is ended, at once, and only
// while zklock itself lives: the guardian is no process of its own.

const terminate = syscall.SIGTERM

const unguarded = "on this system only the command itself is ended when the lock is lost, not what it has started; and nothing ends it if zklock is killed or stands still"

var passedOn = []os.Signal{os.Interrupt}

var fromTerminal = []os.Signal{os.Interrupt} // which all processes of a console get

func endsWaiting(os.Signal) (code int, ends bool) { return codeSignal + 2, true }

func listen(signals chan os.Signal) { signal.Notify(signals, passedOn...) }

func ignoreSuspension() {}

func hasTerminal() bool { return true }

func sharesGroup() bool { return true }

func stopSignal(int) string { return "" }

func beGuardian([]string) { os.Exit(codeUsage) }

// guardian is the goroutine that watches over the command.
type guardian struct {
	reports chan report
	orders  chan order
	tree    *lone
}

func engage(cmd *exec.Cmd) (*guardian, error) {
	g := &guardian{make(chan report, 64), make(chan order, 64), &lone{cmd: cmd}}
	// Owned by the guardian; ends with the command; supervise waits for its last report.
	go func() {
		defer close(g.reports)
		watch := guard{tree: g.tree, answer: func(r report) { g.reports <- r }, notice: func(string) {}}
		watch.keep(g.orders)
	}()
	return g, nil
}

func (g *guardian) tell(o order) {
	select {
	case g.orders <- o:
	default:
	}
}

func (g *guardian) heard() {}

func (g *guardian) dismiss() {}

func (g *guardian) takeOver(report) (denied []int) {
	g.tree.kill()
	return nil
}

// lone is a tree of which only the command itself is known.
type lone struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	ended bool // guarded by mu: or not started
}

func (l *lone) run(_ assignment, tell func(report)) {
	l.mu.Lock()
	err := l.cmd.Start()
	l.ended = err != nil
	l.mu.Unlock()
	if err != nil {
		tell(report{Failed: err.Error()})
		return
	}
	tell(report{Started: l.cmd.Process.Pid})
	err = l.cmd.Wait()
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	code := 0
	var status *exec.ExitError
	if errors.As(err, &status) {
		code = status.ExitCode()
	} else if err != nil {
		code = codeFailure
	}
	tell(report{Exited: &code})
	tell(report{Empty: true})
}

func (l *lone) signal(sig syscall.Signal, _ reach) (denied []int) {
	if sig == terminate {
		l.kill()
	}
	return nil
}

func (l *lone) kill() (ending int, denied []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return 0, nil
	}
	if l.cmd.Process != nil {
		l.cmd.Process.Kill()
	}
	return 1, nil
}
