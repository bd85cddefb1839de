// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// Holders of a mutex and holders of permits at the same path would not exclude each other.
//
//zklock:promise P1.8
func TestALockAndASemaphoreAtOnePathAreRefused(t *testing.T) {
	locks := map[string]func(c *zklock.Client) lockFunc{
		"mutex":    func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock },
		"try":      func(c *zklock.Client) lockFunc { return c.Mutex(path).TryLock },
		"reader":   func(c *zklock.Client) lockFunc { return c.RWMutex(path).RLock },
		"election": func(c *zklock.Client) lockFunc { return campaign(c.Election(path, nil)) },
	}
	for name, lock := range locks {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
				permit, err := a.Semaphore(path, 2).Acquire(t.Context(), 1)
				require.NoError(t, err)
				_, err = lock(b)(t.Context())
				require.ErrorIs(t, err, zklock.ErrMismatch)
				require.ErrorContains(t, err, "semaphore")
				unlock(t, permit)
				noGhost(t, srv, path)
				hold, err := lock(b)(t.Context())
				require.NoError(t, err, "the semaphore is no longer in use")
				_, err = a.Semaphore(path, 2).Acquire(t.Context(), 1)
				require.ErrorIs(t, err, zklock.ErrMismatch)
				unlock(t, hold)
			})
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
				hold, err := lock(b)(t.Context())
				require.NoError(t, err)
				_, err = a.Semaphore(path, 2).Acquire(t.Context(), 1)
				require.ErrorIs(t, err, zklock.ErrMismatch)
				_, err = a.Semaphore(path, 2).TryAcquire(t.Context(), 1)
				require.ErrorIs(t, err, zklock.ErrMismatch)
				require.NoError(t, hold.Check())
				unlock(t, hold)
			})
		})
	}
}

// With a number of permits next to a lock, the lock's holder and holders of permits could hold at the same time.
//
//zklock:promise P1.8
func TestNoNumberOfPermitsIsStoredWhereALockIs(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		hold, err := a.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		s := b.Semaphore(path, 2)
		for range 2 {
			require.ErrorIs(t, s.Resize(t.Context(), 2), zklock.ErrMismatch)
			_, err = s.Acquire(t.Context(), 1)
			require.ErrorIs(t, err, zklock.ErrMismatch)
		}
		unlock(t, hold)
		require.NoError(t, s.Resize(t.Context(), 2))
		permit, err := s.Acquire(t.Context(), 1)
		require.NoError(t, err)
		unlock(t, permit)
		unlockSoon(t, a)
	})
}

// TestALockAndASemaphoreThatComeAtOnceAreNotBothHeld starts the second acquire during each request of the first.
//
//zklock:promise P1.8 A11
func TestALockAndASemaphoreThatComeAtOnceAreNotBothHeld(t *testing.T) {
	acquire := func(c *zklock.Client) lockFunc { return c.Semaphore(path, 2).Permits(1).Lock }
	lock := func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock }
	for name, two := range map[string]struct {
		first, second func(c *zklock.Client) lockFunc
	}{
		"a lock while permits are asked for": {acquire, lock},
		"permits while a lock is asked for":  {lock, acquire},
		"a lock after a resize": {func(c *zklock.Client) lockFunc {
			return func(ctx context.Context) (*zklock.Hold, error) {
				if err := c.Semaphore(path, 2).Resize(ctx, 2); err != nil {
					return nil, err
				}
				return acquire(c)(ctx)
			}
		}, lock},
	} {
		t.Run(name, func(t *testing.T) {
			for _, used := range []bool{false, true} {
				atEveryRequest(t, func(t *testing.T, srv *zktest.Server, n int) bool {
					a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
					if used {
						require.NoError(t, b.Semaphore(path, 2).Resize(t.Context(), 2))
					}
					struck := strikeOnce(srv, "a", n, func(*zktest.Request) zktest.Verdict { return zktest.Delay(2 * time.Second) })
					first := lockLater(t.Context(), two.first(a))
					time.Sleep(time.Second)
					second := lockLater(t.Context(), two.second(b))
					<-first.done
					<-second.done
					require.False(t, first.err == nil && second.err == nil, "both hold")
					holdOrMismatch(t, srv, first, second)
					return struck() && n < 30 // heartbeats never stop
				})
			}
		})
	}
}

// Locks can come and go while permits are asked for, and so the number of permits as well. A lock that comes when permits are
// created again, without a number, sees that they are permits.
//
//zklock:promise P1.8
func TestALockIsNotHeldTogetherWithPermitsWithoutANumber(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		var multis, stored atomic.Int32
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			switch {
			case r.Client != "a" || r.Op != zktest.OpMulti:
			case r.Ops[0] == zktest.OpSetData && stored.Add(1) == 2, r.Ops[0] == zktest.OpCreate && multis.Add(1) == 1:
				return zktest.Delay(2 * time.Second)
			}
			return zktest.Pass
		})
		permit := lockLater(t.Context(), a.Semaphore(path, 2).Permits(1).Lock)
		time.Sleep(time.Second)
		require.EqualValues(t, 1, multis.Load(), "it is its turn")
		unlockSoon(t, b)
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 2, stored.Load(), "its number was removed, and is stored again")
		lock := lockLater(t.Context(), b.Mutex(path).Lock)
		<-permit.done
		<-lock.done
		require.False(t, permit.err == nil && lock.err == nil, "both hold")
		require.ErrorIs(t, lock.err, zklock.ErrMismatch)
		require.NoError(t, permit.err)
		unlock(t, permit.hold)
	})
}

// Names are not sufficient evidence: other locks can
//
//zklock:promise P1.8
func TestLocksBelowALockMayHaveASemaphoresNames(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		for _, below := range []string{"/leases", "/locks"} {
			hold, err := c.Mutex(path + below).Lock(t.Context())
			require.NoError(t, err)
			defer unlock(t, hold)
		}
		unlockSoon(t, c)
	})
}

// An attempt that ends because others use the path differently has an event, whatever the difference is.
//
//zklock:promise P19.7
func TestEveryDisagreementHasAnEvent(t *testing.T) {
	delay := func(c *zklock.Client) lockFunc { return c.Mutex("/delayed").Lock }
	permits := func(c *zklock.Client) lockFunc { return c.Semaphore("/permits", 3).Permits(1).Lock }
	for name, ask := range map[string]func(c *zklock.Client) lockFunc{
		"another kind of lock":           func(c *zklock.Client) lockFunc { return c.Mutex("/permits").Lock },
		"another kind of lock, at once":  func(c *zklock.Client) lockFunc { return c.Mutex("/permits").TryLock },
		"a cohort":                       func(c *zklock.Client) lockFunc { return c.Cohort("/permits", nil).Lock },
		"another lock-delay":             delay,
		"another lock-delay, a campaign": func(c *zklock.Client) lockFunc { return campaign(c.Election("/delayed", nil)) },
		"another number of permits":      func(c *zklock.Client) lockFunc { return c.Semaphore("/permits", 4).Permits(1).Lock },
		"permits of a lock":              func(c *zklock.Client) lockFunc { return c.Semaphore("/delayed", 4).Permits(1).Lock },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				others := delayed(t, srv, "others")
				for _, lock := range []lockFunc{delay(others), permits(others)} {
					hold, err := lock(t.Context())
					require.NoError(t, err)
					defer unlock(t, hold)
				}
				var refused []observe.Event
				c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: onEvent{observe.Refused, func(e observe.Event) { refused = append(refused, e) }}})
				_, err := ask(c)(t.Context())
				require.ErrorIs(t, err, zklock.ErrMismatch)
				require.NotErrorIs(t, err, zklock.ErrInvalid)
				require.NotErrorIs(t, err, zklock.ErrLimit)
				require.Len(t, refused, 1)
				require.Equal(t, err, refused[0].Err)
				for _, invalid := range []lockFunc{c.Mutex("no path").Lock, c.Cohort("no path", nil).Lock, c.Semaphore("/permits", 3).Permits(4).Lock} {
					_, err = invalid(t.Context())
					require.ErrorIs(t, err, zklock.ErrInvalid)
				}
				require.Len(t, refused, 1, "nothing was attempted")
			})
		})
	}
}

// The event of a waiter counts all contenders before it, also those that it does not keep by name.
//
//zklock:promise P19.1
func TestEveryKindReportsHowManyAreAhead(t *testing.T) {
	const waiters = 9
	writer := func(c *zklock.Client) lockFunc { return c.RWMutex(path).Lock }
	permit := func(c *zklock.Client) lockFunc { return c.Semaphore(path, 1).Permits(1).Lock }
	for name, kind := range map[string]struct {
		holder, lock func(c *zklock.Client) lockFunc
		first        int // the number of contenders ahead of the first waiter
	}{
		"mutex":    {writer, func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock }, 1},
		"writer":   {writer, writer, 1},
		"reader":   {writer, func(c *zklock.Client) lockFunc { return c.RWMutex(path).RLock }, 1},
		"election": {writer, func(c *zklock.Client) lockFunc { return campaign(c.Election(path, nil)) }, 1},
		"cohort":   {writer, func(c *zklock.Client) lockFunc { return c.Cohort(path, nil).Lock }, 1},
		"permit":   {permit, permit, 0}, // holders stand elsewhere
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				holder, err := kind.holder(connect(t, srv, "holder", term))(t.Context())
				require.NoError(t, err)
				time.Sleep(time.Second) // the node with which it queued is deleted after the grant
				var mu sync.Mutex
				var told, want []int // told is guarded by mu
				var all []*attempt
				for i := range waiters {
					tell := onEvent{observe.Queued, func(e observe.Event) {
						mu.Lock()
						defer mu.Unlock()
						told = append(told, e.Ahead)
					}}
					c := connectWith(t, srv, &zklock.Options{Label: fmt.Sprint(i), SessionTimeout: term, Observer: tell})
					all, want = append(all, lockLater(t.Context(), kind.lock(c))), append(want, kind.first+i)
					time.Sleep(time.Second)
				}
				synctest.Wait()
				mu.Lock()
				require.Equal(t, want, told)
				mu.Unlock()
				unlock(t, holder)
				for _, a := range all {
					<-a.done
					require.NoError(t, a.err)
					unlock(t, a.hold)
				}
			})
		})
	}
}

// A number of permits that was meant for one directory must not be stored in another that was made at its place since, with a
// lock next to it.
//
//zklock:promise P1.8
func TestNoNumberOfPermitsIsStoredInADirectoryThatWasCreatedAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b, c := connect(t, srv, "a", term), connect(t, srv, "b", term), connect(t, srv, "c", term)
		var stored atomic.Int32
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "a" && (r.Op == zktest.OpSetData || r.Op == zktest.OpMulti) && stored.Add(1) == 1 {
				return zktest.Delay(2 * time.Second)
			}
			return zktest.Pass
		})
		permit := lockLater(t.Context(), a.Semaphore(path, 2).Permits(1).Lock)
		time.Sleep(time.Second)
		require.EqualValues(t, 1, stored.Load(), "its number is about to be stored")
		lock := lockLater(t.Context(), b.Mutex(path).Lock) // removes the directory
		time.Sleep(100 * time.Millisecond)
		third := lockLater(t.Context(), c.Semaphore(path, 2).Permits(1).Lock) // creates it again
		<-permit.done
		<-lock.done
		<-third.done
		require.False(t, lock.err == nil && (permit.err == nil || third.err == nil), "both hold")
		holdOrMismatch(t, srv, permit, lock, third)
	})
}

// holdOrMismatch checks that each attempt holds, or fails because another kind of lock is there. It ends the holds, and checks
// that no node remains.
func holdOrMismatch(t *testing.T, srv *zktest.Server, attempts ...*attempt) {
	t.Helper()
	for _, x := range attempts {
		if x.err != nil {
			require.ErrorIs(t, x.err, zklock.ErrMismatch)
			continue
		}
		require.NoError(t, x.hold.Check())
		unlock(t, x.hold)
	}
	noGhost(t, srv, path)
}
