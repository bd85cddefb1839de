package zklock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// mostThatServersRead is the length of the longest transaction with which a server starts.
const mostThatServersRead = 2_097_150

// When a session ends, all its nodes end in one transaction. Servers that log one of two megabytes never start again. So a
// client owns less than that, whatever it holds and waits for.
func TestAllNodesOfAClientCanEndInOneTransaction(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		ended := 0 // bytes, of the session that had most
		srv.OnTxn(func(txn zktest.Txn) {
			size := 0
			for _, p := range txn.Deleted {
				size += 4 + len(p)
			}
			ended = max(ended, size)
		})
		c := connect(t, srv, "a", term)
		dir := "/" + strings.Repeat("d", 900)
		permits := c.Semaphore(dir+"/permits", 10_000)
		all := func(k int) (holds []*zklock.Hold) {
			for {
				hold, err := permits.Acquire(t.Context(), k)
				if err != nil {
					require.ErrorIs(t, err, zklock.ErrLimit)
					return holds
				}
				holds = append(holds, hold)
				require.Less(t, len(holds), 30)
			}
		}
		holds := all(100)
		require.Greater(t, len(holds), 15)
		unlock(t, holds[0])
		cohort := c.Cohort(dir+"/cohort", nil)
		for range 200 { // what was released does not count, nor does what was handed on
			hold, err := c.Mutex(dir + "/mutex").Lock(t.Context())
			require.NoError(t, err)
			unlock(t, hold)
			_, err = permits.TryAcquire(t.Context(), 200)
			require.ErrorIs(t, err, zklock.ErrLimit)
			hold, err = cohort.Lock(t.Context())
			require.NoError(t, err)
			next := lockLater(t.Context(), cohort.Lock)
			unlock(t, hold)
			<-next.done
			require.NoError(t, next.err)
			unlock(t, next.hold)
		}
		hold, err := permits.Acquire(t.Context(), 95)
		require.NoError(t, err, "all that was released is free again")
		require.NoError(t, hold.Check())
		all(10)
		_, err = c.Mutex(strings.Repeat(dir, 30)).Lock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLimit)
		hold, err = connect(t, srv, "b", term).Mutex(strings.Repeat(dir, 30)).Lock(t.Context())
		require.NoError(t, err, "another client may")
		unlock(t, hold)

		srv.Partition("a")
		time.Sleep(2 * term)
		srv.HealClient("a")
		require.Greater(t, ended, 1_500_000)
		require.Less(t, ended, mostThatServersRead)
		require.Len(t, all(100), len(holds), "the next session owns nothing yet")
	})
}

// Clients of one connection have one session, and their nodes end together.
func TestAllNodesOfTheClientsOfAConnectionCanEndInOneTransaction(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		conn, hooks := hooked(t, srv)
		dir, owned := "/"+strings.Repeat("d", 900), 0
		for i := range 3 {
			c, err := zklock.Attach(t.Context(), conn, hooks, nil)
			require.NoError(t, err)
			defer c.Close()
			for k := range 30 {
				hold, err := c.Semaphore(fmt.Sprint(dir, i), 10_000).Acquire(t.Context(), 100)
				if err != nil {
					require.ErrorIs(t, err, zklock.ErrLimit)
					break
				}
				for _, check := range hold.Guard() {
					owned += 4 + len(check.(*zk.CheckVersionRequest).Path)
				}
				require.Less(t, owned, mostThatServersRead, "client %d, acquire %d", i, k)
			}
		}
	})
}
