// SPDX-License-Identifier: Apache-2.0

package guardian

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/zklock-go/zklock/cmd/zklock/internal/proc"
	"github.com/zklock-go/zklock/cmd/zklock/internal/signals"
)

// guard is the guardian's side. It runs the command, in a separate process if the system supports that. It ends the command
// and everything the command started when the deadline passes, or when zklock, at the other end of the pipe, is gone. It
// relies on nothing else from zklock, so a zklock that was killed, is stopped or hangs needs no special treatment.
type guard struct {
	tree     proc.Tree
	job      assignment
	schedule *schedule
	told     <-chan os.Signal // signals that this process receives; may be nil
	answer   func(report)     // sends a report to zklock without blocking
	notice   func(string)     // prints a message for the user, in place of zklock, without blocking
	orphan   bool             // zklock has ended

	limit           deadline // when the command has run for --max-run; set once it was started, if there is a limit
	until           deadline
	local           time.Time // until, on this process's clocks
	heard           time.Time // when the last order arrived
	why             reason    // why the command is being ended
	killing         time.Time // when killing began; zero if it has not
	alone           time.Time // since when only processes that cannot be ended are left; zero if there are others
	denied          []int     // processes that were already reported
	silenceReported bool      // it was reported that zklock does not respond

	started bool
	early   []syscall.Signal // signals for the command that arrived before it was started
}

// killAgain is the interval at which killing is repeated, for processes that were started in the meantime.
const killAgain = 5 * time.Millisecond

// patience is how long a process may take to end after KILL before it counts as impossible to end.
const patience = 300 * time.Millisecond

// keep runs and watches the command. It returns when no process is left that could be ended.
func (g *guard) keep(orders <-chan order) {
	first, ok := <-orders
	if !ok || first.Assignment == nil {
		return
	}
	g.job = *first.Assignment
	g.schedule = newSchedule(g.job.Grace, g.job.Session)
	g.renew(first)
	if g.left() <= g.schedule.margin {
		g.answer(report{Event: proc.Event{Failed: proc.Raw("the lock was about to be lost before the command could be started")}})
		return
	}
	// Owned by keep, which receives from it until the last event; ends with the tree.
	events := make(chan proc.Event)
	go g.tree.Run(g.job.Spec, func(e proc.Event) { events <- e })
	timer := time.NewTimer(g.enforce())
	defer timer.Stop()
	for {
		select {
		case o, ok := <-orders:
			if ok {
				g.handle(o)
			} else {
				orders = nil
				g.orphan = true
				g.end(abandoned)
			}
		case e := <-events:
			g.answer(report{Event: e})
			if e.IsLast() {
				return
			}
			if e.Started != 0 {
				g.begin()
			}
			if e.Exited != nil && g.job.EndRest {
				g.end(leftover)
			}
		case sig := <-g.told:
			if number, ok := sig.(syscall.Signal); ok {
				g.answer(report{Told: int(number)})
			}
		case <-timer.C:
		}
		next := g.enforce()
		if g.stuck() {
			g.giveUp()
			return
		}
		timer.Reset(next)
	}
}

func (g *guard) handle(o order) {
	g.renew(o)
	g.answer(report{Heard: true})
	if o.Kill {
		g.kill(taken)
	}
	if o.EndRest {
		g.end(leftover)
	}
	if o.Unhealthy {
		g.end(unhealthy)
	}
	if o.Signal != 0 {
		to := proc.Groups
		if o.Shared {
			to = proc.OwnOnly
		}
		g.signal(syscall.Signal(o.Signal), to)
	}
}

// signal passes a signal to the command. If the command has not started yet, it is sent later.
func (g *guard) signal(sig syscall.Signal, to proc.Reach) {
	switch {
	case g.started:
		g.report(g.tree.Signal(sig, to))
	case to != proc.OwnOnly:
		g.early = append(g.early, sig)
	}
}

func (g *guard) begin() {
	g.started = true
	g.limit = now().plus(g.job.MaxRun)
	for _, sig := range g.early {
		g.signal(sig, proc.All)
	}
}

func (g *guard) renew(o order) {
	g.heard = time.Now()
	g.until, g.local = o.Until, g.heard.Add(o.Until.left())
}

// left returns how long the hold is certain. If the clocks disagree, the shortest time counts.
func (g *guard) left() time.Duration { return min(g.until.left(), time.Until(g.local)) }

// enforce takes the action that the schedule returns. It returns when to call it again.
func (g *guard) enforce() time.Duration {
	if g.hasOverrun() {
		g.end(overran)
	}
	what, next := g.schedule.next(time.Now(), g.left())
	switch {
	case !g.killing.IsZero():
	case what == killCommand:
		g.kill(expired)
	case what == warnCommand:
		g.end(expired)
	}
	g.reportSilence()
	if !g.killing.IsZero() {
		g.killRound()
		if g.alone.IsZero() || time.Since(g.alone) < patience {
			return killAgain
		}
	}
	return max(next, killAgain)
}

// hasOverrun reports whether the command has run for --max-run.
func (g *guard) hasOverrun() bool { return g.started && g.job.MaxRun > 0 && g.limit.left() <= 0 }

// end sends TERM to the command and everything it started. The schedule then allows them the grace period.
func (g *guard) end(why reason) {
	g.schedule.warn(time.Now())
	if g.why != "" {
		return
	}
	g.signal(signals.Terminate, proc.All)
	g.setReason(why)
}

func (g *guard) kill(why reason) {
	if g.killing.IsZero() {
		g.killing = time.Now()
		g.killRound()
	}
	if g.why == "" {
		g.setReason(why)
	}
}

func (g *guard) killRound() {
	ending, denied := g.tree.Kill()
	if ending > 0 {
		g.alone = time.Time{}
	} else if g.alone.IsZero() {
		g.alone = time.Now()
	}
	g.report(denied)
}

// stuck reports whether every process that can be ended has ended, others are left, and the lock cannot be kept for them.
func (g *guard) stuck() bool {
	if g.why.keepsLock() && g.left() > g.schedule.margin {
		return false
	}
	return !g.killing.IsZero() && !g.alone.IsZero() && time.Since(g.alone) >= patience
}

func (g *guard) giveUp() {
	_, denied := g.tree.Kill()
	if denied == nil {
		denied = []int{}
	}
	g.answer(report{AtLarge: &denied})
	if g.orphan {
		g.notice(atLarge(denied))
	}
}

// setReason records and reports why the command is being ended. If zklock is gone, the guardian tells the user itself.
func (g *guard) setReason(why reason) {
	g.why = why
	if why != leftover || !g.tree.Empty() {
		g.answer(report{Ending: why})
	}
	if why == abandoned {
		g.tell(string(why))
	}
	g.reportSilence()
}

// reportSilence says, once, that zklock does not respond, if that is why the command is being ended. It is called again
// because zklock may have sent an order just before the command was told to end.
func (g *guard) reportSilence() {
	if g.why == expired && !g.silenceReported && time.Since(g.heard) > g.job.Session/8 {
		g.silenceReported = true
		g.tell("zklock does not respond (was it stopped?)")
	}
}

func (g *guard) tell(why string) { g.notice(fmt.Sprintf("guardian: %s: ending the command", why)) }

// report reports processes that the guardian is not permitted to signal, each of them once.
func (g *guard) report(denied []int) {
	denied = slices.DeleteFunc(denied, func(pid int) bool { return slices.Contains(g.denied, pid) })
	if len(denied) == 0 {
		return
	}
	g.denied = append(g.denied, denied...)
	g.answer(report{Denied: denied})
	if g.orphan {
		g.notice(notSignalled(denied))
	}
}

// notSignalled and atLarge return the messages about processes that zklock cannot control.

func notSignalled(pids []int) string {
	return fmt.Sprintf("DANGER: %s cannot be signaled (owned by another user)", names(pids))
}

func atLarge(pids []int) string {
	if len(pids) == 0 {
		return "DANGER: a process that zklock cannot see is still running WITHOUT the lock"
	}
	return fmt.Sprintf("DANGER: %s cannot be ended and is still running WITHOUT the lock", names(pids))
}

// names returns the process IDs, with the name of the program that each process runs if it can be read.
func names(pids []int) string {
	text := "process"
	for i, pid := range pids {
		if i > 0 {
			text += ","
		}
		if pid < 0 {
			text += fmt.Sprintf(" group %d", -pid)
			continue
		}
		text += fmt.Sprintf(" %d", pid)
		if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil {
			text += fmt.Sprintf(" (%q)", string(comm[:max(0, len(comm)-1)]))
		}
	}
	return text
}
