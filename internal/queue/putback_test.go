// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/zktest"
)

// Until the watch is set, a server is asked again after a pause.
func TestASelfWatchIsSetAfterErrors(t *testing.T) {
	inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, e *Engine, first *Grant) {
		release(t, first)
		g := obtain(t, e)
		left := srv.Next(2*asks, throttled, zktest.OpGetData)
		g.WatchSelf()
		time.Sleep(testTerm)
		require.Zero(t, left())
		require.True(t, g.lead.isWatched())
		release(t, g)
	})
}

// The data is written before the watch is set, which then shows it.
func TestASelfWatchFindsWhatWasWrittenBeforeIt(t *testing.T) {
	inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, e *Engine, first *Grant) {
		release(t, first)
		g := obtain(t, e)
		own := g.Nodes()[0]
		require.NoError(t, srv.PutNode(own.Path(), node.CuratorRevocation))
		g.WatchSelf()
		time.Sleep(time.Second)
		require.True(t, own.Revocation.Requested.IsSet())
		now, _ := srv.Node(own.Path())
		require.Equal(t, node.WithRevocation(own.OwnData()), now.Data)
		require.True(t, g.lead.isWatched())
		release(t, g)
	})
}

// A server that is throttled is not asked again at once to put data back.
func TestDataIsPutBackAfterPauses(t *testing.T) {
	inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, _ *Engine, g *Grant) {
		own := g.Nodes()[0]
		var sets atomic.Int32
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op != zktest.OpSetData {
				return zktest.Pass
			}
			if sets.Add(1) < 60 {
				return zktest.Answer(zktest.CodeRuntimeInconsistency)
			}
			return zktest.Pass
		})
		require.NoError(t, srv.PutNode(own.Path(), node.CuratorRevocation))
		time.Sleep(time.Second)
		require.Less(t, sets.Load(), int32(20))
		require.Greater(t, sets.Load(), int32(1))
		time.Sleep(time.Hour / 4)
		now, _ := srv.Node(own.Path())
		require.Equal(t, node.WithRevocation(own.OwnData()), now.Data)
	})
}

// A server deletes a hold's node together with its session, long before the lease has run out. The client learns of the session's end much later.
func TestASelfWatchRecordsWhenASessionEnds(t *testing.T) {
	inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, _ *Engine, g *Grant) {
		s := g.Nodes()[0].Sess
		srv.ExpireSession(s.ID)
		synctest.Wait()
		srv.Partition("a")
		time.Sleep(2 * testTerm)
		require.True(t, g.Nodes()[0].IsGone())
		srv.HealClient("a")
		time.Sleep(testTerm)
		require.True(t, s.IsOver())
		require.Positive(t, s.EndedEarly())
		_ = outcomeOf(g, true)
	})
}
