package main

import "time"

// leash decides when a command has to end because its lock may soon be another's.
//
// The hold is certain for some time from now, which every heartbeat makes longer. When
// only the grace is left, plus a margin in which KILL does its work, the command is
// warned; when only the margin is left, or the grace has passed, it is ended.
type leash struct {
	grace, margin time.Duration
	session       time.Duration
	warned        time.Time // zero: not yet
}

// verdict is what is to be done to the command now.
type verdict int

const (
	leave verdict = iota // it may go on as it does
	warn
	end
)

func newLeash(grace, session time.Duration) *leash {
	return &leash{grace: grace, margin: margin(session), session: session}
}

func margin(session time.Duration) time.Duration { return session / 20 }

// renewal is how often the guardian is told how long the hold is certain.
func renewal(session time.Duration) time.Duration { return min(session/40, 250*time.Millisecond) }

// longestGrace is one that a healthy session never runs into. At least 0.35 of the
// timeout are certain at every moment of a healthy hold. Of these the margin takes 0.05
// and the way to the guardian 0.025; the rest is for a machine that is busy.
func longestGrace(session time.Duration) time.Duration { return session / 5 }

// needed is how long a hold must be certain before a command is started under it.
func (l *leash) needed() time.Duration { return l.margin + l.grace + 2*renewal(l.session) }

// pull takes how long the hold is certain from now on and returns what to do and when to ask again.
func (l *leash) pull(now time.Time, certain time.Duration) (verdict, time.Duration) {
	// Timers stand still while a machine sleeps: never trust one for long.
	soon := min(l.session/20, 250*time.Millisecond)
	switch {
	case certain <= l.margin || l.pulled() && now.Sub(l.warned) >= l.grace:
		l.warn(now)
		return end, soon
	case l.pulled():
		return leave, min(soon, certain-l.margin, l.grace-now.Sub(l.warned))
	case certain <= l.margin+l.grace:
		l.warn(now)
		return warn, min(soon, certain-l.margin)
	}
	return leave, min(soon, certain-l.margin-l.grace)
}

// warn begins the grace, unless it has begun.
func (l *leash) warn(now time.Time) {
	if l.warned.IsZero() {
		l.warned = now
	}
}

// pulled reports whether the command was told to end.
func (l *leash) pulled() bool { return !l.warned.IsZero() }
