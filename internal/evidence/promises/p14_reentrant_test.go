// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/testclock"
	"github.com/zklock-go/zklock/zktest"
)

//zklock:promise P14.1
func TestTheOwnerEntersAgainWithoutARequest(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		outer, err := client.Reentrant(path).Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, levelsOf(outer))
		time.Sleep(time.Second)
		resetCounts(srv)
		inner, err := client.Reentrant(path).Lock(outer.Context()) // another value, the same lock
		require.NoError(t, err)
		tried, err := client.Reentrant(path).TryLock(inner.Context())
		require.NoError(t, err)
		require.Zero(t, srv.RequestCount())
		require.Equal(t, 3, levelsOf(outer))
		require.Equal(t, 3, levelsOf(tried))
		require.Equal(t, outer.Token(), inner.Token())
		require.Equal(t, outer.Node(), tried.Node())
		require.Len(t, queue(srv, path), 1)
		for _, h := range []*zklock.Hold{tried, inner, outer} {
			require.Len(t, queue(srv, path), 1)
			unlock(t, h)
			require.ErrorIs(t, h.Unlock(t.Context()), zklock.ErrNotHeld)
		}
		require.Empty(t, queue(srv, path))
	})
}

//zklock:promise P14.2
func TestTheLockIsReleasedWithTheLastUnlockInAnyOrder(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				lock := connect(t, srv, "a", term).Reentrant(path)
				next := connect(t, srv, "b", term).Reentrant(path)
				var holds []*zklock.Hold
				ctx := t.Context()
				for range 3 {
					h, err := lock.Lock(ctx)
					require.NoError(t, err)
					holds, ctx = append(holds, h), h.Context()
				}
				waiting := lockLater(t.Context(), next.Lock)
				for n, i := range order {
					require.False(t, waiting.returned())
					require.NoError(t, holds[i].Check())
					unlock(t, holds[i])
					require.ErrorIs(t, context.Cause(holds[i].Context()), zklock.ErrReleased)
					require.ErrorIs(t, holds[i].Check(), zklock.ErrReleased)
					require.Equal(t, 2-n, levelsOf(holds[i]))
					for _, later := range order[n+1:] {
						require.NoError(t, holds[later].Context().Err(), "level %d ended with level %d", later, i)
						require.NoError(t, holds[later].Confirm(t.Context()))
					}
				}
				<-waiting.done
				require.NoError(t, waiting.err)
				unlock(t, waiting.hold)
				noGhost(t, srv, path)
			})
		})
	}
}

//zklock:promise P14.3
func TestACallerWithAnotherContextWaits(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		lock := client.Reentrant(path)
		hold, err := lock.Lock(t.Context())
		require.NoError(t, err)
		other := lockLater(t.Context(), lock.Lock)
		require.False(t, other.returned())
		mutex := lockLater(t.Context(), client.Mutex(path).Lock)
		require.False(t, mutex.returned())
		elsewhere := lockLater(hold.Context(), connect(t, srv, "b", term).Reentrant(path).Lock)
		require.False(t, elsewhere.returned())
		_, err = lock.TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		unlock(t, hold)
		for _, a := range []*attempt{other, mutex, elsewhere} {
			<-a.done
			if a == elsewhere {
				require.ErrorIs(t, a.err, zklock.ErrReleased, "its context was the hold's")
				continue
			}
			require.NoError(t, a.err)
			unlock(t, a.hold)
		}
		noGhost(t, srv, path)
	})
}

//zklock:promise P14.4
func TestEnteringALostHoldFails(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		lock := connect(t, srv, "a", term).Reentrant(path)
		outer, err := lock.Lock(t.Context())
		require.NoError(t, err)
		inner, err := lock.Lock(outer.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.NoError(t, srv.DeleteNode(outer.Node()))
		synctest.Wait()
		for _, ctx := range []context.Context{outer.Context(), inner.Context(), context.WithoutCancel(inner.Context())} {
			resetCounts(srv)
			_, err = lock.Lock(ctx)
			require.ErrorIs(t, err, zklock.ErrLost)
			_, err = lock.TryLock(ctx)
			require.ErrorIs(t, err, zklock.ErrLost)
			require.Zero(t, srv.RequestCount())
		}
		for _, h := range []*zklock.Hold{outer, inner} {
			require.ErrorIs(t, context.Cause(h.Context()), zklock.ErrLost)
			require.ErrorIs(t, h.Unlock(t.Context()), zklock.ErrLost)
		}
	})
}

// The process was suspended: no timer has reported the loss yet when it locks again.
//
//zklock:promise P14.4 A2
func TestEnteringChecksTheLease(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var asleep atomic.Int64
		ctx := testclock.With(t.Context(), func() time.Time { return time.Now().Add(time.Duration(asleep.Load())) })
		client, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
		require.NoError(t, err)
		defer client.Close()
		hold, err := client.Reentrant(path).Lock(t.Context())
		require.NoError(t, err)
		asleep.Store(int64(time.Hour))
		_, err = client.Reentrant(path).Lock(hold.Context())
		require.ErrorIs(t, err, zklock.ErrLost)
	})
}

//zklock:promise P14.4
func TestAReleasedLockIsAcquiredAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		lock := connect(t, srv, "a", term).Reentrant(path)
		first, err := lock.Lock(t.Context())
		require.NoError(t, err)
		unlock(t, first)
		_, err = lock.Lock(first.Context())
		require.ErrorIs(t, err, zklock.ErrReleased)
		second, err := lock.Lock(context.WithoutCancel(first.Context()))
		require.NoError(t, err)
		require.Greater(t, second.Token(), first.Token())
		unlock(t, second)
		noGhost(t, srv, path)
	})
}

//zklock:promise P14.6
func TestAMutexAndAReentrantOfOnePathDoNotNest(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		mutex, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		_, err = client.Reentrant(path).Lock(mutex.Context())
		require.ErrorIs(t, err, zklock.ErrDeadlock)
		unlock(t, mutex)
		reentrant, err := client.Reentrant(path).Lock(t.Context())
		require.NoError(t, err)
		_, err = client.Mutex(path).Lock(reentrant.Context())
		require.ErrorIs(t, err, zklock.ErrDeadlock)
		unlock(t, reentrant)
	})
}

type keyOf string

// The owner is found even if other locks are locked in between, and each context has its own caller's values.
//
//zklock:promise P14.5
func TestTheOwnerIsFoundThroughOtherLocks(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		outer, err := client.Reentrant(path).Lock(context.WithValue(t.Context(), keyOf("outer"), 1))
		require.NoError(t, err)
		other, err := client.Mutex("/locks/other").Lock(outer.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.WithValue(other.Context(), keyOf("inner"), 2), time.Second)
		defer cancel()
		inner, err := client.Reentrant(path).Lock(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, inner.Context().Value(keyOf("outer")))
		require.Equal(t, 2, inner.Context().Value(keyOf("inner")))
		require.Same(t, inner, zklock.HoldOf(inner.Context()))
		_, hasDeadline := inner.Context().Deadline()
		require.False(t, hasDeadline)
		_, err = client.Mutex("/locks/other").Lock(inner.Context())
		require.ErrorIs(t, err, zklock.ErrDeadlock)

		unlock(t, other)
		require.NoError(t, inner.Context().Err(), "ended with the lock in between")
		child, cancelChild := context.WithCancel(inner.Context())
		defer cancelChild()
		time.Sleep(2 * time.Second)
		require.NoError(t, inner.Context().Err(), "ended with the acquiring context")
		require.NoError(t, srv.DeleteNode(inner.Node()))
		synctest.Wait()
		require.ErrorIs(t, context.Cause(child), zklock.ErrLost)
		require.ErrorIs(t, child.Err(), context.Canceled)
		require.ErrorIs(t, context.Cause(outer.Context()), zklock.ErrLost)
	})
}

//zklock:promise P14.1
func TestDoNests(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		lock := connect(t, srv, "a", term).Reentrant(path)
		boom := errors.New("boom")
		depth := 0
		var descend func(ctx context.Context) error
		descend = func(ctx context.Context) error {
			depth++
			require.Equal(t, depth, levelsOf(zklock.HoldOf(ctx)))
			if depth == 5 {
				return boom
			}
			return lock.Do(ctx, descend)
		}
		require.ErrorIs(t, lock.Do(t.Context(), descend), boom)
		require.Equal(t, 5, depth)
		require.Empty(t, queue(srv, path))
	})
}

// Goroutines of one owner lock and unlock while the outermost hold is unlocked: a goroutine that gets a hold has the node until
// its own Unlock, and one that comes too late gets an error.
//
//zklock:promise P14.2
func TestEnteringRacesWithTheLastUnlock(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		lock := client.Reentrant(path)
		entered, late := 0, 0
		var mu sync.Mutex
		for range 200 {
			hold, err := lock.Lock(t.Context())
			require.NoError(t, err)
			node := hold.Node()
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					h, err := lock.Lock(hold.Context())
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						assert.ErrorIs(t, err, zklock.ErrReleased)
						late++
						return
					}
					entered++
					_, there := srv.Node(node)
					assert.True(t, there, "entered a lock that was given up")
					assert.NoError(t, h.Check())
					assert.NoError(t, h.Unlock(t.Context()))
				})
			}
			wg.Go(func() { assert.NoError(t, hold.Unlock(t.Context())) })
			wg.Wait()
			require.Zero(t, levelsOf(hold))
			_, there := srv.Node(node)
			require.False(t, there)
		}
		t.Logf("%d entered, %d came late", entered, late)
		require.Empty(t, queue(srv, path))
	})
}

//zklock:promise P14.7 A1
func TestAReentrantEndsOnTimeLikeAMutex(t *testing.T) {
	for _, c := range lossCases {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				holder := connect(t, srv, "holder", term, 2).Reentrant(path)
				contender := connect(t, srv, "contender", term, 0, 1).Reentrant(path)
				outer, err := holder.Lock(t.Context())
				require.NoError(t, err)
				inner, err := holder.Lock(outer.Context())
				require.NoError(t, err)
				unlock(t, outer)
				end := endOf(inner)
				next := lockLater(t.Context(), contender.Lock)
				time.Sleep(time.Second)
				c.strike(srv, inner)
				<-next.done
				require.NoError(t, next.err)
				<-end.done
				require.ErrorIs(t, end.cause, zklock.ErrLost)
				require.False(t, end.at.After(next.at), "told at %v, next holder at %v", end.at, next.at)
				require.Greater(t, next.hold.Token(), inner.Token())
				unlock(t, next.hold)
			})
		})
	}
}
