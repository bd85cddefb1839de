package queue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/zktest"
)

// inSelfWatch runs fn with a grant whose node is watched.
func inSelfWatch(t *testing.T, before func(srv *zktest.Server), fn func(t *testing.T, srv *zktest.Server, e *Engine, g *Grant)) {
	t.Helper()
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		before(srv)
		g, err := e.Obtain(t.Context(), wantLock(testDir))
		require.NoError(t, err)
		require.True(t, g.t.isWatched())
		fn(t, srv, e, g)
	})
}

// A server refuses the watch for now, and the selfWatch pauses: the grant sets the watch itself.
func TestAGrantSetsTheWatchOfItsNodeThatWasThrottled(t *testing.T) {
	throttle := func(srv *zktest.Server) { srv.Next(1, throttled, zktest.OpGetData) }
	inSelfWatch(t, throttle, func(t *testing.T, srv *zktest.Server, _ *Engine, g *Grant) {
		require.NoError(t, srv.DeleteNode(g.Nodes()[0].Path()))
		synctest.Wait()
		require.True(t, g.Nodes()[0].IsGone())
	})
}

func TestASelfWatchContinuesAfterAWrite(t *testing.T) {
	inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, _ *Engine, g *Grant) {
		own := g.Nodes()[0]
		require.NoError(t, srv.PutNode(own.Path(), node.CuratorRevocation))
		synctest.Wait()
		require.True(t, own.Revocation.Requested.IsSet())
		now, _ := srv.Node(own.Path())
		require.Equal(t, node.WithRevocation(own.OwnData()), now.Data, "our data is put back")
		require.True(t, g.t.isWatched())
		require.NoError(t, srv.DeleteNode(own.Path()))
		synctest.Wait()
		require.True(t, own.IsGone())
		require.False(t, g.t.isWatched())
	})
}

// A watch that is no longer needed is not set again, neither after an event nor after a reconnect.
func TestASelfWatchThatWasStoppedSetsNothing(t *testing.T) {
	inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, e *Engine, g *Grant) {
		self, own := g.t.self.Load(), g.Nodes()[0]
		self.stop()
		require.NoError(t, srv.PutNode(own.Path(), []byte("x")))
		time.Sleep(time.Second)
		require.Zero(t, srv.WatchCount())
		self.run()
		require.Zero(t, srv.WatchCount())

		other, err := e.Obtain(t.Context(), wantLock(testDir+"/other"))
		require.NoError(t, err)
		other.WatchSelf()
		time.Sleep(time.Second)
		require.Equal(t, 1, srv.WatchCount())
		self = other.t.self.Load()
		self.stop()
		self.follow(self.view.Load()) // as run does when stop comes while it inspects the node
		srv.DropConnections()
		time.Sleep(time.Second)
		require.Zero(t, srv.WatchCount())
	})
}
