// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

const leases = testDir + node.LeasesDir

// TestALockAndASemaphoreDoNotShareAPath has each state of the directory in which permits would be held.
func TestALockAndASemaphoreDoNotShareAPath(t *testing.T) {
	const permit, other = "/x-lease-0000000001", "/orders"
	numbered := node.LimitData(3)
	during := func(srv *zktest.Server, op zktest.Op, path string, do func()) {
		done := false
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == op && r.Path == path && !done {
				done = true
				do()
			}
			return zktest.Pass
		})
	}
	for name, c := range map[string]struct {
		data    []byte
		child   string
		prepare func(t *testing.T, srv *zktest.Server)
		refused bool // the lock is
		kept    bool // the directory is
	}{
		"empty":                        {},
		"no permit is held":            {data: numbered},
		"a permit is held":             {data: numbered, child: permit, refused: true, kept: true},
		"a permit without a number":    {child: permit, refused: true, kept: true},
		"other children":               {child: other, kept: true},
		"other children with a number": {data: numbered, child: other, refused: true, kept: true},
		"other data":                   {data: []byte("value"), kept: true},
		"a deletion that is refused": {data: numbered, kept: true, prepare: func(t *testing.T, srv *zktest.Server) {
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if r.Op == zktest.OpDelete && r.Path == leases {
					return refused
				}
				return zktest.Pass
			})
		}},
		"a number is stored meanwhile": {prepare: func(t *testing.T, srv *zktest.Server) {
			during(srv, zktest.OpDelete, leases, func() { _ = srv.PutNode(leases, numbered) })
		}},
		"a permit is made meanwhile": {kept: true, refused: true, prepare: func(t *testing.T, srv *zktest.Server) {
			during(srv, zktest.OpDelete, leases, func() { _ = srv.PutNode(leases+permit, nil) })
		}},
		"a permit is gone meanwhile": {child: permit, prepare: func(t *testing.T, srv *zktest.Server) {
			during(srv, zktest.OpGetChildren2, leases, func() { _ = srv.DeleteNode(leases + permit) })
		}},
		"a directory is gone meanwhile": {data: numbered, prepare: func(t *testing.T, srv *zktest.Server) {
			during(srv, zktest.OpGetData, leases, func() { _ = srv.DeleteNode(leases) })
		}},
		"throttled": {data: numbered, prepare: func(t *testing.T, srv *zktest.Server) {
			srv.Next(10, throttled, zktest.OpGetData)
		}},
	} {
		for verb, obtain := range map[string]func(t *testing.T, e *Engine) (*Grant, error){
			"waits": func(t *testing.T, e *Engine) (*Grant, error) { return e.Obtain(t.Context(), wantLock(testDir)) },
			"tries": func(t *testing.T, e *Engine) (*Grant, error) { return e.TryObtain(t.Context(), wantLock(testDir)) },
		} {
			t.Run(name+", "+verb, func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					e := startEngine(t, srv, "a", nil)
					require.NoError(t, srv.PutNode(leases, c.data))
					if c.child != "" {
						require.NoError(t, srv.PutNode(leases+c.child, nil))
					}
					if c.prepare != nil {
						c.prepare(t, srv)
					}
					g, err := obtain(t, e)
					_, there := srv.Node(leases)
					require.Equal(t, c.kept, there)
					if c.refused {
						require.ErrorIs(t, err, outcome.ErrMismatch)
						require.ErrorContains(t, err, "path is used by a semaphore")
						time.Sleep(testTerm)
						require.Equal(t, []string{"leases"}, srv.Children(testDir))
						return
					}
					require.NoError(t, err)
					release(t, g)
				})
			})
		}
	}
}

func TestAClientWithoutALockDelayRefusesALockWithOne(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		delayed, next, plain := startDelayed(t, srv, "a"), startDelayed(t, srv, "c"), startEngine(t, srv, "b", nil)
		held := obtain(t, delayed)
		_, err := plain.Obtain(t.Context(), wantLock(testDir))
		require.ErrorIs(t, err, outcome.ErrMismatch)
		require.ErrorContains(t, err, "this client has none")
		_, err = plain.TryObtain(t.Context(), wantLock(testDir))
		require.ErrorIs(t, err, outcome.ErrMismatch)
		reader := wantLock(testDir)
		reader.Recipe = testReader
		_, err = plain.TryObtain(t.Context(), reader)
		require.ErrorIs(t, err, outcome.ErrLocked, "a recipe without a delay waits for every node")
		waits := later(func() (*Grant, error) { return next.Obtain(t.Context(), wantLock(testDir)) })
		time.Sleep(time.Second)
		release(t, held)
		waits.release(t)
		g, err := plain.Obtain(t.Context(), wantLock(testDir))
		require.NoError(t, err)
		release(t, g)
	})
}
