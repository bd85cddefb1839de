// SPDX-License-Identifier: Apache-2.0

package guardian

import "time"

// schedule decides when a command has to end because someone else may soon hold its lock.
//
// The hold is certain for some time, which every heartbeat extends. When only the grace period remains, plus a margin for
// KILL to take effect, the command is warned. When only the margin remains, or the grace period has passed, it is killed.
type schedule struct {
	grace, margin time.Duration
	session       time.Duration
	warnedAt      time.Time // zero if it was not warned
}

// action is what to do with the command now.
type action int

const (
	noAction action = iota // let it run
	warnCommand
	killCommand
)

func newSchedule(grace, session time.Duration) *schedule {
	return &schedule{grace: grace, margin: margin(session), session: session}
}

func margin(session time.Duration) time.Duration { return session / 20 }

// renewal returns how often zklock tells the guardian how long the hold is certain.
func renewal(session time.Duration) time.Duration { return min(session/40, 250*time.Millisecond) }

// LongestGrace returns the longest grace period that never ends the command of a healthy session. At least 0.35 of the
// timeout is certain at every moment of a healthy hold. Of this, the margin takes 0.05 and the delay until the guardian is
// told 0.025; the rest is reserve for a busy machine.
func LongestGrace(session time.Duration) time.Duration { return session / 5 }

// UsualGrace returns a grace period that does not end the command even if the session's server fails while others are
// healthy. At least a fifth of the timeout is certain then.
func UsualGrace(session time.Duration) time.Duration { return session / 10 }

// needed returns how long a hold must be certain before a command is started.
func (s *schedule) needed() time.Duration { return s.margin + s.grace + 2*renewal(s.session) }

// next returns what to do if the hold is certain for the given time from now, and when to call next again.
func (s *schedule) next(now time.Time, certain time.Duration) (action, time.Duration) {
	// Timers stop while the machine is suspended, so none of them may be long.
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

// warn starts the grace period, unless it has started.
func (s *schedule) warn(now time.Time) {
	if s.warnedAt.IsZero() {
		s.warnedAt = now
	}
}

// hasWarned reports whether the grace period has started.
func (s *schedule) hasWarned() bool { return !s.warnedAt.IsZero() }
