// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// waysToClose are the calls that close a client. Each waits for an observer.
var waysToClose = map[string]func(c *zklock.Client){
	"Close": func(c *zklock.Client) { c.Close() },
	"Shutdown": func(c *zklock.Client) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = c.Shutdown(ctx) // its error only says that the limit was reached
	},
}

// stuckObserver returns options whose observer does not return from the first event of that kind after arm was called, until free is
// closed. stuck is closed when it is called.
func stuckObserver(o zklock.Options, kind observe.Kind) (opts *zklock.Options, arm func(), stuck, free chan struct{}) {
	armed := false
	stuck, free = make(chan struct{}), make(chan struct{})
	o.Observer = everyEvent(func(e observe.Event) {
		if armed && e.Kind == kind {
			armed = false
			close(stuck)
			<-free
		}
	})
	return &o, func() { armed = true }, stuck, free
}

// While Close waits for an observer, nobody watches the lease of the holds, so they have ended before. The client is cut off in that time, and
// another one is granted the lock.
//
//zklock:promise P2.1 P16.7
func TestCloseEndsTheHoldsBeforeItWaits(t *testing.T) {
	const timeout = 4 * time.Second
	for name, closes := range waysToClose {
		for _, share := range []int{10, 40, 45} { // of the timeout, in hundredths
			virtual(t, zktest.Options{TickTime: 500 * time.Millisecond}, func(t *testing.T, srv *zktest.Server) {
				opts, arm, stuck, free := stuckObserver(zklock.Options{Label: "a", SessionTimeout: timeout, TickTime: 500 * time.Millisecond}, observe.Acquired)
				c, d := connectWith(t, srv, opts), connect(t, srv, "b", timeout)
				hold, err := c.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				next := lockLater(t.Context(), d.Mutex(path).Lock)
				time.Sleep(2 * timeout)
				arm()
				meanwhile := lockLater(t.Context(), c.Mutex("/other").Lock)
				<-stuck
				srv.Partition("a")
				time.Sleep(timeout * time.Duration(share) / 100)
				require.NoError(t, hold.Check())
				end := endOf(hold)
				began := time.Now()
				closed := make(chan struct{})
				go func() { closes(c); close(closed) }() // ends when the observer has returned
				<-end.done
				assert.Equal(t, began, end.at, "%s: at once", name)
				assert.ErrorIs(t, end.cause, zklock.ErrClosed)
				<-next.done
				require.NoError(t, next.err)
				close(free)
				<-closed
				<-meanwhile.done
				if meanwhile.err == nil {
					assert.ErrorIs(t, context.Cause(meanwhile.hold.Context()), zklock.ErrClosed, "it was granted while the client was closing")
				}
				srv.HealClient("a")
			})
		}
	}
}

// A Close that waits for an observer removes its nodes, and sends nothing again and again.
//
//zklock:promise P16.7
func TestACloseThatWaitsSendsOnlyItsReleases(t *testing.T) {
	const holds = 50
	for name, closes := range waysToClose {
		virtual(t, zktest.Options{Latency: fixed(250 * time.Microsecond)}, func(t *testing.T, srv *zktest.Server) {
			opts, arm, stuck, free := stuckObserver(zklock.Options{Label: "a", SessionTimeout: term}, observe.Acquired)
			c := connectWith(t, srv, opts)
			for i := range holds {
				_, err := c.Mutex(fmt.Sprint(path, i)).Lock(t.Context())
				require.NoError(t, err)
			}
			time.Sleep(time.Second)
			arm()
			late := lockLater(t.Context(), c.Mutex(path).Lock)
			<-stuck
			time.Sleep(20 * time.Millisecond)
			resetCounts(srv)
			time.AfterFunc(2*time.Second, func() { close(free) })
			closes(c)
			<-late.done
			sent := 0
			for op, n := range srv.Requests() {
				sent += n
				if op == zktest.OpDelete {
					assert.GreaterOrEqual(t, n, holds, "%s: the nodes are removed", name)
				}
			}
			assert.LessOrEqual(t, sent, holds+15, "%s: %v", name, srv.Requests())
		})
	}
}

// One client of a connection closes, and the servers answer its deletion late. The hold of another client keeps its lease.
//
//zklock:promise P16.7 P18.11
func TestACloseBesideAnotherClientLeavesItsHoldAlone(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		on := shareOn(t, srv, "a", term)
		one, two := on.attach(t, nil), on.attach(t, nil)
		_, err := one.Mutex("/one").Lock(t.Context())
		require.NoError(t, err)
		hold, err := two.Mutex("/two").Lock(t.Context())
		require.NoError(t, err)
		srv.Next(1, zktest.Delay(3*time.Second), zktest.OpDelete)
		closed := make(chan struct{})
		go func() { one.Close(); close(closed) }() // ends with the deletion
		least := leastOf(hold, term, 2*term, func(int) {})
		<-closed
		assert.GreaterOrEqual(t, least, 0.4)
		assert.Empty(t, queue(srv, "/one"))
		assert.Len(t, queue(srv, "/two"), 1)
		assert.NoError(t, hold.Check())
	})
}

// deletes reports whether a request of the client deletes something.
func deletes(r *zktest.Request, client string) bool {
	return r.Client == client && (r.Op == zktest.OpDelete || slices.Contains(r.Ops, zktest.OpDelete))
}

// A client of a connection that the program has made is closed while the servers do not delete its node, until Close gives up. The
// session lives on. The node is removed once the servers delete it, whether another client shares the connection or not.
//
//zklock:promise P16.6 P5.1
func TestTheRemovalGoesOnAfterTheClientOfASharedConnectionIsClosed(t *testing.T) {
	answer := func(v zktest.Verdict) func(srv *zktest.Server) (stop func()) {
		return func(srv *zktest.Server) func() {
			return srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if deletes(r, "a") {
					return v
				}
				return zktest.Pass
			})
		}
	}
	obstacles := map[string]func(srv *zktest.Server) (stop func()){
		"throttled":         answer(zktest.Answer(-127)),
		"refused":           answer(zktest.Answer(-102)),
		"connection is cut": func(srv *zktest.Server) func() { srv.Partition("a"); return func() { srv.HealClient("a") } },
	}
	for name, obstacle := range obstacles {
		for _, pair := range excluding {
			for _, others := range []int{0, 1} {
				virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
					on, d := shareOn(t, srv, "a", term), connect(t, srv, "b", term)
					c := on.attach(t, nil)
					for range others {
						on.attach(t, nil)
					}
					_, err := pair.first(c)(t.Context())
					require.NoError(t, err)
					next := lockLater(t.Context(), pair.second(d))
					time.Sleep(term)
					stop := obstacle(srv)
					began := time.Now()
					c.Close()
					assert.LessOrEqual(t, time.Since(began), 5*time.Second, "%s, %s", name, pair.name)
					require.False(t, next.returned())
					session := on.conn.SessionID()
					stop()
					began = time.Now()
					<-next.done
					require.NoError(t, next.err)
					assert.Less(t, time.Since(began), term/4+time.Second, "%s, %s, %d others", name, pair.name, others)
					assert.True(t, slices.ContainsFunc(srv.Sessions(), func(s zktest.Session) bool { return s.ID == session }), "the session lives on")
					unlock(t, next.hold)
				})
			}
		}
	}
}

// A removal after Close also records the release, so the next caller does not wait for the lock-delay.
//
//zklock:promise P11.1 P16.6
func TestARemovalAfterCloseRecordsTheRelease(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		o := zklock.Options{LockDelay: time.Hour, SessionTimeout: term, Label: "b"}
		on, d := shareOn(t, srv, "a", term), connectWith(t, srv, &o)
		c := on.attach(t, &zklock.Options{LockDelay: time.Hour})
		_, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		next := lockLater(t.Context(), d.Mutex(path).Lock)
		time.Sleep(term)
		stop := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if deletes(r, "a") {
				return zktest.Answer(-127)
			}
			return zktest.Pass
		})
		c.Close()
		stop()
		time.Sleep(term)
		require.True(t, next.returned())
		require.NoError(t, next.err)
		unlock(t, next.hold)
	})
}

// An observer never returns from Queued, and the client is closed. The node of that attempt is removed at once, although its goroutine
// does not return.
//
//zklock:promise P16.6 P16.7 P19.7
func TestAnObserverOfACloseKeepsNoNodeInTheQueue(t *testing.T) {
	for _, pair := range excluding {
		for name, shares := range map[string]bool{"Connect": false, "Attach": true} {
			virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
				opts, arm, stuck, free := stuckObserver(zklock.Options{Label: "a", SessionTimeout: term}, observe.Queued)
				var c *zklock.Client
				if shares {
					on := shareOn(t, srv, "a", term)
					on.attach(t, nil)
					c = on.attach(t, &zklock.Options{Observer: opts.Observer})
				} else {
					c = connectWith(t, srv, opts)
				}
				d, e := connect(t, srv, "b", term), connect(t, srv, "c", term)
				holder, err := pair.first(d)(t.Context())
				require.NoError(t, err)
				arm()
				waits := lockLater(t.Context(), pair.second(c))
				<-stuck
				behind := lockLater(t.Context(), pair.first(e))
				time.Sleep(time.Second)
				closed := make(chan struct{})
				go func() { c.Close(); close(closed) }() // ends at its limit
				time.Sleep(100 * time.Millisecond)
				unlock(t, holder)
				time.Sleep(100 * time.Millisecond)
				require.True(t, behind.returned(), "%s, %s: %v", name, pair.name, queue(srv, path))
				require.NoError(t, behind.err)
				<-closed
				close(free)
				<-waits.done
				require.ErrorIs(t, waits.err, zklock.ErrClosed)
				unlock(t, behind.hold)
				noGhost(t, srv, path)
			})
		}
	}
}
