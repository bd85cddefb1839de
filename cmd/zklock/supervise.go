package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/zklock-go/zklock"
)

// supervision is one run of a command under a hold. A guardian starts the command and
// ends it; this side tells the guardian how long the hold is certain.
type supervision struct {
	job      *job
	hold     *zklock.Hold
	schedule *schedule
	printer  *printer
	guardian *guardian

	started report // the command has
	exited  *int   // the command's exit code
	endedBy int    // the signal that has ended it, zero: none
	ending  reason // why the command was ended
	final   report
	passed  map[os.Signal]bool
	over    <-chan time.Time // when the guardian, which is to end the command, counts as one that does nothing; nil: it need not end it
}

// supervise runs the command and returns its outcome. The command and what it has started
// are at work only while the hold is certain; what cannot be ended is told of.
func (j *job) supervise(cmd *exec.Cmd, hold *zklock.Hold, session time.Duration) error {
	s := &supervision{job: j, hold: hold, schedule: newSchedule(j.grace, session), printer: newPrinter(j.std.err), passed: map[os.Signal]bool{}}
	defer s.printer.wait()
	if unguarded != "" {
		s.printer.print(unguarded)
	}
	if err := s.ready(); err != nil {
		return err
	}
	var err error
	if s.guardian, err = startGuardian(cmd); err != nil {
		return exit{codeUnguarded, fmt.Errorf("no guardian for the command: %w", err)}
	}
	s.guardian.tell(order{Until: s.certain(), Assignment: &assignment{
		Path: raw(cmd.Path), Args: allRaw(cmd.Args), Grace: j.grace, Session: session,
		Terminal: j.terminal, Group: processGroup(), Leader: leadsSession(), EndRest: j.endRest,
	}})
	return s.watch()
}

// ready waits until the hold is certain for so long that the command would not be told to
// end at once. One that was just granted can stand short of its next heartbeat.
func (s *supervision) ready() error {
	tick := time.NewTicker(renewal(s.schedule.session))
	defer tick.Stop()
	for s.hold.Remaining() <= s.schedule.needed() {
		select {
		case <-tick.C:
		case sig := <-s.job.signals:
			if code, ends := endsWaiting(sig); ends {
				return s.job.exitAfter(sig, code)
			}
		case <-s.hold.Context().Done():
			return exit{codeLost, fmt.Errorf("the command was not started: %w", s.hold.Check())}
		}
	}
	return nil
}

// certain returns until when the hold is certain.
func (s *supervision) certain() deadline {
	from := now() // before Remaining is asked: what passes in between must not be counted
	return from.plus(s.hold.Remaining())
}

// watch goes with the command until nothing of it is left.
func (s *supervision) watch() error {
	tick := time.NewTicker(renewal(s.schedule.session))
	defer tick.Stop()
	lost, revoked := s.hold.Context().Done(), s.hold.Revoked()
	var rest <-chan time.Time // when it is time to say why zklock goes on after its command
	for {
		select {
		case r, ok := <-s.guardian.reports:
			if !ok {
				return s.endWithoutGuardian()
			}
			if r.Exited != nil && !s.job.endRest {
				rest = time.After(time.Second)
			}
			if s.note(r); r.last() {
				s.guardian.stop()
				return s.outcome()
			}
			if s.over != nil {
				s.over = s.silence() // it is at work
			}
		case sig := <-s.job.signals:
			s.pass(sig)
		case <-revoked:
			revoked = nil
			s.pass(terminate)
		case <-rest:
			s.printer.print("the command has ended, but not all that it has started: the lock is kept until that has (Ctrl-C or TERM ends it, as --end-rest does)")
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

func (s *supervision) order(o order) {
	o.Until = s.certain()
	s.guardian.tell(o)
}

// end orders the guardian to end the command at once. A guardian that does not report from then on is replaced.
func (s *supervision) end() {
	s.order(order{Kill: true})
	if s.over == nil {
		s.over = s.silence()
	}
}

// silence returns when a guardian that is to end the command has not reported for too long.
func (s *supervision) silence() <-chan time.Time { return time.After(s.schedule.margin / 2) }

func (s *supervision) note(r report) {
	switch {
	case r.Heard:
		s.guardian.heard()
	case r.Started != 0:
		s.started = r
	case r.Exited != nil:
		s.exited, s.endedBy = r.Exited, r.EndedBy
	case r.Stopped != 0:
		s.printer.print(fmt.Sprintf("the command was stopped (%s): it keeps the lock on %s", stopSignal(r.Stopped), s.hold.Path()))
	case r.Denied != nil:
		s.printer.print(notSignalled(r.Denied))
	case r.Ending == leftover:
		s.printer.print("the command has ended, ending what it has left behind")
	case r.Ending != "":
		s.ending = r.Ending
		s.printer.print(fmt.Sprintf("the lock on %s is lost or about to be: ending the command", s.hold.Path()))
	case r.last():
		s.final = r
	}
}

// pass gives a signal to the command. Once that has ended, being told to end means what
// it has left behind, which may well ignore the signal itself.
func (s *supervision) pass(sig os.Signal) {
	number, isNumber := sig.(syscall.Signal)
	both := s.job.sharesTerminal() && slices.Contains(fromTerminal, sig)
	switch {
	case s.exited == nil && isNumber:
		// A terminal that hangs up tells the leader of its session only, who may be a shell that tells us.
		s.order(order{Signal: int(number), Shared: both && number != syscall.SIGHUP})
	case s.exited != nil && both && !s.passed[sig] && *s.exited == codeSignal+int(number):
		// The terminal sent it to both of us, and we hear of the command's end first.
	case s.exited != nil:
		if _, ends := endsWaiting(sig); ends {
			s.order(order{EndRest: true})
		}
	}
	s.passed[sig] = true
}

// endWithoutGuardian ends the command without the guardian, which was ended or stands still.
func (s *supervision) endWithoutGuardian() error {
	if denied := s.guardian.takeOver(s.started); denied != nil {
		s.final.AtLarge = &denied
	}
	why := s.hold.Check()
	switch {
	case s.started.Started == 0:
		return exit{codeUnguarded, fmt.Errorf("the command was not started, or was ended at once: %w", errGuardianEnded)}
	case why == nil && s.over == nil:
		why = errGuardianEnded
	case why == nil:
		why = fmt.Errorf("%w: no quorum answered in time", zklock.ErrLost)
	}
	return s.ended(why)
}

var errGuardianEnded = errors.New("its guardian was ended")

// outcome returns what has become of the command, by what the guardian has told.
func (s *supervision) outcome() error {
	lost := s.hold.Check()
	if lost == nil && s.ending != "" {
		lost = fmt.Errorf("%w: no quorum answered in time", zklock.ErrLost)
	}
	switch {
	case s.final.AtLarge != nil || lost != nil:
		return s.ended(lost)
	case len(s.final.Failed) > 0:
		return exit{codeCannotRun, errors.New(string(s.final.Failed))}
	case s.exited != nil && s.endedBy != 0:
		return s.job.exitAfter(syscall.Signal(s.endedBy), *s.exited)
	case s.exited != nil && *s.exited != 0:
		return exit{code: *s.exited}
	}
	return nil
}

// ended returns the error for a command that was ended because of why.
func (s *supervision) ended(why error) error {
	switch {
	case s.final.AtLarge != nil:
		return exit{codeAtLarge, fmt.Errorf("%s: %w", atLarge(*s.final.AtLarge), why)}
	case errors.Is(why, errGuardianEnded):
		return exit{codeUnguarded, fmt.Errorf("the command was ended: %w", why)}
	}
	return exit{codeLost, fmt.Errorf("the command was ended: %w", why)}
}
