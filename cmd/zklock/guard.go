package main

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// guard is the guardian's own part: it runs the command, in a process of its own where the system lets it. It ends
// all that belongs to the command when the deadline comes, or when zklock, at the other end of the pipe, is no more.
// It trusts in nothing else that zklock does: one that was killed, is stopped or hangs is one case.
type guard struct {
	tree     tree
	job      assignment
	schedule *schedule
	answer   func(report) // tells zklock, without waiting for it
	notice   func(string) // tells people, for zklock, without waiting for them
	orphan   bool         // zklock has ended

	until           deadline
	local           time.Time // until, on this process's clocks
	heard           time.Time // when the last order came
	why             reason    // why the command is being ended
	killing         time.Time // since when; zero: not yet
	alone           time.Time // since when only what cannot be ended was seen; zero: something else was
	denied          []int     // what was reported
	silenceReported bool      // zklock was said not to answer

	started bool
	early   []syscall.Signal // what came for the command before it was started
}

// killAgain is when processes that were started meanwhile are killed, too.
const killAgain = 5 * time.Millisecond

// patience is how long a process may take to end after KILL before it counts as one that cannot be ended.
const patience = 300 * time.Millisecond

// keep does the whole job. It returns when nothing is left that could be ended.
func (g *guard) keep(orders <-chan order) {
	first, ok := <-orders
	if !ok || first.Assignment == nil {
		return
	}
	g.job = *first.Assignment
	g.schedule = newSchedule(g.job.Grace, g.job.Session)
	g.renew(first)
	if g.left() <= g.schedule.margin {
		g.answer(report{Failed: raw("the lock was about to be lost before the command was started")})
		return
	}
	// Owned by keep, which takes what it sends until the last report; ends with the tree.
	events := make(chan report)
	go g.tree.run(g.job, func(r report) { events <- r })
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
		case r := <-events:
			g.answer(r)
			if r.last() {
				return
			}
			if r.Started != 0 {
				g.begin()
			}
			if r.Exited != nil && g.job.EndRest {
				g.end(leftover)
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
	if o.Signal != 0 {
		to := groups
		if o.Shared {
			to = ownOnly
		}
		g.signal(syscall.Signal(o.Signal), to)
	}
}

// signal passes a signal on, as soon as there is a command.
func (g *guard) signal(sig syscall.Signal, to reach) {
	switch {
	case g.started:
		g.report(g.tree.signal(sig, to))
	case to != ownOnly:
		g.early = append(g.early, sig)
	}
}

func (g *guard) begin() {
	g.started = true
	for _, sig := range g.early {
		g.signal(sig, all)
	}
}

func (g *guard) renew(o order) {
	g.heard = time.Now()
	g.until, g.local = o.Until, g.heard.Add(o.Until.left())
}

// left returns how long the hold is certain by the clock that says least.
func (g *guard) left() time.Duration { return min(g.until.left(), time.Until(g.local)) }

// enforce does what the schedule says and returns when to look again.
func (g *guard) enforce() time.Duration {
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

// end tells the command and all that it has started to end. The schedule gives them the grace.
func (g *guard) end(why reason) {
	g.schedule.warn(time.Now())
	if g.why != "" {
		return
	}
	g.signal(terminate, all)
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
	ending, denied := g.tree.kill()
	if ending > 0 {
		g.alone = time.Time{}
	} else if g.alone.IsZero() {
		g.alone = time.Now()
	}
	g.report(denied)
}

// stuck reports whether all that could be ended has been, something is left, and the
// lock cannot be kept for it.
func (g *guard) stuck() bool {
	if g.why == leftover && g.left() > g.schedule.margin {
		return false
	}
	return !g.killing.IsZero() && !g.alone.IsZero() && time.Since(g.alone) >= patience
}

func (g *guard) giveUp() {
	_, denied := g.tree.kill()
	if denied == nil {
		denied = []int{}
	}
	g.answer(report{AtLarge: &denied})
	if g.orphan {
		g.notice(atLarge(denied))
	}
}

// setReason notes why the command is being ended. Where zklock cannot say so, the guardian does.
func (g *guard) setReason(why reason) {
	g.why = why
	g.answer(report{Ending: why})
	if why == abandoned {
		g.tell(string(why))
	}
	g.reportSilence()
}

// reportSilence tells, once, that zklock was not heard of lately when its command is being ended
// because of that. At the first sign it may have been heard of a moment ago.
func (g *guard) reportSilence() {
	if g.why == expired && !g.silenceReported && time.Since(g.heard) > g.job.Session/8 {
		g.silenceReported = true
		g.tell("zklock does not answer (was it stopped?)")
	}
}

func (g *guard) tell(why string) { g.notice(fmt.Sprintf("guardian: %s: ending the command", why)) }

// report tells of processes that must not be signalled, once of each.
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

// notSignalled and atLarge are what people are told of processes that zklock has no power over.

func notSignalled(pids []int) string {
	return fmt.Sprintf("DANGER: %s cannot be signalled, another user's", names(pids))
}

func atLarge(pids []int) string {
	if len(pids) == 0 {
		return "DANGER: a process that cannot be seen goes on WITHOUT the lock"
	}
	return fmt.Sprintf("DANGER: %s cannot be ended and goes on WITHOUT the lock", names(pids))
}

// names returns the processes with what they run, as far as that can be found out.
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
