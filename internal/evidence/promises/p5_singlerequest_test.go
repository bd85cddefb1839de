// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// TestAFaultAtAnySingleRequestBreaksNoPromise runs a client that waits, holds and releases, with every fault at every request.
//
//zklock:promise P1.1
func TestAFaultAtAnySingleRequestBreaksNoPromise(t *testing.T) {
	t.Parallel()
	for _, pair := range excluding {
		t.Run(pair.name, func(t *testing.T) { throughEveryFault(t, 3, pair.strikeAt) })
	}
}

func (x exclusion) strikeAt(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
	other := connect(t, srv, "other", term)
	held, err := x.first(other)(t.Context())
	require.NoError(t, err)
	victim := connect(t, srv, "victim", term)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen atomic.Int32
	struck := false
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if r.Client != "victim" || r.Op == zktest.OpPing || int(seen.Add(1)) != n+1 {
			return zktest.Pass
		}
		struck = true
		return verdict(srv, r, cancel)
	})
	a := lockLater(ctx, x.second(victim))
	time.Sleep(2 * time.Second)
	require.False(t, a.returned() && a.err == nil, "two holders")
	unlock(t, held)
	<-a.done
	if a.err != nil {
		require.ErrorIs(t, a.err, context.Canceled)
		require.Nil(t, a.hold)
	} else {
		time.Sleep(time.Second) // wait for the watch on the own node
		unlockThroughFault(t, a.hold)
	}
	noGhost(t, srv, path)
	unlockSoon(t, other)
	require.LessOrEqual(t, srv.WatchCount(), 0, "watches left: %v", srv.Watches())
	synctest.Wait() // for what the server has counted
	return struck
}

// TestAFaultAtAnySingleRequestBreaksNoTry is the same test for attempts that do not wait: they get the lock or an answer, and leave no
// node.
//
//zklock:promise P5.4
func TestAFaultAtAnySingleRequestBreaksNoTry(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]way{
		"mutex":  func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Mutex(path).TryLock },
		"writer": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.RWMutex(path).TryLock },
		"reader": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.RWMutex(path).TryRLock },
		"permits": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
			return func(ctx context.Context) (*zklock.Hold, error) { return c.Semaphore(path, 3).TryAcquire(ctx, 2) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			throughEveryFault(t, 2, func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
				victim := connect(t, srv, "victim", term)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				struck := strikeOnce(srv, "victim", n, func(r *zktest.Request) zktest.Verdict { return verdict(srv, r, cancel) })
				hold, err := try(victim)(ctx)
				if err != nil {
					require.True(t, errors.Is(err, zklock.ErrNotConnected) || errors.Is(err, context.Canceled), "%v", err)
				} else {
					unlockThroughFault(t, hold)
				}
				noGhost(t, srv, path)
				require.Zero(t, srv.WatchCount(), "watches left: %v", srv.Watches())
				return struck()
			})
		})
	}
}
