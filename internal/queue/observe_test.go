// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// observed records events.
type observed struct {
	kinds  []observe.Kind
	events []observe.Event
}

func (o *observed) Observe(e observe.Event) {
	o.kinds, o.events = append(o.kinds, e.Kind), append(o.events, e)
}

// A caller that waits for permits is reported with its node in the queue.
func TestAWaiterForPermitsIsReportedOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		to := new(observed)
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", func(e *Engine) { e.Reporter.To = to })
		held, err := permitsOf(a, 2).Obtain(t.Context(), 2)
		require.NoError(t, err)
		first := obtainLater(t, permitsOf(a, 2), 1)
		time.Sleep(time.Second)
		waits := obtainLater(t, permitsOf(b, 2), 1)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, to.events, 1)
		e := to.events[0]
		require.Contains(t, srv.Children(testDir+node.PermitQueueDir), e.Node)
		require.Equal(t, observe.Event{Kind: observe.Queued, Recipe: "semaphore", Path: testDir, Node: e.Node, Ahead: 1}, e)
		release(t, held)
		first.release(t)
		waits.release(t)
	})
}

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
		after := make(chan int, 1)
		r.ObserveLater(observe.Event{Kind: kind}, func() { after <- len(to.kinds) })
		require.Equal(t, 2, <-after, "once the observer has returned")
		to.kinds = to.kinds[:1]
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
