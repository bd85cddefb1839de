// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// lockers are the locks of package zklock at path, and a lock that each of them waits for.
var lockers = map[string]struct {
	lock  func(c *zklock.Client) zklock.Locker
	other way
}{
	"mutex":     {func(c *zklock.Client) zklock.Locker { return c.Mutex(path) }, asMutex},
	"reentrant": {func(c *zklock.Client) zklock.Locker { return c.Reentrant(path) }, asMutex},
	"writer":    {func(c *zklock.Client) zklock.Locker { return c.RWMutex(path) }, asReader},
	"reader":    {func(c *zklock.Client) zklock.Locker { return c.RWMutex(path).Reader() }, asWriter},
	"permits":   {func(c *zklock.Client) zklock.Locker { return c.Semaphore(path, 3).Permits(2) }, forTwo},
	"cohort":    {func(c *zklock.Client) zklock.Locker { return c.Cohort(path) }, asMutex},
}

// Others hold and wait. A lock that waits behind fewer contenders returns at once, and leaves no node.
//
//zklock:promise P4.5
func TestALockDoesNotWaitBehindMoreContendersThanItsBound(t *testing.T) {
	for name, l := range lockers {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				c, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
				unlock(t, grantedSoon(t, zklock.AtMost(l.lock(c), 0).Lock))

				held := grantedSoon(t, l.other(b))
				var waiting []*attempt // or holding, if they are readers
				for range 2 {
					waiting = append(waiting, lockLater(t.Context(), l.other(b)))
					time.Sleep(time.Second)
				}
				ahead, before := 3, len(queue(srv, path))
				if name == "permits" {
					ahead = 2 // the holder is not in the queue
				}
				start := time.Now()
				for _, bound := range []zklock.Locker{
					zklock.AtMost(l.lock(c), ahead-1), zklock.AtMost(zklock.AtMost(l.lock(c), ahead-1), 9), zklock.AtMost(zklock.AtMost(l.lock(c), 9), 0),
				} {
					err := zklock.Do(t.Context(), bound, func(context.Context) error { t.Error("called"); return nil })
					require.ErrorIs(t, err, zklock.ErrLocked)
					require.ErrorIs(t, err, zklock.ErrNotAcquired)
					_, err = c.LockAll(t.Context(), c.Mutex("/a"), bound)
					require.ErrorIs(t, err, zklock.ErrLocked)
				}
				require.Less(t, time.Since(start), time.Second)
				time.Sleep(time.Second)
				require.Len(t, queue(srv, path), before)

				admitted := lockLater(t.Context(), zklock.AtMost(l.lock(c), ahead).Lock)
				time.Sleep(time.Minute)
				require.False(t, admitted.returned())
				unlock(t, held)
				for _, a := range waiting {
					<-a.done
					unlock(t, a.hold)
				}
				<-admitted.done
				require.NoError(t, admitted.err)
				unlock(t, admitted.hold)
				noGhost(t, srv, path)
			})
		})
	}
}

// Readers ahead do not matter to a reader that can be granted.
//
//zklock:promise P4.5
func TestALockThatNeedNotWaitIsGrantedWhateverItsBound(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		readers := []*zklock.Hold{grantedSoon(t, asReader(b)), grantedSoon(t, asReader(b))}
		unlock(t, grantedSoon(t, zklock.AtMost(c.RWMutex(path).Reader(), 0).Lock))
		for _, h := range readers {
			unlock(t, h)
		}
	})
}

// An acquire returns before its node in the queue is deleted. Whoever has that node does not wait for permits, unless its permits do not fit.
//
//zklock:promise P4.5
func TestTheBoundOfASemaphoreDoesNotCountACallerThatHasItsPermits(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, c := connect(t, srv, "a", term), connect(t, srv, "c", term)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "a" && strings.HasPrefix(append(r.Paths, r.Path)[0], path+"/locks/") && (r.Op == zktest.OpDelete || slices.Contains(r.Ops, zktest.OpDelete)) {
				return zktest.Delay(time.Second)
			}
			return zktest.Pass
		})
		one := grantedSoon(t, permitsOf(a, 1))
		require.Len(t, srv.Children(path+"/locks"), 1)
		two := grantedSoon(t, zklock.AtMost(c.Semaphore(path, 3).Permits(1), 0).Lock)

		all := lockLater(t.Context(), permitsOf(a, 3))
		time.Sleep(time.Minute)
		require.Len(t, srv.Children(path+"/locks"), 1)
		require.Len(t, srv.Children(path+"/leases"), 5, "its permits do not fit")
		_, err := zklock.AtMost(c.Semaphore(path, 3).Permits(1), 0).Lock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		require.ErrorContains(t, err, "1 contenders are ahead, more than 0")
		unlock(t, one)
		unlock(t, two)
		<-all.done
		require.NoError(t, all.err)
		unlock(t, all.hold)
	})
}

// The goroutines of a cohort count, those that hold and those that wait, and the contenders of other processes.
//
//zklock:promise P4.5
func TestTheBoundOfACohortCountsGoroutines(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		held := grantedSoon(t, asCohort(c))
		second := lockLater(t.Context(), asCohort(c))
		time.Sleep(time.Second)
		_, err := zklock.AtMost(c.Cohort(path), 1).Lock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		third := lockLater(t.Context(), zklock.AtMost(c.Cohort(path), 2).Lock)
		time.Sleep(time.Second)
		require.False(t, third.returned())
		unlock(t, held)
		<-second.done
		unlock(t, second.hold)
		<-third.done
		require.NoError(t, third.err)
		unlock(t, third.hold)
		time.Sleep(time.Second)

		other := grantedSoon(t, asMutex(b))
		behind := lockLater(t.Context(), asCohort(c))
		time.Sleep(time.Second)
		_, err = zklock.AtMost(c.Cohort(path), 1).Lock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked, "a process and a goroutine are ahead")
		last := lockLater(t.Context(), zklock.AtMost(c.Cohort(path), 2).Lock)
		time.Sleep(time.Second)
		require.False(t, last.returned())
		unlock(t, other)
		<-behind.done
		unlock(t, behind.hold)
		<-last.done
		require.NoError(t, last.err)
		unlock(t, last.hold)
	})
}

// AtMost does not call the Lock of another type, and says so instead of leaving it out.
//
//zklock:promise P4.5 P8.1
func TestOnlyLocksOfThePackageHaveABound(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		for _, l := range []zklock.Locker{zklock.AtMost(plain{c.Mutex(path)}, 1), zklock.AtMost(nil, 1), zklock.AtMost(c.Mutex(path), -1), zklock.AtMost(zklock.AtMost(c.Mutex(path), -1), 1)} {
			_, err := l.Lock(t.Context())
			require.ErrorIs(t, err, zklock.ErrInvalid)
			_, err = c.LockAll(t.Context(), c.Mutex("/a"), l)
			require.ErrorIs(t, err, zklock.ErrInvalid)
		}
		require.Empty(t, srv.Children("/"+"a"))
	})
}
