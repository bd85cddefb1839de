// SPDX-License-Identifier: Apache-2.0

package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

const (
	path = "/locks/orders/42"
	term = 10 * time.Second
)

// virtual runs a test in virtual time against a server in this process. The tests of every promise,
// with faults and several servers, are in internal/evidence/promises.
func virtual(t *testing.T, fn func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { fn(t, zktest.Start(t, zktest.Options{})) })
}

// connect returns a client that is closed at the end of the test.
func connect(t *testing.T, srv *zktest.Server) *zklock.Client {
	t.Helper()
	c, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.Dial, SessionTimeout: term})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

//zklock:promise P16.1 P16.2 P16.3
func TestUnlockIsExact(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, path, hold.Path())
		_, there := srv.Node(hold.Node())
		require.True(t, there)
		require.NoError(t, hold.Unlock(t.Context()))
		require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrReleased)
		require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrNotHeld)
		require.ErrorIs(t, hold.Check(), zklock.ErrReleased)

		hold, err = client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpDelete {
				return zktest.Delay(time.Second)
			}
			return zktest.Pass
		})
		require.ErrorIs(t, hold.Unlock(canceled), context.Canceled)
		require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrNotHeld)
		time.Sleep(2 * time.Second) // longer than the delay
		require.Empty(t, srv.Children(path))
	})
}

//zklock:promise P5.4
func TestTryLockReturnsAtOnceAndLeavesNothing(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv), connect(t, srv)
		hold, err := a.Mutex(path).TryLock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		synctest.Wait() // for the first heartbeats
		srv.ResetCounts()
		start := time.Now()
		_, err = b.Mutex(path).TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		require.Equal(t, start, time.Now())
		require.Zero(t, srv.Requests()[zktest.OpCreate], "it writes only where it sees nobody")
		require.NoError(t, hold.Unlock(t.Context()))
		hold, err = b.Mutex(path).TryLock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Unlock(t.Context()))

		var wins, losses atomic.Int32
		var wg sync.WaitGroup
		for range 20 { // all list the queue, find it empty and race
			wg.Go(func() {
				hold, err := a.Mutex(path).TryLock(t.Context())
				switch {
				case err == nil:
					wins.Add(1)
					time.Sleep(time.Second)
					assert.NoError(t, hold.Unlock(t.Context()))
				case errors.Is(err, zklock.ErrLocked):
					losses.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, wins.Load())
		require.EqualValues(t, 19, losses.Load())
		require.Empty(t, srv.Children(path))
	})
}

//zklock:promise P7.11
func TestLockingInsideOnesOwnHoldIsADeadlock(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv)
		err := client.Mutex(path).Do(t.Context(), func(ctx context.Context) error {
			return client.Mutex("/locks/other").Do(ctx, func(ctx context.Context) error {
				_, err := client.Mutex(path).Lock(ctx)
				require.ErrorIs(t, err, zklock.ErrDeadlock)
				_, err = client.Mutex(path).TryLock(ctx)
				require.ErrorIs(t, err, zklock.ErrDeadlock)
				return nil
			})
		})
		require.NoError(t, err)
		time.Sleep(2 * time.Second) // longer than the delay
		require.Empty(t, srv.Children(path))
	})
}

//zklock:promise P15.1
func TestDoReleasesInEveryCase(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		m := connect(t, srv).Mutex(path)
		failed := errors.New("failed")
		require.ErrorIs(t, m.Do(t.Context(), func(context.Context) error { return failed }), failed)
		require.Empty(t, srv.Children(path))
		require.PanicsWithValue(t, "boom", func() { m.Do(t.Context(), func(context.Context) error { panic("boom") }) })
		require.Empty(t, srv.Children(path))
		ctx, cancel := context.WithCancel(t.Context())
		err := m.Do(ctx, func(inside context.Context) error {
			cancel()
			<-inside.Done()
			return inside.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, srv.Children(path))
		err = m.Do(t.Context(), func(inside context.Context) error {
			time.Sleep(time.Second)
			srv.DeleteNode(path + "/" + srv.Children(path)[0])
			<-inside.Done()
			return context.Cause(inside)
		})
		require.ErrorIs(t, err, zklock.ErrLost)
	})
}

//zklock:promise P16.5
func TestCloseReleasesEverythingAndLeavesNoGoroutine(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		client, other := connect(t, srv), connect(t, srv)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		var waited, granted error
		var next *zklock.Hold
		var both sync.WaitGroup
		both.Go(func() { _, waited = client.Mutex(path).Lock(t.Context()) })
		time.Sleep(time.Second)
		both.Go(func() { next, granted = other.Mutex(path).Lock(t.Context()) })
		time.Sleep(time.Second)
		start := time.Now()
		require.NoError(t, client.Close())
		require.Less(t, time.Since(start), 100*time.Millisecond)
		require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrClosed)
		both.Wait()
		require.ErrorIs(t, waited, zklock.ErrClosed)
		require.NoError(t, granted)
		require.NoError(t, next.Unlock(t.Context()))
		_, err = client.Mutex(path).Lock(t.Context())
		require.ErrorIs(t, err, zklock.ErrClosed)
		require.NoError(t, client.Close())
		require.Len(t, srv.Sessions(), 1)
	}) // a goroutine that is left fails the test
}

// Each lock has a holder and a waiter of the client that is closed: the end of a hold does not grant the lock to that client again.
//
//zklock:promise P16.5
func TestCloseEndsEveryWaitBeforeItReleasesALock(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		for range 10 { // goroutines change between the steps of Close only now and then
			client := connect(t, srv)
			const locks = 30
			waits := make(chan error, locks)
			for i := range locks {
				lock := client.Mutex(fmt.Sprint(path, "/", i))
				_, err := lock.Lock(t.Context())
				require.NoError(t, err)
				go func() { // ends with the client
					_, err := lock.Lock(t.Context())
					waits <- err
				}()
			}
			time.Sleep(time.Second)
			require.NoError(t, client.Close())
			for range locks {
				require.ErrorIs(t, <-waits, zklock.ErrClosed)
			}
		}
	})
}

//zklock:promise P8.4
func TestBadInputIsRefusedBeforeAnyRequest(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv)
		synctest.Wait() // for its first heartbeat
		before := srv.RequestCount()
		for _, bad := range []string{"", "/", "x", "/x/", "//", "/x//y", "/./x", "/x/..", "/x/../y", "/a\x00b", "/a\tb", "/\xff", "/🔒"} {
			_, err := client.Mutex(bad).Lock(t.Context())
			require.ErrorIs(t, err, zklock.ErrInvalid, "%q", bad)
			_, err = client.Mutex(bad).TryLock(t.Context())
			require.ErrorIs(t, err, zklock.ErrInvalid, "%q", bad)
		}
		require.Equal(t, before, srv.RequestCount())
		for _, bad := range []zklock.Options{
			{SessionTimeout: -1}, {SessionTimeout: time.Microsecond}, {SessionTimeout: 1000 * 24 * time.Hour}, {TickTime: -1},
			{ACL: []zk.ACL{}}, {Root: "x"}, {Root: "/x/"}, {Label: string(make([]byte, 2000))},
		} {
			_, err := zklock.Connect(t.Context(), srv.Addrs(), &bad)
			require.ErrorIs(t, err, zklock.ErrInvalid, "%+v", bad)
		}
		_, err := zklock.Connect(t.Context(), nil, nil)
		require.ErrorIs(t, err, zklock.ErrInvalid)
		_, err = zklock.Attach(t.Context(), nil, nil, nil)
		require.ErrorIs(t, err, zklock.ErrInvalid)
	})
}

func TestEveryRecipeReturnsItsPath(t *testing.T) {
	c := new(zklock.Client)
	for _, lock := range []interface{ Path() string }{
		c.Mutex(path), c.Reentrant(path), c.RWMutex(path), c.RWMutex(path).Reader(), c.Cohort(path, nil), c.Semaphore(path, 3), c.Semaphore(path, 3).Permits(2), c.Election(path, nil),
	} {
		require.Equal(t, path, lock.Path(), "%T", lock)
	}
}
