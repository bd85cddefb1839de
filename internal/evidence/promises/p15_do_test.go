// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// A function's context and contexts derived from it have the caller's deadline.
//
//zklock:promise P15.2
func TestAFunctionsContextEndsAtItsCallersDeadline(t *testing.T) {
	for name, run := range guarded {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				c := connect(t, srv, "a", term)
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errSlow)
				defer cancel()
				calls := 0
				err := run(c, ctx, func(inside context.Context) error {
					calls++
					due, ok := inside.Deadline()
					expected, _ := ctx.Deadline()
					require.True(t, ok)
					require.Equal(t, expected, due)
					derived, cancel := context.WithCancel(inside)
					defer cancel()
					<-derived.Done()
					require.Equal(t, context.DeadlineExceeded, inside.Err())
					require.Equal(t, context.DeadlineExceeded, derived.Err())
					require.Equal(t, errSlow, context.Cause(derived))
					require.NoError(t, zklock.HoldOf(inside).Check(), "given up before the function has returned")
					return inside.Err()
				})
				require.Equal(t, 1, calls)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, zklock.ErrLost)
				noGhost(t, srv, path)
			})
		})
	}
}

var errSlow = errors.New("slow")

// A function's context has its caller's values, and is the hold's.
//
//zklock:promise P15.2
func TestAFunctionsContextIsItsCallersAndItsHolds(t *testing.T) {
	type key struct{}
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		other, err := c.Mutex("/other").Lock(t.Context())
		require.NoError(t, err)
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Do(context.WithValue(other.Context(), key{}, "value"), func(ctx context.Context) error {
			require.Equal(t, "value", ctx.Value(key{}))
			require.Equal(t, hold, zklock.HoldOf(ctx))
			for _, held := range []string{path, "/other"} {
				_, err := c.Mutex(held).Lock(ctx)
				require.ErrorIs(t, err, zklock.ErrDeadlock, held)
			}
			inner, err := c.Mutex("/inner").Lock(ctx)
			require.NoError(t, err)
			require.NoError(t, inner.Do(ctx, func(ctx context.Context) error {
				require.Equal(t, inner, zklock.HoldOf(ctx))
				return nil
			}))
			return nil
		}))
		unlock(t, other)
	})
}

// The context of a function ends when the function has returned, even if a goroutine keeps it.
//
//zklock:promise P15.2
func TestAFunctionsContextEndsWithTheFunction(t *testing.T) {
	for name, run := range guarded {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				var kept context.Context
				require.ErrorIs(t, run(connect(t, srv, "a", term), t.Context(), func(inside context.Context) error {
					kept = inside
					return errSlow
				}), errSlow)
				require.ErrorIs(t, kept.Err(), context.Canceled)
			})
		})
	}
}

// If a function fails after its caller's context is done, its error is returned unchanged.
//
//zklock:promise P15.4
func TestTheErrorOfAFunctionIsItsOwnThoughItsContextHasEnded(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "a", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		err = hold.Do(ctx, func(inside context.Context) error {
			cancel()
			<-inside.Done()
			return errSlow
		})
		require.ErrorIs(t, err, errSlow)
		require.NotErrorIs(t, err, context.Canceled)
	})
}

// If FailStop ended the function, the caller's error says that the lock was the reason.
//
//zklock:promise P15.4
func TestAFunctionStoppedByALossReturnsErrLost(t *testing.T) {
	for name, run := range guarded {
		if name == "election" {
			continue // stands again: see TestRunIgnoresTheErrorOfALostTerm
		}
		for how, strike := range map[string]func(c *zklock.Client, srv *zktest.Server, inside context.Context){
			"by FailStop": func(_ *zklock.Client, srv *zktest.Server, inside context.Context) {
				srv.Partition("a")
				<-inside.Done()
				srv.HealClient("a")
				time.Sleep(time.Second)
				require.NoError(t, zklock.HoldOf(inside).Check(), "it is still held")
			},
			"by a loss": func(_ *zklock.Client, srv *zktest.Server, inside context.Context) {
				require.NoError(t, srv.DeleteNode(zklock.HoldOf(inside).Node()))
				<-inside.Done()
			},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					c, failed := stopping(t, srv, "a")
					err := run(c, t.Context(), func(inside context.Context) error {
						time.Sleep(time.Minute)
						strike(c, srv, inside)
						require.Equal(t, context.Canceled, inside.Err())
						require.ErrorIs(t, context.Cause(inside), zklock.ErrLost)
						return inside.Err()
					})
					require.ErrorIs(t, err, zklock.ErrLost)
					require.NotErrorIs(t, err, context.Canceled, "the caller did not cancel")
					require.Empty(t, failed)
					noGhost(t, srv, path)
				})
			})
		}
	}
}

//zklock:promise P15.3
func TestNoFunctionStartsUnderAnEndedHoldOrContext(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		m := connect(t, srv, "a", term).Mutex(path)
		never := func(context.Context) error { t.Error("it was called"); return nil }

		hold, err := m.Lock(t.Context())
		require.NoError(t, err)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, hold.Do(ended, never), context.Canceled)
		require.Empty(t, queue(srv, path), "it is unlocked all the same")
		require.ErrorIs(t, hold.Do(t.Context(), never), zklock.ErrReleased)

		hold, err = m.Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, srv.DeleteNode(hold.Node()))
		<-hold.Context().Done()
		require.ErrorIs(t, hold.Do(t.Context(), never), zklock.ErrLost)
	})
}

var errWork = errors.New("work failed")

// The error of a function that has lost its leadership does not end Run. The error of the next one, which leads, does.
//
//zklock:promise P17.4
func TestRunIgnoresTheErrorOfALostTerm(t *testing.T) {
	for name, partition := range map[string]bool{"about to be lost": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				c, _ := stopping(t, srv, "a")
				terms := 0
				err := c.Election(path, nil).Run(t.Context(), nil, func(ctx context.Context) error {
					if terms++; terms == 2 {
						return errWork
					}
					time.Sleep(time.Minute)
					if partition {
						srv.Partition("a")
						<-ctx.Done()
						srv.HealClient("a")
						return ctx.Err()
					}
					require.NoError(t, srv.DeleteNode(zklock.HoldOf(ctx).Node()))
					for zklock.HoldOf(ctx).Check() == nil {
						time.Sleep(time.Millisecond)
					}
					return errSlow // perhaps before ctx has ended
				})
				require.ErrorIs(t, err, errWork)
				require.ErrorContains(t, err, path)
				require.NotErrorIs(t, err, errSlow)
				require.Equal(t, 2, terms)
				require.Empty(t, queue(srv, path), "it has resigned")
			})
		})
	}
}

// The same is true for a function that waits for the hold's context, and returns just before its own context ends.
//
//zklock:promise P17.4
func TestRunIgnoresTheErrorOfATermThatEndsWithItsHold(t *testing.T) {
	const terms = 300
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		done := 0
		err := connect(t, srv, "a", term).Election(path, nil).Run(t.Context(), nil, func(ctx context.Context) error {
			if done++; done == terms {
				return errWork
			}
			hold := zklock.HoldOf(ctx)
			require.NoError(t, srv.DeleteNode(hold.Node()))
			<-hold.Context().Done()
			return errSlow
		})
		require.ErrorIs(t, err, errWork)
		require.NotErrorIs(t, err, errSlow)
		require.Equal(t, terms, done)
	})
}

// A caller that ends Run gets both its context's error and the function's error.
//
//zklock:promise P17.4
func TestACancelledRunAlsoReturnsTheErrorOfItsFunction(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		c := connect(t, srv, "a", term)
		err := c.Election(path, nil).Run(ctx, nil, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return errWork
		})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errWork)

		err = c.Election(path, nil).Run(t.Context(), nil, func(ctx context.Context) error {
			go c.Close()
			<-ctx.Done()
			return errWork
		})
		require.ErrorIs(t, err, zklock.ErrClosed)
		require.ErrorIs(t, err, errWork)
	})
}
