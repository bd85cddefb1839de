// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

func TestWaitingForNodesAndWatches(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		b, _ := connect(t, srv, "b", 9*time.Second)
		done := make(chan error, 1)
		// Ends with its three requests; the receive below waits for it.
		go func() {
			time.Sleep(time.Second)
			_, err := a.Create("/x", []byte("hello"), 0, open)
			time.Sleep(time.Second)
			_, _, _, werr := a.GetW("/x")
			_, _, _, cerr := b.ChildrenW("/x")
			time.Sleep(time.Second)
			done <- errors.Join(err, werr, cerr, a.Delete("/x", -1))
		}()
		begin := time.Now()
		node, err := srv.WaitNode(t.Context(), "/x")
		require.NoError(t, err)
		assert.Equal(t, "hello", string(node.Data))
		assert.Equal(t, time.Second, time.Since(begin))
		require.NoError(t, srv.WaitWatches(t.Context(), "/x", 2))
		assert.Equal(t, 2*time.Second, time.Since(begin))
		require.NoError(t, srv.WaitGone(t.Context(), "/x"))
		assert.Equal(t, 3*time.Second, time.Since(begin))
		require.NoError(t, <-done)
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = srv.WaitNode(impatient, "/never")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "waiting for node /never")
	})
}

func TestFastForwardDeletesUnusedContainersAndTTLNodes(t *testing.T) {
	srv := zktest.Run(t)
	require.NoError(t, srv.Apply(
		zktest.Step{Op: zktest.OpCreateContainer, Path: "/used"},
		zktest.Step{Op: zktest.OpCreate, Path: "/used/x"},
		zktest.Step{Op: zktest.OpCreateTTL, Path: "/ttl", TTL: time.Hour},
	))
	require.NoError(t, srv.DeleteNode("/used/x"))
	conn, _, err := zk.Connect(srv.Addrs(), 4*time.Second, zk.WithLogger(quiet{}))
	require.NoError(t, err)
	defer conn.Close()
	mustCreate(t, conn, "/mine", zk.FlagEphemeral)
	id := conn.SessionID()
	begin := time.Now()
	srv.FastForward(10 * time.Minute)
	require.Equal(t, []string{"mine", "ttl", "zookeeper"}, srv.Children("/"), "the container has gone")
	require.True(t, exists(t, conn, "/mine"), "a client that is connected keeps its session")
	srv.FastForward(time.Hour)
	require.Equal(t, []string{"mine", "zookeeper"}, srv.Children("/"))
	require.Equal(t, id, conn.SessionID())
	made, _ := srv.Node("/mine")
	require.Less(t, time.Until(time.UnixMilli(made.Ctime)), time.Minute)
	mustCreate(t, conn, "/later", 0)
	later, _ := srv.Node("/later")
	require.GreaterOrEqual(t, later.Ctime-made.Ctime, (70 * time.Minute).Milliseconds())
	srv.Member(0).Refuse(true)
	srv.DropConnections()
	srv.FastForward(10 * time.Second)
	require.NotContains(t, srv.Tree(), "/mine", "one that is away loses it")
	require.Less(t, time.Since(begin), time.Minute)
}

func TestLatencyCanDifferByClientAndMember(t *testing.T) {
	far := func(_ *rand.Rand, client string, member int) time.Duration {
		if client == "far" {
			return time.Duration(1+member) * 10 * time.Millisecond
		}
		return 0
	}
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		for member, want := range map[int]time.Duration{0: 20 * time.Millisecond, 2: 60 * time.Millisecond} {
			conn := only(t, srv, "far", srv.Member(member), 10*time.Second)
			begin := time.Now()
			require.True(t, exists(t, conn, "/"))
			assert.InDelta(t, want, time.Since(begin), float64(time.Microsecond))
		}
		near := only(t, srv, "near", srv.Member(2), 10*time.Second)
		begin := time.Now()
		require.True(t, exists(t, near, "/"))
		assert.Less(t, time.Since(begin), time.Microsecond)
	}, lab.With(zktest.Options{}, lab.Options{LatencyOf: far}))
}
