// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// The cost of a long queue for its contenders, and that no lock is granted out of turn because of requests that they save.

// leavings has the numbers of contenders that hold one after the other, and the orders in which those behind the holder give up.
var leavings = []struct {
	name   string
	passed int
	order  []int
}{
	{"the nearest last", 3, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
	{"the nearest first", 3, []int{8, 7, 6, 5, 4, 3, 2, 1, 0}},
	{"from the middle on", 3, []int{4, 5, 6, 7, 8, 0, 1, 2, 3}},
	{"those that are looked at first", 0, []int{2, 1, 0, 3}}, // one is beyond those that are known
}

// A waiter knows only the nearest contenders of a long queue by name. If all of these give up, it must not be granted the lock,
// because contenders further ahead, including the holder, remain.
//
//zklock:promise P4.1
func TestContendersBeyondTheNearestAreWaitedFor(t *testing.T) {
	t.Parallel()
	for _, last := range []struct {
		name    string
		lock    way
		waiting way
	}{
		{"a mutex", asMutex, asMutex},
		{"a writer", asWriter, asWriter},
		{"a writer behind readers", asWriter, asReader},
		{"a reader behind writers", asReader, asWriter},
	} {
		for _, leave := range leavings {
			for _, lost := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, listing lost %v", last.name, leave.name, lost), func(t *testing.T) {
					virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
						holder, holding := giveUpBetween(t, srv, leave.passed, leave.order, last.waiting, last.lock, lost)
						require.False(t, holding.returned(), "%v", holding.err)
						unlock(t, holder)
						time.Sleep(10 * time.Second)
						require.True(t, holding.returned())
						require.NoError(t, holding.err)
						require.NoError(t, holding.hold.Check())
						unlock(t, holding.hold)
					})
				})
			}
		}
	}
}

// giveUpBetween queues writers, then other waiters, then last. The first passed of them hold one after the other, and then all
// waiters between the holder and last give up in the given order. It returns the holder's hold and last's attempt. If lost is
// true, the reply to the first listing after that is lost.
func giveUpBetween(t *testing.T, srv *zktest.Server, passed int, order []int, waiting, last way, lost bool) (*zklock.Hold, *attempt) {
	var line []*attempt
	for i := range passed + 1 {
		line = append(line, lockLater(t.Context(), asWriter(connect(t, srv, fmt.Sprint("h", i), term))))
		time.Sleep(100 * time.Millisecond)
	}
	var between []*attempt
	var cancels []context.CancelFunc
	for i := range order {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cancels = append(cancels, cancel)
		between = append(between, lockLater(ctx, waiting(connect(t, srv, fmt.Sprint("b", i), term))))
		time.Sleep(100 * time.Millisecond)
	}
	end := lockLater(t.Context(), last(connect(t, srv, "last", term)))
	time.Sleep(time.Second)
	for _, a := range line[:passed] {
		require.True(t, a.returned())
		unlock(t, a.hold)
		time.Sleep(100 * time.Millisecond)
	}
	holder := line[passed]
	require.True(t, holder.returned())
	if lost {
		loseFirst(t, srv, zktest.OpGetChildren2)
	}
	for _, i := range order {
		cancels[i]()
		<-between[i].done
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(10 * time.Second)
	return holder.hold, end
}

// loseFirst breaks the connection at the next request of a kind.
func loseFirst(t *testing.T, srv *zktest.Server, op zktest.Op) {
	lost := false
	stop := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if lost || r.Op != op {
			return zktest.Pass
		}
		lost = true
		return zktest.LoseReply
	})
	t.Cleanup(stop)
}

// All waits that a client starts while it lists the directory share one more reply.
//
//zklock:promise P9.10
func TestWaitersOfOneClientShareListings(t *testing.T) {
	const waiters = 300
	virtual(t, zktest.Options{Latency: fixed(5 * time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		holder, err := connect(t, srv, "holder", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		client := connect(t, srv, "a", term)
		before := srv.Requests()[zktest.OpGetChildren2]
		var line []*attempt
		for range waiters {
			line = append(line, lockLater(t.Context(), client.Mutex(path).Lock))
		}
		time.Sleep(time.Second)
		require.Len(t, queue(srv, path), 1+waiters)
		require.LessOrEqual(t, srv.Requests()[zktest.OpGetChildren2]-before, 4)
		hold := holder
		for range waiters {
			unlock(t, hold)
			time.Sleep(100 * time.Millisecond)
			hold = oneGranted(t, &line)
		}
		unlock(t, hold)
	})
}

// oneGranted removes the only attempt that has returned from line, and returns its hold.
func oneGranted(t *testing.T, line *[]*attempt) *zklock.Hold {
	t.Helper()
	var hold *zklock.Hold
	*line = slices.DeleteFunc(*line, func(a *attempt) bool {
		select {
		case <-a.done:
		default:
			return false
		}
		require.NoError(t, a.err)
		require.Nil(t, hold, "two hold")
		hold = a.hold
		return true
	})
	require.NotNil(t, hold, "no one holds the lock")
	return hold
}

// slowLists delays each listing by the time of its reply on a link with the given number of bytes per second.
func slowLists(t *testing.T, srv *zktest.Server, perSecond int) {
	const nameSize = 4 + 53
	t.Cleanup(srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if r.Op != zktest.OpGetChildren2 {
			return zktest.Pass
		}
		return zktest.Delay(time.Duration(len(srv.Children(r.Path))) * nameSize * time.Second / time.Duration(perSecond))
	}))
}

// Thousands of waiters queue at the same time, through a few clients and over slow links. The clients' requests must leave room
// for their heartbeats, and no hold may be lost.
//
//zklock:promise P7.12
func TestManyContendersAtOnceCostNoLock(t *testing.T) {
	t.Parallel()
	const clients = 8
	waiters, wire := 4000, 4<<20
	if testing.Short() {
		waiters, wire = 1000, 1<<18
	}
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		slowLists(t, srv, wire)
		ctx, cancel := context.WithCancel(t.Context())
		holder := connect(t, srv, "c0", term)
		hold, err := holder.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Minute)
		var line []*attempt
		for i := range clients {
			c := holder
			if i > 0 {
				c = connect(t, srv, fmt.Sprint("c", i), term)
			}
			for range waiters / clients {
				line = append(line, lockLater(ctx, c.Mutex(path).Lock))
			}
		}
		time.Sleep(time.Minute)
		require.NoError(t, hold.Check())
		require.Len(t, queue(srv, path), 1+waiters, "nobody has had to queue again")
		require.Equal(t, clients, len(srv.Sessions()), "no session has ended")
		cancel()
		for _, a := range line {
			<-a.done
		}
		unlock(t, hold)
	})
}

// TestTenThousandDrainInOrder queues ten thousand waiters, which then hold one after the other. None overtakes, and a hand-off
// takes no more requests than in a queue of ten.
//
//zklock:promise P4.1
func TestTenThousandDrainInOrder(t *testing.T) {
	short, long := drained(t, 10), drained(t, 10_000/oneIn(10))
	t.Logf("requests for each hand-off: %v, in a queue of ten %v", long, short)
	for op, n := range long {
		require.LessOrEqual(t, n, short[op], "of %v for each hand-off; %v in a queue of ten", op, short)
	}
	require.GreaterOrEqual(t, long[zktest.OpDelete]+long[zktest.OpMulti], 1.0)
}

// drained queues n waiters, and returns the number of requests of each kind per hand-off, without heartbeats.
func drained(t *testing.T, n int) map[zktest.Op]float64 {
	costs := map[zktest.Op]float64{}
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "holder", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		var clients []*zklock.Client
		for i := range 8 {
			clients = append(clients, connect(t, srv, fmt.Sprint("client ", i), term))
		}
		var all sync.WaitGroup
		var order []string // written only by the holder of the lock
		for i := range n {
			all.Go(func() {
				hold, err := clients[i%len(clients)].Mutex(path).Lock(t.Context())
				if !assert.NoError(t, err) {
					return
				}
				order = append(order, hold.Node()[strings.LastIndex(hold.Node(), "-"):])
				assert.NoError(t, hold.Unlock(t.Context()))
			})
		}
		time.Sleep(10 * time.Second)
		require.Len(t, queue(srv, path), 1+n)
		srv.ResetCounts()
		unlock(t, hold)
		all.Wait()
		require.Len(t, order, n)
		require.True(t, slices.IsSorted(order))
		for op, count := range srv.Requests() {
			if !slices.Contains([]zktest.Op{zktest.OpExists, zktest.OpSync, zktest.OpPing}, op) {
				costs[op] = math.Round(float64(count)/float64(n)*10) / 10
			}
		}
	})
	return costs
}
