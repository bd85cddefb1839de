// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/family"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// slowHandler is a log handler that is slow for each line.
type slowHandler struct {
	slog.Handler
	took  time.Duration
	lines *atomic.Int32
}

func (h slowHandler) Handle(context.Context, slog.Record) error {
	time.Sleep(h.took)
	h.lines.Add(1)
	return nil
}

// outlast waits for slow observers to return after the test's clients are closed. Call it before creating the clients.
func outlast(t *testing.T) { t.Cleanup(func() { time.Sleep(2 * time.Hour) }) }

// slowly returns an observer that is slow for each event of the given kinds, or of all kinds if there are none.
func slowly(took time.Duration, kinds ...observe.Kind) observe.Observer {
	return everyEvent(func(e observe.Event) {
		for _, kind := range kinds {
			if e.Kind == kind {
				time.Sleep(took)
			}
		}
	})
}

type everyEvent func(observe.Event)

func (o everyEvent) Observe(e observe.Event) { o(e) }

// A server freezes. The client's observer and log handler take two seconds for each notification, and the client still leaves the
// server.
//
//zklock:promise P19.7
func TestASlowObserverOrLogHandlerCostsNoHold(t *testing.T) {
	var count atomic.Int32
	for name, opts := range map[string]zklock.Options{
		"an observer":    {Observer: slowly(2*time.Second, observe.HeartbeatMissed)},
		"one forever":    {Observer: slowly(time.Hour, observe.HeartbeatMissed)},
		"a log handler":  {Logger: slog.New(slowHandler{slog.NewTextHandler(nil, &slog.HandlerOptions{Level: slog.LevelInfo}), 2 * time.Second, &count})},
		"a debug logger": {Logger: slog.New(slowHandler{slog.NewTextHandler(nil, &slog.HandlerOptions{Level: slog.LevelDebug}), 2 * time.Second, &count})},
	} {
		for i := range 10 {
			t.Run(fmt.Sprint(name, " ", i), func(t *testing.T) {
				virtual(t, three, func(t *testing.T, srv *zktest.Server) {
					outlast(t)
					opts := opts
					opts.Label, opts.SessionTimeout = "a", term
					c := connectWith(t, srv, &opts, 1, 2)
					hold, err := c.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					time.Sleep(3*term + time.Duration(i)*term/20)
					for _, s := range srv.Sessions() {
						srv.Member(s.Member).Freeze()
						time.AfterFunc(2*term, srv.Member(s.Member).Thaw)
					}
					time.Sleep(2 * term)
					require.NoError(t, hold.Check())
				})
			})
		}
	}
}

// All holds of a client are lost, and the waiters are granted, although an observer takes a minute for each event.
//
//zklock:promise P19.7
func TestALossThatIsObservedSlowlyDelaysNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		outlast(t)
		c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: slowly(time.Minute, observe.Lost, observe.Ended, observe.Released)})
		other := connect(t, srv, "b", term)
		var holds []*zklock.Hold
		var next []*attempt
		for i := range 10 {
			hold, err := c.Mutex(fmt.Sprint(path, i)).Lock(t.Context())
			require.NoError(t, err)
			holds = append(holds, hold)
			next = append(next, lockLater(t.Context(), other.Mutex(fmt.Sprint(path, i)).Lock))
		}
		time.Sleep(time.Second)
		for i, hold := range holds {
			switch {
			case i < 3:
				require.NoError(t, srv.DeleteNode(hold.Node()))
			case i < 5:
				go hold.Unlock(t.Context()) // ends with the observer
			default:
				go c.Close() // ends at the latest after a session timeout
			}
		}
		time.Sleep(100 * time.Millisecond)
		for i, n := range next {
			require.True(t, n.returned(), i)
			require.NoError(t, n.err)
		}
	})
}

// Close waits until all events are delivered, within its time limit.
//
//zklock:promise P19.11
func TestCloseDeliversEventsWithinItsTime(t *testing.T) {
	for took, told := range map[time.Duration]int32{100 * time.Millisecond: 10, 2 * time.Second: 2, time.Hour: 0} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			outlast(t)
			var events atomic.Int32
			c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: onEvent{observe.Ended, func(observe.Event) {
				time.Sleep(took)
				events.Add(1)
			}}})
			for i := range 10 {
				_, err := c.Mutex(fmt.Sprint(path, i)).Lock(t.Context())
				require.NoError(t, err)
			}
			start := time.Now()
			require.NoError(t, c.Close())
			require.LessOrEqual(t, time.Since(start), 5*time.Second)
			require.Equal(t, told, events.Load(), took)
			require.Empty(t, queue(srv, path+"0"))
		})
	}
}

// A slow observer is logged.
//
//zklock:promise P19.11
func TestASlowObserverIsReported(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		outlast(t)
		var logged family.Output
		count := func(text string) int { return strings.Count(logged.String(), text) }
		c := connectWith(t, srv, &zklock.Options{
			Label: "a", SessionTimeout: term, Observer: slowly(3*time.Second, observe.Lost), Logger: slog.New(slog.NewTextHandler(&logged, nil)),
		})
		for i := range 3 {
			hold, err := c.Mutex(fmt.Sprint(path, i)).Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, srv.DeleteNode(hold.Node()))
		}
		time.Sleep(4 * time.Second)
		require.Contains(t, c.String(), "observer or log handler is slow: took up to 3s, ")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 1, count("zklock: observer or log handler is slow"), "once a minute at most")
		require.Equal(t, 1, count("duration=3s"))
		require.Equal(t, count("\n"), count(" session=0x"), "every line has the session")
	})
}

// A call's own events are observed before it returns, as are those of the end of its hold.
//
//zklock:promise P19.11
func TestTheEventsOfACallAreObservedBeforeItReturns(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var seen atomic.Int32
		c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: everyEvent(func(observe.Event) {
			time.Sleep(time.Second)
			seen.Add(1)
		})})
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, seen.Load(), "queued and acquired")
		unlock(t, hold)
		require.EqualValues(t, 3, seen.Load(), "released")
	})
}

// Unlock returns although an observer does not.
//
//zklock:promise P19.11
func TestUnlockDoesNotWaitForAnObserverForEver(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		outlast(t)
		c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: slowly(time.Hour, observe.Released)})
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		start := time.Now()
		unlock(t, hold)
		require.LessOrEqual(t, time.Since(start), term)
		require.Empty(t, queue(srv, path))
	})
}
