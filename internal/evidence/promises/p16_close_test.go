// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// A waiter selects only on its context and on one node's watch, so the end of the client must reach it through the watch,
// whatever the watch's state.
//
//zklock:promise P16.5
func TestCloseEndsEveryWaitAtOnce(t *testing.T) {
	t.Parallel()
	for when, happens := range map[string]func(*zktest.Server){
		"at rest":                          func(*zktest.Server) { time.Sleep(term) },
		"when the connection has gone":     func(srv *zktest.Server) { srv.DropConnections() },
		"when all watches are set again":   func(srv *zktest.Server) { srv.DropConnections(); time.Sleep(2 * time.Second) },
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
					for range 2 { // which may not have a reply to their first request yet
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
//
//zklock:promise P16.5
func TestTwoConcurrentClosesBothWait(t *testing.T) {
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

// The servers end the session after the granted timeout, which can differ from the requested one. Close waits for the granted
// one.
//
//zklock:promise P16.6 A15
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

// Shutdown waits for as long as its context allows, which may be longer or shorter than Close would wait.
//
//zklock:promise P16.6
func TestShutdownWaitsAsLongAsItsContextAllows(t *testing.T) {
	lost := func(t *testing.T, srv *zktest.Server) *zklock.Client {
		client := connect(t, srv, "a", term)
		_, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		srv.Partition("a")
		return client
	}
	for _, limit := range []time.Duration{0, time.Second, 8 * time.Second} {
		t.Run(fmt.Sprint("no server answers within ", limit), func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				client := lost(t, srv)
				ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("the pod ends"))
				defer cancel()
				start := time.Now()
				err := client.Shutdown(ctx)
				require.ErrorContains(t, err, "zklock: shutdown: nodes remain until their session ends: the pod ends")
				require.GreaterOrEqual(t, time.Since(start), limit)
				require.LessOrEqual(t, time.Since(start), limit+time.Second)
				require.Equal(t, err, client.Shutdown(ctx), "it stays so")
				require.NoError(t, client.Close())
			})
		})
	}
	t.Run("a server answers after Close would have stopped", func(t *testing.T) {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			client := lost(t, srv)
			start := time.Now()
			time.AfterFunc(7*time.Second, func() { srv.HealClient("a") })
			require.NoError(t, client.Shutdown(t.Context()))
			require.GreaterOrEqual(t, time.Since(start), 7*time.Second)
			require.Empty(t, queue(srv, path))
			require.Empty(t, srv.Sessions())
		})
	})
	t.Run("Close limits a Shutdown that waits", func(t *testing.T) {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			client := lost(t, srv)
			start, done := time.Now(), make(chan error, 1)
			go func() { done <- client.Shutdown(context.Background()) }() // ends with Close, below
			time.Sleep(time.Minute)
			require.NoError(t, client.Close())
			require.ErrorIs(t, <-done, zklock.ErrClosed)
			require.LessOrEqual(t, time.Since(start), time.Minute+6*time.Second)
		})
	})
}

//zklock:promise P16.6 A15
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

// A client on a program's connection does not end that connection, so its requests may stay unanswered.
//
//zklock:promise P16.6
func TestShutdownKeepsItsLimitOnAConnectionThatStays(t *testing.T) {
	for _, unlocks := range []bool{false, true} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			_, client := attached(t, srv)
			hold, err := client.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			srv.Member(0).Freeze()
			if unlocks {
				go func() { _ = hold.Unlock(context.Background()) }() // ends with Shutdown
				synctest.Wait()
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			require.ErrorIs(t, client.Shutdown(ctx), context.DeadlineExceeded)
			require.LessOrEqual(t, time.Since(began), time.Second)
			srv.Member(0).Thaw()
		})
	}
}
