package queue

import (
	"log/slog"

	"github.com/zklock-go/zklock/observe"
)

// Reporter tells the log and the observer what happens.
type Reporter struct {
	Events *slog.Logger
	To     observe.Observer
}

func (r Reporter) Observe(e observe.Event) {
	switch e.Kind {
	case observe.Lost:
		r.Events.Warn("zklock: lost", "recipe", e.Recipe, "path", e.Path, "node", e.Node, "token", e.Token, "held", e.Elapsed, "why", e.Err)
	case observe.HeartbeatMissed:
		r.Events.Info("zklock: heartbeat missed", "why", e.Err)
	}
	if r.To != nil {
		r.To.Observe(e)
	}
}
