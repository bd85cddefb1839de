package zklock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// Those who hold a mutex and those who hold permits at one path would not see each other.
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
				require.ErrorIs(t, err, zklock.ErrInvalid)
				require.ErrorContains(t, err, "semaphore")
				unlock(t, permit)
				noGhost(t, srv, path)
				hold, err := lock(b)(t.Context())
				require.NoError(t, err, "nobody uses the semaphore any more")
				_, err = a.Semaphore(path, 2).Acquire(t.Context(), 1)
				require.ErrorIs(t, err, zklock.ErrInvalid)
				unlock(t, hold)
			})
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
				hold, err := lock(b)(t.Context())
				require.NoError(t, err)
				_, err = a.Semaphore(path, 2).Acquire(t.Context(), 1)
				require.ErrorIs(t, err, zklock.ErrInvalid)
				_, err = a.Semaphore(path, 2).TryAcquire(t.Context(), 1)
				require.ErrorIs(t, err, zklock.ErrInvalid)
				require.NoError(t, hold.Check())
				unlock(t, hold)
			})
		})
	}
}

// Names alone prove nothing: other locks can have such names.
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
