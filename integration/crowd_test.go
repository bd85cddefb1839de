// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"flag"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zkcontainer"
)

var crowdOf = flag.Int("crowd", 0, "number of waiters in one queue on three servers; 0 skips TestACrowdDrainsInOrder")

// TestACrowdDrainsInOrder queues -crowd waiters through eight clients, and then lets them hold one after the other. It logs
// how long they took to join and how long a hand-off takes, and the same for a queue of ten in the same run.
//
//zklock:promise P4.1
func TestACrowdDrainsInOrder(t *testing.T) {
	if *crowdOf == 0 {
		t.Skip("only with -crowd: make crowd")
	}
	part(t)
	z := start(t, zkcontainer.Options{Servers: 3, TickTime: 2 * time.Second, Config: []string{"snapCount=1000000"}})
	for range 6 {
		measureCrowd(t, z, 10, *crowdOf/100)
		measureCrowd(t, z, *crowdOf, 1)
	}
}

// measureCrowd drains a queue of n waiters the given number of times, and logs the figures.
func measureCrowd(t *testing.T, z *zkcontainer.Ensemble, n, times int) {
	var all waited
	for range max(1, times) {
		all.add(drain(t, z, n))
	}
	slices.Sort(all.handOffs)
	t.Logf("%6d waiters: joined in %v each, %.1f kB and %.1f goroutines each; hand-off p50 %v, p99 %v", n,
		(all.joined / time.Duration(all.waiters)).Round(time.Microsecond), float64(all.bytes)/1024/float64(all.waiters),
		float64(all.goroutines)/float64(all.waiters), quantile(all.handOffs, 50), quantile(all.handOffs, 99))
}

func quantile(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)-1)*percent/100].Round(time.Microsecond)
}

// waited has the figures of the waiters in one queue.
type waited struct {
	waiters    int
	joined     time.Duration // time until all were queued
	bytes      int64         // heap and stacks
	goroutines int
	handOffs   []time.Duration // times from one grant to the next
}

func (c *waited) add(other waited) {
	c.waiters += other.waiters
	c.joined += other.joined
	c.bytes += other.bytes
	c.goroutines += other.goroutines
	c.handOffs = append(c.handOffs, other.handOffs...)
}

// drain queues n waiters behind a holder, releases the holder's lock, and waits until all have held.
func drain(t *testing.T, z *zkcontainer.Ensemble, n int) (seen waited) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	path := root(t)
	queued := newQueued(n)
	opts := func() *zklock.Options { return &zklock.Options{SessionTimeout: 10 * time.Second, Observer: queued} }
	holder := connect(t, opts(), z.Addrs()...)
	hold, err := holder.Mutex(path).Lock(ctx)
	require.NoError(t, err)
	defer holder.Close()
	clients := make([]*zklock.Client, 8)
	for i := range clients {
		clients[i] = connect(t, opts(), z.Addrs()...)
		defer clients[i].Close()
	}

	seen.waiters = n
	bytes, goroutines := inUse(), runtime.NumGoroutine()
	began := time.Now()
	var all sync.WaitGroup
	var nodes []string // written only by the holder of the lock
	var grants []time.Time
	for i := range n {
		// Owned by this test, which waits for it; ends when its turn is over, or with ctx.
		all.Go(func() {
			hold, err := clients[i%len(clients)].Mutex(path).Lock(ctx)
			if !assert.NoError(t, err) {
				return
			}
			nodes, grants = append(nodes, hold.Node()[strings.LastIndex(hold.Node(), "-"):]), append(grants, time.Now())
			assert.NoError(t, hold.Unlock(ctx))
		})
	}
	await(t, queued.all, "all have queued")
	seen.joined = time.Since(began)
	seen.bytes, seen.goroutines = inUse()-bytes, runtime.NumGoroutine()-goroutines
	require.NoError(t, hold.Check(), "the hold survives the joining of the waiters")
	require.NoError(t, hold.Unlock(ctx))
	all.Wait()
	require.Len(t, nodes, n, "all have held")
	require.True(t, slices.IsSorted(nodes), "in the order of their nodes")
	for i := 1; i < n; i++ {
		seen.handOffs = append(seen.handOffs, grants[i].Sub(grants[i-1]))
	}
	return seen
}

// queued is an observer that closes all after n contenders have queued.
type queued struct {
	missing atomic.Int64
	all     chan struct{}
}

func newQueued(n int) *queued {
	q := &queued{all: make(chan struct{})}
	q.missing.Store(int64(n))
	return q
}

func (q *queued) Observe(e observe.Event) {
	if e.Kind == observe.Queued && q.missing.Add(-1) == 0 {
		close(q.all)
	}
}

// inUse returns the size of this process's heap and stacks after a garbage collection.
func inUse() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}
