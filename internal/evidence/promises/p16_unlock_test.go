// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// logged collects the lines of a log handler.
type logged struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

// endings are the ways to end a hold, with a context that never ends.
var endings = map[string]func(h *zklock.Hold) error{
	"unlock": func(h *zklock.Hold) error { return h.Unlock(context.Background()) },
	"do": func(h *zklock.Hold) error {
		return h.Do(context.Background(), func(context.Context) error { return nil })
	},
}

// If no server answers a release, Unlock returns when the servers have released the lock by themselves. Do does the same. Its
// function has done its work, so it returns nil and logs that the release continues.
//
//zklock:promise P16.4 P15.5
func TestUnlockReturnsThoughThereIsNoServer(t *testing.T) {
	for name, way := range map[string]way{"mutex": asMutex, "reader": asReader, "several, and permits": takeBoth} {
		for how, end := range endings {
			t.Run(name+" "+how, func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					var log logged
					hold, err := way(connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Logger: slog.New(slog.NewTextHandler(&log, nil))}))(t.Context())
					require.NoError(t, err)
					time.Sleep(time.Minute)
					srv.Partition("a")
					next := lockLater(t.Context(), takeBoth(connect(t, srv, "b", term)))
					began, left := time.Now(), hold.Remaining()
					err = end(hold)
					if how == "do" {
						require.NoError(t, err)
						synctest.Wait()
						require.Contains(t, log.String(), "zklock: lock not released yet")
					} else {
						require.ErrorIs(t, err, zklock.ErrUncertain)
						require.NotErrorIs(t, err, zklock.ErrLost, "nobody else has held meanwhile")
						require.ErrorContains(t, err, "unlock")
					}
					require.LessOrEqual(t, time.Since(began), term)
					require.GreaterOrEqual(t, time.Since(began), left)
					require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrNotHeld)
					<-next.done
					require.NoError(t, next.err)
					require.Greater(t, next.at.Sub(began), left, "it was free before")
					unlock(t, next.hold)
					srv.HealClient("a")
					noGhost(t, srv, path)
				})
			})
		}
	}
}

// Unlock waits for the servers' reply as long as it can still come.
//
//zklock:promise P16.4
func TestUnlockWaitsForServersThatComeBackInTime(t *testing.T) {
	for how, end := range endings {
		t.Run(how, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				hold, err := connect(t, srv, "a", term).Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				time.Sleep(time.Minute)
				srv.Partition("a")
				heal := time.AfterFunc(term/4, func() { srv.HealClient("a") })
				defer heal.Stop()
				require.NoError(t, end(hold))
				require.Empty(t, queue(srv, path))
			})
		})
	}
}

// If a server stops replying during a release, the client moves to another server, as during a hold.
//
//zklock:promise P16.4
func TestUnlockContinuesThroughAnotherServer(t *testing.T) {
	for phase := range 8 {
		virtual(t, zktest.Options{Servers: 3, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
			leader := leaderIs(srv, 3)
			follower, other := (leader+1)%3, (leader+2)%3
			var uses atomic.Int32
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				uses.Store(int32(r.Member))
				return zktest.Pass
			})
			hold, err := connect(t, srv, "a", term, follower, other).Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			time.Sleep(term + time.Duration(phase)*term/16)
			srv.Member(int(uses.Load())).Freeze()
			require.NoError(t, hold.Unlock(t.Context()))
			require.Empty(t, queue(srv, path))
		})
	}
}

// The end of the hold, which Unlock itself brings about, does not end its wait.
//
//zklock:promise P16.3
func TestUnlockUnderTheHoldsOwnContextWaits(t *testing.T) {
	for name, take := range map[string]func(c *zklock.Client) lockFunc{
		"mutex":     func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock },
		"reentrant": func(c *zklock.Client) lockFunc { return c.Reentrant(path).Lock },
		"cohort":    func(c *zklock.Client) lockFunc { return c.Cohort(path, &zklock.CohortOptions{Keep: -1}).Lock },
		"several":   all,
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				c := connect(t, srv, "a", term)
				hold, err := take(c)(t.Context())
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(hold.Context(), time.Minute)
				defer cancel()
				require.NoError(t, hold.Unlock(ctx))
				if name != "cohort" { // which does not wait for a server
					require.Empty(t, queue(srv, path))
				}

				hold, err = take(c)(t.Context())
				require.NoError(t, err)
				require.ErrorIs(t, hold.Do(t.Context(), func(ctx context.Context) error {
					return errors.Join(zklock.HoldOf(ctx).Unlock(ctx), errWork)
				}), errWork)
				if name != "cohort" {
					require.Empty(t, queue(srv, path))
				}
				noGhost(t, srv, path)
			})
		})
	}
}

//zklock:promise P16.3
func TestUnlockUnderTheHoldsOwnContextEndsAtItsDeadline(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "a", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		srv.Partition("a")
		ctx, cancel := context.WithTimeout(hold.Context(), time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, hold.Unlock(ctx), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		srv.HealClient("a")
		noGhost(t, srv, path)
	})
}

// Every method of a released hold returns both errors.
//
//zklock:promise P16.2
func TestAReleasedHoldReportsItsReleaseAndErrNotHeld(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "a", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Unlock(t.Context()))
		for _, err := range []error{hold.Check(), hold.Confirm(t.Context()), hold.Unlock(t.Context()), context.Cause(hold.Context())} {
			require.ErrorIs(t, err, zklock.ErrReleased)
			require.ErrorIs(t, err, zklock.ErrNotHeld)
		}
		require.Zero(t, hold.Remaining())
	})
}
