// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// mostThatServersRead is the length of the longest transaction that a server can read at its start.
const mostThatServersRead int64 = 2_097_150

// longestEnd measures the longest transaction that ends a session.
func longestEnd(srv *zktest.Server) *atomic.Int64 {
	var longest atomic.Int64
	srv.OnTxn(func(txn zktest.Txn) {
		size := 0
		for _, p := range txn.Deleted {
			size += 4 + len(p)
		}
		longest.Store(max(longest.Load(), int64(size)))
	})
	return &longest
}

// When a session ends, all its nodes are deleted in one transaction. Servers that log a transaction of two megabytes never start
// again. So a client's nodes must have less than that, including those of waiters.
//
//zklock:promise P7.8
func TestAllNodesOfAClientCanEndInOneTransaction(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		ended := longestEnd(srv)
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
		for range 200 { // released nodes do not count
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
		require.Greater(t, ended.Load(), int64(1_500_000))
		require.Less(t, ended.Load(), mostThatServersRead)
		require.Len(t, all(100), len(holds), "the next session owns nothing yet")
	})
}

// Clients on one connection share one session, and all their nodes are deleted together.
//
//zklock:promise P7.8
func TestAllNodesOfTheClientsOfAConnectionCanEndInOneTransaction(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		conn, hooks := hooked(t, srv)
		dir, owned := "/"+strings.Repeat("d", 900), int64(0)
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
					owned += int64(4 + len(check.(*zk.CheckVersionRequest).Path))
				}
				require.Less(t, owned, mostThatServersRead, "client %d, acquire %d", i, k)
			}
		}
	})
}

// If a third party deletes waiters' nodes, the waiters queue again. A deleted node does not count together with its replacement,
// although both together would exceed the limit.
//
//zklock:promise P7.8
func TestWaitersThatQueueAgainAreCountedOnce(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(5 * time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		dir := "/" + strings.Repeat("d", 900)
		hold, err := connect(t, srv, "other", term).Mutex(dir).Lock(t.Context())
		require.NoError(t, err)
		c := connect(t, srv, "c", term)
		ctx, cancel := context.WithCancel(t.Context())
		var waiters []*attempt
		for range 1200 { // 1.1 MB of paths
			waiters = append(waiters, lockLater(ctx, c.Mutex(dir).Lock))
		}
		time.Sleep(time.Minute)
		require.Len(t, srv.Children(dir), 1201)
		var nodes []string
		for _, name := range srv.Children(dir) {
			if !strings.HasSuffix(hold.Node(), name) {
				nodes = append(nodes, dir+"/"+name)
			}
		}
		require.NoError(t, srv.DeleteNodes(nodes...))
		time.Sleep(time.Minute)
		failed := 0
		for _, w := range waiters {
			if w.returned() {
				require.Error(t, w.err)
				err, failed = w.err, failed+1
			}
		}

		require.Zero(t, failed, "%v", err)
		cancel()
		unlock(t, hold)
		for _, w := range waiters {
			<-w.done
			if w.err == nil {
				unlock(t, w.hold)
			}
		}
	})
}

// A create whose reply was lost can be executed later. Until that is impossible, its nodes count towards the limit: servers that
// log a transaction of two megabytes never start again.
//
//zklock:promise P7.8
func TestACreateThatRunsLateCountsTowardTheLimit(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		ended := longestEnd(srv)
		leader := leaderIs(srv, 3)
		follower := (leader + 1) % 3
		client := connect(t, srv, "a", term)
		moveTo(srv, 3, follower)
		dir := "/" + strings.Repeat("d", 900)
		permits := client.Semaphore(dir, 10_000)
		hold, err := permits.Acquire(t.Context(), 1)
		require.NoError(t, err)
		unlock(t, hold)
		release := lab.HoldForwards(srv.Member(follower))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		lost := make(chan error, 1)
		go func() {
			_, err := permits.TryAcquire(ctx, 800)
			lost <- err
		}()
		time.Sleep(100 * time.Millisecond)
		moveTo(srv, 3, leader)
		require.Error(t, <-lost)
		for {
			if _, err := permits.Acquire(t.Context(), 100); err != nil {
				require.ErrorIs(t, err, zklock.ErrLimit)
				break
			}
		}
		moveTo(srv, 3, follower) // resumes the session before the delayed requests
		srv.Partition("a")
		release()
		time.Sleep(2 * term)
		srv.HealClient("a")
		require.Less(t, ended.Load(), mostThatServersRead)
	})
}

// After a change of the leader, a lost create can no longer be executed.
//
//zklock:promise P7.8
func TestACreateThatCannotRunAnyMoreIsNotCounted(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		permits := client.Semaphore("/"+strings.Repeat("d", 900), 10_000)
		hold, err := permits.Acquire(t.Context(), 1)
		require.NoError(t, err)
		unlock(t, hold)
		lost := false
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpMulti && len(r.Paths) > 100 && !lost {
				lost = true
				return zktest.DropBefore
			}
			return zktest.Pass
		})
		_, err = permits.TryAcquire(t.Context(), 800)
		require.Error(t, err)
		require.True(t, lost)
		first, err := permits.Acquire(t.Context(), 800)
		require.NoError(t, err)
		_, err = permits.TryAcquire(t.Context(), 800)
		require.ErrorIs(t, err, zklock.ErrLimit)
		srv.ElectLeader((leaderIs(srv, 3) + 1) % 3)
		time.Sleep(2 * term)
		second, err := permits.Acquire(t.Context(), 800)
		require.NoError(t, err)
		unlock(t, second)
		unlock(t, first)
	})
}
