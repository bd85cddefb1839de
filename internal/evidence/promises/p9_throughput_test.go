// SPDX-License-Identifier: Apache-2.0

package promises_test

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

// instant is how long a worker holds, because virtual time would not advance for a worker that sends no request.
const instant = 10 * time.Microsecond

// grants returns the number of grants of one lock within a time, with workers that lock and unlock without a pause. Each call of
// open connects a worker.
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

// locking returns the functions lock and unlock for a worker.
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

// With a one-way delay of a millisecond and no other delays, a hand-off takes one round trip; with the client library's own lock
// it takes two. The same is true if each worker has its own Cohort, like processes. If every second worker reads, some hand-offs
// take two round trips, because readers do not look ahead. Their number depends on the order of the requests.
//
//zklock:promise P9.3
func TestContendedThroughputNextToThePlainLock(t *testing.T) {
	const window = 2 * time.Second
	alternating := func(i int, write, read lockFunc) lockFunc {
		if i%2 == 0 {
			return write
		}
		return read
	}
	kinds := map[string]struct {
		of    func(c *zklock.Client, i int) lockFunc
		times float64 // at least as often as the plain lock
	}{
		"mutex":  {func(c *zklock.Client, _ int) lockFunc { return c.Mutex(path).Lock }, 1.9},
		"cohort": {func(c *zklock.Client, _ int) lockFunc { return c.Cohort(path, nil).Lock }, 1.9},
		"readers and writers": {func(c *zklock.Client, i int) lockFunc {
			return alternating(i, c.RWMutex(path).Lock, c.RWMutex(path).RLock)
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
