package zklock

import (
	"context"
	"errors"
	"time"
)

// Observer is told what happens to a client's locks. Observe is called on the goroutine
// that it happens on: it must return quickly and must not call the client.
type Observer interface{ Observe(Event) }

// EventKind is what happened. Every attempt ends with one of Acquired, GivenUp and Refused,
// and every hold with one of Released, Lost and Ended. A hold of several locks is told of
// lock by lock.
type EventKind int

const (
	Queued          EventKind = iota + 1 // a node was made; Behind tells how many were ahead
	Acquired                             // after Elapsed
	Released                             // held for Elapsed
	Lost                                 // held for Elapsed; Err tells why
	HeartbeatMissed                      // Err tells why; what is held is lost unless a later one succeeds in time
	Ended                                // held for Elapsed until the client was closed, or released without the node being gone, as Err tells
	GivenUp                              // an attempt, after Elapsed: its context has ended or the client was closed, as Err tells
	Refused                              // an attempt, after Elapsed, as Err tells: ErrLocked of one that does not wait, ErrDeadlock, ErrEvicted, a server's refusal
)

func (k EventKind) String() string {
	names := [...]string{"", "queued", "acquired", "released", "lost", "heartbeat missed", "ended", "given up", "refused"}
	if k < 1 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Event is what an Observer gets. Fields that do not apply are zero.
type Event struct {
	Kind    EventKind
	Recipe  string // "mutex", "semaphore" …
	Path    string
	Node    string // the name of our node below Path
	Token   int64
	Behind  int // how many were ahead when we came
	Elapsed time.Duration
	Err     error
}

// missedHeartbeat tells that a heartbeat was due and no quorum has answered it.
func (c *Client) missedHeartbeat(why error) {
	if c.life.Err() == nil {
		c.observe(Event{Kind: HeartbeatMissed, Err: why})
	}
}

// observeFailure tells of an attempt that came to nothing. Bad input is none.
func (c *Client) observeFailure(ctx context.Context, w wish, took time.Duration, err error) {
	kind := Refused
	switch {
	case errors.Is(err, ErrInvalid):
		return
	case ctx.Err() != nil || errors.Is(err, ErrClosed):
		kind = GivenUp
	}
	c.observe(Event{Kind: kind, Recipe: w.recipe, Path: w.path, Elapsed: took, Err: err})
}

func (c *Client) observe(e Event) {
	switch e.Kind {
	case Lost:
		c.log.Warn("zklock: lost", "recipe", e.Recipe, "path", e.Path, "node", e.Node, "token", e.Token, "held", e.Elapsed, "why", e.Err)
	case HeartbeatMissed:
		c.log.Info("zklock: heartbeat missed", "why", e.Err)
	}
	if c.observer != nil {
		c.observer.Observe(e)
	}
}
