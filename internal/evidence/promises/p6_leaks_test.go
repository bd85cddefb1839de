// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// P6: goroutines and watches return to their baseline.

//zklock:promise P6.1
func TestTenThousandCyclesLeaveNothingBehind(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		clients := []*zklock.Client{connect(t, srv, "a", term), connect(t, srv, "b", term)}
		cycle := func(workers, n int) {
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for range n {
						hold, err := clients[w%2].Mutex(path).Lock(t.Context())
						if !assert.NoError(t, err) {
							return
						}
						assert.NoError(t, hold.Unlock(t.Context()))
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		cycle(4, 10)
		before := goroutines(t)
		cycle(4, 2500/oneIn(5))
		require.Zero(t, srv.WatchCount())
		require.LessOrEqual(t, goroutines(t), before)
		require.Empty(t, queue(srv, path))
	})
}

//zklock:promise P6.2
func TestCancelledAttemptsShareOneWatch(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "holder", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Equal(t, 1, srv.WatchCount(), "the holder's own")
		client := connect(t, srv, "a", term)
		for range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			_, err := client.Mutex(path).Lock(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		time.Sleep(time.Second)
		require.Equal(t, 2, srv.WatchCount(), "%v", srv.Watches())
		unlock(t, hold)
		time.Sleep(time.Second)
		require.Zero(t, srv.WatchCount())
	})
}
