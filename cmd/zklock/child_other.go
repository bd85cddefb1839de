//go:build !unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Without process groups, reapers and TERM the guardian is no process of its own: it ends
// the command at once, and what else the system lets it find.

const terminate = syscall.SIGTERM

var passedOn = []os.Signal{os.Interrupt}

var fromTerminal = []os.Signal{os.Interrupt} // which all processes of a console get

func endsWaiting(os.Signal) (code int, ends bool) { return codeSignal + 2, true }

func listen(signals chan os.Signal) { signal.Notify(signals, passedOn...) }

func ignoreSuspension() {}

func reapStrangers() {}

func hasTerminal() bool { return true }

func sharesGroup() bool { return true }

func leadsSession() bool { return false }

func stopSignal(int) string { return "" }

func beGuardian([]string) { os.Exit(codeUsage) }

// guardian is the goroutine that watches over the command.
type guardian struct {
	reports chan report
	orders  chan order
	tree    *lone
}

func startGuardian(cmd *exec.Cmd) (*guardian, error) {
	job, err := newJobObject()
	if err != nil {
		return nil, fmt.Errorf("job object: %w", err)
	}
	g := &guardian{make(chan report, 64), make(chan order, 64), &lone{cmd: cmd, job: job}}
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

func (g *guardian) stop() { g.tree.job.close() }

func (g *guardian) takeOver(report) (denied []int) {
	g.tree.kill()
	return nil
}

// lone is a tree without a guardian's process.
type lone struct {
	cmd   *exec.Cmd
	job   *jobObject
	mu    sync.Mutex
	alive bool // guarded by mu: the command was started, and has not ended
	none  bool // guarded by mu: the command could not be started
}

func (l *lone) run(_ assignment, tell func(report)) {
	l.mu.Lock()
	err := l.job.start(l.cmd)
	l.alive, l.none = err == nil, err != nil
	l.mu.Unlock()
	if err != nil {
		tell(report{Failed: raw(err.Error())})
		return
	}
	tell(report{Started: l.cmd.Process.Pid})
	err = l.cmd.Wait()
	l.mu.Lock()
	l.alive = false
	l.mu.Unlock()
	code := 0
	var status *exec.ExitError
	if errors.As(err, &status) {
		code = status.ExitCode()
	} else if err != nil {
		code = codeFailure
	}
	tell(report{Exited: &code})
	for l.job.active() > 0 {
		time.Sleep(20 * time.Millisecond) // nothing simple tells when a job is empty
	}
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
	switch ending = l.job.active(); {
	case l.none:
		return 0, nil
	case l.cmd.Process == nil:
		return 1, nil // it is being started
	case l.alive:
		ending = max(1, ending)
	}
	if ending > 0 {
		l.job.kill()
	}
	return ending, nil
}
