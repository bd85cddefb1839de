// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/observe"
)

// logEvents logs lock events.
type logEvents struct{ log *slog.Logger }

func (l logEvents) Observe(e observe.Event) {
	switch e.Kind {
	case observe.Queued:
		l.log.Info("queued", "path", e.Path, "node", e.Node, "ahead", e.Ahead)
	case observe.Acquired:
		l.log.Info("acquired", "path", e.Path, "node", e.Node, "token", e.Token, "wait", e.Elapsed)
	case observe.Released:
		l.log.Info("released", "path", e.Path, "node", e.Node, "duration", e.Elapsed)
	}
}

// events notes when a contender of this process was last queued.
type events struct {
	next   observe.Observer // may be nil
	queued atomic.Int64     // in nanoseconds
}

func (e *events) Observe(event observe.Event) {
	if event.Kind == observe.Queued {
		e.queued.Store(time.Now().UnixNano())
	}
	if e.next != nil {
		e.next.Observe(event)
	}
}

func (e *events) queuedAt() time.Time { return time.Unix(0, e.queued.Load()) }
