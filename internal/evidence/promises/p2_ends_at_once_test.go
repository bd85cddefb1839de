// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// derivations are the ways to derive a context from a hold. Each calls work with such a context, and returns when work does.
var derivations = map[string]func(t *testing.T, c *zklock.Client, work func(hold *zklock.Hold, inside context.Context)){
	"Do": func(t *testing.T, c *zklock.Client, work func(hold *zklock.Hold, inside context.Context)) {
		_ = c.Mutex(path).Do(t.Context(), func(inside context.Context) error {
			work(zklock.HoldOf(inside), inside)
			return nil
		})
	},
	"Do of a level": func(t *testing.T, c *zklock.Client, work func(hold *zklock.Hold, inside context.Context)) {
		_ = c.Reentrant(path).Do(t.Context(), func(outer context.Context) error {
			return c.Reentrant(path).Do(outer, func(inside context.Context) error {
				work(zklock.HoldOf(inside), inside)
				return nil
			})
		})
	},
	"Do of a cohort": func(t *testing.T, c *zklock.Client, work func(hold *zklock.Hold, inside context.Context)) {
		_ = c.Cohort(path, nil).Do(t.Context(), func(inside context.Context) error {
			work(zklock.HoldOf(inside), inside)
			return nil
		})
	},
	"Run": func(t *testing.T, c *zklock.Client, work func(hold *zklock.Hold, inside context.Context)) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_ = c.Election(path, nil).Run(ctx, nil, func(inside context.Context) error {
			defer cancel()
			work(zklock.HoldOf(inside), inside)
			return nil
		})
	},
	"LockAll": func(t *testing.T, c *zklock.Client, work func(hold *zklock.Hold, inside context.Context)) {
		hold, err := c.LockAll(t.Context(), c.Mutex(path), c.Mutex(path+"-last"))
		require.NoError(t, err)
		work(hold, hold.Context())
		_ = hold.Unlock(t.Context())
	},
	"Do of LockAll": func(t *testing.T, c *zklock.Client, work func(hold *zklock.Hold, inside context.Context)) {
		hold, err := c.LockAll(t.Context(), c.Mutex(path), c.Cohort(path+"-last", nil))
		require.NoError(t, err)
		_ = hold.Do(t.Context(), func(inside context.Context) error {
			work(hold, inside)
			return nil
		})
	},
	"OnEnd": func(t *testing.T, c *zklock.Client, work func(hold *zklock.Hold, inside context.Context)) {
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		inside, cancel := context.WithCancelCause(t.Context())
		defer hold.OnEnd(cancel)()
		work(hold, inside)
		_ = hold.Unlock(t.Context())
	},
}

// When a node is deleted, the next goroutine of the same client can hold the lock immediately. No context derived from the hold
// may be active then.
//
//zklock:promise P2.2
func TestEveryContextOfAHoldEndsBeforeTheNextGoroutineHolds(t *testing.T) {
	for name, derive := range derivations {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					c := connect(t, srv, "a", term)
					derive(t, c, func(hold *zklock.Hold, inside context.Context) {
						atGrant := make(chan error, 1)
						// Owned by the test, which waits for its answer; ends when it holds the lock.
						go func() {
							next, err := c.Mutex(path).Lock(context.Background())
							atGrant <- inside.Err()
							if err == nil {
								_ = next.Unlock(context.Background())
							}
						}()
						time.Sleep(time.Second)
						require.NoError(t, inside.Err())
						require.NoError(t, srv.DeleteNode(hold.Node()))
						require.Equal(t, context.Canceled, <-atGrant, "the next goroutine holds, and the context has not ended")
						require.ErrorIs(t, context.Cause(inside), zklock.ErrLost)
					})
				})
			}
		})
	}
}

// A hold that is unlocked while its function runs ends the function's context in the same step.
//
//zklock:promise P15.2 P16.1
func TestAnUnlockEndsTheContextOfAFunctionAtOnce(t *testing.T) {
	for name, derive := range derivations {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				derive(t, connect(t, srv, "a", term), func(hold *zklock.Hold, inside context.Context) {
					require.NoError(t, inside.Err())
					require.NoError(t, hold.Unlock(t.Context()))
					require.Equal(t, context.Canceled, inside.Err())
					require.ErrorIs(t, context.Cause(inside), zklock.ErrReleased)
				})
			})
		})
	}
}

//zklock:promise P2.15
func TestOnEndIsCalledOnceOrNotAtAll(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		m := connect(t, srv, "a", term).Mutex(path)
		hold, err := m.Lock(t.Context())
		require.NoError(t, err)
		var causes []error
		record := func(cause error) { causes = append(causes, cause) }
		stop := hold.OnEnd(record)
		hold.OnEnd(record)
		stop()
		unlock(t, hold)
		require.Equal(t, []error{zklock.ErrReleased}, causes, "the other one was stopped")
		hold.OnEnd(record)()
		require.Equal(t, []error{zklock.ErrReleased, zklock.ErrReleased}, causes, "at once, because the hold has ended")
		(*zklock.Hold)(nil).OnEnd(record)()
		require.Equal(t, zklock.ErrNotHeld, causes[2])
	})
}
