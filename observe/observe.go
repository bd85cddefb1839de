// Package observe has the events of a client's locks, for metrics: see zklock.Options.
package observe

import "time"

// Observer receives the events of a client's locks, for metrics. The client calls Observe on
// whatever goroutine an event happens: it must return quickly and must not call the client. The
// loss of a hold that is lost at once can be told before its Acquired.
type Observer interface{ Observe(Event) }

// Kind is the kind of an Event. Every attempt to acquire ends with one of Acquired,
// GivenUp and Refused, and every hold with one of Released, Lost and Ended. For a hold of
// several locks there are events of each lock and none of the whole. A bad argument is no attempt,
// and a Reentrant that is entered again tells nothing.
type Kind int

const (
	// Queued: an attempt has created its node, behind Behind others.
	Queued Kind = iota + 1
	// Acquired: an attempt was granted after Elapsed.
	Acquired
	// Released: a hold was unlocked after Elapsed.
	Released
	// Lost: a hold was lost after Elapsed, for the reason Err.
	Lost
	// HeartbeatMissed: no quorum has answered a heartbeat, for the reason Err. What is held
	// will be lost unless a later heartbeat succeeds in time.
	HeartbeatMissed
	// Ended: a hold ended after Elapsed because the client was closed, or it was unlocked and
	// its node could not be removed. Err is the reason.
	Ended
	// GivenUp: an attempt ended after Elapsed because its context ended or the client was
	// closed. Err is the reason.
	GivenUp
	// Refused: an attempt ended after Elapsed with the error Err: ErrLocked of an attempt that
	// does not wait, ErrDeadlock, ErrEvicted, ErrMismatch, or a server's refusal.
	Refused
)

// String returns the kind as a metric's label has it: "acquired", "given_up" …
func (k Kind) String() string {
	names := [...]string{"", "queued", "acquired", "released", "lost", "heartbeat_missed", "ended", "given_up", "refused"}
	if k < 1 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Event is what an Observer receives. Fields that do not apply are zero.
type Event struct {
	Kind    Kind
	Recipe  string // "mutex", "semaphore" …
	Path    string
	Node    string // the name of the attempt's node below Path
	Token   int64
	Behind  int           // of Queued: how many contenders were ahead
	Elapsed time.Duration // how long the attempt or the hold took
	// Proving is the part of an Acquired's Elapsed in which the attempt was first in line and the
	// client waited until it was proven that its session lives: after a lost connection, or while a
	// quorum does not answer. Otherwise it is next to nothing.
	Proving time.Duration
	Err     error // why it ended
}
