// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// TestAReconnectComesWithItsCredentialsFirst uses nodes that only a client with its credential may read. After a reconnect,
// requests before the credential would be refused, and a hold whose node cannot be read would be lost.
//
//zklock:promise P18.3
func TestAReconnectComesWithItsCredentialsFirst(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		opts := &zklock.Options{
			SessionTimeout: term, Root: "/app", Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("u:p")}}, ACL: zk.AuthACL(zk.PermAll),
		}
		client := connectWith(t, srv, opts)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second) // its node is watched
		for range 20 {
			srv.DropConnections()
			time.Sleep(3 * time.Second)
			require.NoError(t, hold.Check())
			require.NoError(t, hold.Confirm(t.Context()))
		}
		unlock(t, hold)
	})
}

// TestAShortSessionOutlivesTheLossOfItsConnection uses a session that would expire during a pause of a second, which the client
// library makes after trying all servers.
//
//zklock:promise P18.7 A17
func TestAShortSessionOutlivesTheLossOfItsConnection(t *testing.T) {
	virtual(t, zktest.Options{TickTime: 50 * time.Millisecond, Latency: fixed(5 * time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "holder", 900*time.Millisecond).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		for i := range 20 {
			time.Sleep(time.Second + time.Duration(i)*50*time.Millisecond)
			srv.DropConnections()
			time.Sleep(900 * time.Millisecond)
			require.NoError(t, hold.Check(), i)
			require.NoError(t, hold.Confirm(t.Context()))
		}
		unlock(t, hold)
	})
}

// Connections on which servers reject the credential do not leak goroutines.
//
//zklock:promise P6.1
func TestCredentialsThatAreRefusedForLongLeaveNoGoroutines(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("u:p")}}})
		unlockSoon(t, client)
		remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op.String() == "auth" {
				return zktest.Answer(-115)
			}
			return zktest.Pass
		})
		srv.DropConnections()
		time.Sleep(time.Minute)
		few := runtime.NumGoroutine()
		time.Sleep(time.Hour)
		many := runtime.NumGoroutine()
		remove()
		time.Sleep(5 * time.Second)
		unlockSoon(t, client)
		require.Less(t, many, few+20)
	})
}

// A session whose credentials are rejected is not kept alive forever.
//
//zklock:promise P7.7
func TestASessionWhoseCredentialsAreRefusedEnds(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("u:p")}}})
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		next := lockLater(t.Context(), connect(t, srv, "next", term).Mutex(path).Lock)
		defer srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op.String() == "auth" {
				return zktest.Answer(-115)
			}
			return zktest.Pass
		})()
		srv.DropConnections()
		<-hold.Context().Done()
		time.Sleep(10 * time.Minute)
		require.True(t, next.returned(), "the node of a client that is refused stands forever")
		unlock(t, next.hold)
	})
}
