// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"log/slog"

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
