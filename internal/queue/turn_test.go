// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/zktest"
)

var errMine = errors.New("an error of the call")

// TestATryEndsWithItsConnection has each end of a call that does not wait for another connection.
func TestATryEndsWithItsConnection(t *testing.T) {
	during := func(do func(srv *zktest.Server), returns error) func(ctx context.Context, e *Engine, srv *zktest.Server) (int, error) {
		return func(ctx context.Context, e *Engine, srv *zktest.Server) (int, error) {
			do(srv)
			<-ctx.Done()
			return 5, returns
		}
	}
	at := func(n int, err error) func(context.Context, *Engine, *zktest.Server) (int, error) {
		return func(context.Context, *Engine, *zktest.Server) (int, error) { return n, err }
	}
	for name, c := range map[string]struct {
		before func(t *testing.T, e *Engine, srv *zktest.Server)
		try    func(ctx context.Context, e *Engine, srv *zktest.Server) (int, error)
		value  int
		is     []error
		isnt   []error
	}{
		"it succeeds":           {try: at(7, nil), value: 7},
		"an error of its own":   {try: at(7, errMine), is: []error{outcome.ErrNotConnected, errMine}},
		"a refusal":             {try: at(7, zk.ErrNoAuth), is: []error{zk.ErrNoAuth}, isnt: []error{outcome.ErrNotConnected}},
		"the lock is held":      {try: at(7, outcome.ErrLocked), is: []error{outcome.ErrLocked}, isnt: []error{outcome.ErrNotConnected}},
		"its session is over":   {try: at(7, outcome.ErrSessionOver), is: []error{outcome.ErrNotConnected, outcome.ErrSessionOver}},
		"its node is gone":      {try: at(7, outcome.ErrGone), is: []error{outcome.ErrNotConnected, outcome.ErrGone}},
		"no connection already": {try: at(7, outcome.ErrNotConnected), is: []error{outcome.ErrNotConnected}},
		"the connection is lost": {try: during(func(srv *zktest.Server) { srv.DropConnections() }, context.Canceled),
			is: []error{errCutOff}, isnt: []error{context.Canceled}},
		"the session ends": {try: func(ctx context.Context, e *Engine, srv *zktest.Server) (int, error) {
			srv.ExpireSession(srv.Sessions()[0].ID)
			<-ctx.Done()
			return 5, context.Cause(ctx)
		}, is: []error{errCutOff}},
		"it is not served": {try: during(func(*zktest.Server) {}, outcome.WaitedFor(context.Canceled, "a reply")), is: []error{errUnserved}},
		"no connection": {before: func(t *testing.T, e *Engine, srv *zktest.Server) {
			srv.Partition("a")
			time.Sleep(2 * testTerm)
		}, try: at(7, nil), is: []error{outcome.ErrNotConnected}},
		"the client is closed": {before: func(t *testing.T, e *Engine, srv *zktest.Server) { e.Requests.Calls.Close() }, try: at(7, nil), is: []error{outcome.ErrClosed}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				e := startEngine(t, srv, "a", nil)
				if c.before != nil {
					c.before(t, e, srv)
				}
				began := time.Now()
				n, err := WithoutWaiting(t.Context(), e, func(ctx context.Context) (int, error) { return c.try(ctx, e, srv) })
				require.Equal(t, c.value, n)
				if c.is == nil {
					require.NoError(t, err)
				}
				for _, is := range c.is {
					require.ErrorIs(t, err, is)
				}
				for _, isnt := range c.isnt {
					require.NotErrorIs(t, err, isnt)
				}
				if name == "it is not served" {
					require.Equal(t, 5*testTerm, time.Since(began))
					require.ErrorContains(t, err, "(waited for a reply)")
				}
			})
		})
	}
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		ctx, cancel := context.WithCancel(t.Context())
		n, err := WithoutWaiting(ctx, e, func(ctx context.Context) (int, error) {
			cancel()
			<-ctx.Done()
			return 5, ctx.Err()
		})
		require.Equal(t, 5, n)
		require.Equal(t, context.Canceled, err, "the caller's own end")
		_, err = e.Obtain(ctx, wantLock(testDir))
		require.ErrorIs(t, err, context.Canceled)
		_, err = e.TryObtain(ctx, wantLock(testDir))
		require.ErrorIs(t, err, context.Canceled)
		_, there := srv.Node(testDir)
		require.False(t, there, "nothing was sent")
	})
}

// A node that was to be replaced leaves the queue even if nothing replaces it.
func TestANodeThatIsNotReplacedIsDeleted(t *testing.T) {
	for name, obtain := range map[string]func(*Engine, context.Context, *Want) (*Grant, error){"waits": (*Engine).Obtain, "tries": (*Engine).TryObtain} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				e, calls := startEngine(t, srv, "a", nil), 0
				g := obtainAs(t, e, testLock)
				g.Retire()
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				w := wantLock(testDir)
				w.Replaces, w.Before = g, func() { calls++ }
				_, err := obtain(e, ctx, w)
				require.ErrorIs(t, err, context.Canceled)
				time.Sleep(testTerm)
				require.Empty(t, srv.Children(testDir))
				require.Zero(t, calls, "no attempt was made")

				w = wantLock(testDir)
				w.Before = func() { calls++ }
				g, err = obtain(e, t.Context(), w)
				require.NoError(t, err)
				require.Equal(t, 1, calls)
				require.Empty(t, w.WaitsFor())
				release(t, g)
			})
		})
	}
}

func obtainAs(t *testing.T, e *Engine, r *Recipe) *Grant {
	t.Helper()
	o := e.wants(t, r)
	<-o.done
	require.NoError(t, o.err)
	return o.grant
}

// A waiter whose node or session is lost queues again, and a revocation request for its first node is a request for its hold.
func TestAWaiterThatLosesItsPlaceQueuesAgain(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, srv *zktest.Server, path string){
		"its node is deleted": func(t *testing.T, srv *zktest.Server, path string) { require.NoError(t, srv.DeleteNode(path)) },
		"its session ends": func(t *testing.T, srv *zktest.Server, path string) {
			n, _ := srv.Node(path)
			srv.ExpireSession(n.EphemeralOwner)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				var log strings.Builder
				a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", func(e *Engine) { e.Requests.Log = slog.New(slog.NewTextHandler(&log, nil)) })
				held := obtain(t, a)
				waits := later(func() (*Grant, error) { return b.Obtain(t.Context(), wantLock(testDir)) })
				time.Sleep(time.Second)
				first := testDir + "/" + srv.Children(testDir)[1]
				if srv.Children(testDir)[0] != held.Nodes()[0].Name {
					first = testDir + "/" + srv.Children(testDir)[0]
				}
				require.NoError(t, srv.PutNode(first, []byte("__REVOKE__\n")))
				time.Sleep(time.Second)
				require.Len(t, b.Status(), 1)
				require.Regexp(t, "^"+first+` has waited 2s for test, lease=`, b.Status()[0])
				lose(t, srv, first)
				time.Sleep(testTerm)
				require.Len(t, srv.Children(testDir), 2)
				require.NotContains(t, srv.Tree(), first)
				synctest.Wait()
				require.Equal(t, 1, strings.Count(log.String(), "zklock: place in queue lost, queueing again"), log.String())
				require.Len(t, b.Status(), 1)
				require.NotContains(t, b.Status()[0], first)
				require.Regexp(t, " has waited 1[12]", b.Status()[0])
				release(t, held)
				<-waits.done
				require.NoError(t, waits.err)
				require.True(t, waits.grant.Nodes()[0].Revocation.Requested.IsSet())
				require.False(t, session.IsClosed(waits.grant.Nodes()[0].Gone.Done()))
				release(t, waits.grant)
			})
		})
	}
}
