// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// These tests run a call with every fault of the harness at every request. They compare the call's result with the state of the
// server.

// TestAGuardedTransactionReportsItsOutcome checks P3 with faults at every request of a Multi: nil means done, ErrUncertain means
// done or not, and any other error means that nothing was done.
//
//zklock:promise P3.3
func TestAGuardedTransactionReportsItsOutcome(t *testing.T) {
	throughEveryFault(t, 0, func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
		require.NoError(t, srv.PutNode("/account", []byte("old")))
		victim := connect(t, srv, "victim", term)
		hold, err := victim.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(100 * time.Millisecond) // the requests after the grant are not the call's
		synctest.Wait()
		cancel := func() { victim.Close() } // Multi has no context: the hold ends it
		var multis atomic.Int32
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client != "victim" || r.Op != zktest.OpMulti || int(multis.Add(1)) != n+1 {
				return zktest.Pass
			}
			return verdict(srv, r, func() { go cancel() })
		})
		_, err = hold.Multi(&zk.SetDataRequest{Path: "/account", Data: []byte("new"), Version: -1})
		time.Sleep(3 * term) // delayed requests have been executed
		account, there := srv.Node("/account")
		require.True(t, there)
		switch {
		case err == nil:
			require.Equal(t, "new", string(account.Data))
		case !errors.Is(err, zklock.ErrUncertain):
			require.Equal(t, "old", string(account.Data), "%v", err)
		}
		other := connect(t, srv, "other", term)
		_ = hold.Unlock(t.Context())
		unlockSoon(t, other)
		noGhost(t, srv, path)
		return n == 0 && multis.Load() > 0
	})
}

// TestASlotReportsItsOutcome checks P10 with faults at every request of a Do: nil means that the work is done and will not be
// repeated, and an error that names a loss without uncertainty means that nothing was written.
//
//zklock:promise P10.2 A22
func TestASlotReportsItsOutcome(t *testing.T) {
	t.Parallel()
	throughEveryFault(t, 6, func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
		victim, other := connect(t, srv, "victim", term), connect(t, srv, "other", term)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		struck := strikeOnce(srv, "victim", n, func(r *zktest.Request) zktest.Verdict { return verdict(srv, r, cancel) })
		var first, second slotTally
		err := first.do(ctx, slots.Named(victim, path, "nightly"), time.Second)
		time.Sleep(3 * term)
		done, lookErr := isDone(t, slots.Named(other, path, "nightly"))
		require.NoError(t, lookErr)
		switch {
		case err == nil:
			require.EqualValues(t, 1, first.ran.Load())
			require.True(t, done)
		case errors.Is(err, zklock.ErrLost) && !errors.Is(err, zklock.ErrUncertain) && first.ran.Load() == 0:
			require.False(t, done, "%v", err)
		}
		require.NotErrorIs(t, err, slots.ErrDone, "nobody else did it")
		err = second.do(t.Context(), slots.Named(other, path, "nightly"), 0)
		if done {
			require.ErrorIs(t, err, slots.ErrDone)
			require.Zero(t, second.ran.Load())
		} else {
			require.NoError(t, err)
			require.EqualValues(t, 1, second.ran.Load())
		}
		noGhost(t, srv, path)
		return struck()
	})
}

// TestAResizeReportsItsOutcome checks that the stored number is the new one if Resize returns nil, and otherwise one of the two. As
// many callers hold as this number allows.
//
//zklock:promise P8.7
func TestAResizeReportsItsOutcome(t *testing.T) {
	throughEveryFault(t, 0, func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
		victim, other := connect(t, srv, "victim", term), connect(t, srv, "other", term)
		first, err := other.Semaphore(path, 2).Acquire(t.Context(), 2)
		require.NoError(t, err)
		waiting := lockLater(t.Context(), other.Semaphore(path, 2).Permits(1).Lock)
		require.False(t, waiting.returned())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		struck := strikeOnce(srv, "victim", n, func(r *zktest.Request) zktest.Verdict { return verdict(srv, r, cancel) })
		resized := victim.Semaphore(path, 3).Resize(ctx, 3)
		time.Sleep(3 * term)
		if resized != nil {
			require.ErrorIs(t, resized, context.Canceled)
		}
		queue, err := operate.Inspect(t.Context(), other, path)
		require.NoError(t, err)
		switch queue.Permits {
		case 3:
			require.True(t, waiting.returned(), "there is room since the number was stored")
			require.NoError(t, waiting.err)
		case 2:
			require.Error(t, resized)
			require.False(t, waiting.returned(), "three permits of two")
		default:
			require.Fail(t, "another number", "%d", queue.Permits)
		}
		unlock(t, first)
		<-waiting.done
		require.NoError(t, waiting.err)
		unlock(t, waiting.hold)
		noGhost(t, srv, path)
		return struck()
	})
}

// TestAConfirmReportsWhetherItIsHeld checks that a confirmed hold is on the server, and that a hold reported as lost has ended. Any other
// error must not change the hold.
//
//zklock:promise P8.7
func TestAConfirmReportsWhetherItIsHeld(t *testing.T) {
	throughEveryFault(t, 0, func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
		victim, other := connect(t, srv, "victim", term), connect(t, srv, "other", term)
		hold, err := victim.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		waiting := lockLater(t.Context(), other.Mutex(path).Lock)
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var held atomic.Bool
		context.AfterFunc(hold.Context(), func() { held.Store(waiting.returned()) })
		struck := strikeOnce(srv, "victim", n, func(r *zktest.Request) zktest.Verdict { return verdict(srv, r, cancel) })
		err = hold.Confirm(ctx)
		_, there := srv.Node(hold.Node())
		switch {
		case err == nil:
			require.True(t, there)
			require.NoError(t, hold.Check())
		case errors.Is(err, zklock.ErrLost):
			require.Error(t, hold.Check())
		case there: // otherwise the client may have noticed the end of the session
			require.NoError(t, hold.Check(), "%v", err)
		}
		assert.False(t, held.Load(), "another held before the first one knew")
		_ = hold.Unlock(t.Context())
		<-waiting.done
		require.NoError(t, waiting.err)
		unlock(t, waiting.hold)
		noGhost(t, srv, path)
		return struck() && n < 4 // heartbeats never stop
	})
}
