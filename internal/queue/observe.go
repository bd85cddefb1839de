// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"log/slog"

	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/observe"
)

// Reporter reports events to the log and to the observer.
type Reporter struct {
	Events  *slog.Logger // does not wait for the program's handler
	To      observe.Observer
	Notices *session.Notices
}

// Observe reports an event. It calls the observer if the event is one of a call, whose goroutine is
// the caller's; for all other events the observer is called later.
func (r Reporter) Observe(e observe.Event) {
	switch e.Kind {
	case observe.Lost, observe.Ended, observe.HeartbeatMissed, observe.ExpiredEarly:
		r.ObserveLater(e, func() {})
		return
	}
	if r.To != nil {
		r.To.Observe(e)
	}
}

// ObserveLater reports an event without waiting for the observer, and calls then after the observer
// has returned, or if there is none. then must not wait.
func (r Reporter) ObserveLater(e observe.Event, then func()) {
	r.log(e)
	queued := r.To != nil && r.Notices.Put(func() {
		defer then()
		r.To.Observe(e)
	})
	if !queued {
		then()
	}
}

// AfterNotices calls fn, which must not wait, after the observer has returned from all earlier events.
func (r Reporter) AfterNotices(fn func()) {
	if r.To == nil || !r.Notices.Put(fn) {
		fn()
	}
}

func (r Reporter) log(e observe.Event) {
	switch e.Kind {
	case observe.Lost:
		r.Events.Warn("zklock: lock lost", "recipe", e.Recipe, "path", e.Path, "node", e.Node, "token", e.Token, "duration", e.Elapsed, "err", e.Err)
	case observe.HeartbeatMissed:
		r.Events.Info("zklock: heartbeat missed", "err", e.Err)
	case observe.ExpiredEarly:
		r.Events.Error("zklock: session expired early", "err", e.Err)
	}
}
