// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// Somebody deletes the node of a hold while its client has no connection. Each connection that follows is lost before the client learns of
// it, after a transaction for another lock has been answered. The transaction proves the session, but not that the node exists.
//
//zklock:promise P2.2
func TestAHoldWhoseNodeWasDeletedIsNotExtendedByOtherRequests(t *testing.T) {
	for name, clients := range map[string]func(t *testing.T, srv *zktest.Server) (a, b *zklock.Client){
		"of its client": func(t *testing.T, srv *zktest.Server) (a, b *zklock.Client) {
			c := connect(t, srv, "a", term)
			return c, c
		},
		"of another client on the connection": func(t *testing.T, srv *zktest.Server) (a, b *zklock.Client) {
			shared := shareOn(t, srv, "a", term)
			return shared.attach(t, nil), shared.attach(t, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // the order of requests on a new connection differs
				virtual(t, zktest.Options{Servers: 3, Latency: fixed(5 * time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
					extendOften(t, srv, clients)
				})
			}
		})
	}
}

// extendOften holds a lock with each of two clients, deletes the node of the first, and lets transactions for the second be answered.
func extendOften(t *testing.T, srv *zktest.Server, clients func(t *testing.T, srv *zktest.Server) (a, b *zklock.Client)) {
	a, b := clients(t, srv)
	hold, err := a.Mutex("/locks/a").Lock(t.Context())
	require.NoError(t, err)
	other, err := b.Mutex("/locks/b").Lock(t.Context())
	require.NoError(t, err)
	time.Sleep(term)
	concerns := func(p string) bool { return strings.HasPrefix(p, "/locks/a/") }
	remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if r.Op == zktest.OpSetWatches || concerns(r.Path) || slices.ContainsFunc(r.Paths, concerns) {
			return zktest.LoseReply
		}
		return zktest.Pass
	})
	srv.DropConnections()
	require.NoError(t, srv.DeleteNode(hold.Node()))
	for began := time.Now(); hold.Context().Err() == nil; time.Sleep(term / 200) {
		require.Less(t, time.Since(began), term)
		_ = other.Confirm(t.Context())
	}
	remove()
	_ = other.Unlock(t.Context()) // it may be lost, because heartbeats check both nodes in one transaction
}
