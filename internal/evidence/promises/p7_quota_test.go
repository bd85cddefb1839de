// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// Servers from 3.7 on can enforce quotas (enforceQuota): they refuse a request that would exceed one, and a retry does not help.
//
//zklock:promise P7.9
func TestAnAcquireThatExceedsAQuotaFailsAtOnce(t *testing.T) {
	var full atomic.Bool
	over := func(path string, data []byte) bool { return full.Load() && strings.HasPrefix(path, "/locks") }
	virtual(t, lab.With(zktest.Options{}, lab.Options{OverQuota: over}), func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client)
		full.Store(true)
		for name, lock := range map[string]func(context.Context) (*zklock.Hold, error){
			"lock": client.Mutex(path).Lock, "try": client.Mutex(path).TryLock, "another": client.Mutex("/locks/new/one").Lock,
			"permit": client.Semaphore("/locks/permits", 2).Permits(1).Lock,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := lock(ctx)
			cancel()
			require.ErrorContains(t, err, "quota", name)
			require.NotErrorIs(t, err, context.DeadlineExceeded, name)
		}
		full.Store(false)
		unlockSoon(t, client)
	})
}

// A hand-off note in the directory may exceed a quota of bytes.
//
//zklock:promise P7.9
func TestAReleaseWhoseNoteExceedsAQuotaSucceeds(t *testing.T) {
	var notes atomic.Int64
	over := func(dir string, data []byte) bool {
		if dir != path || len(data) == 0 {
			return false
		}
		notes.Add(1)
		return true
	}
	virtual(t, lab.With(zktest.Options{}, lab.Options{OverQuota: over}), func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		var all []*attempt
		for range 6 {
			all = append(all, lockLater(t.Context(), client.Mutex(path).Lock))
			synctest.Wait()
		}
		for i, a := range all {
			<-a.done
			require.NoError(t, a.err)
			ctx, cancel := context.WithTimeout(t.Context(), 3*term)
			require.NoError(t, a.hold.Unlock(ctx), i)
			cancel()
		}
		noGhost(t, srv, path)
		require.NotZero(t, notes.Load())
	})
}

// The record of a release may exceed a quota of bytes. The lock is released nevertheless.
//
//zklock:promise P7.9
func TestAReleaseWhoseRecordExceedsAQuotaSucceeds(t *testing.T) {
	var full atomic.Bool
	over := func(dir string, data []byte) bool { return full.Load() && strings.HasSuffix(dir, ".zklock-delay") }
	virtual(t, lab.With(zktest.Options{}, lab.Options{OverQuota: over}), func(t *testing.T, srv *zktest.Server) {
		client := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, LockDelay: time.Second})
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		full.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = hold.Unlock(ctx)
		require.NoError(t, err)
		noGhost(t, srv, path)
	})
}

// A throttling server has not executed the request, so the client must not look for its result.
//
//zklock:promise P7.9
func TestAThrottledCreateIsNotSearchedFor(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client)
		remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpCreate || len(r.Ops) > 1 {
				return zktest.Answer(-127)
			}
			return zktest.Pass
		})
		srv.ResetCounts()
		waiter := lockLater(t.Context(), client.Mutex(path).Lock)
		time.Sleep(10 * time.Minute)
		require.Less(t, srv.Requests()[zktest.OpGetChildren2], 2*srv.Requests()[zktest.OpCreate])
		remove()
		<-waiter.done
		require.NoError(t, waiter.err)
		unlock(t, waiter.hold)
		noGhost(t, srv, path)
	})
}
