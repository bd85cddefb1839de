package zklock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// instant is how long a worker of grants holds, because virtual time would stand still for one that
// asks no server.
const instant = 10 * time.Microsecond

// grants counts how often workers are granted one lock in a time, each worker locking and
// unlocking without a pause. Each call of open connects a worker.
func grants(t *testing.T, srv *zktest.Server, workers int, window time.Duration, open func(i int) (lock, unlock func() error)) int {
	t.Helper()
	var mu sync.Mutex
	total, counting := 0, false
	var all sync.WaitGroup
	stop := make(chan struct{})
	errs := make([]error, workers)
	for i := range workers {
		lock, unlock := open(i)
		all.Go(func() {
			for errs[i] == nil && !isClosed(stop) {
				if errs[i] = lock(); errs[i] != nil {
					return
				}
				mu.Lock()
				if counting {
					total++
				}
				mu.Unlock()
				time.Sleep(instant)
				errs[i] = unlock()
			}
		})
	}
	time.Sleep(time.Second)
	mu.Lock()
	counting = true
	mu.Unlock()
	time.Sleep(window)
	mu.Lock()
	counting = false
	mu.Unlock()
	close(stop)
	all.Wait()
	require.Equal(t, make([]error, workers), errs)
	return total
}

// locking returns what a worker of grants does with a lock of this library.
func locking(t *testing.T, of lockFunc) (lock, unlock func() error) {
	release := func() error { return nil }
	return func() error {
		hold, err := of(t.Context())
		if err == nil {
			release = func() error { return hold.Unlock(context.WithoutCancel(t.Context())) }
		}
		return err
	}, func() error { return release() }
}

// With a millisecond each way, and nothing else that takes time, a hand-off takes one round trip; that of the client
// library's own lock takes two. So it is where each worker has a Cohort of its own, as processes have. Where every second
// worker reads, some hand-offs take two, because readers do not look ahead. How many, the order decides in which they ask.
func TestContendedThroughputBesideThePlainLock(t *testing.T) {
	const window = 2 * time.Second
	alternating := func(i int, write, read lockFunc) lockFunc {
		if i%2 == 0 {
			return write
		}
		return read
	}
	kinds := map[string]struct {
		of    func(c *zklock.Client, i int) lockFunc
		times float64 // as often as the plain lock, at least
	}{
		"mutex":    {func(c *zklock.Client, _ int) lockFunc { return c.Mutex(path).Lock }, 1.9},
		"cohort":   {func(c *zklock.Client, _ int) lockFunc { return c.Cohort(path, nil).Lock }, 1.9},
		"unfenced": {func(c *zklock.Client, _ int) lockFunc { return unfenced(c).Lock }, 1.9},
		"readers and writers": {func(c *zklock.Client, i int) lockFunc {
			return alternating(i, c.RWMutex(path).Lock, c.RWMutex(path).RLock)
		}, 1},
		"readers and writers of cohorts": {func(c *zklock.Client, i int) lockFunc {
			return alternating(i, c.Cohort(path, nil).Lock, c.Cohort(path, nil).RLock)
		}, 1},
	}
	for _, workers := range []int{8, 2, 32}[:3/oneIn(3)] {
		options := zktest.Options{Latency: fixed(time.Millisecond)}
		var plain int
		virtual(t, options, func(t *testing.T, srv *zktest.Server) {
			plain = grants(t, srv, workers, window, func(int) (lock, unlock func() error) {
				l := zk.NewLock(rawClient(t, srv, term), path, zk.WorldACL(zk.PermAll))
				return l.Lock, l.Unlock
			})
		})
		for name, kind := range kinds {
			var ours int
			virtual(t, options, func(t *testing.T, srv *zktest.Server) {
				ours = grants(t, srv, workers, window, func(i int) (lock, unlock func() error) {
					return locking(t, kind.of(connect(t, srv, fmt.Sprint("c", i), term), i))
				})
			})
			t.Logf("%s, %d workers: %d grants in %v, plain %d: %.2f", name, workers, ours, window, plain, float64(ours)/float64(plain))
			if workers > 2 {
				require.GreaterOrEqual(t, float64(ours), kind.times*float64(plain), "%s, %d workers", name, workers)
			}
		}
	}
}
