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
	leash    *leash
	crier    *crier
	guardian *guardian

	started report // the command has
	exited  *int   // the command's exit code
	ending  reason // why the command was ended
	final   report
	passed  map[os.Signal]bool
	over    <-chan time.Time // when the guardian must have ended the command; nil: it need not
}

// supervise runs the command and returns its outcome. The command and what it has started
// are at work only while the hold is certain; what cannot be ended is told of.
func (j *job) supervise(cmd *exec.Cmd, hold *zklock.Hold, session time.Duration) error {
	s := &supervision{job: j, hold: hold, leash: newLeash(j.grace, session), crier: newCrier(j.std.err), passed: map[os.Signal]bool{}}
	defer s.crier.wait()
	if unguarded != "" {
		s.crier.cry(unguarded)
	}
	if err := s.ready(); err != nil {
		return err
	}
	var err error
	if s.guardian, err = engage(cmd); err != nil {
		return exit{codeUnguarded, fmt.Errorf("no guardian for the command: %w", err)}
	}
	s.guardian.tell(order{Until: s.certain(), Assignment: &assignment{
		Path: cmd.Path, Args: cmd.Args, Grace: j.grace, Session: session,
		Terminal: j.terminal, Group: processGroup(), EndRest: j.endRest,
	}})
	return s.watch()
}

// ready waits until the hold is certain for so long that the command would not be told to
// end at once. One that was just granted can stand short of its next heartbeat.
func (s *supervision) ready() error {
	tick := time.NewTicker(renewal(s.leash.session))
	defer tick.Stop()
	for s.hold.Remaining() <= s.leash.needed() {
		select {
		case <-tick.C:
		case sig := <-s.job.signals:
			if code, ends := endsWaiting(sig); ends {
				return exit{code: code}
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
	tick := time.NewTicker(renewal(s.leash.session))
	defer tick.Stop()
	lost, revoked := s.hold.Context().Done(), s.hold.Revoked()
	var rest <-chan time.Time // when it is time to say why zklock goes on after its command
	for {
		select {
		case r, ok := <-s.guardian.reports:
			if !ok {
				return s.bereft()
			}
			if r.Exited != nil && !s.job.endRest {
				rest = time.After(time.Second)
			}
			if s.note(r); r.last() {
				s.guardian.dismiss()
				return s.outcome()
			}
		case sig := <-s.job.signals:
			s.pass(sig)
		case <-revoked:
			revoked = nil
			s.order(order{Signal: int(terminate)})
		case <-rest:
			s.crier.cry("the command has ended, but not all that it has started: the lock is kept until that has (Ctrl-C or TERM ends it, as --end-rest does)")
		case <-lost:
			lost = nil
			s.end()
		case <-s.over:
			return s.bereft()
		case <-tick.C:
			s.order(order{})
			if s.hold.Remaining() <= s.leash.margin && s.over == nil {
				s.end()
			}
		}
	}
}

func (s *supervision) order(o order) {
	o.Until = s.certain()
	s.guardian.tell(o)
}

// end has the guardian end the command at once, and begins to doubt the guardian.
func (s *supervision) end() {
	s.order(order{Kill: true})
	if s.over == nil {
		s.over = time.After(s.leash.margin / 2)
	}
}

func (s *supervision) note(r report) {
	switch {
	case r.Heard:
		s.guardian.heard()
	case r.Started != 0:
		s.started = r
	case r.Exited != nil:
		s.exited = r.Exited
	case r.Stopped != 0:
		s.crier.cry(fmt.Sprintf("the command was stopped (%s): it keeps the lock on %s", stopSignal(r.Stopped), s.hold.Path()))
	case r.Denied != nil:
		s.crier.cry(notSignalled(r.Denied))
	case r.Ending == leftover:
		s.crier.cry("the command has ended, ending what it has left behind")
	case r.Ending != "":
		s.ending = r.Ending
		s.crier.cry(fmt.Sprintf("the lock on %s is lost or about to be: ending the command", s.hold.Path()))
	case r.last():
		s.final = r
	}
}

// pass gives a signal to the command. Once that has ended, being told to end means what
// it has left behind, which may well ignore the signal itself.
func (s *supervision) pass(sig os.Signal) {
	number, isNumber := sig.(syscall.Signal)
	shared := s.job.terminal && sharesGroup() && slices.Contains(fromTerminal, sig)
	switch {
	case s.exited == nil && isNumber:
		s.order(order{Signal: int(number), Shared: shared})
	case s.exited != nil && shared && !s.passed[sig] && *s.exited == codeSignal+int(number):
		// The terminal sent it to both of us, and we hear of the command's end first.
	case s.exited != nil:
		if _, ends := endsWaiting(sig); ends {
			s.order(order{EndRest: true})
		}
	}
	s.passed[sig] = true
}

// bereft ends the command without the guardian, which was ended or stands still.
func (s *supervision) bereft() error {
	if denied := s.guardian.takeOver(s.started); denied != nil {
		s.final.AtLarge = &denied
	}
	why := s.hold.Check()
	switch {
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
	case s.final.Failed != "":
		return exit{codeCannotRun, errors.New(s.final.Failed)}
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
