// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// createContender creates a node in a queue like another client library: ephemeral, with its own name followed by the server's number.
func createContender(t *testing.T, conn *zk.Conn, dir, prefix string, data string) string {
	t.Helper()
	at := ""
	for part := range strings.SplitSeq(dir[1:], "/") {
		at += "/" + part
		if _, err := conn.Create(at, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			require.ErrorIs(t, err, zk.ErrNodeExists)
		}
	}
	node, err := conn.Create(dir+"/"+prefix, []byte(data), zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	return node
}

// Names of other libraries' nodes, without the number.
const (
	curatorName = "_c_4b3fb0cb-5b8a-4a6e-9d5b-9c7d2a1f0e11-lock-"
	curatorRead = "_c_9c7d2a1f-5b8a-4a6e-9d5b-4b3fb0cb0e11-__READ__"
	curatorWrit = "_c_9c7d2a1f-5b8a-4a6e-9d5b-4b3fb0cb0e12-__WRIT__"
	goName      = "_c_00c1f7e5b6f64b4a9e0d6f2c8b1a3d57-lock-"
	kazooName   = "0a1b2c3d4e5f60718293a4b5c6d7e8f9__lock__"
	kazooRead   = "1a1b2c3d4e5f60718293a4b5c6d7e8f9__rlock__"
	latchName   = "_c_4b3fb0cb-5b8a-4a6e-9d5b-9c7d2a1f0e11-latch-"
)

//zklock:promise P19.1 P20.3
func TestInspectShowsHoldersAndWaiters(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		billing := connect(t, srv, "billing", term)
		hold, err := billing.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		began := time.Now()
		time.Sleep(time.Second)
		raw := rawClient(t, srv, term)
		var others []string
		for _, name := range []string{curatorName, "foreign-", goName, kazooName, kazooRead, latchName, "lock-"} {
			node := createContender(t, raw, path, name, "10.0.0.1")
			if name != "foreign-" {
				others = append(others, node)
			}
		}
		q, err := operate.Inspect(t.Context(), connect(t, srv, "operator", term), path)
		require.NoError(t, err)

		require.Equal(t, path, q.Path)
		require.EqualValues(t, 8, q.Issued)
		require.Len(t, q.Contenders, 7)
		first := q.Contenders[0]
		node, _ := srv.Node(hold.Node())
		host, _ := os.Hostname()
		require.Equal(t, zklock.Contender{
			Node: hold.Node(), Kind: operate.KindLock, Client: operate.ClientZklock, Holds: true,
			Token: hold.Token(), Session: node.EphemeralOwner, Since: began.Local(), Data: node.Data,
			Host: host, PID: os.Getpid(), Label: "billing",
		}, first)
		for i, want := range []struct {
			kind   string
			client string
		}{
			{operate.KindLock, operate.ClientCurator},
			{operate.KindLock, operate.ClientGo},
			{operate.KindLock, operate.ClientKazoo},
			{operate.KindRead, operate.ClientKazoo},
			{operate.KindLatch, operate.ClientCurator},
			{operate.KindLock, ""},
		} {
			c := q.Contenders[i+1]
			require.Equal(t, others[i], c.Node)
			require.Equal(t, want.kind, c.Kind, c.Node)
			require.Equal(t, want.client, c.Client, c.Node)
			require.False(t, c.Holds, c.Node)
			require.Equal(t, raw.SessionID(), c.Session)
			require.Equal(t, "10.0.0.1", string(c.Data))
			require.Zero(t, c.PID)
		}
		unlock(t, hold)
	})
}

//zklock:promise P19.1
func TestInspectShowsReadersThatShare(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		raw := rawClient(t, srv, term)
		for _, name := range []string{curatorRead, curatorRead, curatorWrit, curatorRead} {
			createContender(t, raw, path, name, "")
		}
		q, err := operate.Inspect(t.Context(), connect(t, srv, "operator", term), path)
		require.NoError(t, err)
		var seen []string
		for _, c := range q.Contenders {
			seen = append(seen, fmt.Sprint(c.Kind, " ", c.Holds))
		}
		require.Equal(t, []string{"read true", "read true", "write false", "read false"}, seen)
	})
}

//zklock:promise P19.1
func TestAnUnusedPathIsAnEmptyQueue(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		q, err := operate.Inspect(t.Context(), connect(t, srv, "operator", term), path)
		require.NoError(t, err)
		require.Equal(t, &operate.Queue{Path: path}, q)
		require.Empty(t, srv.Tree(), "inspecting made nodes")
	})
}

//zklock:promise P19.1
func TestInspectShowsHowManyNumbersWereIssued(t *testing.T) {
	for name, opts := range map[string]zktest.Options{"sticks": {}, "runs over": lab.With(zktest.Options{}, lab.Options{WrapCounter: true})} {
		t.Run(name, func(t *testing.T) {
			virtual(t, opts, func(t *testing.T, srv *zktest.Server) {
				client := connect(t, srv, "a", term)
				issued := func() int64 {
					q, err := operate.Inspect(t.Context(), client, path)
					require.NoError(t, err)
					return q.Issued
				}
				for range 5 {
					h, err := client.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					unlock(t, h)
				}
				require.EqualValues(t, 5, issued())
				lab.SetChildCounter(srv, path, 1<<31-2)
				require.EqualValues(t, 1<<31-2, issued())
				held, err := client.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				require.EqualValues(t, 1<<31-1, issued())
				for range 3 {
					lockLater(t.Context(), client.Mutex(path).Lock)
					synctest.Wait()
				}
				require.EqualValues(t, 1<<31-1, issued())
				q, err := operate.Inspect(t.Context(), client, path)
				require.NoError(t, err)
				require.Len(t, q.Contenders, 4)
				require.Equal(t, held.Node(), q.Contenders[0].Node)
				for i, c := range q.Contenders {
					require.Equal(t, i == 0, c.Holds, "%v", q.Contenders)
					require.True(t, i == 0 || c.Token > q.Contenders[i-1].Token, "not by creation: %v", q.Contenders)
				}
				require.NoError(t, client.Close())
			})
		})
	}
}

// For a follower, a sync would suffice. A leader answers a sync with the state that it has applied.
//
//zklock:promise P19.1
func TestInspectShowsNoStateOfALaggingServer(t *testing.T) {
	for _, c := range []struct {
		name           string
		holder, behind int
	}{{"a follower", 0, 2}, {"the leader", 2, 0}} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, zktest.Options{Servers: 3}, func(t *testing.T, srv *zktest.Server) {
				holder, operator := connect(t, srv, "holder", term, c.holder), connect(t, srv, "operator", term, c.behind)
				hold, err := holder.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				srv.Member(c.behind).Lag(500 * time.Millisecond)
				unlock(t, hold)
				hold, err = holder.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				q, err := operate.Inspect(t.Context(), operator, path)
				require.NoError(t, err)
				require.Len(t, q.Contenders, 1)
				require.Equal(t, hold.Node(), q.Contenders[0].Node)
				unlock(t, hold)
			})
		})
	}
}

func contenderAt(t *testing.T, c *zklock.Client, i int) zklock.Contender {
	t.Helper()
	q, err := operate.Inspect(t.Context(), c, path)
	require.NoError(t, err)
	require.Greater(t, len(q.Contenders), i)
	return q.Contenders[i]
}

//zklock:promise P19.3
func TestEvictRemovesOnlyTheNamedContender(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b, operator := connect(t, srv, "a", term), connect(t, srv, "b", term), connect(t, srv, "operator", term)
		hold, err := a.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		next := lockLater(t.Context(), b.Mutex(path).Lock)
		require.False(t, next.returned())
		who := contenderAt(t, operator, 0)

		other := who
		other.Session++
		require.ErrorIs(t, operate.Evict(t.Context(), operator, "", other), zklock.ErrNotHeld)
		other = who
		other.Token++
		require.ErrorIs(t, operate.Evict(t.Context(), operator, "", other), zklock.ErrNotHeld)
		require.NoError(t, hold.Check())

		require.NoError(t, operate.Evict(t.Context(), operator, "", who))
		require.True(t, next.returned())
		require.NoError(t, next.err)
		require.ErrorIs(t, hold.Check(), zklock.ErrLost)
		require.ErrorIs(t, operate.Evict(t.Context(), operator, "", who), zklock.ErrNotHeld)
		unlock(t, next.hold)
		noGhost(t, srv, path)
	})
}

//zklock:promise P19.3
func TestEvictSurvivesAWriteBetweenItsCheckAndItsDelete(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		operator, raw := connect(t, srv, "operator", term), rawClient(t, srv, term)
		node := createContender(t, raw, path, curatorName, "")
		who := contenderAt(t, operator, 0)
		var writes atomic.Int32
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpDelete && writes.Load() < 2 {
				writes.Add(1)
				_, err := raw.Set(node, []byte("busy"), -1)
				assert.NoError(t, err)
			}
			return zktest.Pass
		})
		require.NoError(t, operate.Evict(t.Context(), operator, "", who))
		require.EqualValues(t, 2, writes.Load())
		require.Empty(t, srv.Children(path))
	})
}

//zklock:promise P19.3
func TestOnlyContendersCanBeRevokedOrEvicted(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		require.NoError(t, srv.PutNode("/config/main", []byte("precious")))
		resetCounts(srv)
		for _, node := range []string{"", "/", "/config/main", "relative" + curatorName + "0000000001", "/a/../" + curatorName + "0000000001", "/config/lock-x"} {
			who := zklock.Contender{Node: node, Session: 1}
			require.ErrorIs(t, operate.Evict(t.Context(), client, "", who), zklock.ErrInvalid, node)
			require.ErrorIs(t, operate.Revoke(t.Context(), client, who), zklock.ErrInvalid, node)
		}
		_, err := operate.Inspect(t.Context(), client, "/a//b")
		require.ErrorIs(t, err, zklock.ErrInvalid)
		for _, err := range operate.Watch(t.Context(), client, "nowhere") {
			require.ErrorIs(t, err, zklock.ErrInvalid)
		}
		require.Zero(t, srv.RequestCount())
	})
}

// TestOperatorCallsSucceedThroughAnyFault runs each call of an operator with every fault at every request: either it takes effect
// exactly once, or it fails only because its context is done.
//
//zklock:promise P19.6
func TestOperatorCallsSucceedThroughAnyFault(t *testing.T) {
	t.Parallel()
	throughEveryFault(t, 6, operateThrough)
}

func operateThrough(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
	holder, next := connect(t, srv, "holder", term), connect(t, srv, "next", term)
	hold, err := holder.Mutex(path).Lock(t.Context())
	require.NoError(t, err)
	time.Sleep(time.Second)
	waiting := lockLater(t.Context(), next.Mutex(path).Lock)
	require.False(t, waiting.returned())
	operator := connect(t, srv, "victim", term)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	struck := strikeOnce(srv, "victim", n, func(r *zktest.Request) zktest.Verdict { return verdict(srv, r, cancel) })

	var q *operate.Queue
	try := func(call func() error) {
		t.Helper()
		if err := call(); err != nil {
			require.ErrorIs(t, err, context.Canceled)
			ctx = t.Context()
			require.NoError(t, call())
		}
	}
	try(func() error { q, err = operate.Inspect(ctx, operator, path); return err })
	require.Len(t, q.Contenders, 2)
	try(func() error { return operate.Revoke(ctx, operator, q.Contenders[0]) })
	synctest.Wait()
	select {
	case <-hold.Revoked():
	default:
		t.Fatal("the holder was not asked")
	}
	require.NoError(t, hold.Check())
	if err := operate.Evict(ctx, operator, "", q.Contenders[0]); err != nil {
		require.ErrorIs(t, err, context.Canceled)
		if err := operate.Evict(t.Context(), operator, "", q.Contenders[0]); err != nil {
			require.ErrorIs(t, err, zklock.ErrNotHeld) // the first has done it
		}
	}
	<-waiting.done
	require.NoError(t, waiting.err)
	synctest.Wait()
	require.ErrorIs(t, hold.Check(), zklock.ErrLost)
	unlock(t, waiting.hold)
	noGhost(t, srv, path)
	require.Zero(t, srv.WatchCount(), "watches left: %v", srv.Watches())
	return struck()
}

// strikeOnce applies a verdict to the n-th request of a client, counted from now. The returned function reports whether there was
// one.
func strikeOnce(srv *zktest.Server, client string, n int, verdict func(r *zktest.Request) zktest.Verdict) (struck func() bool) {
	var seen, hit atomic.Int32
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if r.Client != client || r.Op == zktest.OpPing || int(seen.Add(1)) != n+1 {
			return zktest.Pass
		}
		hit.Store(1)
		return verdict(r)
	})
	return func() bool { return hit.Load() == 1 }
}
