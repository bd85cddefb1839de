// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// callers are the ways to call a function under a lock that excludes all others.
func callers() map[string]worker {
	all := maps.Clone(guarded)
	delete(all, "try")
	for name, lock := range map[string]func(c *zklock.Client) zklock.Locker{
		"Do of a mutex":      func(c *zklock.Client) zklock.Locker { return c.Mutex(path) },
		"Do of a writer":     func(c *zklock.Client) zklock.Locker { return c.RWMutex(path) },
		"Do of a reader":     func(c *zklock.Client) zklock.Locker { return c.RWMutex(path).Reader() },
		"Do of permits":      func(c *zklock.Client) zklock.Locker { return c.Semaphore(path+"s", 3).Permits(2) },
		"Do of a reentrant":  func(c *zklock.Client) zklock.Locker { return c.Reentrant(path) },
		"Do of a cohort":     func(c *zklock.Client) zklock.Locker { return c.Cohort(path) },
		"Do of another type": func(c *zklock.Client) zklock.Locker { return plain{c.Mutex(path)} },
	} {
		all[name] = func(c *zklock.Client, ctx context.Context, fn func(ctx context.Context) error) error {
			return zklock.Do(ctx, lock(c), fn)
		}
	}
	all["a slot"] = func(c *zklock.Client, ctx context.Context, fn func(ctx context.Context) error) error {
		return slots.Named(c, path, "x").Do(ctx, fn)
	}
	return all
}

// plain is a lock of the program whose errors are new ones.
type plain struct{ *zklock.Mutex }

func (p plain) Lock(ctx context.Context) (*zklock.Hold, error) {
	hold, err := p.Mutex.Lock(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return hold, err
}

// A deadline that ends the wait for the lock, and one that cuts the work off, can be told apart.
//
//zklock:promise P15.3
func TestAnErrorSaysWhetherTheFunctionWasCalled(t *testing.T) {
	for name, run := range callers() {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				c, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
				held := grantedSoon(t, takeBoth(other))
				soon := func() context.Context {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					t.Cleanup(cancel)
					return ctx
				}
				called := 0
				work := func(ctx context.Context) error {
					called++
					<-ctx.Done()
					return ctx.Err()
				}
				err := run(c, soon(), work)
				require.ErrorIs(t, err, zklock.ErrNotAcquired)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Zero(t, called)
				unlock(t, held)

				err = run(c, soon(), work)
				require.NotErrorIs(t, err, zklock.ErrNotAcquired)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, 1, called)

				if name != "election" { // which campaigns again
					err = run(c, t.Context(), func(ctx context.Context) error {
						_, err := c.Mutex("/inner").Lock(soonOver(ctx))
						require.ErrorIs(t, err, zklock.ErrNotAcquired)
						return fmt.Errorf("inner: %w", errors.Join(err, &fs.PathError{Path: "x", Err: fs.ErrExist}))
					})
					require.NotErrorIs(t, err, zklock.ErrNotAcquired, "the function was called")
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.ErrorIs(t, err, fs.ErrExist)
					var of *fs.PathError
					require.ErrorAs(t, err, &of)
					require.ErrorContains(t, err, "/inner")
				}

				over, cancel := context.WithCancel(t.Context())
				cancel()
				require.ErrorIs(t, run(c, over, work), zklock.ErrNotAcquired)
				require.NoError(t, c.Close())
				err = run(c, t.Context(), work)
				require.ErrorIs(t, err, zklock.ErrNotAcquired)
				require.ErrorIs(t, err, zklock.ErrClosed)
				require.Equal(t, 1, called)
			})
		})
	}
}

func soonOver(ctx context.Context) context.Context {
	ctx, cancel := context.WithDeadline(ctx, time.Now().Add(-1))
	cancel()
	return ctx
}

// Every acquire that fails says so, and its text does not repeat it.
//
//zklock:promise P15.3
func TestEveryAcquireThatFailsWrapsErrNotAcquired(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
		held := grantedSoon(t, takeBoth(other))
		for name, try := range map[string]func(ctx context.Context) (*zklock.Hold, error){
			"try":             c.Mutex(path).TryLock,
			"try reentrant":   c.Reentrant(path).TryLock,
			"try cohort":      c.Cohort(path).TryLock,
			"try writer":      c.RWMutex(path).TryLock,
			"try reader":      c.RWMutex(path).TryRLock,
			"try permits":     func(ctx context.Context) (*zklock.Hold, error) { return c.Semaphore(path+"s", 3).TryAcquire(ctx, 1) },
			"try to campaign": func(ctx context.Context) (*zklock.Hold, error) { return c.Election(path).TryCampaign(ctx, nil) },
			"bad path":        c.Mutex("x").Lock,
			"bad cohort":      c.Cohort("x").Lock,
			"bad reentrant":   c.Reentrant("x").Lock,
			"bad permits":     c.Semaphore(path, 1).Permits(2).Lock,
			"bad value": func(ctx context.Context) (*zklock.Hold, error) {
				return c.Election(path).Campaign(ctx, make([]byte, 1<<20))
			},
			"bad value of a try": func(ctx context.Context) (*zklock.Hold, error) {
				return c.Election(path).TryCampaign(ctx, make([]byte, 1<<20))
			},
			"all of none":          func(ctx context.Context) (*zklock.Hold, error) { return c.LockAll(ctx) },
			"all of two clients":   func(ctx context.Context) (*zklock.Hold, error) { return c.LockAll(ctx, other.Mutex("/x")) },
			"zero":                 new(zklock.Mutex).Lock,
			"deadlock":             func(context.Context) (*zklock.Hold, error) { return other.Mutex(path).Lock(held.Context()) },
			"deadlock of all":      func(context.Context) (*zklock.Hold, error) { return other.LockAll(held.Context(), other.Mutex(path)) },
			"deadlock of a cohort": func(context.Context) (*zklock.Hold, error) { return other.Cohort(path).Lock(held.Context()) },
		} {
			_, err := try(t.Context())
			require.ErrorIs(t, err, zklock.ErrNotAcquired, name)
			require.NotContains(t, err.Error(), zklock.ErrNotAcquired.Error(), name)
			require.LessOrEqual(t, strings.Count(err.Error(), "zklock: "), 2, name)
		}
		require.ErrorIs(t, zklock.Do(t.Context(), nil, nil), zklock.ErrNotAcquired)
		require.ErrorIs(t, zklock.Do(t.Context(), nil, nil), zklock.ErrInvalid)
	})
}

// The slot was done in the meantime: the function is not called under the lock.
//
//zklock:promise P15.3
func TestASlotThatIsNotOpenSaysThatItsFunctionWasNotCalled(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
		job := slots.Named(c, path, "x")
		held := grantedSoon(t, other.Mutex(path).Lock)
		waiting := make(chan error, 1)
		go func() { waiting <- job.Do(t.Context(), func(context.Context) error { t.Error("called"); return nil }) }()
		time.Sleep(time.Second)
		require.NoError(t, slots.Named(other, path, "x").Mark(t.Context(), held))
		unlock(t, held)
		for _, err := range []error{<-waiting, job.Do(t.Context(), nothing)} {
			require.ErrorIs(t, err, slots.ErrDone)
			require.ErrorIs(t, err, zklock.ErrNotAcquired)
		}
		err := slots.Named(c, path, "y").Do(t.Context(), func(ctx context.Context) error {
			return slots.Named(c, path, "y").Mark(ctx, zklock.HoldOf(ctx))
		})
		require.NoError(t, err, "a mark of the function's own")
	})
}
