// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// tries are the ways to acquire without waiting.
var tries = map[string]way{
	"mutex":     func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Mutex(path).TryLock },
	"reentrant": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Reentrant(path).TryLock },
	"writer":    func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.RWMutex(path).TryLock },
	"reader":    func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.RWMutex(path).TryRLock },
	"permits": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return func(ctx context.Context) (*zklock.Hold, error) { return c.Semaphore(path, 3).TryAcquire(ctx, 2) }
	},
}

// isContenderPath reports whether the last element of a path is the name of a contender of this library.
func isContenderPath(p string) bool { return strings.Contains(p, "/_c_") }

// makesContender reports whether a request creates a contender's node.
func makesContender(r *zktest.Request) bool {
	for i, op := range r.Ops {
		if op == zktest.OpCreate && isContenderPath(r.Paths[i]) {
			return true
		}
	}
	return r.Op == zktest.OpCreate && isContenderPath(r.Path)
}

// A try does not look for a lost create on another connection, because the caller does not wait.
//
//zklock:promise P5.4
func TestATryReturnsWhenItsConnectionIsLost(t *testing.T) {
	for name, try := range tries {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				c := connect(t, srv, "a", term)
				stop := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if !makesContender(r) {
						return zktest.Pass
					}
					srv.Member(0).Refuse(true)
					return zktest.LoseReply
				})
				start := time.Now()
				_, err := try(c)(t.Context())
				require.ErrorIs(t, err, zklock.ErrNotConnected)
				require.NotErrorIs(t, err, context.Canceled)
				require.Equal(t, start, time.Now(), "it waited for a server")
				stop()
				srv.Member(0).Refuse(false)
				noGhost(t, srv, path)
				hold, err := try(c)(t.Context())
				require.NoError(t, err)
				unlock(t, hold)
			})
		})
	}
}

// The client leaves a server that stays connected and does not reply.
//
//zklock:promise P5.4
func TestATryReturnsThoughTheServerIsSilent(t *testing.T) {
	for name, try := range tries {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				c := connect(t, srv, "a", term)
				stop := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if makesContender(r) {
						srv.Partition("a")
					}
					return zktest.Pass
				})
				start := time.Now()
				_, err := try(c)(t.Context())
				require.ErrorIs(t, err, zklock.ErrNotConnected)
				require.Less(t, time.Since(start), term)
				stop()
				srv.HealClient("a")
				time.Sleep(2 * term)
				require.Empty(t, queue(srv, path))
			})
		})
	}
}

// The session, and the lock with it, has ended by then.
//
//zklock:promise P15.5
func TestDoReturnsThoughThereIsNoServer(t *testing.T) {
	for name, do := range map[string]func(c *zklock.Client) func(context.Context, func(context.Context) error) error{
		"mutex": func(c *zklock.Client) func(context.Context, func(context.Context) error) error {
			return c.Mutex(path).Do
		},
		"reentrant": func(c *zklock.Client) func(context.Context, func(context.Context) error) error {
			return c.Reentrant(path).Do
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				c := connect(t, srv, "a", term)
				ctx, cancel := context.WithCancel(t.Context())
				var returned time.Time
				err := do(c)(ctx, func(context.Context) error {
					srv.Partition("a")
					cancel()
					returned = time.Now()
					return nil
				})
				require.NoError(t, err, "the work is done; the release continues")
				require.LessOrEqual(t, time.Since(returned), term)
				srv.HealClient("a")
				time.Sleep(2 * term)
				require.Empty(t, queue(srv, path))
			})
		})
	}
}

// The errors of a call name its method.
//
//zklock:promise P8.1
func TestErrorsNameTheOperation(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		holder, c := connect(t, srv, "holder", term), connect(t, srv, "a", term)
		hold, err := holder.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		permit, err := holder.Semaphore(pathC, 1).Acquire(t.Context(), 1)
		require.NoError(t, err)
		for verb, ask := range map[string]func(context.Context) (*zklock.Hold, error){
			"lock " + path:             c.Mutex(path).Lock,
			"try " + path:              c.Mutex(path).TryLock,
			"lock for reading " + path: c.RWMutex(path).RLock,
			"campaign for " + path: func(ctx context.Context) (*zklock.Hold, error) {
				return c.Election(path, nil).Campaign(ctx, nil)
			},
			"try to campaign for " + path: func(ctx context.Context) (*zklock.Hold, error) {
				return c.Election(path, nil).TryCampaign(ctx, nil)
			},
			"acquire 1 of " + pathC: func(ctx context.Context) (*zklock.Hold, error) {
				return c.Semaphore(pathC, 1).Acquire(ctx, 1)
			},
			"try 1 of " + pathC: func(ctx context.Context) (*zklock.Hold, error) {
				return c.Semaphore(pathC, 1).TryAcquire(ctx, 1)
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := ask(ctx)
			cancel()
			require.ErrorContains(t, err, fmt.Sprintf("zklock: %s: ", verb))
		}
		unlock(t, hold)
		unlock(t, permit)
	})
}

//zklock:promise P8.1
func TestErrorsOfAnEndedHoldNameTheOperation(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		hold, err := c.RWMutex(path).Lock(t.Context())
		require.NoError(t, err)
		leader, err := c.Election(pathC, nil).Campaign(t.Context(), nil)
		require.NoError(t, err)
		unlock(t, hold)
		unlock(t, leader)
		for verb, ask := range map[string]func(context.Context) error{
			"check " + path:     func(context.Context) error { return hold.Check() },
			"confirm " + path:   hold.Confirm,
			"multi " + path:     func(context.Context) error { _, err := hold.Multi(); return err },
			"downgrade " + path: hold.Downgrade,
			"do " + path:        func(ctx context.Context) error { return hold.Do(ctx, func(context.Context) error { return nil }) },
			"proclaim " + pathC: func(context.Context) error { return c.Election(pathC, nil).Proclaim(leader.Context(), nil) },
		} {
			err := ask(t.Context())
			require.ErrorIs(t, err, zklock.ErrReleased, verb)
			require.ErrorContains(t, err, fmt.Sprintf("zklock: %s: %v", verb, zklock.ErrReleased), "once, and no other")
		}
		require.EqualError(t, hold.Unlock(t.Context()), fmt.Sprintf("zklock: unlock %s: %v", path, zklock.ErrReleased))
	})
}

//zklock:promise P13.8
func TestLockAllUnderAHoldOfOneOfItsLocksIsADeadlock(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		for name, held := range map[string]func(context.Context) (*zklock.Hold, error){
			"mutex":  c.Mutex(pathB).Lock,
			"reader": c.RWMutex(pathB).RLock,
			"all":    func(ctx context.Context) (*zklock.Hold, error) { return c.LockAll(ctx, mutexes(c, pathB, pathC)...) },
			"permit": func(ctx context.Context) (*zklock.Hold, error) { return c.Semaphore(pathB, 2).Acquire(ctx, 1) },
		} {
			hold, err := held(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Second)
			resetCounts(srv)
			for _, second := range []zklock.Locker{c.Mutex(pathB), c.Reentrant(pathB), c.RWMutex(pathB).Reader(), c.Semaphore(pathB, 2).Permits(1)} {
				_, err = c.LockAll(hold.Context(), c.Mutex(pathA), second)
				require.ErrorIs(t, err, zklock.ErrDeadlock, name)
				require.ErrorContains(t, err, pathB)
			}
			require.Zero(t, srv.RequestCount(), name)
			unlock(t, hold)
		}
	})
}
