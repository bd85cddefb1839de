package zklock

import "time"

// Observer is told what happens to a client's locks. Observe is called on the goroutine
// that it happens on: it must return quickly and must not call the client.
type Observer interface{ Observe(Event) }

// EventKind is what happened.
type EventKind int

const (
	Queued          EventKind = iota + 1 // a node was made; Behind tells how many were ahead
	Acquired                             // after Elapsed
	Released                             // held for Elapsed
	Lost                                 // held for Elapsed; Err tells why
	HeartbeatMissed                      // Err tells why; what is held is lost unless a later one succeeds in time
)

func (k EventKind) String() string {
	names := [...]string{"", "queued", "acquired", "released", "lost", "heartbeat missed"}
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
