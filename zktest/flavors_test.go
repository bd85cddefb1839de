// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/wire"
	"github.com/zklock-go/zklock/zktest"
)

// Servers of other makes and versions, and what clients see of them.

func TestUnknownRequestTypesCloseTheConnection(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		for _, send := range []func(*wire.Conn) error{
			func(c *wire.Conn) error { return c.Send(1, 19, create("/c", 4)) },
			func(c *wire.Conn) error {
				return c.Send(1, 14, wire.NewBody().Int(19).Bool(false).Int(-1).Add(create("/c", 4)).Int(-1).Bool(true).Int(-1))
			},
			func(c *wire.Conn) error {
				return c.Send(1, 101, wire.NewBody().Long(0).Strs(nil).Strs(nil).Strs(nil))
			},
		} {
			c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
			require.NoError(t, send(c))
			_, err := c.Read()
			require.Error(t, err)
			require.False(t, isTimeout(err))
		}
		require.Empty(t, srv.Tree())
		require.Equal(t, 1, srv.Requests()[zktest.OpCreateContainer], "it was counted")
		conn, _ := connect(t, srv, "a", 9*time.Second)
		mustCreate(t, conn, "/plain", 0)
	}, zktest.Options{UnknownOps: []zktest.Op{zktest.OpCreateContainer, zktest.OpSetWatches}})
}

func TestAKeeperWithoutALeaderReportsItInItsConnectResponse(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		for i := range 3 {
			srv.Member(i).CutOff()
		}
		time.Sleep(time.Minute)
		c, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		require.Equal(t, int64(-1), sess.ID)
		require.Equal(t, int32(10000), sess.Timeout)
		require.Equal(t, make([]byte, 16), sess.Passwd)
		_, err := c.Read()
		require.ErrorIs(t, err, io.EOF)
	}, zktest.Options{Servers: 3, Flavor: zktest.Keeper})
}

func TestAConnectionCanEndRightAfterItsHandshake(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		defer srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpCreateSession {
				return zktest.DropAfter
			}
			return zktest.Pass
		})()
		c, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		require.NotZero(t, sess.ID)
		_, err := c.Read()
		require.Error(t, err)
		require.False(t, isTimeout(err))
		require.Len(t, srv.Sessions(), 1)
	})
}

func TestExpiredCanBeAnsweredOnAConnectionThatRemainsOpen(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict { return zktest.Answer(zktest.CodeSessionExpired) })
		require.NoError(t, c.Send(1, 1, create("/x", 0)))
		frame, err := c.Read()
		require.NoError(t, err)
		require.Equal(t, zktest.CodeSessionExpired, frame.Err)
		remove()
		require.False(t, sees(t, c, "/x"))
	})
}

func TestEventsAreWithheldFromClientsWithoutReadPermission(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		b, _ := connect(t, srv, "b", 9*time.Second)
		require.NoError(t, b.AddAuth("digest", []byte("joe:secret")))
		mustCreate(t, a, "/dir", 0)
		mustCreate(t, a, "/dir/x", 0)
		_, _, byA, err := a.GetW("/dir/x")
		require.NoError(t, err)
		_, _, listedByA, err := a.ChildrenW("/dir")
		require.NoError(t, err)
		_, _, byB, err := b.GetW("/dir/x")
		require.NoError(t, err)
		_, err = b.SetACL("/dir/x", zk.DigestACL(zk.PermAll, "joe", "secret"), -1)
		require.NoError(t, err)
		require.Equal(t, 3, srv.WatchCount())
		require.NoError(t, b.Delete("/dir/x", -1))
		require.Equal(t, zk.EventNodeDeleted, (<-byB).Type)
		require.Equal(t, zk.EventNodeChildrenChanged, (<-listedByA).Type, "it may read the directory")
		synctest.Wait()
		require.Empty(t, byA)
		require.Zero(t, srv.WatchCount(), "the watch is used up all the same")
	})
}

func TestAKeeperHasItsOwnSystemNodes(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		conn, _ := connect(t, srv, "a", 9*time.Second)
		names, _, err := conn.Children("/")
		require.NoError(t, err)
		require.Equal(t, []string{"keeper"}, names)
		version, _, err := conn.Get("/keeper/api_version")
		require.NoError(t, err)
		require.Equal(t, "2", string(version))
		_, err = conn.Create("/keeper/a", nil, 0, open)
		require.ErrorIs(t, err, zk.ErrBadArguments)
		require.ErrorIs(t, conn.Delete("/keeper/api_version", -1), zk.ErrBadArguments)
		_, err = conn.Set("/keeper/api_version", nil, -1)
		require.ErrorIs(t, err, zk.ErrBadArguments)
		mustCreate(t, conn, "/keepers", 0)
		mustCreate(t, conn, "/zookeeper", 0)
		require.NoError(t, conn.Delete("/zookeeper", -1))
		require.Len(t, srv.Tree(), 1)
	}, zktest.Options{Servers: 3, Flavor: zktest.Keeper})
}

func TestAKeeperReplacesASessionWithoutAnEvent(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 10000})
		require.NoError(t, c.Send(1, 1, create("/e", 1)))
		_, err := c.Read()
		require.NoError(t, err)
		d, again := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 10000, Session: sess.ID, Passwd: sess.Passwd})
		require.NotZero(t, again.ID)
		require.NotEqual(t, sess.ID, again.ID)
		require.True(t, sees(t, d, "/e"), "the old session lives until its timeout")
		require.NoError(t, d.Send(1, 19, create("/c", 4)))
		_, err = d.Read()
		require.Error(t, err)
	}, zktest.Options{Flavor: zktest.Keeper})
}

func TestAKeepersSessionsAreExtendedByCommits(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 10000})
		for range 3 {
			time.Sleep(3 * time.Second)
			require.False(t, sees(t, c, "/x"))
		}
		time.Sleep(3100 * time.Millisecond)
		synctest.Wait()
		require.Empty(t, srv.Sessions(), "a follower's reads are none")
		c, sess = raw(t, srv, srv.Member(1), wire.Hello{Timeout: 10000})
		for range 10 {
			time.Sleep(3 * time.Second)
			ping(t, c)
		}
		require.Len(t, srv.Sessions(), 1, "pings are committed, and writes")
		first := expires(t, srv, sess.ID)
		time.Sleep(4 * time.Second)
		srv.ElectLeader(2)
		require.Equal(t, first, expires(t, srv, sess.ID), "a new leader has noted them too, and gives no new timeout")
		require.False(t, sees(t, mustRaw(t, srv, 2), "/x"))
	}, zktest.Options{Flavor: zktest.Keeper})
}

// A member that was away carries out what it has missed when it comes back, and hears of the sessions by that.
func TestAKeeperThatCatchesUpLearnsOfTheSessions(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		_, silent := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 40000})
		srv.Member(2).CutOff()
		for range 10 {
			time.Sleep(3 * time.Second)
			ping(t, c)
		}
		noted := expires(t, srv, silent.ID)
		time.Sleep(2 * time.Second)
		srv.Member(2).Rejoin()
		time.Sleep(time.Second)
		srv.ElectLeader(2)
		synctest.Wait()
		require.Len(t, srv.Sessions(), 2)
		require.Equal(t, noted, expires(t, srv, silent.ID), "nothing was missed of it")
	}, zktest.Options{Flavor: zktest.Keeper})
}

func TestAKeepersSyncAndPingNeedTheQuorum(t *testing.T) {
	for _, op := range []int32{9, 11} {
		bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
			c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 40000})
			syncs(t, c)
			ping(t, c)
			srv.Member(0).CutOff()
			if op == 9 {
				srv.ElectLeader(1)
			}
			c.Wait = time.Second
			require.NoError(t, c.Send(5, op, wire.NewBody().Str("/")))
			_, err := c.Read()
			require.True(t, isTimeout(err), "%v", err)
		}, zktest.Options{Flavor: zktest.Keeper})
	}
}

func TestAnEventCarriesItsZxidFrom39On(t *testing.T) {
	for flavor, want := range map[zktest.Flavor]bool{zktest.ZooKeeper38: false, zktest.ZooKeeper39: true} {
		bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
			require.NoError(t, srv.PutNode("/x", nil))
			c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 40000})
			require.NoError(t, c.Send(1, 4, wire.NewBody().Str("/x").Bool(true)))
			_, err := c.Read()
			require.NoError(t, err)
			require.NoError(t, srv.PutNode("/x", nil))
			event, err := c.Read()
			require.NoError(t, err)
			assert.Equal(t, want, event.Zxid == srv.Zxid(), "%v: 0x%x", flavor, event.Zxid)
			assert.Equal(t, want, event.Zxid != -1)
		}, zktest.Options{Flavor: flavor})
	}
}

func TestExistsNeedsReadFrom39On(t *testing.T) {
	for flavor, want := range map[zktest.Flavor]int32{zktest.ZooKeeper38: 0, zktest.ZooKeeper39: zktest.CodeNoAuth} {
		bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
			private := []zktest.ACL{{Perms: zktest.PermAll, Scheme: "digest", ID: "joe:x"}}
			require.NoError(t, srv.Apply(zktest.Step{Op: zktest.OpCreate, Path: "/x", ACL: private}))
			c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 40000})
			require.NoError(t, c.Send(1, 3, wire.NewBody().Str("/x").Bool(false)))
			frame, err := c.Read()
			require.NoError(t, err)
			assert.Equal(t, want, frame.Err, "%v", flavor)
		}, zktest.Options{Flavor: flavor})
	}
}

func TestACreateThatCannotBeDecodedTakesAZxidBefore39(t *testing.T) {
	for flavor, want := range map[zktest.Flavor]int64{zktest.ZooKeeper38: 1, zktest.ZooKeeper39: 0} {
		bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
			c, _ := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 40000})
			before := srv.Zxid()
			require.NoError(t, c.Send(1, 1, wire.NewBody().Int(99)))
			frame, err := c.Read()
			require.NoError(t, err)
			assert.Equal(t, zktest.CodeMarshalling, frame.Err)
			assert.Equal(t, want, srv.Zxid()-before, "%v", flavor)
		}, zktest.Options{Flavor: flavor})
	}
}

func TestACreate2InAMultiIsAnsweredWithAStatFrom39On(t *testing.T) {
	for flavor, want := range map[zktest.Flavor]int32{zktest.ZooKeeper38: 1, zktest.ZooKeeper39: 15} {
		bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
			c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 40000})
			require.NoError(t, c.Send(1, 14, wire.NewBody().Int(15).Bool(false).Int(-1).Add(create("/x", 0)).Int(-1).Bool(true).Int(-1)))
			frame, err := c.Read()
			require.NoError(t, err)
			p := wire.Parse(frame.Body)
			assert.Equal(t, want, p.Int(), "%v", flavor)
			p.Bool()
			p.Int()
			assert.Equal(t, "/x", p.Str())
			if want == 15 {
				assert.Equal(t, srv.Zxid(), p.Stat().Czxid)
			}
			assert.Equal(t, int32(-1), p.Int())
		}, zktest.Options{Flavor: flavor})
	}
}

// mustRaw is raw for a client that only looks.
func mustRaw(t *testing.T, srv *zktest.Server, member int) *wire.Conn {
	t.Helper()
	c, sess := raw(t, srv, srv.Member(member), wire.Hello{Timeout: 10000})
	require.NotZero(t, sess.ID)
	return c
}
