// SPDX-License-Identifier: Apache-2.0

package zklock_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/family"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// locksOf returns a lock of each recipe, each with a path of its own.
func locksOf(c *zklock.Client) []zklock.Locker {
	return []zklock.Locker{
		c.Mutex("/own/mutex"), c.Reentrant("/own/reentrant"), c.RWMutex("/own/rw"), c.RWMutex("/own/readers").Reader(),
		c.Semaphore("/own/semaphore", 3).Permits(2), c.Cohort("/own/cohort"),
	}
}

// connectAs connects a client with a label, for faults of its link alone.
func connectAs(t *testing.T, srv *zktest.Server, label string) *zklock.Client {
	t.Helper()
	c, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom(label), SessionTimeout: term, Label: label})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func take(t *testing.T, l zklock.Locker) *zklock.Hold {
	t.Helper()
	hold, err := l.Lock(t.Context())
	require.NoError(t, err, l.Path())
	return hold
}

// takeAll takes a lock of each recipe, and some of them twice: the second hold begins when the first of its session is watched, and some
// of the earlier ones are released.
func takeAll(t *testing.T, c *zklock.Client) (holds []*zklock.Hold) {
	t.Helper()
	for _, l := range locksOf(c) {
		before := take(t, c.Mutex("/own/before"))
		holds = append(holds, take(t, l))
		require.NoError(t, before.Unlock(t.Context()))
		time.Sleep(term)
	}
	several, err := c.LockAll(t.Context(), c.Mutex("/own/also"), c.Reentrant("/own/too"))
	require.NoError(t, err)
	inner, err := c.Reentrant("/own/reentrant").Lock(holds[1].Context())
	require.NoError(t, err)
	return append(holds, several, inner)
}

//zklock:promise P2.1
func TestEveryHoldOfASessionEndsWhenItsLeaseRunsOut(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		c := connectAs(t, srv, "a")
		for range 2 { // under the next session as well
			holds := takeAll(t, c)
			left := holds[0].Remaining()
			srv.Partition("a")
			time.Sleep(left - time.Millisecond)
			for _, h := range holds {
				require.NoError(t, h.Context().Err(), h.Path())
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			for _, h := range holds {
				require.ErrorIs(t, context.Cause(h.Context()), zklock.ErrLost, h.Path())
				require.Zero(t, h.Remaining())
			}
			time.Sleep(term)
			srv.HealClient("a")
			time.Sleep(term)
			for _, h := range holds {
				require.ErrorIs(t, h.Unlock(t.Context()), zklock.ErrLost, h.Path())
			}
			require.NotContains(t, c.String(), "\n", "nothing is held")
		}
	})
}

//zklock:promise P2.1
func TestEveryHoldOfASessionEndsWithIt(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		c := connectAs(t, srv, "a")
		holds := takeAll(t, c)
		n, there := srv.Node(holds[0].Node())
		require.True(t, there)
		srv.ExpireSession(n.EphemeralOwner)
		time.Sleep(2 * time.Second)
		for _, h := range holds {
			require.ErrorIs(t, context.Cause(h.Context()), zklock.ErrLost, h.Path())
		}
		for _, h := range takeAll(t, c) {
			require.NoError(t, h.Check())
		}
	})
}

// Each recipe's hold ends alone if its node is deleted, and a hold of several locks keeps the others until it is unlocked.
//
//zklock:promise P2.1
func TestADeletedNodeEndsItsHoldAndNoOther(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		c := connectAs(t, srv, "a")
		for i := range locksOf(c) {
			var holds []*zklock.Hold
			for _, l := range locksOf(c) {
				holds = append(holds, take(t, l))
			}
			require.NoError(t, srv.DeleteNode(holds[i].Node()))
			time.Sleep(time.Second)
			for j, h := range holds {
				require.Equal(t, i == j, h.Context().Err() != nil, "%s after the end of %s", h.Path(), holds[i].Path())
				err := h.Unlock(t.Context())
				require.Equal(t, i != j, err == nil, "%v", err)
			}

			several, err := c.LockAll(t.Context(), locksOf(c)...)
			require.NoError(t, err)
			time.Sleep(time.Second) // until the permits' node in the queue is gone
			require.Len(t, owned(t, srv), 7)
			require.NoError(t, srv.DeleteNode(zklock.HoldAt(several.Context(), locksOf(c)[i].Path()).Node()))
			time.Sleep(time.Second)
			require.ErrorIs(t, context.Cause(several.Context()), zklock.ErrLost)
			require.NotEmpty(t, owned(t, srv), "the others")
			require.ErrorIs(t, several.Unlock(t.Context()), zklock.ErrLost)
			time.Sleep(time.Second)
			require.Empty(t, owned(t, srv))
		}
	})
}

// owned returns the nodes of the only session.
func owned(t *testing.T, srv *zktest.Server) []string {
	t.Helper()
	require.Len(t, srv.Sessions(), 1)
	return srv.Ephemerals(srv.Sessions()[0].ID)
}

//zklock:promise P14.2
func TestALevelEndsAloneAndTheHoldWithTheLast(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		lock := connectAs(t, srv, "a").Reentrant(path)
		outer := take(t, lock)
		inner, err := lock.Lock(outer.Context())
		require.NoError(t, err)
		ended := func(h *zklock.Hold) func() error {
			ctx, cancel := context.WithCancelCause(t.Context())
			h.OnEnd(cancel)
			return func() error { return context.Cause(ctx) }
		}
		ofOuter, ofInner := ended(outer), ended(inner)
		require.NoError(t, outer.Unlock(t.Context()))
		require.ErrorIs(t, ofOuter(), zklock.ErrReleased)
		require.NoError(t, ofInner())
		require.NoError(t, inner.Check())
		require.ErrorIs(t, outer.Check(), zklock.ErrReleased)
		require.Contains(t, inner.String(), "levels=1")
		require.Len(t, srv.Children(path), 1)
		require.NoError(t, inner.Unlock(t.Context()))
		require.ErrorIs(t, ofInner(), zklock.ErrReleased)
		require.Empty(t, srv.Children(path))
		ctx, cancel := context.WithCancelCause(t.Context())
		inner.OnEnd(cancel)
		require.ErrorIs(t, context.Cause(ctx), zklock.ErrReleased, "at once")
	})
}

//zklock:promise P19.5
func TestARevocationOfOneLockReachesTheHoldOfSeveralUntilItsEnd(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		c, operator := connectAs(t, srv, "a"), connectAs(t, srv, "operator")
		revoke := func(path string) {
			q, err := operate.Inspect(t.Context(), operator, path)
			require.NoError(t, err)
			require.NoError(t, operate.Revoke(t.Context(), operator, q.Contenders[0]))
			time.Sleep(time.Second)
		}
		isRevoked := func(h *zklock.Hold) bool {
			select {
			case <-h.Revoked():
				return true
			default:
				return false
			}
		}
		long := take(t, c.Reentrant(path))
		over, err := c.LockAll(long.Context(), c.Reentrant(path), c.Mutex(path+"/also"))
		require.NoError(t, err)
		require.NoError(t, over.Unlock(t.Context()))
		several, err := c.LockAll(long.Context(), c.Reentrant(path), c.Mutex(path+"/also"))
		require.NoError(t, err)
		revoke(path + "/also")
		require.True(t, isRevoked(several))
		require.False(t, isRevoked(long))
		require.NoError(t, several.Unlock(t.Context()))
		revoke(path)
		require.True(t, isRevoked(long))
		require.False(t, isRevoked(over), "it was released before")
	})
}

//zklock:promise P2.5
func TestExpiringWarnsWhenTheMarginIsReached(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		hold := take(t, connectAs(t, srv, "a").Mutex(path))
		soon, end := hold.Expiring(term/5), hold.Expiring(-time.Second)
		require.Equal(t, soon, hold.Expiring(term/5), "calls with the same margin share it")
		time.Sleep(3 * term)
		srv.Partition("a")
		left := hold.Remaining()
		start := time.Now()
		<-soon
		require.InDelta(t, float64(left-term/5), float64(time.Since(start)), float64(time.Millisecond))
		require.NoError(t, hold.Context().Err())
		<-end
		synctest.Wait()
		require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrLost)
		<-hold.Expiring(0)
	})
}

// The places that were passed on are neither held nor listed.
//
//zklock:promise P12.5 P6.1
func TestGoroutinesOfACohortFollowInTheirOrderAndLeaveNothing(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		c := connectAs(t, srv, "a")
		var order []int
		first := take(t, c.Cohort(path))
		var tokens []int64
		done := make(chan struct{})
		for i := range 5 {
			go func() { // waited for below
				hold, err := c.Cohort(path).Lock(t.Context())
				if err == nil {
					order, tokens = append(order, i), append(tokens, hold.Token())
					err = hold.Unlock(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
				done <- struct{}{}
			}()
			synctest.Wait()
		}
		require.Contains(t, c.String(), "has 5 waiting goroutines")
		require.NoError(t, first.Unlock(t.Context()))
		for range 5 {
			<-done
		}
		require.Equal(t, []int{0, 1, 2, 3, 4}, order)
		require.IsIncreasing(t, tokens)
		require.Equal(t, 1, strings.Count(c.String(), "\n"), "the idle place: %v", c)
		time.Sleep(time.Second)
		require.NotContains(t, c.String(), "\n", "nothing")
		require.Empty(t, srv.Children(path))
	})
}

//zklock:promise P12.2
func TestALossEndsTheHoldInAPlaceAndTheNextGoroutineGetsAnother(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		cohort := connectAs(t, srv, "a").Cohort(path)
		first := take(t, cohort)
		next := make(chan *zklock.Hold)
		go func() { // waited for below
			hold, err := cohort.Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			next <- hold
		}()
		synctest.Wait()
		require.NoError(t, srv.DeleteNode(first.Node()))
		hold := <-next
		require.ErrorIs(t, context.Cause(first.Context()), zklock.ErrLost)
		require.ErrorIs(t, first.Unlock(t.Context()), zklock.ErrLost)
		require.NoError(t, hold.Check(), "the end of the first does not concern it")
		require.NotEqual(t, first.Node(), hold.Node())
		require.NoError(t, hold.Unlock(t.Context()))
	})
}

// A loss is logged although there is no observer.
func TestTheLossOfEachKindOfHoldIsLogged(t *testing.T) {
	virtual(t, func(t *testing.T, srv *zktest.Server) {
		var logged family.Output
		c, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{
			Dialer: srv.DialFrom("a"), SessionTimeout: term, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
		})
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		locks := locksOf(c)
		for _, l := range locks {
			take(t, l)
		}
		srv.Partition("a")
		time.Sleep(2 * term)
		srv.HealClient("a")
		for _, l := range locks {
			lines := 0
			for line := range strings.Lines(logged.String()) {
				if strings.Contains(line, "lock lost") && strings.Contains(line, "path="+l.Path()+" ") {
					lines++
				}
			}
			require.Equal(t, 1, lines, l.Path())
		}
	})
}
