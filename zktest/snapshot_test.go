// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/wire"
	"github.com/zklock-go/zklock/zktest"
)

// fixture makes a node of each kind.
func fixture(t *testing.T, srv *zktest.Server, owner int64) {
	t.Helper()
	read := []zktest.ACL{{Perms: zktest.PermRead, Scheme: "world", ID: "anyone"}}
	require.NoError(t, srv.Apply(
		zktest.Step{Op: zktest.OpCreateContainer, Path: "/c"},
		zktest.Step{Op: zktest.OpCreate, Path: "/c/e", Data: []byte("mine"), Owner: owner},
		zktest.Step{Op: zktest.OpCreateTTL, Path: "/t", TTL: time.Hour},
		zktest.Step{Op: zktest.OpCreate, Path: "/r", ACL: read},
	))
}

func TestASnapshotKeepsEverything(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		_, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 10000})
		fixture(t, srv, sess.ID)
		require.NoError(t, srv.DeleteNode("/r"))
		text, err := json.Marshal(srv.Dump())
		require.NoError(t, err)
		var snap zktest.Snapshot
		require.NoError(t, json.Unmarshal(text, &snap))
		before := srv.Tree()
		require.NoError(t, srv.DeleteNodes("/c/e", "/c", "/t"))
		srv.Restore(snap)
		require.Equal(t, before, srv.Tree())
		trees, serving := srv.Replicas()
		require.Equal(t, []bool{true, true, true}, serving)
		require.Equal(t, trees[0], trees[1])
		require.Equal(t, []string{"/c/e"}, srv.Ephemerals(sess.ID))
		require.Equal(t, snap.Zxid>>32+1, srv.Zxid()>>32)
		_, again := raw(t, srv, srv.Member(2), wire.Hello{Timeout: 10000, Session: sess.ID, Passwd: sess.Passwd})
		require.Equal(t, sess.ID, again.ID, "the session of then is taken back")
		path := mustCreate(t, only(t, srv, "a", srv.Member(2), 10*time.Second), "/c/n-", zk.FlagSequence)
		require.Equal(t, "/c/n-0000000001", path, "the counter continues")
		time.Sleep(13 * time.Second)
		require.Empty(t, srv.Ephemerals(sess.ID), "and expires")
	})
}

func TestARestoredServerRefusesClientsThatHaveSeenMore(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		_, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		snap := srv.Dump()
		require.NoError(t, srv.PutNode("/later", nil))
		seen := srv.Zxid()
		srv.Restore(snap)
		require.Equal(t, snap.Zxid, srv.Zxid())
		require.Empty(t, srv.Tree())
		nc, err := srv.Dial("tcp", srv.Addr(), time.Second)
		require.NoError(t, err)
		defer nc.Close()
		_, err = wire.New(nc).Connect(wire.Hello{Timeout: 10000, LastZxid: seen, Session: sess.ID, Passwd: sess.Passwd})
		require.Error(t, err, "no answer")
		require.False(t, isTimeout(err))
		_, again := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000, LastZxid: snap.Zxid, Session: sess.ID, Passwd: sess.Passwd})
		require.Equal(t, sess.ID, again.ID)
	})
}

func TestSessionsOfASnapshotCanBeOmitted(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		_, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		snap := srv.Dump()
		snap.Sessions = nil
		srv.Restore(snap)
		_, again := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000, Session: sess.ID, Passwd: sess.Passwd})
		require.Zero(t, again.ID)
	})
}

func TestSeveralNodesAreDeletedInOneTransaction(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		for _, path := range []string{"/d/a", "/d/b"} {
			require.NoError(t, srv.PutNode(path, nil))
		}
		a := only(t, srv, "a", srv.Member(1), 10*time.Second)
		_, _, firstGone, err := a.GetW("/d/a")
		require.NoError(t, err)
		_, _, secondGone, err := a.GetW("/d/b")
		require.NoError(t, err)
		zxid := srv.Zxid()
		require.NoError(t, srv.DeleteNodes("/d/b", "/d/a"))
		require.Equal(t, zxid+1, srv.Zxid())
		require.Equal(t, zk.EventNodeDeleted, (<-secondGone).Type)
		require.Equal(t, zk.EventNodeDeleted, (<-firstGone).Type)
		require.ErrorContains(t, srv.DeleteNodes("/d", "/d/a"), "delete /d, delete /d/a: error code -101")
		require.Contains(t, srv.Tree(), "/d", "all or none")
	})
}

func TestAForeignClientsDowngradeCanBeImitated(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		_, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		require.NoError(t, srv.PutNode("/rw", nil))
		writer, reader := "/rw/_c_1-__WRIT__0000000007", "/rw/_c_2-__READ__0000000007"
		require.NoError(t, srv.Apply(zktest.Step{Op: zktest.OpCreate, Path: writer, Owner: sess.ID}))
		require.NoError(t, srv.Apply(zktest.Step{Op: zktest.OpCreate, Path: reader, Owner: sess.ID}))
		require.NoError(t, srv.DeleteNode(writer))
		require.Equal(t, []string{reader}, srv.Ephemerals(sess.ID))
		require.ErrorContains(t, srv.Apply(zktest.Step{Op: zktest.OpCreate, Path: writer, Owner: 7}), "no session 0x7")
	})
}
