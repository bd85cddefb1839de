// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// TestTheFateOfALostHoldIsFound has each way to lose a hold, for a client that trusts what others write and for one that does not.
func TestTheFateOfALostHoldIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		lose            func(t *testing.T, srv *zktest.Server, n string, sess int64)
		want, untrusted error
	}{
		"deleted": {func(t *testing.T, srv *zktest.Server, n string, _ int64) {
			require.NoError(t, srv.DeleteNode(testDir+"/"+n))
		}, outcome.ErrGone, outcome.ErrGone},
		"evicted": {func(t *testing.T, srv *zktest.Server, n string, _ int64) { evict(t, srv, testDir, n) }, outcome.ErrEvicted, outcome.ErrGone},
		"expired": {func(t *testing.T, srv *zktest.Server, _ string, sess int64) { srv.ExpireSession(sess) }, outcome.ErrSessionOver, outcome.ErrSessionOver},
		"evicted and expired": {func(t *testing.T, srv *zktest.Server, n string, sess int64) {
			evict(t, srv, testDir, n)
			srv.ExpireSession(sess)
		}, outcome.ErrEvicted, outcome.ErrSessionOver},
		"another is evicted": {func(t *testing.T, srv *zktest.Server, n string, _ int64) {
			name := node.NamePrefix + node.NewGUID(node.GUIDMark) + "-lock-0000000009"
			require.NoError(t, srv.PutNode(testDir+"/"+name, nil))
			evict(t, srv, testDir, name)
			require.NoError(t, srv.DeleteNode(testDir+"/"+n))
		}, outcome.ErrGone, outcome.ErrGone},
	} {
		for _, trusts := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					e := startEngine(t, srv, "a", func(e *Engine) { e.Unnoted = NewUnnoted(!trusts) })
					g := obtain(t, e)
					n := g.Nodes()[0]
					g.WatchSelf()
					time.Sleep(time.Second)
					c.lose(t, srv, n.Name, n.Sess.ID)
					time.Sleep(time.Second)
					want := c.untrusted
					if trusts {
						want = c.want
					}
					require.Equal(t, want, g.Fate(t.Context()))
					_ = outcomeOf(g, true)
				})
			})
		}
	}
}

// The function that ends the hold asks, before the node counts as gone.
func TestTheFateIsKnownAsSoonAsTheHoldEnds(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		g := obtain(t, startEngine(t, srv, "a", nil))
		n, fate := g.Nodes()[0], error(nil)
		n.WhenGone(func() { fate = g.Fate(t.Context()) })
		require.NoError(t, srv.DeleteNode(n.Path()))
		n.MarkGone(nil)
		require.Equal(t, outcome.ErrGone, fate)
		_ = outcomeOf(g, true)
	})
}

func TestAGrantSeesOtherContenders(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		g := obtain(t, a)
		v, wanted, err := g.WatchOthers(t.Context())
		require.NoError(t, err)
		require.False(t, wanted)
		require.True(t, v.IsCurrent())
		waits := later(func() (*Grant, error) { return b.Obtain(t.Context(), wantLock(testDir)) })
		time.Sleep(time.Second)
		require.False(t, v.IsCurrent())
		v, wanted, err = g.WatchOthers(t.Context())
		require.NoError(t, err)
		require.True(t, wanted)
		require.True(t, v.IsCurrent())
		require.NoError(t, srv.DeleteNode(g.Nodes()[0].Path()))
		time.Sleep(time.Second)
		g.Nodes()[0].MarkGone(nil)
		_, _, err = g.WatchOthers(t.Context())
		require.ErrorIs(t, err, outcome.ErrGone)
		_ = outcomeOf(g, true)
		waits.release(t)
	})
}

func TestAGrantHasTheFieldsOfItsPlace(t *testing.T) {
	var none *waiter
	require.Nil(t, none.granted())
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		first := obtain(t, a)
		require.False(t, first.Waited)
		waits := later(func() (*Grant, error) { return b.Obtain(t.Context(), wantLock(testDir)) })
		time.Sleep(time.Second)
		release(t, first)
		<-waits.done
		require.True(t, waits.grant.Waited)
		require.Greater(t, waits.grant.Token, first.Token)
		n, there := srv.Node(waits.grant.Nodes()[0].Path())
		require.True(t, there)
		require.Equal(t, n.Czxid, waits.grant.Token)
		waits.release(t)

		srv.Next(1, zktest.LoseReply, zktest.OpCreate)
		g := obtain(t, a)
		n, there = srv.Node(g.Nodes()[0].Path())
		require.True(t, there)
		require.Equal(t, n.Czxid, g.Token, "although the reply was lost")
		release(t, g)

		all, err := permitsOf(a, 3).Obtain(t.Context(), 3)
		require.NoError(t, err)
		for i, x := range all.Nodes() {
			n, there := srv.Node(x.Path())
			require.True(t, there, i)
			require.Equal(t, n.Czxid, all.Token)
		}
		release(t, all)
	})
}

// The directory's data cannot be read, so nothing is known about an eviction.
func TestTheFateOfAHoldWithoutTheDirectorysData(t *testing.T) {
	inQueue(t, func(t *testing.T, srv *zktest.Server, e *Engine, p *waiter) {
		evict(t, srv, testDir, p.Name)
		require.Equal(t, outcome.ErrEvicted, p.unlessEvicted(t.Context(), outcome.ErrGone))
		require.Equal(t, zk.ErrNoAuth, p.unlessEvicted(t.Context(), zk.ErrNoAuth))
		require.NoError(t, p.unlessEvicted(t.Context(), nil))
		srv.Next(1, refused, zktest.OpGetData)
		require.Equal(t, outcome.ErrGone, p.unlessEvicted(t.Context(), outcome.ErrGone))
	})
}
