// SPDX-License-Identifier: Apache-2.0

// Package observe defines the events of a client's locks, for metrics: see Observer in
// zklock.Options.
package observe

import "time"

// Observer receives the events of a client's locks, for metrics. Observe should return quickly, and
// must not call the client.
//
// Queued, Acquired, GivenUp and Refused are delivered on the goroutine of the caller, before the call
// returns. If Observe panics there and the program recovers, the attempt leaves no node and no hold
// behind. All other events of a client, and Queued of a Cohort, are delivered one after another, in
// their order, on a goroutine that no hold depends on; a panic there ends the program. Unlock returns
// after Released is delivered; if Observe does not return, Unlock waits for at most a session timeout.
// Close delivers the remaining events within its limit.
//
// Lost and Ended can be delivered before Acquired if a hold ends at once, and a Cohort's Queued after
// Acquired. If 65,536 events and log lines wait, further ones are dropped. The client logs, once a
// minute at most, that an observer takes longer than a second or that events were dropped;
// Client.String says so too.
type Observer interface{ Observe(Event) }

// Join returns an observer that passes each event to all of the given ones, in their order; nil ones
// are left out. If one panics, the others still get the event.
func Join(observers ...Observer) Observer {
	var all joined
	for _, o := range observers {
		if o != nil {
			all = append(all, o)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

type joined []Observer

func (j joined) Observe(e Event) {
	if len(j) > 1 {
		defer j[1:].Observe(e)
	}
	j[0].Observe(e)
}

// A Kind says what happened. Every attempt to acquire a lock ends with one of Acquired, GivenUp and
// Refused, and every hold with one of Released, Lost and Ended. For a hold of several locks there
// are events for each lock and none for the whole. A call with an invalid argument does not count
// as an attempt, and re-entering a Reentrant emits no event.
type Kind int

const (
	// Queued: an attempt created its node, with Ahead contenders ahead of it.
	Queued Kind = iota + 1
	// Acquired: an attempt was granted after Elapsed.
	Acquired
	// Released: a hold was unlocked after Elapsed.
	Released
	// Lost: a hold was lost after Elapsed. Err is the reason.
	Lost
	// HeartbeatMissed: no quorum answered a heartbeat. Err is the reason. All holds will be lost
	// unless a later heartbeat succeeds in time.
	HeartbeatMissed
	// Ended: a hold ended after Elapsed because the client was closed, or because it was unlocked
	// and its node could not be removed. Err is the reason.
	Ended
	// GivenUp: an attempt ended after Elapsed because its context ended or the client was
	// closed. Err is the reason.
	GivenUp
	// Refused: an attempt ended after Elapsed with the error Err: ErrLocked (if the attempt does
	// not wait, or not behind so many: zklock.AtMost), ErrDeadlock, ErrEvicted, ErrMismatch, or an error from a server that refuses the
	// request.
	Refused
	// ExpiredEarly: the servers ended the session while its lease had time left. An assumption of
	// zklock does not hold, and two clients may have held the same lock: see "A session that expired
	// early" in docs/troubleshooting.md. Err says how much time was left, and what to check.
	ExpiredEarly
)

// String returns the kind as used in metric labels: "acquired", "given_up" …
func (k Kind) String() string {
	names := [...]string{"", "queued", "acquired", "released", "lost", "heartbeat_missed", "ended", "given_up", "refused", "expired_early"}
	if k < 1 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Event is what an Observer receives. Fields that do not apply are zero.
type Event struct {
	Kind    Kind          // what happened
	Recipe  string        // "mutex", "semaphore" …
	Path    string        // the lock's path, as it was passed to the client
	Node    string        // the name of the attempt's node below Path
	Token   int64         // Hold.Token, once the lock was granted
	Ahead   int           // for Queued: the number of contenders ahead
	Elapsed time.Duration // how long the attempt or the hold took
	// Proving is the part of an Acquired event's Elapsed in which the attempt was first in line and
	// the client waited for proof that its session was alive: after a lost connection, or while no
	// quorum answers. Otherwise it is close to zero.
	Proving time.Duration
	Err     error // why it ended
}
