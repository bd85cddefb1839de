package zklock

import (
	"log/slog"

	"github.com/zklock-go/zklock/observe"
)

// reporter tells the log and the observer what happens.
type reporter struct {
	events *slog.Logger
	to     observe.Observer
}

func (r reporter) observe(e observe.Event) {
	switch e.Kind {
	case observe.Lost:
		r.events.Warn("zklock: lost", "recipe", e.Recipe, "path", e.Path, "node", e.Node, "token", e.Token, "held", e.Elapsed, "why", e.Err)
	case observe.HeartbeatMissed:
		r.events.Info("zklock: heartbeat missed", "why", e.Err)
	}
	if r.to != nil {
		r.to.Observe(e)
	}
}
