// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// dialled returns the addresses that a client given servers dials, and Connect's error.
func dialled(t *testing.T, servers []string, opts zklock.Options) ([]string, error) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	opts.Dialer = func(_, address string, _ time.Duration) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(seen, address) {
			seen = append(seen, address)
		}
		return nil, net.ErrClosed
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := zklock.Connect(ctx, servers, &opts)
	require.Nil(t, c)
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(seen)
	return seen, err
}

//zklock:promise P18.1
func TestBadServersAreRefusedBeforeAnythingIsDialled(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, _ *zktest.Server) {
		for _, c := range []struct {
			text  string
			given []string
		}{
			{"no servers given", nil},
			{"is empty", []string{"zk1,,zk2"}},
			{"port outside 1 to 65535", []string{"zk1:0"}},
			{"ends with /", []string{"zk1/app/"}},
			{"is reserved for ZooKeeper", []string{"zk1/zookeeper"}},
		} {
			got, err := dialled(t, c.given, zklock.Options{})
			require.ErrorIs(t, err, zklock.ErrInvalid, "%q", c.given)
			require.ErrorContains(t, err, c.text)
			require.Empty(t, got)
		}
	})
}

//zklock:promise P18.1
func TestAChrootIsBeforeEveryPath(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, err := zklock.Connect(t.Context(), []string{srv.Addr() + "/prod"}, &zklock.Options{Root: "/app", Dialer: srv.Dial})
		require.NoError(t, err)
		defer c.Close()
		hold, err := c.Mutex("/l").Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, "/l", hold.Path())
		require.Len(t, srv.Children("/prod/app/l"), 1)
		unlock(t, hold)
	})
}

//zklock:promise P8.4
func TestZooKeepersOwnTreeIsRefused(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		for _, path := range []string{"/zookeeper", "/zookeeper/quota/l"} {
			_, err := c.Mutex(path).Lock(t.Context())
			require.ErrorIs(t, err, zklock.ErrInvalid)
			require.ErrorContains(t, err, "is reserved for ZooKeeper")
		}
		hold, err := c.Mutex("/zookeepers").Lock(t.Context())
		require.NoError(t, err)
		unlock(t, hold)
	})
}

// One lost connection is not taken as evidence that the server does not support containers.
//
//zklock:promise P7.10
func TestOneLostConnectionIsNotTakenForAServerWithoutContainers(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		release := make(chan struct{})
		remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpCreateContainer {
				return zktest.Hold(release)
			}
			return zktest.Pass
		})
		one := lockLater(t.Context(), client.Mutex("/one").Lock)
		two := lockLater(t.Context(), client.Mutex("/two").Lock)
		synctest.Wait()
		remove()
		srv.DropConnections()
		close(release)
		<-one.done
		<-two.done
		require.NoError(t, errors.Join(one.err, two.err))
		hold, err := client.Mutex("/three").Lock(t.Context())
		require.NoError(t, err)
		unlock(t, hold)
		unlock(t, one.hold)
		unlock(t, two.hold)
		time.Sleep(5 * time.Minute)
		require.NotContains(t, srv.Children("/"), "three", "the directory stays forever")
	})
}

// A test that does not set the dialer must not connect to a server that happens to listen on this machine.
//
//zklock:promise P18.1
func TestAServerInMemoryIsNotDialedWithASocket(t *testing.T) {
	srv := zktest.Start(t)
	_, err := zklock.Connect(t.Context(), srv.Addrs(), nil)
	require.ErrorIs(t, err, zklock.ErrInvalid)
	require.ErrorContains(t, err, "set the dialer to the Dial method of the zktest server")

	hooks := zklock.NewHooks(nil)
	_, err = hooks.Dial("tcp", srv.Addr(), time.Second)
	require.ErrorContains(t, err, "exists only in memory")
}
