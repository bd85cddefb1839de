package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// TestNothingBreaksAtAnySingleRequest strikes once, at the n-th request of a client that
// waits for another, holds and releases, for every n and every fault.
func TestNothingBreaksAtAnySingleRequest(t *testing.T) {
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
		time.Sleep(time.Second) // time for the watch on the own node
		unlockThroughFault(t, a.hold)
	}
	noGhost(t, srv, path)
	unlockSoon(t, other)
	require.LessOrEqual(t, srv.WatchCount(), 0, "watches left: %v", srv.Watches())
	synctest.Wait() // for what the server has counted
	return struck
}

// TestAttemptsBreakAtNoSingleRequest is the same for those who do not wait: one gets its lock or an answer, and leaves nothing.
func TestAttemptsBreakAtNoSingleRequest(t *testing.T) {
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

func TestBadInputIsRefusedBeforeAnyRequest(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
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

func TestErrorsNameWhatWasDoneAndWhatWentWrong(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		srv.Member(0).Stop()
		time.Sleep(time.Second)
		because := errors.New("shop is closing")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, because)
		defer cancel()
		_, err := client.Mutex(path).Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, because)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, "last trouble")
		_, err = client.Mutex(path).TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrNotConnected)
		ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "last trouble")
	})
}

// Who reads of the end of a connection alone does not learn that a server has no quorum, or too many connections.
func TestAServerThatBeginsNoSessionIsNamed(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		srv.Member(1).CutOff()
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := zklock.Connect(ctx, srv.Addrs()[1:2], &zklock.Options{Dialer: srv.Dial})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, io.EOF)
		require.ErrorContains(t, err, "maxClientCnxns")
	})
}

func TestUnlockIsExact(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, path, hold.Path())
		_, there := srv.Node(hold.Node())
		require.True(t, there)
		unlock(t, hold)
		require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrReleased)
		require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrNotHeld)
		require.ErrorIs(t, hold.Check(), zklock.ErrReleased)

		hold, err = client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpDelete {
				return zktest.Delay(time.Second)
			}
			return zktest.Pass
		})
		require.ErrorIs(t, hold.Unlock(cancelled), context.Canceled)
		require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrNotHeld)
		noGhost(t, srv, path)
	})
}

func TestLockingInsideOnesOwnHoldIsADeadlock(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
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
		noGhost(t, srv, path)
	})
}

func TestDoReleasesWhateverHappens(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		m := connect(t, srv, "a", term).Mutex(path)
		failed := errors.New("failed")
		require.ErrorIs(t, m.Do(t.Context(), func(context.Context) error { return failed }), failed)
		require.Empty(t, queue(srv, path))
		require.PanicsWithValue(t, "boom", func() { m.Do(t.Context(), func(context.Context) error { panic("boom") }) })
		require.Empty(t, queue(srv, path))
		ctx, cancel := context.WithCancel(t.Context())
		err := m.Do(ctx, func(inside context.Context) error {
			cancel()
			<-inside.Done()
			return inside.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, queue(srv, path))
		err = m.Do(t.Context(), func(inside context.Context) error {
			time.Sleep(time.Second)
			srv.DeleteNode(path + "/" + queue(srv, path)[0])
			<-inside.Done()
			return context.Cause(inside)
		})
		require.ErrorIs(t, err, zklock.ErrLost)
	})
}

func TestTryLockAnswersAtOnceAndLeavesNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		hold, err := a.Mutex(path).TryLock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		resetCounts(srv)
		start := time.Now()
		_, err = b.Mutex(path).TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		require.Equal(t, start, time.Now())
		require.Zero(t, srv.Requests()[zktest.OpCreate], "it writes only where it sees nobody")
		unlock(t, hold)
		hold, err = b.Mutex(path).TryLock(t.Context())
		require.NoError(t, err)
		unlock(t, hold)

		var wins, losses atomic.Int32
		var wg sync.WaitGroup
		for range 20 { // all look, see nobody and race
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
		require.Empty(t, queue(srv, path))
	})
}

func TestCloseReleasesEverythingAndLeavesNoGoroutine(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		waiting := lockLater(t.Context(), client.Mutex(path).Lock)
		next := lockLater(t.Context(), other.Mutex(path).Lock)
		time.Sleep(time.Second)
		start := time.Now()
		require.NoError(t, client.Close())
		require.Less(t, time.Since(start), 100*time.Millisecond)
		require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrClosed)
		<-waiting.done
		require.ErrorIs(t, waiting.err, zklock.ErrClosed)
		<-next.done
		require.NoError(t, next.err)
		unlock(t, next.hold)
		_, err = client.Mutex(path).Lock(t.Context())
		require.ErrorIs(t, err, zklock.ErrClosed)
		require.NoError(t, client.Close())
		require.Len(t, srv.Sessions(), 1)
	})
}

// Who waits listens to its caller and to one node: that the client ends reaches it by its watch, in whatever state that is.
func TestCloseEndsEveryWaitAtOnce(t *testing.T) {
	t.Parallel()
	for when, happens := range map[string]func(*zktest.Server){
		"at rest":                          func(*zktest.Server) { time.Sleep(term) },
		"when the connection has gone":     func(srv *zktest.Server) { srv.DropConnections() },
		"when all watches are set anew":    func(srv *zktest.Server) { srv.DropConnections(); time.Sleep(2 * time.Second) },
		"when no server has answered long": func(srv *zktest.Server) { srv.Partition("client"); time.Sleep(term / 2) },
		"when its server is frozen":        func(srv *zktest.Server) { srv.Member(0).Freeze() },
		"when no server takes credentials": func(srv *zktest.Server) {
			never := make(chan struct{})
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if r.Op == zktest.OpAuth {
					return zktest.Hold(never)
				}
				return zktest.Pass
			})
			srv.DropConnections()
			time.Sleep(time.Second)
		},
	} {
		for _, e := range excluding {
			t.Run(e.name+" "+when, func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					other := connect(t, srv, "other", term)
					client := connectWith(t, srv, &zklock.Options{Label: "client", SessionTimeout: term, Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("u:p")}}})
					_, err := e.first(other)(t.Context())
					require.NoError(t, err)
					var waits []*attempt
					for range 6 {
						waits = append(waits, lockLater(t.Context(), e.second(client)))
						time.Sleep(100 * time.Millisecond)
					}
					happens(srv)
					for range 2 { // which may have no answer to their first request yet
						waits = append(waits, lockLater(t.Context(), e.second(client)))
						time.Sleep(100 * time.Millisecond)
					}
					start := time.Now()
					client.Close()
					for _, waiting := range waits {
						<-waiting.done
						require.ErrorIs(t, waiting.err, zklock.ErrClosed)
						require.Equal(t, start, waiting.at)
					}
				})
			})
		}
	}
}

// A second call of Close waits until the client is closed. That may take a while, in virtual time as well.
func TestEachOfTwoWhoCloseAtOnceWaits(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		srv.Partition("a")
		start := time.Now()
		var took [2]time.Duration
		var both sync.WaitGroup
		for i := range took {
			both.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				assert.NoError(t, c.Close())
				took[i] = time.Since(start)
			})
		}
		both.Wait()
		require.Greater(t, took[0], time.Second)
		require.Equal(t, took[0], took[1])
		require.ErrorIs(t, hold.Check(), zklock.ErrClosed)
	})
}

// What was asked for is not what the servers end the session by, and with it all that Close waits for.
func TestCloseWaitsNoLongerThanTheSessionLasts(t *testing.T) {
	const tick = 100 * time.Millisecond
	for granted, asked := range map[time.Duration]time.Duration{20 * tick: 10 * time.Second, 15 * tick: 5 * tick} {
		virtual(t, zktest.Options{TickTime: tick, MinSessionTimeout: 15 * tick}, func(t *testing.T, srv *zktest.Server) {
			client := connect(t, srv, "a", asked)
			require.Equal(t, granted, client.SessionTimeout())
			_, err := client.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			srv.Partition("a")
			start := time.Now()
			client.Close()
			require.GreaterOrEqual(t, time.Since(start), granted)
			require.LessOrEqual(t, time.Since(start), granted+time.Second, "and a while to end the session")
		})
	}
}

func TestCloseEndsWhenNoServerAnswers(t *testing.T) {
	for name, fault := range map[string]func(*zktest.Server){
		"partitioned": func(srv *zktest.Server) { srv.Partition("a") },
		"frozen":      func(srv *zktest.Server) { srv.Member(0).Freeze() },
		"stopped":     func(srv *zktest.Server) { srv.Member(0).Stop() },
		"refusing":    func(srv *zktest.Server) { srv.Member(0).Refuse(true); srv.DropConnections() },
	} {
		for _, after := range []time.Duration{0, time.Second, 3 * term} {
			t.Run(fmt.Sprint(name, " after ", after), func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					client := connect(t, srv, "a", term)
					_, err := client.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					waiting := lockLater(t.Context(), client.Mutex(path).Lock)
					synctest.Wait()
					fault(srv)
					time.Sleep(after)
					start := time.Now()
					client.Close()
					require.LessOrEqual(t, time.Since(start), 10*time.Second)
					<-waiting.done
					require.ErrorIs(t, waiting.err, zklock.ErrClosed)
				})
			})
		}
	}
}
