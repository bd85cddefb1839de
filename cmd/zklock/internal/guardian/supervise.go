// SPDX-License-Identifier: Apache-2.0

package guardian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/proc"
	"github.com/zklock-go/zklock/cmd/zklock/internal/signals"
)

// supervision is one run of a command under a hold. A guardian starts and ends the command; supervision tells the guardian
// how long the hold is certain.
type supervision struct {
	terms    Terms
	hold     *zklock.Hold
	schedule *schedule
	printer  *printer
	guardian *guardian

	started proc.Event // the event that the command was started
	exited  *int       // the command's exit code
	endedBy int        // the signal that ended the command, or zero
	ending  reason     // why the command was ended, if the lock is lost or about to be lost
	sick    error      // why the command was ended because of its health check; nil if it was not
	overran string     // which processes were ended because the command has run for --max-run; empty if none were
	final   report
	passed  map[os.Signal]passing
	over    <-chan time.Time // when a guardian that was ordered to end the command counts as hung; nil if there is no such order
}

// Terms say how a command is run under a hold.
type Terms struct {
	Command        *exec.Cmd
	Hold           *zklock.Hold
	Session, Grace time.Duration
	MaxRun         time.Duration    // how long the command may run; zero means no limit
	Healthy        context.Context  // ends, with the reason, when the command must be ended because a health check has failed
	EndRest        bool             // end the processes that the command leaves running instead of waiting for them
	HasTerminal    bool             // this process has a controlling terminal
	Signals        <-chan os.Signal // the signals that this process receives
}

// Supervise runs a command and returns its outcome. The command and the processes it started run only while the hold is
// certain. Supervise reports processes that it cannot end.
func Supervise(t Terms) error {
	s := &supervision{terms: t, hold: t.Hold, schedule: newSchedule(t.Grace, t.Session), printer: newPrinter(t.Command.Stderr), passed: map[os.Signal]passing{}}
	defer s.printer.wait()
	if proc.Unguarded != "" {
		s.printer.print(proc.Unguarded)
	}
	if err := s.ready(); err != nil {
		return err
	}
	var err error
	s.guardian, err = startGuardian(t.Command)
	if err != nil {
		return outcome.Unguarded.Errorf("cannot start the guardian process: %w", err)
	}
	s.guardian.tell(order{Until: s.certain(), Assignment: &assignment{
		Spec: proc.SpecOf(t.Command, t.HasTerminal), Grace: t.Grace, Session: t.Session, MaxRun: t.MaxRun, EndRest: t.EndRest,
	}})
	return s.watch()
}

// ready waits until the hold is certain for so long that the command would not be ended at once. A hold may be granted
// shortly before its next heartbeat.
func (s *supervision) ready() error {
	tick := time.NewTicker(renewal(s.schedule.session))
	defer tick.Stop()
	for s.hold.Remaining() <= s.schedule.needed() {
		select {
		case <-tick.C:
		case sig := <-s.terms.Signals:
			if code, ends := signals.EndsWaiting(sig); ends {
				return ExitAfter(sig, code, s.terms.HasTerminal)
			}
		case <-s.terms.Healthy.Done():
			return s.unhealthy("the command was not started")
		case <-s.hold.Context().Done():
			return outcome.Lost.Errorf("the command was not started: %w", s.loss())
		}
	}
	if s.terms.Healthy.Err() != nil {
		return s.unhealthy("the command was not started")
	}
	return nil
}

func (s *supervision) unhealthy(what string) error {
	return outcome.Unhealthy.Errorf("%s: %w", what, context.Cause(s.terms.Healthy))
}

// certain returns the time until which the hold is certain.
func (s *supervision) certain() deadline {
	from := now() // before the call of Remaining: time that passes in between must not count
	return from.plus(s.hold.Remaining())
}

// watch supervises the command until none of its processes is left, and returns the outcome.
func (s *supervision) watch() error {
	tick := time.NewTicker(renewal(s.schedule.session))
	defer tick.Stop()
	lost, revoked, sick := s.hold.Context().Done(), s.hold.Revoked(), s.terms.Healthy.Done()
	var rest <-chan time.Time // when to tell the user why zklock keeps running after the command has exited
	for {
		select {
		case r, ok := <-s.guardian.reports:
			if !ok {
				return s.endWithoutGuardian()
			}
			if r.Exited != nil && !s.terms.EndRest {
				rest = time.After(time.Second)
			}
			s.note(r)
			if r.isLast() {
				s.guardian.stop()
				return s.outcome()
			}
			if s.over != nil {
				s.over = s.silence() // the guardian is alive: start the time again
			}
		case sig := <-s.terms.Signals:
			s.pass(sig, toZklock)
		case <-revoked:
			revoked = nil
			s.pass(signals.Terminate, toZklock)
		case <-sick:
			sick = nil
			s.order(order{Unhealthy: true})
		case <-rest:
			s.printer.print(fmt.Sprintf("the command exited and left running: %s; keeping the lock until they exit (Ctrl-C or TERM ends them, as --end-rest does)", s.leftRunning()))
		case <-lost:
			lost = nil
			s.end()
		case <-s.over:
			return s.endWithoutGuardian()
		case <-tick.C:
			s.order(order{})
			if s.hold.Remaining() <= s.schedule.margin && s.over == nil {
				s.end()
			}
		}
	}
}

// mostNamed is how many processes a message names.
const mostNamed = 5

// leftRunning says which processes the command has left running.
func (s *supervision) leftRunning() string {
	pids := s.guardian.left()
	switch more := len(pids) - mostNamed; {
	case len(pids) == 0:
		return "processes that it started"
	case more > 0:
		return fmt.Sprintf("%s and %d more", names(pids[:mostNamed]), more)
	}
	return names(pids)
}

func (s *supervision) order(o order) {
	o.Until = s.certain()
	s.guardian.tell(o)
}

// end orders the guardian to kill the command at once. If the guardian does not report from then on, zklock takes over.
func (s *supervision) end() {
	s.order(order{Kill: true})
	if s.over == nil {
		s.over = s.silence()
	}
}

// silence returns a channel that fires when a guardian that was ordered to end the command has been silent for too long.
func (s *supervision) silence() <-chan time.Time { return time.After(s.schedule.margin / 2) }

func (s *supervision) note(r report) {
	switch {
	case r.Heard:
		s.guardian.acknowledged()
	case r.Told != 0:
		s.pass(syscall.Signal(r.Told), toGuardian)
	case r.Started != 0:
		s.started = r.Event
	case r.Exited != nil:
		s.exited, s.endedBy = r.Exited, r.EndedBy
	case r.Stopped != 0:
		s.printer.print(fmt.Sprintf("the command was stopped (%s) and keeps the lock on %s", signals.NameOf(r.Stopped), s.hold.Path()))
	case r.Denied != nil:
		s.printer.print(notSignalled(r.Denied))
	case r.Ending == overran:
		what := "it"
		s.overran = "the command was"
		if s.exited != nil {
			what = "the processes it left running"
			s.overran = "processes that the command left running were"
		}
		s.printer.print(fmt.Sprintf("the command has run for %v (--max-run): ending %s", s.terms.MaxRun, what))
	case r.Ending == unhealthy:
		s.sick = context.Cause(s.terms.Healthy)
		s.printer.print(fmt.Sprintf("%v: ending the command", s.sick))
	case r.Ending.keepsLock():
		s.printer.print("the command exited; ending the processes it left running")
	case r.Ending != "":
		s.ending = r.Ending
		s.printer.print(fmt.Sprintf("the lock on %s is lost or about to be lost: ending the command", s.hold.Path()))
	case r.isLast():
		s.final = r
	}
}

// passing is when and from whom a signal was passed on last.
type passing struct {
	at time.Time
	to receiver
}

// receiver is the process that received a signal.
type receiver int

const (
	toZklock receiver = iota
	toGuardian
)

// sameSignal is how far apart zklock and its guardian receive a signal that was sent to both.
const sameSignal = time.Second

// pass sends a signal to the command. Once the command has exited, a signal that would end zklock ends the processes that
// the command left running instead: these might ignore the signal itself.
func (s *supervision) pass(sig os.Signal, to receiver) {
	before, known := s.passed[sig]
	s.passed[sig] = passing{time.Now(), to}
	if known && before.to != to && time.Since(before.at) < sameSignal {
		return // it was sent to both
	}
	number, isNumber := sig.(syscall.Signal)
	both := s.sharesTerminal() && slices.Contains(signals.FromTerminal, sig)
	switch {
	case s.exited == nil && isNumber:
		// On a hang-up, the terminal signals only the session leader, which may be a shell that then signals zklock.
		s.order(order{Signal: int(number), Shared: both && number != syscall.SIGHUP})
	case s.exited != nil && both && !known && *s.exited == outcome.SignalBase+int(number):
		// The terminal sent the signal to zklock and to the command, and the command's end was reported first.
	case s.exited != nil:
		if _, ends := signals.EndsWaiting(sig); ends {
			s.order(order{EndRest: true})
		}
	}
}

// endWithoutGuardian ends the command without the guardian, which has died or hangs.
func (s *supervision) endWithoutGuardian() error {
	if denied := s.guardian.takeOver(s.started); denied != nil {
		s.final.AtLarge = &denied
	}
	why := s.loss()
	switch {
	case s.started.Started == 0:
		return outcome.Unguarded.Errorf("the command was not started or was ended at once: %w", errGuardianEnded)
	case why == nil && s.over == nil:
		why = errGuardianEnded
	case why == nil:
		why = fmt.Errorf("%w: no quorum answered in time", zklock.ErrLost)
	}
	return s.lost(why)
}

// loss returns why the hold has ended, or nil if it has not. If somebody has deleted its node, loss waits for what the servers
// know about that.
func (s *supervision) loss() error {
	if s.hold.Check() == nil {
		return nil
	}
	s.hold.Unlock(context.Background()) // it has ended: this only waits for the reason
	return s.hold.Check()
}

var errGuardianEnded = errors.New("the guardian process died")

// outcome returns the command's outcome, according to the guardian's reports.
func (s *supervision) outcome() error {
	lost := s.loss()
	if lost == nil && s.ending != "" {
		lost = fmt.Errorf("%w: no quorum answered in time", zklock.ErrLost)
	}
	switch {
	case s.final.AtLarge != nil || lost != nil:
		return s.lost(lost)
	case s.sick != nil:
		return s.unhealthy("the command was ended")
	case s.overran != "":
		return outcome.TimedOut.Errorf("%s ended after %v (--max-run)", s.overran, s.terms.MaxRun)
	case len(s.final.Failed) > 0:
		return outcome.CannotRun.Of(errors.New(string(s.final.Failed)))
	case s.exited != nil && s.endedBy != 0:
		return ExitAfter(syscall.Signal(s.endedBy), *s.exited, s.terms.HasTerminal)
	case s.exited != nil && *s.exited != 0:
		return outcome.Ended{Code: *s.exited}
	}
	return nil
}

// lost returns the error for a command that was ended for the reason why.
func (s *supervision) lost(why error) error {
	switch {
	case s.final.AtLarge != nil:
		return outcome.AtLarge.Errorf("%s: %w", atLarge(*s.final.AtLarge), why)
	case errors.Is(why, errGuardianEnded):
		return outcome.Unguarded.Errorf("the command was ended: %w", why)
	}
	return outcome.Lost.Errorf("the command was ended: %w", why)
}

// sharesTerminal reports whether the terminal sends its signals to zklock, to the command and to the shell that started
// zklock.
func (s *supervision) sharesTerminal() bool { return s.terms.HasTerminal && proc.SharesTerminal() }

// ExitAfter returns the error for exiting with code after a signal that ended zklock or its command.
func ExitAfter(by os.Signal, code int, hasTerminal bool) error {
	return outcome.Ended{Code: code, Again: by == os.Interrupt && hasTerminal && proc.SharesTerminal()}
}
