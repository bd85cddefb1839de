// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/zktest"
)

// endsWaiting calls obtain with a context that ends after d, and returns the error. Until then, the
// engine must show exactly one wait, for what the error says.
func endsWaiting(t *testing.T, e *Engine, d time.Duration, obtain func(ctx context.Context) (*Grant, error)) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	o := later(func() (*Grant, error) { return obtain(ctx) })
	time.Sleep(d - time.Nanosecond)
	shown := e.Status()
	<-o.done
	require.ErrorIs(t, o.err, context.DeadlineExceeded)
	require.Equal(t, 1, strings.Count(o.err.Error(), "waited for"), "%v", o.err)
	require.Len(t, shown, 1)
	require.Regexp(t, `^`+testDir+`(/\w+)?/_c_\S+ has waited \S+ for `, shown[0])
	_, why, _ := strings.Cut(shown[0], " for ")
	_, said, _ := strings.Cut(o.err.Error(), "waited for ")
	said = strings.TrimSuffix(said, ")")
	require.Contains(t, why, said[:min(len(said), 20)])
	require.Empty(t, e.Status(), "a wait that has ended is not shown")
	return o.err
}

func lockIn(e *Engine) func(ctx context.Context) (*Grant, error) {
	return func(ctx context.Context) (*Grant, error) { return e.Obtain(ctx, wantLock(testDir)) }
}

//zklock:promise P8.2
func TestAWaitForAContenderSaysForWhich(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b, c := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil), startEngine(t, srv, "c", nil)
		held, err := a.Obtain(t.Context(), wantLock(testDir))
		require.NoError(t, err)
		require.ErrorContains(t, endsWaiting(t, b, time.Second, lockIn(b)), "(waited for test)")
		between := later(func() (*Grant, error) { return b.Obtain(t.Context(), wantLock(testDir)) })
		time.Sleep(time.Second)
		require.ErrorContains(t, endsWaiting(t, c, time.Second, lockIn(c)), "(waited for test and 1 more)")
		release(t, held)
		between.release(t)
	})
}

//zklock:promise P8.2
func TestTheFirstInTheQueueForPermitsSaysHowManyItWaitsFor(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b, c := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil), startEngine(t, srv, "c", nil)
		held, err := permitsOf(a, 3).Obtain(t.Context(), 2)
		require.NoError(t, err)
		two := func(e *Engine) func(ctx context.Context) (*Grant, error) {
			return func(ctx context.Context) (*Grant, error) { return permitsOf(e, 3).Obtain(ctx, 2) }
		}
		require.ErrorContains(t, endsWaiting(t, b, time.Second, two(b)), "(waited for 2 permits, first in the queue: 1 of 3 are free)")
		first := obtainLater(t, permitsOf(b, 3), 2)
		time.Sleep(time.Second)
		require.ErrorContains(t, endsWaiting(t, c, time.Second, two(c)), "(waited for test)")
		release(t, held)
		first.release(t)
	})
}

//zklock:promise P8.2
func TestAWaitForTheLockDelaySaysSo(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		delayed := func(e *Engine) { e.Delay = 30 * time.Second }
		a, b := startEngine(t, srv, "a", delayed), startEngine(t, srv, "b", delayed)
		held, err := a.Obtain(t.Context(), wantLock(testDir))
		require.NoError(t, err)
		require.NoError(t, srv.DeleteNode(held.Nodes()[0].Path()))
		err = endsWaiting(t, b, time.Second, lockIn(b))
		require.ErrorContains(t, err, "(waited for the lock-delay after "+held.Nodes()[0].Name+" was lost, first in the queue: ")
		require.ErrorContains(t, err, " remaining)")
		release(t, held)
	})
}

//zklock:promise P8.2
func TestAWaitForProofOfTheSessionSaysSo(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpSync || r.Op == zktest.OpMulti {
				return throttled
			}
			return zktest.Pass
		})
		time.Sleep(2 * testTerm) // the create alone then proves nothing
		require.ErrorContains(t, endsWaiting(t, e, time.Second, lockIn(e)), "(waited for proof that its session is alive, first in the queue; replies take ")
		require.ErrorContains(t, endsWaiting(t, e, time.Second, func(ctx context.Context) (*Grant, error) { return e.TryObtain(ctx, wantLock(testDir+"/other")) }),
			"(waited for proof that its session is alive")
	})
}

// A call that does not wait for another connection says what it waited for when it was cut off.
//
//zklock:promise P8.2
func TestATryThatIsCutOffSaysWhatItWaitedFor(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpCreate || r.Op == zktest.OpCreateContainer {
				return throttled
			}
			return zktest.Pass
		})
		_, err := WithoutWaiting(t.Context(), e, func(ctx context.Context) (*Grant, error) { return e.TryObtain(ctx, wantLock(testDir)) })
		require.ErrorIs(t, err, outcome.ErrNotConnected)
		require.NotErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "request not served within five session timeouts (waited for a reply from the servers)")
	})
}

//zklock:promise P8.2
func TestAWaitWithoutAConnectionSaysSo(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		srv.Partition("a")
		time.Sleep(2 * testTerm)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := lockIn(e)(ctx)
		require.EqualError(t, err, "context deadline exceeded (waited for a connection to a server)")
	})
}

// The heartbeats check the node of a waiter that has at most two contenders ahead of it, whether or not anything happens in the queue.
func TestAWaiterNearTheFrontFindsThatItsNodeIsGone(t *testing.T) {
	for name, ahead := range map[string]int{"next": 1, "second": 2} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				var all []*obtaining
				for i := range ahead + 1 {
					e := startEngine(t, srv, string(rune('a'+i)), nil)
					all = append(all, later(func() (*Grant, error) { return e.Obtain(t.Context(), wantLock(testDir)) }))
					time.Sleep(time.Second)
				}
				before := srv.Children(testDir)
				require.Len(t, before, ahead+1)
				last := slices.MaxFunc(before, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
				require.NoError(t, srv.DeleteNode(testDir+"/"+last))
				time.Sleep(testTerm)
				require.Len(t, srv.Children(testDir), ahead+1, "it has queued again")
				for _, o := range all {
					o.release(t)
				}
			})
		})
	}
}

// A waiter knows the nearest four of seven contenders by name. These give up, the nearest first. The others are still ahead of it.
func TestAWaiterWhoseNearestHaveLeftIsNotFirst(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		var all []*obtaining
		var ends []context.CancelFunc
		for range nearestKept + 3 {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			ends = append(ends, end)
			all = append(all, later(func() (*Grant, error) { return lockIn(a)(ctx) }))
			time.Sleep(time.Second)
		}
		last := later(func() (*Grant, error) { return lockIn(b)(t.Context()) })
		time.Sleep(time.Second)
		for _, end := range slices.Backward(ends[3:]) {
			end()
			time.Sleep(time.Second)
		}
		require.Len(t, srv.Children(testDir), 4)
		require.False(t, session.IsClosed(last.done))
		for _, o := range all[:3] {
			o.release(t)
		}
		last.release(t)
	})
}

// The watch of the contender ahead is not set yet: the wait names its node.
func TestAWaitNamesANodeThatWasNotReadYet(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		held := obtain(t, a)
		ahead := held.Nodes()[0]
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "b" && r.Path == ahead.Path() {
				return zktest.Delay(time.Second)
			}
			return zktest.Pass
		})
		waits := later(func() (*Grant, error) { return b.Obtain(t.Context(), wantLock(testDir)) })
		time.Sleep(time.Second / 2)
		require.Len(t, b.Status(), 1)
		require.Contains(t, b.Status()[0], " has waited 500ms for "+ahead.Name+", lease=")
		time.Sleep(time.Second)
		require.Contains(t, b.Status()[0], " has waited 1.5s for test, lease=")
		release(t, held)
		waits.release(t)
	})
}

// A caller that has got what it waited for is not an error, even if its context ends at that moment.
func TestAGrantIsNotAnErrorOfAContextThatEnds(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		ctx, cancel := context.WithCancel(t.Context())
		g, err := e.withoutWaiting(ctx, new(progress), func(*session.Session) (*waiter, error) {
			defer cancel()
			return e.newWaiterFor(wantLock(testDir)), nil
		})
		require.NoError(t, err)
		require.NotNil(t, g)
		cause, fail := context.WithCancelCause(t.Context())
		fail(errMine)
		_, err = e.withoutWaiting(cause, new(progress), nil)
		require.ErrorIs(t, err, errMine)
		require.ErrorContains(t, err, "waited for a reply from the servers")
	})
}

// Each error of a wait is remembered for the heartbeats' report of a lost connection.
func TestAWaitRecordsItsErrors(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		var p session.Pace
		require.NoError(t, e.pauseAfter(t.Context(), &p, zk.ErrConnectionClosed))
		require.ErrorIs(t, e.Requests.Link.LastError(), zk.ErrConnectionClosed)
		require.NotZero(t, p)
		require.Equal(t, outcome.ErrGone, e.pauseAfter(t.Context(), &p, outcome.ErrGone))
		require.ErrorIs(t, e.Requests.Link.LastError(), zk.ErrConnectionClosed)
		require.Zero(t, p)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errMine)
		require.Equal(t, zk.ErrConnectionClosed, e.pauseAfter(ctx, &p, zk.ErrConnectionClosed))
	})
}
