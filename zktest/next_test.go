// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

func TestTheNextRequestsAreRefusedLostOrLate(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		conn, _ := connect(t, srv, "a", 10*time.Second)
		mustCreate(t, conn, "/d", 0)
		left := srv.Next(2, zktest.Answer(zktest.CodeNoAuth), zktest.OpSetData)
		for range 2 {
			_, err := conn.Set("/d", nil, -1)
			require.ErrorIs(t, err, zk.ErrNoAuth)
		}
		require.Zero(t, left())
		_, err := conn.Set("/d", nil, -1)
		require.NoError(t, err)

		srv.Next(1, zktest.LoseReply, zktest.OpCreate)
		_, err = conn.Create("/d/x", nil, 0, open)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		assert.Equal(t, []string{"x"}, srv.Children("/d"), "it was done")
		time.Sleep(time.Minute)

		srv.Next(1, zktest.DropBefore, zktest.OpCreate)
		_, err = conn.Create("/d/y", nil, 0, open)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		assert.Equal(t, []string{"x"}, srv.Children("/d"), "it was not")

		time.Sleep(time.Minute) // the client is connected again
		srv.Next(1, zktest.Delay(time.Second))
		begin := time.Now()
		_, _, err = conn.Exists("/d")
		require.NoError(t, err)
		assert.Equal(t, time.Second, time.Since(begin))
	})
}

func TestAQuotaIsRefused(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		conn, _ := connect(t, srv, "a", 10*time.Second)
		_, err := conn.Create("/zookeeper/quota/d", nil, 0, open)
		require.ErrorContains(t, err, "-6")
		names, _, err := conn.Children("/zookeeper/quota")
		require.NoError(t, err)
		assert.Empty(t, names)
	})
}

func TestAnObserverServesAndDoesNotVote(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		observer := srv.Member(2)
		conn, _, err := zk.Connect([]string{observer.Addr()}, 10*time.Second, zk.WithDialer(srv.Dial), zk.WithLogger(quiet{}))
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		mustCreate(t, conn, "/a", 0)
		data, _, err := conn.Get("/a")
		require.NoError(t, err)
		assert.Empty(t, data)

		require.Panics(t, func() { srv.ElectLeader(2) })
		srv.Member(0).Stop()
		time.Sleep(time.Minute)
		assert.Nil(t, srv.Leader(), "one of two votes is no quorum")
		srv.Member(0).Start()
		time.Sleep(time.Second)
		require.NotNil(t, srv.Leader())
		observer.Stop()
		time.Sleep(time.Minute)
		require.NotNil(t, srv.Leader(), "nobody needs the observer")
		require.NoError(t, srv.PutNode("/b", nil))
		observer.Start()
		time.Sleep(time.Minute) // the client finds it again
		_, _, err = conn.Get("/b")
		require.NoError(t, err)
	}, zktest.Options{Observers: 1})
}

func TestOneServerAtLeastMustVote(t *testing.T) {
	for _, opts := range []zktest.Options{{Observers: 1}, {Servers: 3, Observers: 3}, {Servers: 3, Observers: -1}} {
		_, err := zktest.New(opts)
		assert.ErrorContains(t, err, "must vote", "%+v", opts)
	}
}
