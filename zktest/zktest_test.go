// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// connect opens a client of go-zookeeper without a socket, named for partitions.
func connect(t *testing.T, srv *zktest.Server, name string, timeout time.Duration) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	conn, events, err := zk.Connect(srv.Addrs(), timeout, zk.WithDialer(srv.DialFrom(name)), zk.WithLogger(quiet{}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn, events
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

var open = zk.WorldACL(zk.PermAll)

func TestTheUnmodifiedClientWorksInABubbleWithoutSockets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		conn, _ := connect(t, srv, "a", 10*time.Second)
		path, err := conn.Create("/a", []byte("x"), 0, open)
		require.NoError(t, err)
		require.Equal(t, "/a", path)
		_, _, events, err := conn.GetW("/a")
		require.NoError(t, err)
		_, err = conn.Set("/a", []byte("y"), 0)
		require.NoError(t, err)
		require.Equal(t, zk.EventNodeDataChanged, (<-events).Type)
		for i := range 3 {
			path, err = conn.Create("/a/n-", nil, zk.FlagEphemeral|zk.FlagSequence, open)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("/a/n-%010d", i), path)
		}
		_, err = conn.Multi(&zk.CheckVersionRequest{Path: "/a", Version: 1}, &zk.DeleteRequest{Path: "/a/n-0000000000", Version: -1})
		require.NoError(t, err)
		require.Len(t, srv.Children("/a"), 2)
		conn.Close()
		synctest.Wait()
		require.Empty(t, srv.Children("/a"))
		require.Empty(t, srv.Sessions())
	})
}

func TestAnHourOfIdlePingsTakesNoTime(t *testing.T) {
	begin := time.Now()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.Options{Servers: 3})
		conn, _ := connect(t, srv, "a", 10*time.Second)
		_, err := conn.Create("/e", nil, zk.FlagEphemeral, open)
		require.NoError(t, err)
		id := conn.SessionID()
		time.Sleep(time.Hour)
		require.Equal(t, id, conn.SessionID())
		require.Contains(t, srv.Tree(), "/e")
		require.Greater(t, srv.Requests()[zktest.OpPing], 1000)
	})
	t.Logf("one hour took %v", time.Since(begin))
}

func TestAServerOnLoopbackServesTheClientOverTCP(t *testing.T) {
	srv := zktest.Run(t)
	conn, _, err := zk.Connect([]string{srv.Addr()}, 4*time.Second, zk.WithLogger(quiet{}))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Create("/a", nil, zk.FlagEphemeral, open)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "zookeeper"}, srv.Children("/"))
	stats, ok := zk.FLWSrvr([]string{srv.Addr()}, time.Second)
	require.True(t, ok, "%+v", stats)
	require.Equal(t, int64(6), stats[0].NodeCount)
	require.Equal(t, zk.ModeStandalone, stats[0].Mode)
}
