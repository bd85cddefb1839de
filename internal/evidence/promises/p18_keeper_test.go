// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// keepers are three servers of ClickHouse Keeper.
var keepers = zktest.Options{Servers: 3, Flavor: zktest.Keeper}

// TestOnAKeeperTheHoldEndsBeforeAnotherHolds loses a hold on a Keeper in every possible way.
//
//zklock:promise P18.8
func TestOnAKeeperTheHoldEndsBeforeAnotherHolds(t *testing.T) {
	for _, c := range lossCases {
		for _, pause := range []time.Duration{0, term / 3, 3 * term} {
			t.Run(c.name+"/after "+pause.String(), func(t *testing.T) {
				virtual(t, keepers, func(t *testing.T, srv *zktest.Server) {
					holder, contender := connect(t, srv, "holder", term, 2), connect(t, srv, "contender", term, 0, 1)
					hold, err := holder.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					end := endOf(hold)
					next := lockLater(t.Context(), contender.Mutex(path).Lock)
					time.Sleep(pause)
					require.NoError(t, hold.Check())
					c.strike(srv, hold)
					<-next.done
					require.NoError(t, next.err)
					synctest.Wait()
					<-end.done
					require.ErrorIs(t, end.cause, zklock.ErrLost)
					require.False(t, end.at.After(next.at), "told at %v, next holder at %v", end.at, next.at)
					require.Greater(t, next.hold.Token(), hold.Token())
					if err := next.hold.Unlock(t.Context()); err != nil {
						require.ErrorIs(t, err, zklock.ErrLost) // the next contender has lost its connection, too
					}
				})
			})
		}
	}
}

// TestOnAKeeperAHoldLastsWhileItsConnectionDoes shows that the lease is proven on a Keeper as well.
//
//zklock:promise P18.8
func TestOnAKeeperAHoldLastsWhileItsConnectionDoes(t *testing.T) {
	virtual(t, keepers, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "holder", term, 2).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(30 * term)
		require.NoError(t, hold.Check())
		require.NoError(t, hold.Confirm(t.Context()))
		require.GreaterOrEqual(t, hold.Remaining(), 4*term/10)
		unlock(t, hold)
	})
}

// TestOnAKeeperALostConnectionCostsTheHold uses servers that do not resume sessions: a lost connection ends the hold, and no node
// remains.
//
//zklock:promise P18.8
func TestOnAKeeperALostConnectionCostsTheHold(t *testing.T) {
	virtual(t, keepers, func(t *testing.T, srv *zktest.Server) {
		holder, other := connect(t, srv, "holder", term), connect(t, srv, "other", term)
		hold, err := holder.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		end := endOf(hold)
		next := lockLater(t.Context(), other.Mutex(path).Lock)
		time.Sleep(time.Second)
		srv.DropConnections()
		<-end.done
		require.ErrorIs(t, end.cause, zklock.ErrLost)
		<-next.done // which has queued again, in another session
		require.NoError(t, next.err)
		require.False(t, end.at.After(next.at))
		unlock(t, next.hold)
		unlockSoon(t, holder)
	})
}

// TestOnAKeeperANewDirectoryCostsNoHold has the client's first directory created while the client holds a lock in one that existed. An old
// Keeper closes the connection on a request for a container node.
//
//zklock:promise P7.10
func TestOnAKeeperANewDirectoryCostsNoHold(t *testing.T) {
	virtual(t, keepers, func(t *testing.T, srv *zktest.Server) {
		unlockSoon(t, connect(t, srv, "earlier", term))
		client := connect(t, srv, "a", term)
		held, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		hold, err := client.Semaphore("/new/one", 3).Acquire(t.Context(), 2)
		require.NoError(t, err)
		require.NoError(t, held.Check())
		unlock(t, hold)
		unlock(t, held)
		for _, op := range []zktest.Op{zktest.OpCreateContainer, zktest.OpSetWatches} {
			require.Zero(t, srv.Requests()[op], "a Keeper may close the connection on a %v", op)
		}
	})
}

// A Keeper without a leader answers a connect request with a session that does not exist.
//
//zklock:promise P18.4
func TestAKeeperWithoutALeaderGivesNoSession(t *testing.T) {
	virtual(t, keepers, func(t *testing.T, srv *zktest.Server) {
		for i := range 3 {
			srv.Member(i).CutOff()
		}
		time.Sleep(term)
		err := tryToConnect(t, srv, &zklock.Options{Label: "a", SessionTimeout: term}, term)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "server has no leader")
		for i := range 3 {
			srv.Member(i).Rejoin()
		}
		unlockSoon(t, connect(t, srv, "b", term))
	})
}
