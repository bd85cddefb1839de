package integration

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

// TestStaleFollower cuts a follower off from its peers while the holders' connection to it stays up. The follower goes on
// answering, the leader expires the sessions and lets the next one in. go-zookeeper's holder learns nothing for seconds;
// zklock's is out before.
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
	ours, err := connect(t, &zklock.Options{SessionTimeout: session}, stale.Addr).Mutex(path + "/ours").Lock(soon(t))
	require.NoError(t, err)
	require.NoError(t, ours.Check())

	nextTheirs := make(chan time.Time, 1)
	conn, _ := dial(t, session, leader.Addr)
	// Owned by this test: ends with the grant, or with the connection that t closes.
	go func() {
		if zk.NewLock(conn, path+"/theirs", zk.WorldACL(zk.PermAll)).Lock() == nil {
			nextTheirs <- time.Now()
		}
	}()
	type grant struct {
		at       time.Time
		oldCheck error // what the first holder's hold says at the instant of the second's grant
		oldEnd   error
		err      error
	}
	nextOurs := make(chan grant, 1)
	client := connect(t, &zklock.Options{SessionTimeout: session}, leader.Addr)
	ctx := soon(t)
	// Owned by this test: ends with the grant or with ctx.
	go func() {
		hold, err := client.Mutex(path + "/ours").Lock(ctx)
		oldEnd, oldCheck := ours.Context().Err(), ours.Check()
		nextOurs <- grant{time.Now(), oldCheck, oldEnd, err}
		if err == nil {
			_ = hold.Unlock(context.Background())
		}
	}()
	waitForChildren(t, leader.Addr, path+"/theirs", 2)
	waitForChildren(t, leader.Addr, path+"/ours", 2)

	require.NoError(t, stale.CutFromPeers(t.Context()))
	t.Cleanup(func() {
		require.NoError(t, stale.Heal(context.Background()))
		require.NoError(t, ensemble.Healthy(context.Background()))
	})
	cut := time.Now()

	t.Run("go-zookeeper has two holders for seconds", func(t *testing.T) {
		second := await(t, nextTheirs, "the second holder")
		require.Equal(t, zk.StateHasSession, theirs.conn.State())
		_, _, err := theirs.conn.Children(path + "/theirs")
		require.NoError(t, err, "the stale follower answers the first holder")
		told := await(t, theirs.told, "the first holder to be told")
		t.Logf("second holder %v after the cut, first one told %v after the cut: two holders for %v",
			second.Sub(cut).Round(10*time.Millisecond), told.Sub(cut).Round(10*time.Millisecond), told.Sub(second).Round(10*time.Millisecond))
		assert.Greater(t, told.Sub(second), time.Second)
	})
	t.Run("zklock has none", func(t *testing.T) {
		second := await(t, nextOurs, "the second holder")
		require.NoError(t, second.err)
		assert.Error(t, second.oldEnd, "the first hold's context must have ended before the second grant")
		assert.Error(t, second.oldCheck)
		assert.ErrorIs(t, context.Cause(ours.Context()), zklock.ErrLost)
		t.Logf("second holder %v after the cut", second.at.Sub(cut).Round(10*time.Millisecond))
	})
}

// peerHolder is a holder of go-zookeeper's Lock.
type peerHolder struct {
	conn *zk.Conn
	told <-chan time.Time // when its connection first said that anything is wrong
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

// waitForChildren waits until a node has that many children, as the given server sees it.
func waitForChildren(t *testing.T, addr, path string, count int) {
	conn, _ := dial(t, 10*time.Second, addr)
	defer conn.Close()
	untilChildren(t, conn, path, count)
}

// untilChildren waits until a node has that many children. One that is not there has none.
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

// await receives what must come.
func await[T any](t *testing.T, from <-chan T, what string) T {
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		require.FailNow(t, "did not happen", what)
		panic("unreachable")
	}
}

// needsNetworks skips a test that cuts or slows links where that cannot be done.
func needsNetworks(t *testing.T, z *zkcontainer.Ensemble) {
	if err := z.HurtsNetworks(t.Context()); err != nil {
		t.Skip(err)
	}
}
