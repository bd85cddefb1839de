// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// Tests count the costs in virtual time. Benchmarks print them together with the real time.

// cost has the numbers of messages between clients and servers.
type cost struct {
	writes, reads int
	bytes         int64
}

// costOf returns the cost of fn, without the reads and syncs of heartbeats, whose path is the root.
func costOf(srv *zktest.Server, fn func()) cost {
	var beats atomic.Int64
	defer srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if r.Path == "/" && (r.Op == zktest.OpExists || r.Op == zktest.OpSync) {
			beats.Add(1)
		}
		return zktest.Pass
	})()
	srv.ResetCounts()
	in, out := srv.Bytes()
	fn()
	inAfter, outAfter := srv.Bytes()
	c := cost{bytes: inAfter - in + outAfter - out}
	for op, n := range srv.Requests() {
		switch op {
		case zktest.OpCreate, zktest.OpDelete, zktest.OpMulti, zktest.OpSetData:
			c.writes += n
		case zktest.OpPing:
		default:
			c.reads += n
		}
	}
	c.reads -= int(beats.Load())
	return c
}

//zklock:promise P9.1 A19
func TestAnUncontendedCycleCostsTwoRequests(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client)
		synctest.Wait() // until the first heartbeats and the check of the watches are over
		const cycles = 100
		c := costOf(srv, func() {
			for range cycles {
				unlockSoon(t, client)
			}
		})
		require.Equal(t, cost{writes: 2 * cycles}, cost{writes: c.writes, reads: c.reads})
	})
}

//zklock:promise P9.1
func TestAnUncontendedLockWaitsForOneRoundTripAndAnUnlockForOne(t *testing.T) {
	const oneWay = 50 * time.Millisecond
	virtual(t, zktest.Options{Latency: fixed(oneWay)}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client)
		short := 0
		var took []time.Duration
		for range 20 {
			start := time.Now()
			unlockSoon(t, client)
			took = append(took, time.Since(start))
			if time.Since(start) < 4*oneWay+oneWay/2 {
				short++
			}
		}
		require.GreaterOrEqual(t, short, 15, "%v", took)
	})
}

//zklock:promise P9.3
func TestAHandOffToTheNextInLineCostsOneWriteAndNoRequest(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		hold, err := a.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		next := lockLater(t.Context(), b.Mutex(path).Lock)
		time.Sleep(time.Second)
		c := costOf(srv, func() {
			unlock(t, hold)
			<-next.done
		})
		require.Equal(t, cost{writes: 1}, cost{writes: c.writes, reads: c.reads})
		unlock(t, next.hold)
	})
}

// handOffs queues n waiters and returns the cost of a hand-off.
func handOffs(t testing.TB, srv *zktest.Server, clients []*zklock.Client, n, count int) cost {
	holds := make(chan *zklock.Hold, n)
	ctx, cancel := context.WithCancel(context.Background())
	for i := range n {
		go func() {
			if hold, err := clients[i%len(clients)].Mutex(path).Lock(ctx); err == nil {
				holds <- hold
			}
		}()
		if i == 0 {
			synctest.Wait()
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	hold := <-holds
	c := costOf(srv, func() {
		for range count {
			require.NoError(t, hold.Unlock(ctx))
			hold = <-holds
		}
		synctest.Wait()
	})
	cancel()
	hold.Unlock(context.Background())
	time.Sleep(10 * time.Second)
	return c
}

//zklock:promise P9.3
func TestAHandOffCostsTheSameInALongQueue(t *testing.T) {
	costs := map[int]cost{}
	for _, n := range []int{10, 1000} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			var clients []*zklock.Client
			for i := range 10 {
				clients = append(clients, connect(t, srv, fmt.Sprint("c", i), 40*time.Second))
			}
			costs[n] = handOffs(t, srv, clients, n, 8)
		})
	}
	t.Logf("8 hand-offs: 10 waiters %+v, 1000 waiters %+v", costs[10], costs[1000])
	require.LessOrEqual(t, float64(costs[1000].writes+costs[1000].reads), 1.5*float64(costs[10].writes+costs[10].reads))
	require.LessOrEqual(t, float64(costs[1000].bytes), 1.5*float64(costs[10].bytes))
}

//zklock:promise P9.7
func TestIdleHoldsCostOneHeartbeatForAll(t *testing.T) {
	t.Parallel()
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		for i := range 100 {
			_, err := client.Mutex(fmt.Sprint("/locks/", i)).Lock(t.Context())
			require.NoError(t, err)
		}
		time.Sleep(time.Minute)
		c := costOf(srv, func() { time.Sleep(time.Hour) })
		require.LessOrEqual(t, c.writes, int(time.Hour/(term/4))+1) // both ends count
		require.Greater(t, c.writes, int(time.Hour/(term/3)))
		seen := srv.Requests()
		require.InDelta(t, 3*c.writes, seen[zktest.OpSync]+seen[zktest.OpExists], 3, "two syncs and one look for each")
		require.Zero(t, c.reads)
	})
}

//zklock:promise P9.7
func TestAnIdleClientWritesNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client)
		synctest.Wait() // the heartbeat that the hold needed is over
		c := costOf(srv, func() { time.Sleep(time.Hour) })
		require.Zero(t, c.writes)
		require.Zero(t, c.reads)
		seen := srv.Requests()
		require.LessOrEqual(t, seen[zktest.OpSync]+seen[zktest.OpExists], 3*int(time.Hour/(term/4)))
	})
}

// fixed returns a constant latency.
func fixed(d time.Duration) func(*rand.Rand) time.Duration {
	return func(*rand.Rand) time.Duration { return d }
}

//zklock:promise P9.1
func BenchmarkUncontendedLockAndUnlock(b *testing.B) {
	srv := zktest.Start(b)
	client := benchClient(b, srv)
	ctx := context.Background()
	cycle := func() {
		hold, err := client.Mutex(path).Lock(ctx)
		if err == nil {
			err = hold.Unlock(ctx)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	cycle()
	c := costOf(srv, func() {
		for b.Loop() {
			cycle()
		}
	})
	c.report(b, b.N)
}

// BenchmarkHandOff counts the messages per hand-off in a queue, whose waiters belong to ten sessions.
//
//zklock:promise P9.3
func BenchmarkHandOff(b *testing.B) {
	for _, waiters := range []int{2, 10, 100, 1000} {
		b.Run(fmt.Sprint(waiters, " waiters"), func(b *testing.B) {
			srv := zktest.Start(b)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			holds := make(chan *zklock.Hold)
			var clients []*zklock.Client
			for range 10 {
				clients = append(clients, benchClient(b, srv))
			}
			queueUp := func(i int) {
				hold, err := clients[i%len(clients)].Mutex(path).Lock(ctx)
				if err != nil {
					return
				}
				select {
				case holds <- hold:
				case <-ctx.Done():
				}
			}
			for i := range waiters {
				go queueUp(i)
			}
			hold := <-holds
			i := 0
			c := costOf(srv, func() {
				for b.Loop() {
					go queueUp(i) // one leaves and one joins, so the cost includes joining
					i++
					if err := hold.Unlock(ctx); err != nil {
						b.Fatal(err)
					}
					hold = <-holds
				}
			})
			c.report(b, b.N)
		})
	}
}

func (c cost) report(b *testing.B, n int) {
	b.ReportMetric(float64(c.writes)/float64(n), "writes/op")
	b.ReportMetric(float64(c.reads)/float64(n), "reads/op")
	b.ReportMetric(float64(c.bytes)/float64(n), "bytes/op")
}

func benchClient(b *testing.B, srv *zktest.Server) *zklock.Client {
	b.Helper()
	client, err := zklock.Connect(context.Background(), srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close() })
	return client
}

// BenchmarkPlainLockAndUnlock measures the client library's own lock on the same server.
func BenchmarkPlainLockAndUnlock(b *testing.B) {
	srv := zktest.Start(b)
	conn := rawClient(b, srv, term)
	lock := zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))
	for b.Loop() {
		if err := lock.Lock(); err != nil {
			b.Fatal(err)
		}
		if err := lock.Unlock(); err != nil {
			b.Fatal(err)
		}
	}
}
