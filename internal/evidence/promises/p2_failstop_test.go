// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// stopping connects a client whose FailStop function sends to the channel.
func stopping(t *testing.T, srv *zktest.Server, name string) (*zklock.Client, <-chan error) {
	t.Helper()
	stops := make(chan error, 10)
	c := connectWith(t, srv, &zklock.Options{Label: name, SessionTimeout: term, FailStop: func(err error) { stops <- err }})
	return c, stops
}

// A worker can ask in each round of its loop, as it does with the Done channel of a context.
//
//zklock:promise P6.1
func TestExpiringInALoopCostsOneGoroutine(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "a", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(term)
		before := goroutines(t)
		for range 1000 {
			select {
			case <-hold.Expiring(time.Second):
				t.Fatal("it lasts")
			case <-time.After(10 * time.Millisecond):
			}
		}
		require.LessOrEqual(t, goroutines(t), before+1)
		srv.Partition("a")
		<-hold.Expiring(time.Second)
		require.LessOrEqual(t, hold.Remaining(), time.Second)
		srv.HealClient("a")
		time.Sleep(term / 4)
		require.NoError(t, hold.Check())
		select {
		case <-hold.Expiring(time.Second):
			t.Fatal("a later call looks again")
		default:
		}
		unlock(t, hold)
		<-hold.Expiring(time.Second)
	})
}

//zklock:promise P2.8
func TestExpiringWarnsBeforeAHoldIsLost(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "a", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Minute)
		margins := []time.Duration{term / 4, term / 8, time.Second}
		var warnings []<-chan struct{}
		for _, margin := range margins {
			warnings = append(warnings, hold.Expiring(margin))
		}
		late, never := hold.Expiring(0), hold.Expiring(math.MinInt64)
		time.Sleep(time.Hour)
		for i := range warnings {
			require.False(t, isClosed(warnings[i]), "nothing is wrong")
		}
		require.False(t, isClosed(never))
		<-hold.Expiring(term) // Remaining is never that much
		srv.Partition("a")
		for i, warning := range warnings {
			<-warning
			require.NoError(t, hold.Check())
			require.LessOrEqual(t, hold.Remaining(), margins[i])
			require.Greater(t, hold.Remaining(), margins[i]-10*time.Millisecond)
		}
		require.False(t, isClosed(late))
		<-late
		<-hold.Context().Done()
		require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrLost)
		srv.HealClient("a")
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A worker runs a function under a lock at path, like Do.
type worker func(c *zklock.Client, ctx context.Context, fn func(ctx context.Context) error) error

// taking returns a worker that locks and runs the function under its hold.
func taking(lock func(c *zklock.Client) func(context.Context) (*zklock.Hold, error)) worker {
	return func(c *zklock.Client, ctx context.Context, fn func(ctx context.Context) error) error {
		hold, err := lock(c)(ctx)
		if err != nil {
			return err
		}
		return hold.Do(ctx, fn)
	}
}

// takeBoth acquires a lock that excludes all workers in guarded.
func takeBoth(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
	return func(ctx context.Context) (*zklock.Hold, error) {
		return c.LockAll(ctx, c.Mutex(path), c.Semaphore(path+"s", 3).Permits(3))
	}
}

// guarded are the ways to run a function under a lock.
var guarded = map[string]worker{
	"mutex": func(c *zklock.Client, ctx context.Context, fn func(ctx context.Context) error) error {
		return c.Mutex(path).Do(ctx, fn)
	},
	"reentrant": func(c *zklock.Client, ctx context.Context, fn func(ctx context.Context) error) error {
		return c.Reentrant(path).Do(ctx, fn)
	},
	"election": func(c *zklock.Client, ctx context.Context, fn func(ctx context.Context) error) error {
		return c.Election(path, nil).Run(ctx, nil, fn)
	},
	"cohort": func(c *zklock.Client, ctx context.Context, fn func(ctx context.Context) error) error {
		return c.Cohort(path, nil).Do(ctx, fn)
	},
	"writer": taking(asWriter),
	"reader": taking(asReader),
	"try": taking(func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return c.Mutex(path).TryLock
	}),
	"campaign": taking(func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return func(ctx context.Context) (*zklock.Hold, error) { return c.Election(path, nil).Campaign(ctx, nil) }
	}),
	"several": taking(func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return func(ctx context.Context) (*zklock.Hold, error) {
			return c.LockAll(ctx, c.Mutex(path), c.Semaphore(path+"s", 3).Permits(2))
		}
	}),
	"permits": taking(func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return func(ctx context.Context) (*zklock.Hold, error) {
			return c.LockAll(ctx, c.Semaphore(path+"s", 3).Permits(2))
		}
	}),
}

// If the function stops in time, its process keeps running. If it blocks, FailStop is called before the next holder is granted.
//
//zklock:promise P2.8 A2
func TestAFunctionThatDoesNotStopEndsItsProcess(t *testing.T) {
	for name, run := range guarded {
		for _, stops := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					c, failed := stopping(t, srv, "a")
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					working, release := make(chan context.Context, 1), make(chan struct{})
					done := make(chan error, 1)
					go func() {
						done <- run(c, ctx, func(ctx context.Context) error {
							select {
							case working <- ctx:
							default:
								return nil // another term
							}
							<-ctx.Done()
							if !stops {
								<-release
							}
							return nil
						})
					}()
					inside := <-working
					time.Sleep(time.Minute)
					require.NoError(t, inside.Err())
					srv.Partition("a")
					next := lockLater(t.Context(), takeBoth(connect(t, srv, "b", term)))
					<-inside.Done()
					told := time.Now()
					require.ErrorIs(t, context.Cause(inside), zklock.ErrLost)
					if stops {
						time.Sleep(term / 4)
						srv.HealClient("a")
						<-next.done
						require.Empty(t, failed)
					} else {
						err := <-failed
						require.ErrorIs(t, err, zklock.ErrLost)
						require.False(t, next.returned(), "the next one works already")
						require.InDelta(t, term/8, time.Since(told), float64(50*time.Millisecond))
						srv.HealClient("a")
						<-next.done
					}
					require.NoError(t, next.err)
					unlock(t, next.hold)
					cancel()
					close(release)
					err := <-done
					require.True(t, err == nil || errors.Is(err, context.Canceled) || errors.Is(err, zklock.ErrLost) || errors.Is(err, zklock.ErrUncertain), "%v", err)
				})
			})
		}
	}
}

// If heartbeats succeed again in time, the function has already been canceled, and the lock is released when it has returned.
//
//zklock:promise P2.8
func TestAFunctionThatIsCancelledReleasesTheLockWhenItReturns(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, failed := stopping(t, srv, "a")
		working, release := make(chan context.Context, 1), make(chan struct{})
		done := make(chan error, 1)
		go func() {
			done <- c.Mutex(path).Do(t.Context(), func(ctx context.Context) error {
				working <- ctx
				<-ctx.Done()
				<-release
				return nil
			})
		}()
		inside := <-working
		time.Sleep(time.Minute)
		srv.Partition("a")
		<-inside.Done()
		srv.HealClient("a")
		time.Sleep(time.Minute)
		require.NoError(t, zklock.HoldOf(inside).Check(), "held until the function returns")
		next := lockLater(t.Context(), connect(t, srv, "b", term).Mutex(path).Lock)
		time.Sleep(time.Minute)
		require.False(t, next.returned())
		close(release)
		require.NoError(t, <-done)
		time.Sleep(time.Second)
		require.True(t, next.returned())
		require.NoError(t, next.err)
		unlock(t, next.hold)
		require.Empty(t, failed)
	})
}

// TestASuddenLossGivesAFunctionTimeToReturn evicts a holder or closes its client, without a warning before.
//
//zklock:promise P2.8
func TestASuddenLossGivesAFunctionTimeToReturn(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration // until the function returns
		close bool
		fails bool
	}{
		"evicted, returns at once":   {},
		"evicted, returns in time":   {takes: term/8 - time.Millisecond},
		"evicted, does not return":   {takes: term, fails: true},
		"closed, does not return":    {takes: term, close: true},
		"closed, and lost meanwhile": {takes: 3 * term, close: true},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				client, failed := stopping(t, srv, "a")
				working, done := make(chan *zklock.Hold, 1), make(chan error, 1)
				// Owned by the test, which waits for it; ends when the function has returned.
				go func() {
					done <- client.Mutex(path).Do(t.Context(), func(ctx context.Context) error {
						working <- zklock.HoldOf(ctx)
						<-ctx.Done()
						time.Sleep(c.takes)
						return nil
					})
				}()
				hold := <-working
				time.Sleep(time.Second)
				if c.close {
					require.NoError(t, client.Close())
				} else {
					require.NoError(t, srv.DeleteNode(hold.Node()))
				}
				<-hold.Context().Done()
				told := time.Now()
				if c.fails {
					require.ErrorIs(t, <-failed, zklock.ErrLost)
					require.Equal(t, term/8, time.Since(told))
				}
				require.Error(t, <-done)
				time.Sleep(3 * term)
				require.Empty(t, failed)
			})
		})
	}
}

//zklock:promise P2.8
func TestAFunctionLearnsWhyItsHoldHasEnded(t *testing.T) {
	wrong := map[string]int{}
	for range 300 {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			c, _ := stopping(t, srv, "a")
			err := c.Mutex(path).Do(t.Context(), func(ctx context.Context) error {
				require.NoError(t, zklock.HoldOf(ctx).Unlock(t.Context()))
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), zklock.ErrReleased) {
					wrong["unlock: cause"]++
				}
				return errors.New("failed")
			})
			if errors.Is(err, zklock.ErrLost) {
				wrong["unlock: error"]++
			}
			err = c.Mutex(path).Do(t.Context(), func(ctx context.Context) error {
				c.Close()
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), zklock.ErrClosed) {
					wrong["close: cause"]++
				}
				return errors.New("failed")
			})
			if errors.Is(err, zklock.ErrLost) {
				wrong["close: error"]++
			}
		})
	}
	require.Empty(t, wrong)
}

// A program may end its part of the work by closing the client.
//
//zklock:promise P2.8
func TestFailStopMayCloseTheClient(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		closed := make(chan struct{})
		var c *zklock.Client
		c = connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, FailStop: func(error) {
			c.Close()
			close(closed)
		}})
		release := make(chan struct{})
		go c.Mutex(path).Do(t.Context(), func(ctx context.Context) error {
			<-release
			return nil
		})
		time.Sleep(time.Second)
		srv.Partition("a")
		time.Sleep(time.Minute)
		close(release)
		time.Sleep(time.Minute)
		srv.HealClient("a")
		require.True(t, isClosed(closed))
	})
}
