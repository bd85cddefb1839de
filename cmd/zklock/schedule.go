package main

import "time"

// schedule decides when a command has to end because its lock may soon be another's.
//
// The hold is certain for some time from now, which every heartbeat makes longer. When
// only the grace is left, plus a margin in which KILL does its work, the command is
// warned; when only the margin is left, or the grace has passed, it is ended.
type schedule struct {
	grace, margin time.Duration
	session       time.Duration
	warnedAt      time.Time // zero: not yet
}

// action is what is to be done to the command now.
type action int

const (
	noAction action = iota // it may go on as it does
	warnCommand
	killCommand
)

func newSchedule(grace, session time.Duration) *schedule {
	return &schedule{grace: grace, margin: margin(session), session: session}
}

func margin(session time.Duration) time.Duration { return session / 20 }

// renewal is how often the guardian is told how long the hold is certain.
func renewal(session time.Duration) time.Duration { return min(session/40, 250*time.Millisecond) }

// longestGrace is one that a healthy session never runs into. At least 0.35 of the
// timeout are certain at every moment of a healthy hold. Of these the margin takes 0.05
// and the way to the guardian 0.025; the rest is for a machine that is busy.
func longestGrace(session time.Duration) time.Duration { return session / 5 }

// usualGrace is one that the session of a server that fails does not run into either, while others go on. A fifth of the
// timeout is certain then.
func usualGrace(session time.Duration) time.Duration { return session / 10 }

// needed is how long a hold must be certain before a command is started under it.
func (s *schedule) needed() time.Duration { return s.margin + s.grace + 2*renewal(s.session) }

// next takes how long the hold is certain from now on and returns what to do and when to ask again.
func (s *schedule) next(now time.Time, certain time.Duration) (action, time.Duration) {
	// Timers stand still while a machine sleeps: never trust one for long.
	soon := min(s.session/20, 250*time.Millisecond)
	switch {
	case certain <= s.margin || s.hasWarned() && now.Sub(s.warnedAt) >= s.grace:
		s.warn(now)
		return killCommand, soon
	case s.hasWarned():
		return noAction, min(soon, certain-s.margin, s.grace-now.Sub(s.warnedAt))
	case certain <= s.margin+s.grace:
		s.warn(now)
		return warnCommand, min(soon, certain-s.margin)
	}
	return noAction, min(soon, certain-s.margin-s.grace)
}

// warn begins the grace, unless it has begun.
func (s *schedule) warn(now time.Time) {
	if s.warnedAt.IsZero() {
		s.warnedAt = now
	}
}

// hasWarned reports whether the command was told to end.
func (s *schedule) hasWarned() bool { return !s.warnedAt.IsZero() }
