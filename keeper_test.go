package zklock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// keepers are three servers of another make.
var keepers = zktest.Options{Servers: 3, Flavor: zktest.Keeper}

// TestOnAKeeperTheHoldEndsBeforeAnyoneElseHolds strikes a hold on a Keeper in every way in which one is lost.
func TestOnAKeeperTheHoldEndsBeforeAnyoneElseHolds(t *testing.T) {
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
						require.ErrorIs(t, err, zklock.ErrLost) // the strike has cost the next one its connection, too
					}
				})
			})
		}
	}
}

// TestOnAKeeperAHoldLastsWhileItsConnectionDoes shows that the proof of the lease works out there.
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

// TestOnAKeeperALostConnectionCostsTheHold shows what a server that takes no session back costs, and that nothing is left behind.
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
		<-next.done // which has queued again, on a session of its own
		require.NoError(t, next.err)
		require.False(t, end.at.After(next.at))
		unlock(t, next.hold)
		unlockSoon(t, holder)
	})
}
