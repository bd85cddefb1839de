// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"io"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/family"
	"github.com/zklock-go/zklock/internal/evidence/wire"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// The rules of ZooKeeper that every backend shares are a table in
// internal/evidence/parity. Here is what a real server cannot be asked in a test.

func TestAnExhaustedCounterSticks(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		mustCreate(t, a, "/d", 0)
		lab.SetChildCounter(srv, "/d", math.MaxInt32-1)
		assert.Equal(t, "/d/x-2147483646", mustCreate(t, a, "/d/x-", zk.FlagSequence))
		last, _ := srv.Node("/d")
		assert.Equal(t, "/d/x-2147483647", mustCreate(t, a, "/d/x-", zk.FlagSequence))
		_, err := a.Create("/d/x-", nil, zk.FlagSequence, open)
		require.ErrorIs(t, err, zk.ErrNodeExists, "the same number again")
		assert.Equal(t, "/d/y-2147483647", mustCreate(t, a, "/d/y-", zk.FlagSequence))
		now, _ := srv.Node("/d")
		assert.Equal(t, last.Pzxid, now.Pzxid, "and the parent's pzxid stands still")
	})
}

func TestSeveralCreatesOfOneMultiGoBeyondAnExhaustedCounter(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		mustCreate(t, a, "/d", 0)
		lab.SetChildCounter(srv, "/d", math.MaxInt32)
		req := func() *zk.CreateRequest {
			return &zk.CreateRequest{Path: "/d/x-", Acl: open, Flags: zk.FlagSequence}
		}
		res, err := a.Multi(req(), req(), req())
		require.NoError(t, err)
		assert.Equal(t, "/d/x-2147483647", res[0].String)
		assert.Equal(t, "/d/x--2147483648", res[1].String)
		assert.Equal(t, "/d/x--2147483647", res[2].String)
	})
}

func TestTheOldCounterWrapsAround(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		mustCreate(t, a, "/d", 0)
		lab.SetChildCounter(srv, "/d", math.MaxInt32)
		assert.Equal(t, "/d/x-2147483647", mustCreate(t, a, "/d/x-", zk.FlagSequence))
		assert.Equal(t, "/d/x--2147483648", mustCreate(t, a, "/d/x-", zk.FlagSequence))
		assert.Equal(t, "/d/x--2147483647", mustCreate(t, a, "/d/x-", zk.FlagSequence))
	}, lab.With(zktest.Options{}, lab.Options{WrapCounter: true}))
}

func TestAContainerIsReapedOnceItWasUsedAndIsEmpty(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		for _, path := range []string{"/used", "/unused", "/busy"} {
			_, err := a.CreateContainer(path, nil, zk.FlagContainer, open)
			require.NoError(t, err)
		}
		mustCreate(t, a, "/used/x", 0)
		mustCreate(t, a, "/busy/x", 0)
		require.NoError(t, a.Delete("/used/x", -1))
		_, _, gone, err := a.GetW("/used")
		require.NoError(t, err)
		begin := time.Now()
		require.Equal(t, zk.EventNodeDeleted, (<-gone).Type)
		assert.LessOrEqual(t, time.Since(begin), time.Minute)
		zxid := srv.Zxid()
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"busy", "unused", "zookeeper"}, srv.Children("/"))
		assert.Equal(t, zxid, srv.Zxid(), "what must stay is not even tried")
		require.NoError(t, a.Delete("/busy/x", -1))
		time.Sleep(61 * time.Second)
		assert.Equal(t, []string{"unused", "zookeeper"}, srv.Children("/"))
	})
}

func TestATTLNodeIsReapedWhenItIsEmptyAndOld(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		_, err := a.CreateTTL("/t", nil, zk.FlagTTL, open, 5*time.Minute)
		require.NoError(t, err)
		node, _ := srv.Node("/t")
		require.Equal(t, 5*time.Minute, node.TTL)
		time.Sleep(4 * time.Minute)
		_, err = a.Set("/t", nil, -1) // its age counts from here
		require.NoError(t, err)
		mustCreate(t, a, "/t/x", 0)
		time.Sleep(10 * time.Minute)
		require.Contains(t, srv.Tree(), "/t", "not while it has children")
		require.NoError(t, a.Delete("/t/x", -1))
		time.Sleep(61 * time.Second)
		require.NotContains(t, srv.Tree(), "/t")
	})
}

func TestChildrenComeInNoParticularOrder(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		for range 20 {
			mustCreate(t, a, "/n-", zk.FlagSequence)
		}
		first, _, err := a.Children("/")
		require.NoError(t, err)
		again, _, err := a.Children("/")
		require.NoError(t, err)
		assert.ElementsMatch(t, first, again)
		assert.NotEqual(t, first, again)
		assert.NotEqual(t, srv.Children("/"), first)
	})
}

func TestTheSameSeedGivesTheSameOrder(t *testing.T) {
	list := func() (names []string) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.Options{Seed: 7})
			a, _ := connect(t, srv, "a", 9*time.Second)
			for range 20 {
				mustCreate(t, a, "/n-", zk.FlagSequence)
			}
			names, _, _ = a.Children("/")
		})
		return names
	}
	require.Equal(t, list(), list())
}

func TestAMalformedFrameClosesOnlyItsConnection(t *testing.T) {
	for name, bad := range map[string][]byte{
		"oversized":      wire.NewBody().Int(1 << 20).Bytes(),
		"negative":       wire.NewBody().Int(-1).Bytes(),
		"without header": wire.NewBody().Int(1).Framed(),
		"garbage":        []byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			var log family.Output
			bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
				good, _ := connect(t, srv, "good", 9*time.Second)
				mustCreate(t, good, "/x", 0)
				c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
				require.NoError(t, c.Send(1, 3, wire.NewBody().Str("/x").Bool(false)))
				_, err := c.Read()
				require.NoError(t, err)
				require.NoError(t, c.Raw(bad))
				_, err = c.Read()
				require.ErrorIs(t, err, io.EOF)
				require.True(t, exists(t, good, "/x"))
				require.Len(t, srv.Sessions(), 2, "the session lives on")
			}, zktest.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.Contains(t, log.String(), "level=WARN")
		})
	}
}

func TestATruncatedFrameIsLogged(t *testing.T) {
	var log family.Output
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		require.NoError(t, c.Raw(wire.NewBody().Int(100).Int(1).Bytes()))
		require.NoError(t, c.Close())
		synctest.Wait()
		require.Equal(t, -1, srv.Sessions()[0].Member, "its connection is gone")
	}, zktest.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.Contains(t, log.String(), "unexpected EOF")
}

func TestFourLetterWordsReportTheState(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		require.NoError(t, a.Send(1, 1, create("/e", 1)))
		_, err := a.Read()
		require.NoError(t, err)
		for i, op := range []int32{4, 12} { // a data watch and a child watch
			require.NoError(t, a.Send(int32(2+i), op, wire.NewBody().Str("/e").Bool(true)))
			_, err = a.Read()
			require.NoError(t, err)
		}
		id := "0x" + hexa(sess.ID)
		leader, follower := srv.Member(0), srv.Member(1)
		for _, want := range []struct {
			word, says string
			member     *zktest.Member
		}{
			{"ruok", "imok", leader}, {"isro", "rw", leader},
			{"srvr", "Mode: leader", leader}, {"srvr", "Mode: follower", follower},
			{"srvr", "Node count: 6", leader}, {"srvr", "Connections: 2", leader}, {"srvr", "Connections: 1", follower},
			{"srvr", "Received: 3", leader}, {"stat", "recved=3,sent=4", leader},
			{"cons", "sid=" + id, leader}, {"cons", "lop=GETC", leader}, {"cons", "to=10000", leader},
			{"conf", "tickTime=2000", leader}, {"conf", "maxSessionTimeout=40000", leader}, {"conf", "syncLimit=5", leader},
			{"mntr", "zk_watch_count\t2\n", leader}, {"mntr", "zk_ephemerals_count\t1\n", follower},
			{"mntr", "zk_znode_count\t6\n", leader}, {"mntr", "zk_server_state\tfollower\n", follower}, {"mntr", "zk_synced_followers\t2\n", leader},
			{"dump", id, leader}, {"dump", "\t/e\n", leader}, {"dump", "Session Sets (1)/(1)", leader},
			{"wchs", "1 connections watching 1 paths\nTotal watches:1\n", leader}, {"wchs", "0 connections", follower},
			{"wchc", id + "\n\t/e\n", leader}, {"wchp", "/e\n\t" + id + "\n", leader},
			{"envi", "zookeeper.version=", leader}, {"dirs", "datadir_size", leader},
			{"crst", "Connection stats reset.", leader}, {"stat", "recved=0", leader},
			{"srst", "Server stats reset.", leader}, {"srvr", "Received: 0", leader},
		} {
			assert.Contains(t, word(t, srv, want.member, want.word), want.says, want.word)
		}
	})
}

func hexa(id int64) string {
	const digits = "0123456789abcdef"
	var b []byte
	for u := uint64(id); u > 0; u >>= 4 {
		b = append([]byte{digits[u&15]}, b...)
	}
	return string(b)
}

func word(t *testing.T, srv *zktest.Server, m *zktest.Member, w string) string {
	t.Helper()
	nc, err := srv.Dial("tcp", m.Addr(), time.Second)
	require.NoError(t, err)
	defer nc.Close()
	c := wire.New(nc)
	require.NoError(t, c.Raw([]byte(w)))
	b, err := c.ReadAll()
	require.NoError(t, err)
	return string(b)
}

func TestAFourLetterWordIsAFrameLengthAfterTheHandshake(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		require.NoError(t, c.Raw([]byte("ruok")))
		b, err := c.ReadAll()
		require.NoError(t, err)
		require.Empty(t, b)
	})
}

func TestInspectionCountsWatchesAndRequests(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		mustCreate(t, a, "/e", zk.FlagEphemeral)
		_, _, _, err := a.GetW("/e")
		require.NoError(t, err)
		_, _, _, err = a.ChildrenW("/")
		require.NoError(t, err)
		assert.Equal(t, map[string]int{"/e": 1, "/": 1}, srv.Watches())
		assert.Equal(t, 2, srv.WatchCount())
		assert.Equal(t, map[zktest.Op]int{
			zktest.OpCreateSession: 1, zktest.OpCreate: 1, zktest.OpGetData: 1, zktest.OpGetChildren2: 1,
		}, srv.Requests())
		assert.Equal(t, 4, srv.RequestCount())
		in, out := srv.Bytes()
		assert.Greater(t, in, int64(100))
		assert.Greater(t, out, int64(100))
		srv.ResetCounts()
		time.Sleep(4 * time.Second)
		assert.Equal(t, map[zktest.Op]int{zktest.OpPing: 1}, srv.Requests())
		assert.Zero(t, srv.RequestCount())
		in, out = srv.Bytes()
		assert.Equal(t, []int64{12, 20}, []int64{in, out}, "a ping and its answer")
		sessions := srv.Sessions()
		require.Len(t, sessions, 1)
		assert.Equal(t, "a", sessions[0].Client)
		assert.Equal(t, a.SessionID(), sessions[0].ID)
		assert.Equal(t, []string{"/e"}, srv.Ephemerals(a.SessionID()))
		srv.DropConnections()
		synctest.Wait()
		assert.Zero(t, srv.WatchCount())
		assert.Equal(t, -1, srv.Sessions()[0].Member)
	})
}

func TestTransactionsAreShownInOrder(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		var txns []zktest.Txn
		remove := srv.OnTxn(func(txn zktest.Txn) { txns = append(txns, txn) })
		a, _ := connect(t, srv, "a", 9*time.Second)
		mustCreate(t, a, "/e", zk.FlagEphemeral)
		_, err := a.Create("/e", nil, 0, open)
		require.Error(t, err)
		_, err = a.Multi(&zk.DeleteRequest{Path: "/e", Version: -1}, &zk.CheckVersionRequest{Path: "/", Version: -1})
		require.NoError(t, err)
		require.Len(t, txns, 4)
		for i, txn := range txns {
			assert.Equal(t, txns[0].Zxid+int64(i), txn.Zxid)
			assert.Equal(t, a.SessionID(), txn.Session)
		}
		assert.Equal(t, "/e", txns[1].Path)
		assert.Equal(t, a.SessionID(), txns[1].Owner)
		assert.Equal(t, zktest.CodeNodeExists, txns[2].Code)
		require.Len(t, txns[3].Steps, 2)
		assert.Equal(t, zktest.OpDelete, txns[3].Steps[0].Op)
		assert.Equal(t, "/e", txns[3].Steps[0].Path)
		remove()
		mustCreate(t, a, "/f", 0)
		require.Len(t, txns, 4)
	})
}

func TestAThirdPartyCanWriteAndDelete(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		require.NoError(t, srv.PutNode("/x/y/z", []byte("1")))
		require.NoError(t, srv.PutNode("/x/y/z", []byte("2")))
		data, stat, events, err := a.GetW("/x/y/z")
		require.NoError(t, err)
		assert.Equal(t, "2", string(data))
		assert.Equal(t, int32(1), stat.Version)
		require.Error(t, srv.DeleteNode("/x"), "it has children")
		require.NoError(t, srv.DeleteNode("/x/y/z"))
		require.Equal(t, zk.EventNodeDeleted, (<-events).Type)
		require.Error(t, srv.PutNode("relative", nil))
	})
}

func TestBadOptionsAreRefused(t *testing.T) {
	for _, o := range []zktest.Options{{Servers: -1}, {TickTime: -1}, {TickTime: 1}, {SyncLimit: -1}, lab.With(zktest.Options{}, lab.Options{ContainerCheck: -1}), lab.With(zktest.Options{}, lab.Options{UnusedContainers: -1})} {
		_, err := zktest.New(o)
		require.Error(t, err)
	}
}

func TestAStoppedMemberListensAgainAtItsAddress(t *testing.T) {
	srv := zktest.Run(t, zktest.Options{Servers: 2})
	m := srv.Member(1)
	addr := m.Addr()
	m.Stop()
	_, err := netDial(addr)
	require.Error(t, err)
	m.Start()
	nc, err := netDial(addr)
	require.NoError(t, err)
	require.NoError(t, nc.Close())
	require.NotEqual(t, addr, srv.Addr())
	require.Len(t, srv.Addrs(), 2)
}

func TestNamesOfRequestTypesAreReadable(t *testing.T) {
	assert.Equal(t, "getChildren2", zktest.OpGetChildren2.String())
	assert.Equal(t, "op(77)", zktest.Op(77).String())
	assert.False(t, strings.HasPrefix(zktest.OpWhoAmI.String(), "op("))
}
