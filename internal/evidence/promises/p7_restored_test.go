// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// connectCounting returns a client and a counter of its dials.
func connectCounting(t *testing.T, srv *zktest.Server) (*zklock.Client, *atomic.Int64) {
	dials := &atomic.Int64{}
	return connectWith(t, srv, &zklock.Options{SessionTimeout: term, Dialer: func(network, address string, timeout time.Duration) (net.Conn, error) {
		dials.Add(1)
		return srv.Dial(network, address, timeout)
	}}), dials
}

// Servers that were restored from a backup, or rebuilt, refuse every client that has seen a later transaction than they have.
//
//zklock:promise P7.6
func TestAClientReconnectsToAnEnsembleWithEarlierTransactions(t *testing.T) {
	for name, replace := range map[string]func(srv *zktest.Server) func(){
		"wiped": func(srv *zktest.Server) func() { return srv.Wipe },
		"restored, without the session": func(srv *zktest.Server) func() {
			snap := srv.Dump()
			snap.Sessions = nil
			return func() { srv.Restore(snap) }
		},
		"restored, with the session": func(srv *zktest.Server) func() {
			snap := srv.Dump()
			return func() { srv.Restore(snap) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			for servers, attaches := range map[int]bool{1: false, 3: false, 5: true} {
				virtual(t, zktest.Options{Servers: servers}, func(t *testing.T, srv *zktest.Server) {
					var client *zklock.Client
					var program *zk.Conn
					if attaches {
						program, client = attached(t, srv)
					} else {
						client = connect(t, srv, "a", term)
					}
					unlockSoon(t, client)
					swap := replace(srv)
					for range 20 {
						unlockSoon(t, client)
					}
					if attaches { // the client library has seen the later transactions, too
						_, _, err := program.Exists("/")
						require.NoError(t, err)
					}
					hold, err := client.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					end := endOf(hold)
					waiter := lockLater(t.Context(), client.Mutex(path).Lock)
					synctest.Wait()
					swap()
					began := time.Now()
					<-end.done
					require.ErrorIs(t, end.cause, zklock.ErrLost)
					<-waiter.done
					require.NoError(t, waiter.err)
					t.Logf("%d servers: back after %v", servers, time.Since(began))
					require.Len(t, srv.Children(path), 1)
					unlock(t, waiter.hold)
					noGhost(t, srv, path)
					unlockSoon(t, client)
				})
			}
		})
	}
}

// Some servers close the connection on unknown requests.
//
//zklock:promise P7.10
func TestServersThatCloseOnUnknownRequestsCanBeUsed(t *testing.T) {
	virtual(t, zktest.Options{UnknownOps: []zktest.Op{zktest.OpCreateContainer, zktest.OpSetWatches}}, func(t *testing.T, srv *zktest.Server) {
		client, dials := connectCounting(t, srv)
		other := connect(t, srv, "b", term)
		held, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		waiter := lockLater(t.Context(), other.Mutex(path).Lock)
		synctest.Wait()
		dials.Store(0)
		srv.DropConnections() // the client library sends its watches again
		time.Sleep(10 * time.Minute)
		require.NoError(t, held.Check())
		require.Less(t, dials.Load(), int64(10))
		unlock(t, held)
		<-waiter.done
		require.NoError(t, waiter.err)
		unlock(t, waiter.hold)
		for _, path := range []string{"/a/b", "/a/c", "/d"} { // each directory would cost a connection, and every hold with it
			hold, err := other.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			unlock(t, hold)
		}
	})
}

// A client does not reconnect in a tight loop to a server that accepts connections and closes them.
//
//zklock:promise P7.10
func TestAServerThatDropsEveryConnectionIsDialedAtIntervals(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, dials := connectCounting(t, srv)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op.String() == "connect" {
				return zktest.Pass
			}
			return zktest.DropBefore
		})
		dials.Store(0)
		srv.DropConnections()
		time.Sleep(time.Minute)
		require.Less(t, dials.Load(), int64(150))
		require.Greater(t, dials.Load(), int64(30))
		remove()
		require.Error(t, hold.Check())
		unlockSoon(t, client)
	})
}

// shortConn is a connection that ends after the reply to the connect request.
type shortConn struct {
	net.Conn
	greeted bool
}

func (c *shortConn) Read(p []byte) (int, error) {
	if c.greeted {
		c.Conn.Close()
		return 0, io.EOF
	}
	n, err := c.Conn.Read(p)
	c.greeted = n > 4 // the first four bytes are the reply's length
	return n, err
}

// This is like a proxy whose server is down: the handshake succeeds, and nothing follows.
//
//zklock:promise P18.7
func TestAConnectionThatEndsWithItsHandshakeIsNotRepeatedAtOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var dials, short atomic.Int64
		client := connectWith(t, srv, &zklock.Options{SessionTimeout: term, Dialer: func(network, address string, timeout time.Duration) (net.Conn, error) {
			if dials.Add(1) > 1000 {
				time.Sleep(time.Second) // the test has failed; wait for its time limit
			}
			conn, err := srv.Dial(network, address, timeout)
			if err == nil && short.Load() > 0 {
				conn = &shortConn{Conn: conn}
			}
			return conn, err
		}})
		short.Store(1)
		dials.Store(0)
		srv.DropConnections()
		time.Sleep(time.Minute)
		require.Less(t, dials.Load(), int64(150))
		require.Greater(t, dials.Load(), int64(30))
		short.Store(0)
		unlockSoon(t, client)
	})
}

// A server may report a session as expired and keep the connection open.
//
//zklock:promise P7.10
func TestAnExpiryOnAnOpenConnectionIsFollowedByAnotherSession(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpMulti {
				return zktest.Answer(-112)
			}
			return zktest.Pass
		})
		require.ErrorIs(t, hold.Confirm(t.Context()), zklock.ErrLost)
		remove()
		time.Sleep(2 * time.Second)
		unlockSoon(t, client)
		noGhost(t, srv, path)
	})
}
