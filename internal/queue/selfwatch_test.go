// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
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
		require.True(t, g.lead.isWatched())
		fn(t, srv, e, g)
	})
}

// A server refuses the watch for a long time, and the selfWatch pauses: the grant sets the watch itself.
func TestAGrantSetsTheWatchOfItsNodeThatWasThrottled(t *testing.T) {
	throttle := func(srv *zktest.Server) { srv.Next(2*asks, throttled, zktest.OpGetData) }
	inSelfWatch(t, throttle, func(t *testing.T, srv *zktest.Server, _ *Engine, g *Grant) {
		require.NoError(t, srv.DeleteNode(g.Nodes()[0].Path()))
		synctest.Wait()
		require.True(t, g.Nodes()[0].IsGone())
	})
}

// The watch is requested on one connection, and its reply comes on the next one: it has fired then. The grant needs another watch.
func TestAGrantSetsAnotherWatchIfTheFirstHasFiredBeforeItsReply(t *testing.T) {
	inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, e *Engine, first *Grant) {
		release(t, first)
		g := obtain(t, e)
		self := newSelfWatch(e, &g.lead.OwnNode)
		srv.Next(2, throttled, zktest.OpGetData) // the next attempt is after a pause of 10 ms
		time.AfterFunc(5*time.Millisecond, srv.DropConnections)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, self.await(ctx))
		require.True(t, self.isActive())
		release(t, g)
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
		require.True(t, g.lead.isWatched())
		require.NoError(t, srv.DeleteNode(own.Path()))
		synctest.Wait()
		require.True(t, own.IsGone())
		require.False(t, g.lead.isWatched())
	})
}

// A watch that is no longer needed is not set again, neither after an event nor after a reconnect.
func TestASelfWatchThatWasStoppedSetsNothing(t *testing.T) {
	inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, e *Engine, g *Grant) {
		self, own := g.lead.self.Load(), g.Nodes()[0]
		self.stop()
		require.NoError(t, srv.PutNode(own.Path(), []byte("x")))
		time.Sleep(time.Second)
		require.Zero(t, srv.WatchCount())
		self.run()
		self.start()
		time.Sleep(time.Second)
		require.Zero(t, srv.WatchCount())

		other, err := e.Obtain(t.Context(), wantLock(testDir+"/other"))
		require.NoError(t, err)
		other.WatchSelf()
		time.Sleep(time.Second)
		require.Equal(t, 1, srv.WatchCount())
		self = other.lead.self.Load()
		self.stop()
		self.follow(self.view.Load()) // as run does when stop comes while it inspects the node
		srv.DropConnections()
		time.Sleep(time.Second)
		require.Zero(t, srv.WatchCount())
	})
}

// A watch that is stopped before it begins requests nothing.
func TestASelfWatchThatIsStoppedBeforeItBeginsRequestsNothing(t *testing.T) {
	inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, e *Engine, first *Grant) {
		release(t, first)
		g := obtain(t, e)
		require.Zero(t, srv.WatchCount(), "it found no others")
		g.WatchSelf()
		g.lead.self.Load().stop()
		srv.ResetCounts()
		time.Sleep(time.Second)
		require.Zero(t, srv.Requests()[zktest.OpGetData])
		require.Zero(t, srv.WatchCount())
		release(t, g)
	})
}

// While the request that puts our data back is under way, the watch that was set before it shows that our node exists.
func TestASelfWatchIsActiveWhileItPutsDataBack(t *testing.T) {
	inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, _ *Engine, g *Grant) {
		own := g.Nodes()[0]
		left := srv.Next(1, zktest.Delay(time.Second), zktest.OpSetData)
		require.NoError(t, srv.PutNode(own.Path(), node.CuratorRevocation))
		time.Sleep(time.Second / 2)
		require.Zero(t, left())
		require.True(t, own.Revocation.Requested.IsSet())
		require.True(t, g.lead.isWatched())
		time.Sleep(time.Second)
		now, _ := srv.Node(own.Path())
		require.Equal(t, node.WithRevocation(own.OwnData()), now.Data)
		require.True(t, g.lead.isWatched())
	})
}

func TestDataIsPutBackAfterALostConnection(t *testing.T) {
	for name, stopped := range map[string]bool{"while the node is held": false, "not once the watch was stopped": true} {
		t.Run(name, func(t *testing.T) {
			inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, _ *Engine, g *Grant) {
				own := g.Nodes()[0]
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Op == zktest.OpSetData && stopped {
						g.lead.self.Load().stop()
					}
					return zktest.Pass
				})
				left := srv.Next(1, zktest.DropBefore, zktest.OpSetData)
				require.NoError(t, srv.PutNode(own.Path(), node.CuratorRevocation))
				time.Sleep(testTerm / 2)
				require.Zero(t, left())
				want := node.WithRevocation(own.OwnData())
				if stopped {
					want = node.CuratorRevocation
				}
				now, _ := srv.Node(own.Path())
				require.Equal(t, want, now.Data)
			})
		})
	}
}

// Data that must never change is not put back, but its request counts.
func TestFixedDataIsNotPutBack(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		w := wantLock(testDir)
		w.Recipe = &Recipe{Name: "fixed", Infix: node.LockInfix, Rule: node.AfterAll, Fixed: true}
		g, err := e.Obtain(t.Context(), w)
		require.NoError(t, err)
		own := g.Nodes()[0]
		require.NoError(t, srv.PutNode(own.Path(), node.CuratorRevocation))
		time.Sleep(time.Second)
		require.True(t, own.Revocation.Requested.IsSet())
		now, _ := srv.Node(own.Path())
		require.Equal(t, node.CuratorRevocation, now.Data)
		require.True(t, g.lead.isWatched())
	})
}

// Other data of a reader in a writer's node ends the hold, because readers behind it go ahead.
func TestAForgedDowngradeEndsAHold(t *testing.T) {
	reader := node.Owner{PID: 1, Shared: true}.Encode()
	inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, e *Engine, g *Grant) {
		own := g.Nodes()[0]
		require.NoError(t, srv.PutNode(own.Path(), []byte("no request")))
		time.Sleep(time.Second)
		require.False(t, own.IsGone() || own.Revocation.Requested.IsSet())
		require.True(t, g.lead.isWatched())
		require.NoError(t, srv.PutNode(own.Path(), reader))
		time.Sleep(time.Second)
		require.True(t, own.IsGone())
		require.ErrorIs(t, own.Loss(), session.ErrForged)
		require.NoError(t, outcomeOf(g, true))

		second := obtain(t, e)
		own = second.Nodes()[0]
		second.WatchSelf()
		own.SetOwnData(reader)
		time.Sleep(time.Second)
		require.NoError(t, srv.PutNode(own.Path(), node.WithRevocation(reader)))
		time.Sleep(time.Second)
		require.False(t, own.IsGone(), "it is a reader's")
		require.True(t, own.Revocation.Requested.IsSet())
		release(t, second)
	})
}

// A node that is deleted, or cannot be read, before its watch is set is found gone when the watch is requested.
func TestASelfWatchThatIsRefusedEndsTheHold(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(t *testing.T, srv *zktest.Server, path string)
		loss    error
	}{
		"deleted":     {func(t *testing.T, srv *zktest.Server, path string) { require.NoError(t, srv.DeleteNode(path)) }, outcome.ErrLost},
		"not allowed": {func(_ *testing.T, srv *zktest.Server, _ string) { srv.Next(1, refused, zktest.OpGetData) }, session.ErrUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, e *Engine, first *Grant) {
				release(t, first)
				g := obtain(t, e)
				require.Zero(t, srv.WatchCount())
				g.WatchSelf()
				c.happens(t, srv, g.Nodes()[0].Path())
				time.Sleep(aloneGrace - 1)
				require.False(t, g.Nodes()[0].IsGone())
				time.Sleep(time.Second)
				require.True(t, g.Nodes()[0].IsGone())
				require.ErrorIs(t, g.Nodes()[0].Loss(), c.loss)
				require.False(t, g.lead.isWatched())
			})
		})
	}
}

// A wait for our node that has no watch requests one, and the reply may say that the node is gone.
func TestASelfWatchFindsThatItsNodeIsGone(t *testing.T) {
	for name, find := range map[string]func(t *testing.T, self *selfWatch){
		"await": func(t *testing.T, self *selfWatch) { require.Equal(t, outcome.ErrGone, self.await(t.Context())) },
		"run":   func(_ *testing.T, self *selfWatch) { self.run() },
	} {
		t.Run(name, func(t *testing.T) {
			inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, e *Engine, first *Grant) {
				release(t, first)
				g := obtain(t, e)
				own := g.Nodes()[0]
				require.NoError(t, srv.DeleteNode(own.Path()))
				find(t, newSelfWatch(e, own))
				require.True(t, own.IsGone())
				release(t, g)
			})
		})
	}
}

// The event of our own deletion is not the loss of a hold.
func TestAReleasedNodeIsNotFoundGone(t *testing.T) {
	inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, _ *Engine, g *Grant) {
		release(t, g)
		time.Sleep(time.Second)
		require.Empty(t, srv.Children(testDir))
		require.False(t, g.Nodes()[0].IsGone())
	})
}

// Without a connection nothing shows that our node exists.
func TestAWaitForASelfWatchEndsWithItsContextAndItsSession(t *testing.T) {
	inSelfWatch(t, func(*zktest.Server) {}, func(t *testing.T, srv *zktest.Server, _ *Engine, g *Grant) {
		self := g.lead.self.Load()
		require.NoError(t, self.await(t.Context()))
		srv.Partition("a")
		time.Sleep(testTerm) // the client finds that its connection is dead
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, self.await(ctx), context.DeadlineExceeded)
		srv.ExpireSession(g.Nodes()[0].Sess.ID)
		srv.HealClient("a")
		require.ErrorIs(t, self.await(t.Context()), outcome.ErrSessionOver, "while it waits")
		require.ErrorIs(t, self.await(t.Context()), outcome.ErrSessionOver, "before it waits")
		_ = outcomeOf(g, true)
	})
}
