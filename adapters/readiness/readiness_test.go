// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/adapters/readiness"
	"github.com/zklock-go/zklock/internal/evidence/everystep"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

func connect(t *testing.T, srv *zktest.Server, name string) *zklock.Client {
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom(name), FailStop: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

func probe(t *testing.T, h http.Handler) (code int, s readiness.Status) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &s))
	assert.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	return w.Code, s
}

func TestReadyWhileTheLockIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var ready readiness.Handler
		code, s := probe(t, &ready)
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Equal(t, readiness.Status{}, s)

		hold, err := connect(t, srv, "only").Mutex("/lock").Lock(t.Context())
		require.NoError(t, err)
		ready.Set(hold)
		code, s = probe(t, &ready)
		assert.Equal(t, http.StatusOK, code)
		assert.Equal(t, readiness.Status{Holds: true, Path: "/lock", Token: hold.Token(), Remaining: hold.Remaining().Milliseconds()}, s)
		assert.Positive(t, s.Remaining)

		require.NoError(t, hold.Unlock(t.Context()))
		code, s = probe(t, &ready)
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Equal(t, readiness.Status{}, s)
	})
}

// Each process leads in its turn, and one that is cut off is unready before the next leads.
func TestNeverTwoAreReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		names := []string{"a", "b", "c"}
		handlers := make([]readiness.Handler, len(names))
		for i, name := range names {
			client := connect(t, srv, name)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			// Owned by the test; ends with ctx; the cleanup waits for it.
			go func() {
				defer close(ended)
				client.Election("/leader", nil).Run(ctx, nil, func(ctx context.Context) error {
					handlers[i].Set(zklock.HoldOf(ctx))
					<-ctx.Done()
					return nil
				})
			}()
			t.Cleanup(func() { cancel(); <-ended })
		}
		ready := func() (which []int) {
			for i := range handlers {
				if code, _ := probe(t, &handlers[i]); code == http.StatusOK {
					which = append(which, i)
				}
			}
			return which
		}
		synctest.Wait()
		for range names {
			now := ready()
			require.Len(t, now, 1)
			srv.Partition(names[now[0]])
			changed := false
			for range 300 { // half a minute, three session timeouts
				time.Sleep(100 * time.Millisecond)
				next := ready()
				require.LessOrEqual(t, len(next), 1)
				changed = changed || len(next) == 1 && next[0] != now[0]
			}
			assert.True(t, changed)
			srv.HealClient(names[now[0]])
			time.Sleep(time.Minute)
		}
	})
}

func TestAMarginMakesUnreadyBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		hold, err := connect(t, srv, "only").Mutex("/lock").Lock(t.Context())
		require.NoError(t, err)
		ready := readiness.Handler{Margin: 2 * time.Second}
		ready.Set(hold)
		for range 600 { // a healthy holder is ready all the time
			time.Sleep(100 * time.Millisecond)
			code, _ := probe(t, &ready)
			require.Equal(t, http.StatusOK, code)
		}
		srv.Partition("only")
		defer srv.HealClient("only")
		time.Sleep(hold.Remaining() - time.Second)
		require.NoError(t, hold.Check())
		code, s := probe(t, &ready)
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.False(t, s.Holds)
		assert.Positive(t, s.Remaining)
	})
}

func TestARevokedHolderIsReadyUntilItReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := connect(t, srv, "only")
		hold, err := client.Mutex("/lock").Lock(t.Context())
		require.NoError(t, err)
		var ready readiness.Handler
		ready.Set(hold)
		queue, err := operate.Inspect(t.Context(), client, "/lock")
		require.NoError(t, err)
		require.NoError(t, operate.Revoke(t.Context(), client, queue.Contenders[0]))
		<-hold.Revoked()
		code, s := probe(t, &ready)
		assert.Equal(t, http.StatusOK, code)
		assert.True(t, s.Revoked)
		ready.Set(nil)
		code, _ = probe(t, &ready)
		assert.Equal(t, http.StatusServiceUnavailable, code)
	})
}

func TestMethodsOfAProbe(t *testing.T) {
	var ready readiness.Handler
	for method, want := range map[string]int{http.MethodHead: http.StatusServiceUnavailable, http.MethodPost: http.StatusMethodNotAllowed} {
		w := httptest.NewRecorder()
		ready.ServeHTTP(w, httptest.NewRequest(method, "/readyz", nil))
		assert.Equal(t, want, w.Code, method)
		if method == http.MethodHead {
			assert.Empty(t, w.Body.String())
		}
	}
}

// TestNeverTwoAreReadyUnderAnyFault breaks each request of an election whose leader is ready.
func TestNeverTwoAreReadyUnderAnyFault(t *testing.T) {
	everystep.Through(t, 3, func(t *testing.T, srv *zktest.Server, over func()) {
		ctx, cancel := context.WithCancel(t.Context())
		handlers, ended := []*readiness.Handler{{}, {}}, make(chan error, 2)
		for i, name := range []string{everystep.Client, "other"} {
			election := connect(t, srv, name).Election("/leaders/billing", nil)
			// Owned by the test, which waits for it; ends with ctx.
			go func() {
				ended <- election.Run(ctx, nil, func(ctx context.Context) error {
					handlers[i].Set(zklock.HoldOf(ctx))
					defer handlers[i].Set(nil)
					<-ctx.Done()
					return nil
				})
			}()
		}
		ready := 0
		for i := range 400 {
			if i == 3 {
				over()
			}
			ready = 0
			for _, h := range handlers {
				if code, _ := probe(t, h); code == http.StatusOK {
					ready++
				}
			}
			assert.LessOrEqual(t, ready, 1)
			time.Sleep(300 * time.Millisecond)
		}
		assert.Equal(t, 1, ready)
		cancel()
		for range handlers {
			assert.ErrorIs(t, <-ended, context.Canceled)
		}
		for _, h := range handlers {
			assert.False(t, h.Status().Holds)
		}
	})
}

// A process is alive whether it leads or not. It is stuck if its work continues long after the lock was lost.
func TestAliveUnlessTheWorkDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		ready := readiness.Handler{Patience: 20 * time.Second}
		alive := func() int {
			synctest.Wait()
			w := httptest.NewRecorder()
			ready.Live().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/livez", nil))
			return w.Code
		}
		require.Equal(t, http.StatusOK, alive(), "it has no hold")
		client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom("a")})
		require.NoError(t, err)
		defer client.Close()
		hold, err := client.Mutex("/lock").Lock(t.Context())
		require.NoError(t, err)
		ready.Set(hold)
		time.Sleep(time.Minute)
		require.Equal(t, http.StatusOK, alive(), "it holds the lock")
		srv.Partition("a")
		<-hold.Context().Done()
		require.Equal(t, http.StatusOK, alive(), "the work may still stop")
		time.Sleep(20*time.Second + 1)
		require.Equal(t, http.StatusServiceUnavailable, alive(), "the work has not stopped")
		ready.Set(nil)
		require.Equal(t, http.StatusOK, alive(), "it has stopped")
		srv.HealClient("a")

		hold, err = client.Mutex("/lock").Lock(t.Context())
		require.NoError(t, err)
		ready.Set(hold)
		require.NoError(t, hold.Unlock(t.Context()))
		time.Sleep(time.Minute)
		require.Equal(t, http.StatusOK, alive(), "a release is no loss")
	})
}
