// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/zktest"
)

// TestAnEpochCountsAfterAReconnectOnly lets a server's count of its writes increase without a reconnect.
func TestAnEpochCountsAfterAReconnectOnly(t *testing.T) {
	moved, here, there := make(chan struct{}), new(Session), new(Session)
	lost := &PendingCreate{Sess: here, Epoch: 1, Moved: moved}
	unknown := &PendingCreate{Sess: here, Moved: moved}
	require.False(t, lost.isOutdated(here, 2), "no reconnect")
	close(moved)
	require.True(t, lost.isOutdated(here, 2))
	require.False(t, lost.isOutdated(there, 2), "another session")
	require.False(t, lost.isOutdated(here, 1), "the same leader")
	require.False(t, unknown.isOutdated(here, 2), "no write was answered")
}

// startSearcher starts a client and its server, which has the directory.
func startSearcher(t *testing.T) (*zktest.Server, *client) {
	srv := zktest.Start(t, zktest.Options{})
	require.NoError(t, srv.PutNode(testDir, nil))
	return srv, startClient(t, srv, "a")
}

// loseCreate makes the client search for a node whose create may still be executed.
func (c *client) loseCreate(t *testing.T) {
	s := c.session(t)
	c.Add(&PendingCreate{By: c.Requests, Dir: testDir, Prefix: node.NamePrefix + node.NewGUID(node.GUIDMark), Sess: s, Epoch: s.Epoch(), Moved: s.Reattached()})
}

// A client whose create may still be executed searches for the node twice, and again only after the session has moved to another
// connection.
func TestASearchForALostCreateEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, c := startSearcher(t)
		var searches atomic.Int64
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpMulti { // a search asks the quorum first
				searches.Add(1)
			}
			return zktest.Pass
		})
		c.loseCreate(t)
		time.Sleep(testTerm)
		require.EqualValues(t, 2, searches.Swap(0))
		time.Sleep(24 * time.Hour)
		require.Zero(t, searches.Load(), "the session has not moved")
		srv.DropConnections()
		time.Sleep(testTerm)
		require.EqualValues(t, 2, searches.Load())
	})
}

// After a reconnect a search may run twice at once, because the sweeper is woken meanwhile. A node can appear after both.
func TestALostCreateIsSearchedForLaterAlsoIfTheSweeperRanTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, c := startSearcher(t)
		c.loseCreate(t)
		time.Sleep(testTerm)
		searches := make(chan time.Time, 10)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpMulti {
				searches <- time.Now()
				if len(searches) == 1 {
					c.PendingCreates.sweeper.Wake()
				}
			}
			return zktest.Pass
		})
		srv.DropConnections()
		time.Sleep(testTerm)
		require.Len(t, searches, 3)
		first := <-searches
		require.Less(t, (<-searches).Sub(first), testTerm/8)
		require.GreaterOrEqual(t, (<-searches).Sub(first), testTerm/4)
	})
}
