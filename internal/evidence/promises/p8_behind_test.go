// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

//zklock:promise P8.2
func TestTheErrorOfAWaitNamesTheContenderAhead(t *testing.T) {
	t.Parallel()
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		_, err := connect(t, srv, "worker-1", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		waits := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := connect(t, srv, "worker-2", term).Mutex(path).Lock(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return err
		}
		require.EqualError(t, waits(), "zklock: lock "+path+": context deadline exceeded (waited for worker-1)")

		lockLater(t.Context(), connect(t, srv, "between", term).Mutex(path).Lock)
		time.Sleep(time.Second)
		require.EqualError(t, waits(), "zklock: lock "+path+": context deadline exceeded (waited for worker-1 and 1 more)")
	})
}

// A goroutine of a cohort waits for another goroutine of its process, or with it for another process.
//
//zklock:promise P8.2
func TestTheErrorOfACohortsGoroutineNamesWhatItWaitedFor(t *testing.T) {
	t.Parallel()
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		other, c := connect(t, srv, "worker-1", term), connect(t, srv, "worker-2", term)
		lock := c.Cohort(path, nil).Lock
		ends := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := lock(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return err
		}
		const begin = "zklock: lock " + path + ": context deadline exceeded (waited for "

		hold, err := lock(t.Context())
		require.NoError(t, err)
		require.EqualError(t, ends(), begin+"a goroutine of this process that holds the lock)")
		second := lockLater(t.Context(), lock)
		time.Sleep(time.Second)
		require.Contains(t, c.String(), path+" has 1 waiting goroutines: the first waits for a goroutine of this process that holds the lock")
		require.EqualError(t, ends(), begin+"a goroutine of this process that holds the lock, and for 1 goroutines of this process)")
		unlock(t, hold)
		<-second.done
		unlock(t, second.hold)
		time.Sleep(time.Second)

		held, err := other.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.EqualError(t, ends(), begin+"worker-1)")
		time.Sleep(time.Second) // until its node is gone
		second = lockLater(t.Context(), lock)
		time.Sleep(time.Second)
		require.EqualError(t, ends(), begin+"worker-1, and for 1 goroutines of this process)")
		require.Contains(t, c.String(), path+" has 1 waiting goroutines: the first waits for worker-1")
		unlock(t, held)
		<-second.done
		unlock(t, second.hold)
		require.NotContains(t, c.String(), "wait")
	})
}
