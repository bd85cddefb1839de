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

var crowdOf = flag.Int("crowd", 0, "how many wait in one queue on three servers")

// TestACrowdDrainsInOrder has as many wait in one queue, through eight clients, and then hold one after the other. It tells how
// long they took to join and what a hand-off takes, beside those in a queue of ten in the same run.
func TestACrowdDrainsInOrder(t *testing.T) {
	if *crowdOf == 0 {
		t.Skip("only with -crowd: make crowd")
	}
	part(t)
	z := start(t, zkcontainer.Options{Servers: 3, TickTime: 2 * time.Second, Config: []string{"snapCount=1000000"}})
	for range 6 {
		tellCrowd(t, z, 10, *crowdOf/100)
		tellCrowd(t, z, *crowdOf, 1)
	}
}

// tellCrowd lets a crowd of n drain so many times, and tells how.
func tellCrowd(t *testing.T, z *zkcontainer.Ensemble, n, times int) {
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

// waited is what was seen of those that waited in one queue.
type waited struct {
	waiters    int
	joined     time.Duration // until all stood in the queue
	bytes      int64         // of heap and stacks
	goroutines int
	handOffs   []time.Duration // from one grant to the next
}

func (c *waited) add(other waited) {
	c.waiters += other.waiters
	c.joined += other.joined
	c.bytes += other.bytes
	c.goroutines += other.goroutines
	c.handOffs = append(c.handOffs, other.handOffs...)
}

// drain has n wait behind a holder, who lets go when all stand in the queue.
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
	var nodes []string // only a holder writes here
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
	await(t, queued.all, "all stand in the queue")
	seen.joined = time.Since(began)
	seen.bytes, seen.goroutines = inUse()-bytes, runtime.NumGoroutine()-goroutines
	require.NoError(t, hold.Check(), "joining costs no hold")
	require.NoError(t, hold.Unlock(ctx))
	all.Wait()
	require.Len(t, nodes, n, "all have held")
	require.True(t, slices.IsSorted(nodes), "in the order of their nodes")
	for i := 1; i < n; i++ {
		seen.handOffs = append(seen.handOffs, grants[i].Sub(grants[i-1]))
	}
	return seen
}

// queued tells when so many have found their place in a queue.
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

// inUse is the memory that this process needs, with its goroutines' stacks.
func inUse() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}
