// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

// TestStaleFollower cuts a follower off from its peers while the holders stay connected to it. The follower keeps answering,
// but the leader expires the sessions, and the next contenders are granted the locks. go-zookeeper's holder is not notified
// for seconds; zklock's hold ends before the next grant.
//
//zklock:promise P2.1 A1
func TestStaleFollower(t *testing.T) {
	part(t)
	ensemble := three(t)
	needsNetworks(t, ensemble)
	leader, err := ensemble.Leader(t.Context())
	require.NoError(t, err)
	followers, err := ensemble.Followers(t.Context())
	require.NoError(t, err)
	stale, path, session := followers[0], root(t), 3*time.Second

	theirs := lockWithPeer(t, stale, path+"/theirs", session)
	nextTheirs := make(chan time.Time, 1)
	conn, _ := dial(t, session, leader.Addr)
	// Owned by this test: ends with the grant, or with the connection that t closes.
	go func() {
		if zk.NewLock(conn, path+"/theirs", zk.WorldACL(zk.PermAll)).Lock() == nil {
			nextTheirs <- time.Now()
		}
	}()
	ours := []*stalePair{{name: "fresh"}, {name: "idle"}}
	ours[1].connect(t, session, []string{stale.Addr}, []string{leader.Addr})
	time.Sleep(idleness(session))
	ours[0].connect(t, session, []string{stale.Addr}, []string{leader.Addr})
	for _, p := range ours {
		p.lock(t, path+"/"+p.name)
	}
	waitForChildren(t, leader.Addr, path+"/theirs", 2)
	for _, p := range ours {
		waitForChildren(t, leader.Addr, path+"/"+p.name, 2)
	}

	require.NoError(t, stale.CutOff(t.Context()))
	t.Cleanup(func() {
		require.NoError(t, stale.Rejoin(context.Background()))
		require.NoError(t, ensemble.WaitHealthy(context.Background()))
	})
	cut := time.Now()

	t.Run("go-zookeeper has two holders for seconds", func(t *testing.T) {
		second := await(t, nextTheirs, "the second holder")
		require.Equal(t, zk.StateHasSession, theirs.conn.State())
		_, _, err := theirs.conn.Children(path + "/theirs")
		require.NoError(t, err, "the stale follower answers the first holder")
		told := await(t, theirs.told, "the notification of the first holder")
		t.Logf("second holder %v after the cut, first one notified %v after the cut: two holders for %v",
			second.Sub(cut).Round(10*time.Millisecond), told.Sub(cut).Round(10*time.Millisecond), told.Sub(second).Round(10*time.Millisecond))
		assert.Greater(t, told.Sub(second), time.Second)
	})
	for _, p := range ours {
		t.Run("zklock has none, "+p.name, func(t *testing.T) {
			p.judge(t, cut)
		})
	}
}

var idleFor = flag.Duration("idle", 0, "how long clients are idle before they lock in TestStaleFollower and TestStaleLeader; at least two session timeouts")

// idleness returns how long the idle clients wait before they lock.
func idleness(session time.Duration) time.Duration { return max(*idleFor, 2*session) }

// stalePair is a pair of clients that contend for one lock. The server of the first one will be cut off, the server of the
// second one will not.
type stalePair struct {
	name        string
	first, next *zklock.Client
	held        *zklock.Hold
	granted     chan staleGrant
}

// staleGrant is the second client's grant, with the state of the first one's hold at that time.
type staleGrant struct {
	at               time.Time
	oldCheck, oldEnd error
	err              error
}

func (p *stalePair) connect(t *testing.T, session time.Duration, first, next []string) {
	p.first = connect(t, &zklock.Options{SessionTimeout: session}, first...)
	p.next = connect(t, &zklock.Options{SessionTimeout: session}, next...)
}

// lock acquires the lock with the first client, and starts a wait with the second one.
func (p *stalePair) lock(t *testing.T, path string) {
	ctx := soon(t)
	held, err := p.first.Mutex(path).Lock(ctx)
	require.NoError(t, err)
	require.NoError(t, held.Check())
	p.held, p.granted = held, make(chan staleGrant, 1)
	// Owned by the test: ends with the grant or with ctx.
	go func() {
		hold, err := p.next.Mutex(path).Lock(ctx)
		oldEnd, oldCheck := held.Context().Err(), held.Check()
		p.granted <- staleGrant{time.Now(), oldCheck, oldEnd, err}
		if err == nil {
			_ = hold.Unlock(context.Background())
		}
	}()
}

// judge waits for the second client's grant, and checks that the first one's hold had ended before.
func (p *stalePair) judge(t *testing.T, cut time.Time) {
	second := await(t, p.granted, "the second holder")
	require.NoError(t, second.err)
	assert.Error(t, second.oldEnd, "the first hold's context must have ended before the second grant")
	assert.ErrorIs(t, second.oldCheck, zklock.ErrLost, "the first hold had not ended")
	assert.ErrorIs(t, context.Cause(p.held.Context()), zklock.ErrLost)
	t.Logf("%s: second holder %v after the cut", p.name, second.at.Sub(cut).Round(10*time.Millisecond))
}

// peerHolder is a holder of go-zookeeper's Lock.
type peerHolder struct {
	conn *zk.Conn
	told <-chan time.Time // receives the time of the first bad state of its connection
}

func lockWithPeer(t *testing.T, server *zkcontainer.Member, path string, session time.Duration) peerHolder {
	conn, events := dial(t, session, server.Addr)
	require.NoError(t, zk.NewLock(conn, path, zk.WorldACL(zk.PermAll)).Lock())
	told := make(chan time.Time, 1)
	// Owned by the test: ends when t closes the connection, and with it the channel.
	go func() {
		for e := range events {
			if e.Type == zk.EventSession && e.State != zk.StateHasSession {
				select {
				case told <- time.Now():
				default:
				}
			}
		}
	}()
	return peerHolder{conn, told}
}

// waitForChildren waits until a node has that many children on the given server.
func waitForChildren(t *testing.T, addr, path string, count int) {
	conn, _ := dial(t, 10*time.Second, addr)
	defer conn.Close()
	untilChildren(t, conn, path, count)
}

// untilChildren waits until a node has that many children. A missing node counts as one without children.
func untilChildren(t *testing.T, conn *zk.Conn, path string, count int) {
	bound := time.After(patience)
	for {
		children, _, changed, err := conn.ChildrenW(path)
		if err == zk.ErrNoNode {
			var there bool
			if there, _, changed, err = conn.ExistsW(path); there {
				continue
			}
		}
		require.NoError(t, err)
		if len(children) == count {
			return
		}
		select {
		case <-changed:
		case <-bound:
			require.FailNow(t, "children", "%s has %d children, not %d", path, len(children), count)
		}
	}
}

// await receives from a channel, and fails the test if nothing arrives within patience.
func await[T any](t *testing.T, from <-chan T, what string) T {
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		require.FailNow(t, "did not happen", what)
		panic("unreachable")
	}
}

// needsNetworks skips a test if links cannot be cut or slowed here.
func needsNetworks(t *testing.T, z *zkcontainer.Ensemble) {
	if err := z.CheckTools(t.Context()); err != nil {
		t.Skip(err)
	}
}
