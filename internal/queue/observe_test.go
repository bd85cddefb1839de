// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/observe"
)

// observed records events.
type observed struct{ kinds []observe.Kind }

func (o *observed) Observe(e observe.Event) { o.kinds = append(o.kinds, e.Kind) }

// TestEventsAreReported has each kind with an observer, without one, and with one that gets no more notices.
func TestEventsAreReported(t *testing.T) {
	logged := map[observe.Kind]string{observe.Lost: "level=WARN msg=\"zklock: lock lost\"", observe.HeartbeatMissed: "level=INFO msg=\"zklock: heartbeat missed\"", observe.ExpiredEarly: "level=ERROR msg=\"zklock: session expired early\""}
	later := map[observe.Kind]bool{observe.Lost: true, observe.Ended: true, observe.HeartbeatMissed: true, observe.ExpiredEarly: true}
	for _, kind := range []observe.Kind{observe.Queued, observe.Acquired, observe.Released, observe.Lost, observe.Ended, observe.HeartbeatMissed, observe.ExpiredEarly} {
		var log strings.Builder
		to, notices := new(observed), session.NewNotices()
		r := Reporter{Events: slog.New(slog.NewTextHandler(&log, nil)), To: to, Notices: notices}
		called := make(chan struct{})
		gate := make(chan struct{})
		require.True(t, notices.Put(func() { <-gate }))
		r.Observe(observe.Event{Kind: kind, Err: errors.New("why")})
		r.AfterNotices(func() { close(called) })
		require.False(t, session.IsClosed(called))
		if !later[kind] {
			require.Equal(t, []observe.Kind{kind}, to.kinds, "its goroutine is the caller's")
		}
		close(gate)
		<-called
		require.Equal(t, []observe.Kind{kind}, to.kinds)
		require.Contains(t, log.String(), logged[kind])
		require.Equal(t, logged[kind] != "", strings.Contains(log.String(), "err=why"), kind)

		for name, none := range map[string]Reporter{"no observer": {Events: r.Events}, "the client is closed": {Events: r.Events, To: to, Notices: session.NewNotices()}} {
			if none.Notices != nil {
				none.Notices.Close(nil)
			}
			n := 0
			none.ObserveLater(observe.Event{Kind: kind}, func() { n++ })
			none.AfterNotices(func() { n++ })
			require.Equal(t, 2, n, name)
			require.Len(t, to.kinds, 1, name)
		}
		Reporter{Events: r.Events}.Observe(observe.Event{Kind: kind})
		notices.Close(nil)
	}
}
