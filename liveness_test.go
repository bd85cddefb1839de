package zklock_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// P7: a waiter at the front gets the lock.

func TestAWaiterWhoseSessionExpiredQueuesAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		holder, waiter := connect(t, srv, "holder", term), connect(t, srv, "waiter", term)
		hold, err := holder.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		a := lockLater(t.Context(), waiter.Mutex(path).Lock)
		time.Sleep(time.Second)
		names := queue(srv, path)
		require.Len(t, names, 2)
		for _, s := range srv.Sessions() {
			if s.Client == "waiter" {
				srv.ExpireSession(s.ID)
			}
		}
		time.Sleep(5 * time.Second)
		require.Len(t, queue(srv, path), 2)
		require.NotEqual(t, names, queue(srv, path))
		require.False(t, a.returned())
		unlock(t, hold)
		<-a.done
		require.NoError(t, a.err)
		unlock(t, a.hold)
	})
}

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

func TestADirectoryThatVanishesHoldsNobodyUp(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client)
		struck := 0
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if makesContender(r) && struck < 3 { // gone when the create arrives
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
		for _, name := range names { // the last first: nobody is granted a node that goes next, or has just gone
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
