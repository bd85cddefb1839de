// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/testclock"
	"github.com/zklock-go/zklock/zktest"
)

// P7: a waiter at the front gets the lock.

//zklock:promise P7.1
func TestAWaiterWakesThoughItsWatchWasLostInAReconnect(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		holder, waiter := connect(t, srv, "holder", term), connect(t, srv, "waiter", term)
		hold, err := holder.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		a := lockLater(t.Context(), waiter.Mutex(path).Lock)
		time.Sleep(time.Second)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpSetWatches {
				return zktest.Answer(-127)
			}
			return zktest.Pass
		})
		srv.DropConnections()
		time.Sleep(2 * time.Second)
		unlock(t, hold)
		time.Sleep(time.Second)
		require.True(t, a.returned(), "asleep")
		require.NoError(t, a.err)
		unlock(t, a.hold)
	})
}

//zklock:promise P7.4
func TestADirectoryThatVanishesDelaysNoWaiter(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client)
		struck := 0
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if makesContender(r) && struck < 3 { // deleted when the create arrives
				struck++
				srv.DeleteNode(path)
				srv.DeleteNode("/locks/orders")
			}
			return zktest.Pass
		})
		unlockSoon(t, client)
		require.Equal(t, 3, struck)
	})
}

//zklock:promise P7.1
func TestWaitersQueueAgainWhenAllNodesAreDeleted(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		var waiting []*attempt
		for range 5 {
			waiting = append(waiting, lockLater(t.Context(), client.Mutex(path).Lock))
			time.Sleep(100 * time.Millisecond)
		}
		names := queue(srv, path)
		slices.SortFunc(names, func(a, b string) int { return strings.Compare(b[len(b)-10:], a[len(a)-10:]) })
		for _, name := range names { // the last one first, so that no one is granted a node that was just deleted or is deleted next
			require.NoError(t, srv.DeleteNode(path+"/"+name))
			synctest.Wait()
		}
		<-hold.Context().Done()
		for range waiting {
			time.Sleep(10 * time.Second)
			var holders []*attempt
			for _, a := range waiting {
				if a.returned() && a.hold != nil && a.hold.Check() == nil {
					holders = append(holders, a)
				}
			}
			require.Len(t, holders, 1)
			unlock(t, holders[0].hold)
		}
		noGhost(t, srv, path)
	})
}

//zklock:promise P7.10
func TestAServerWithoutContainersGetsPlainDirectories(t *testing.T) {
	virtual(t, zktest.Options{NoContainers: true}, func(t *testing.T, srv *zktest.Server) {
		unlockSoon(t, connect(t, srv, "a", term))
		_, there := srv.Node(path)
		require.True(t, there)
	})
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client)
		time.Sleep(10 * time.Minute)
		_, there := srv.Node(path)
		require.False(t, there, "an unused directory is reaped")
		unlockSoon(t, client)
	})
}

// A machine resumes after a suspend, without a network.
//
//zklock:promise P2.11 A2
func TestAMachineThatWakesUpWithoutANetworkNoticesTheLossSoon(t *testing.T) {
	for offset := time.Duration(0); offset < term; offset += term / 16 {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			var asleep atomic.Int64
			ctx := testclock.With(t.Context(), func() time.Time { return time.Now().Add(time.Duration(asleep.Load())) })
			client, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom("sleeper")})
			require.NoError(t, err)
			defer client.Close()
			hold, err := client.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			time.Sleep(2*term + offset)
			srv.Partition("sleeper")
			asleep.Store(int64(time.Hour)) // the wall clock advanced, the monotonic clock did not
			woke := time.Now()
			<-hold.Context().Done()
			assert.Less(t, time.Since(woke), term/10)
			srv.HealClient("sleeper")
		})
	}
}

// shorterConn requests a shorter session timeout than the client library does, as if the server granted only that.
type shorterConn struct {
	net.Conn
	asked bool
	to    time.Duration
}

func (c *shorterConn) Write(p []byte) (int, error) {
	if !c.asked {
		c.asked = true
		q := slices.Clone(p)
		binary.BigEndian.PutUint32(q[16:], uint32(c.to.Milliseconds()))
		return c.Conn.Write(q)
	}
	return c.Conn.Write(p)
}

// A reconnect can bring a shorter session timeout.
//
//zklock:promise P2.1 A6
func TestAHoldEndsInTimeThoughItsSessionBecomesShorter(t *testing.T) {
	for offset := time.Duration(0); offset < term; offset += term / 8 {
		virtual(t, zktest.Options{TickTime: time.Second}, func(t *testing.T, srv *zktest.Server) {
			var shorter atomic.Bool
			client := connectWith(t, srv, &zklock.Options{Label: "holder", SessionTimeout: 2 * term, Dialer: func(network, address string, timeout time.Duration) (net.Conn, error) {
				conn, err := srv.DialFrom("holder")(network, address, timeout)
				if err == nil && shorter.Load() {
					conn = &shorterConn{Conn: conn, to: 2 * time.Second}
				}
				return conn, err
			}})
			other := connect(t, srv, "next", term)
			hold, err := client.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			end := endOf(hold)
			next := lockLater(t.Context(), other.Mutex(path).Lock)
			time.Sleep(2*term + offset)
			shorter.Store(true)
			srv.DropConnections()
			time.Sleep(50 * time.Millisecond)
			require.Equal(t, 2*time.Second, client.SessionTimeout())
			srv.Partition("holder")
			<-next.done
			require.NoError(t, next.err)
			<-end.done
			assert.False(t, end.at.After(next.at))
			unlock(t, next.hold)
			srv.HealClient("holder")
		})
	}
}
