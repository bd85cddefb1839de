// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// counting counts the requests of the client "a" by their kinds.
type counting struct {
	mu   sync.Mutex
	all  int               // guarded by mu
	kind map[zktest.Op]int // guarded by mu
}

func countRequests(srv *zktest.Server) *counting {
	c := &counting{kind: map[zktest.Op]int{}}
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if r.Client == "a" {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.all++
			c.kind[r.Op]++
		}
		return zktest.Pass
	})
	return c
}

// in returns the requests during d, in which fn is called at once.
func (c *counting) in(d time.Duration, fn func()) (all int, kind map[zktest.Op]int) {
	c.mu.Lock()
	c.all, c.kind = 0, map[zktest.Op]int{}
	c.mu.Unlock()
	fn()
	time.Sleep(d)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all, c.kind
}

// waitAt makes the other client hold the locks at those paths, and the client wait for them.
func waitAt(t *testing.T, ctx context.Context, c, other *zklock.Client, at []string) (holds []*zklock.Hold, waiters []*attempt) {
	held := map[string]bool{}
	for _, path := range at {
		if !held[path] {
			hold, err := other.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			held[path], holds = true, append(holds, hold)
		}
	}
	for _, path := range at {
		waiters = append(waiters, lockLater(ctx, c.Mutex(path).Lock))
	}
	return holds, waiters
}

// queuePaths returns n paths, different ones or n times the same.
func queuePaths(n int, different bool) (all []string) {
	for i := range n {
		path := "/queue"
		if different {
			path = fmt.Sprint("/queues/", i)
		}
		all = append(all, path)
	}
	return all
}

// A reconnect and an idle minute cost a client about the same number of requests, regardless of the number of its holds and
// waits.
//
//zklock:promise P9.11
func TestAReconnectCostsOneRequestForAllWatches(t *testing.T) {
	const many = 1000
	for name, begin := range map[string]func(t *testing.T, ctx context.Context, c, other *zklock.Client){
		"an idle client": func(*testing.T, context.Context, *zklock.Client, *zklock.Client) {},
		"holds": func(t *testing.T, _ context.Context, c, _ *zklock.Client) {
			for _, path := range queuePaths(many, true) {
				_, err := c.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
			}
		},
		"waiters of one queue": func(t *testing.T, ctx context.Context, c, other *zklock.Client) {
			waitAt(t, ctx, c, other, queuePaths(many, false))
		},
		"waiters of a queue each": func(t *testing.T, ctx context.Context, c, other *zklock.Client) {
			waitAt(t, ctx, c, other, queuePaths(many, true))
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				other, c := connect(t, srv, "other", term), connect(t, srv, "a", term)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				begin(t, ctx, c, other)
				time.Sleep(3 * term)
				requests := countRequests(srv)
				idle, kinds := requests.in(6*term, func() {})
				t.Log("idle:", idle, kinds)
				require.LessOrEqual(t, kinds[zktest.OpSetWatches], 2*6)
				require.Zero(t, kinds[zktest.OpGetData]+kinds[zktest.OpGetChildren2])
				all, kinds := requests.in(6*term, srv.DropConnections)
				t.Log("with a reconnect:", all, kinds)
				require.LessOrEqual(t, all, idle+10)
			})
		})
	}
}

// After a reconnect only the watches whose nodes have changed cost a request, and nothing that
// happened in between is missed.
//
//zklock:promise P7.1 P9.11
func TestAReconnectFindsChanges(t *testing.T) {
	const many, changed = 300, 7
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		other, c := connect(t, srv, "other", term), connect(t, srv, "a", term)
		holds, waiters := waitAt(t, t.Context(), c, other, queuePaths(many, true))
		var own []*zklock.Hold
		for i := range many {
			hold, err := c.Mutex(fmt.Sprint("/own/", i)).Lock(t.Context())
			require.NoError(t, err)
			own = append(own, hold)
		}
		time.Sleep(3 * term)
		requests := countRequests(srv)
		_, kinds := requests.in(6*term, func() {
			srv.Partition("a")
			for i := range changed {
				unlock(t, holds[i])
				require.NoError(t, srv.DeleteNode(own[i].Node()))
			}
			time.Sleep(term / 10)
			srv.HealClient("a")
		})
		for _, beat := range []zktest.Op{zktest.OpExists, zktest.OpSync, zktest.OpMulti, zktest.OpPing} {
			delete(kinds, beat) // more often after slow replies
		}
		all := 0
		for _, n := range kinds {
			all += n
		}
		require.LessOrEqual(t, all, 10+2*2*changed)
		for i := range many {
			require.Equal(t, i < changed, waiters[i].returned(), "waiter %d", i)
			require.Equal(t, i < changed, own[i].Check() != nil, "hold %d", i)
		}
		for _, hold := range holds[changed:] {
			unlock(t, hold)
		}
		for _, w := range waiters {
			<-w.done
			require.NoError(t, w.err)
		}
	})
}

// A change is found although servers hang up on the first requests after the reconnect, so that one
// connection follows another.
//
//zklock:promise P7.1
func TestAWaiterWakesThoughItsWatchIsNotSetAgainOnTheFirstConnections(t *testing.T) {
	for hangUps := range 4 {
		virtual(t, three, func(t *testing.T, srv *zktest.Server) {
			other, c := connect(t, srv, "other", term), connect(t, srv, "a", term)
			holds, waiters := waitAt(t, t.Context(), c, other, queuePaths(20, true))
			time.Sleep(term)
			var mu sync.Mutex
			left := hangUps // guarded by mu
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				mu.Lock()
				defer mu.Unlock()
				if r.Client != "a" || r.Op != zktest.OpSetWatches || left == 0 {
					return zktest.Pass
				}
				if left--; left == 0 { // the change before the first reconnect is the newest one now
					return zktest.LoseReply
				}
				return zktest.DropBefore
			})
			srv.Partition("a")
			unlock(t, holds[7])
			time.Sleep(time.Second)
			srv.HealClient("a")
			<-waiters[7].done
			require.NoError(t, waiters[7].err)
			require.False(t, waiters[8].returned())
		})
	}
}

// An attached client does not know whether its servers know SetWatches until it has reconnected.
//
//zklock:promise P9.11
func TestAnAttachedClientChecksItsWatchesTogetherOnceItHasReconnected(t *testing.T) {
	const many = 100
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		other := connect(t, srv, "other", term)
		c := attach(t, srv, srv.Addrs(), &zklock.Options{Label: "a", SessionTimeout: term})
		waitAt(t, t.Context(), c, other, queuePaths(many, true))
		time.Sleep(3 * term)
		requests := countRequests(srv)
		_, kinds := requests.in(6*term, func() {})
		require.Zero(t, kinds[zktest.OpSetWatches])
		require.InDelta(t, 6*many, kinds[zktest.OpExists], 2*many, "one for each watch")
		srv.DropConnections()
		time.Sleep(3 * term)
		_, kinds = requests.in(6*term, func() {})
		require.InDelta(t, 6, kinds[zktest.OpSetWatches], 1)
		require.Less(t, kinds[zktest.OpExists], many, "one for each heartbeat")
	})
}

// One request per session timeout checks all watches of a client, and finds a change whose event was withheld.
//
//zklock:promise P7.3 P9.11
func TestACheckOfManyWatchesIsOneRequestAndFindsWithheldChanges(t *testing.T) {
	const many = 100
	for _, flavor := range flavors {
		virtual(t, zktest.Options{Flavor: flavor}, func(t *testing.T, srv *zktest.Server) {
			other, c := connect(t, srv, "other", term), connect(t, srv, "a", term)
			holds, waiters := waitAt(t, t.Context(), c, other, queuePaths(many, true))
			time.Sleep(3 * term)
			requests := countRequests(srv)
			_, kinds := requests.in(6*term, func() {})
			require.InDelta(t, 6, kinds[zktest.OpSetWatches], 1)
			require.Less(t, kinds[zktest.OpExists], many, "one for each heartbeat")
			for i := range 3 {
				hold := holds[i]
				giveBack := withholdRead(t, srv, hold.Node())
				unlock(t, hold)
				time.Sleep(100 * time.Millisecond)
				giveBack()
				require.False(t, waiters[i].returned(), "the event was not withheld")
				time.Sleep(term + 100*time.Millisecond)
				require.True(t, waiters[i].returned(), "asleep")
				require.NoError(t, waiters[i].err)
			}
			require.False(t, waiters[3].returned())
		})
	}
}
