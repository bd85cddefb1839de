// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// acquire returns a function that acquires k of n permits.
func acquire(c *zklock.Client, n, k int) func(context.Context) (*zklock.Hold, error) {
	return c.Semaphore(path, n).Permits(k).Lock
}

//zklock:promise P4.2
func TestPermitsAreGrantedInOrderAllAtOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		all := inTurn(t, acquire(a, 3, 1), acquire(b, 3, 1), acquire(a, 3, 2), acquire(b, 3, 1), acquire(b, 3, 3))
		time.Sleep(time.Second)
		require.Equal(t, "xx...", granted(all), "who asks for one waits behind who asks for two")
		unlock(t, all[0].hold)
		time.Sleep(time.Second)
		require.Equal(t, "xxx..", granted(all))
		unlock(t, all[1].hold)
		time.Sleep(time.Second)
		require.Equal(t, "xxxx.", granted(all))
		unlock(t, all[3].hold)
		time.Sleep(time.Second)
		require.Equal(t, "xxxx.", granted(all), "two of three are held")
		unlock(t, all[2].hold)
		time.Sleep(time.Second)
		require.Equal(t, "xxxxx", granted(all))
		require.Len(t, all[4].hold.Guard(), 3)
		unlock(t, all[4].hold)
		for i := 1; i < len(all); i++ {
			require.Greater(t, all[i].hold.Token(), all[i-1].hold.Token())
		}
		noGhost(t, srv, path)
		require.Zero(t, srv.WatchCount(), "%v", srv.Watches())
	})
}

//zklock:promise P8.4
func TestASemaphoreRefusesBadInputBeforeAnyRequest(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		resetCounts(srv)
		for _, bad := range []struct {
			path  string
			n, k  int
			limit bool
		}{
			{path, 3, 0, false}, {path, 3, -1, false}, {path, 3, 4, true}, {path, -1, 1, false}, {path, node.MaxPermits + 1, 1, false},
			{"", 3, 1, false}, {"locks", 3, 1, false}, {"/a/../b", 3, 1, false},
		} {
			s := c.Semaphore(bad.path, bad.n)
			for _, lock := range []func(context.Context, int) (*zklock.Hold, error){s.Acquire, s.TryAcquire} {
				hold, err := lock(t.Context(), bad.k)
				require.ErrorIs(t, err, zklock.ErrInvalid, "%+v", bad)
				require.Equal(t, bad.limit, errors.Is(err, zklock.ErrLimit), "%+v", bad)
				require.Nil(t, hold)
			}
			_, err := c.LockAll(t.Context(), s.Permits(bad.k))
			require.ErrorIs(t, err, zklock.ErrInvalid)
		}
		require.ErrorIs(t, c.Semaphore(path, 3).Resize(t.Context(), 0), zklock.ErrInvalid)
		require.Zero(t, srv.RequestCount())
	})
}

//zklock:promise P1.7
func TestCallersWithDifferentLimitsGetErrMismatch(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		hold, err := a.Semaphore(path, 3).Acquire(t.Context(), 1)
		require.NoError(t, err)
		time.Sleep(time.Second)
		before := queue(srv, path)
		for _, lock := range []func(context.Context, int) (*zklock.Hold, error){b.Semaphore(path, 4).Acquire, b.Semaphore(path, 2).TryAcquire} {
			_, err = lock(t.Context(), 1)
			require.ErrorIs(t, err, zklock.ErrMismatch)
		}
		require.ElementsMatch(t, before, queue(srv, path), "nothing was made")
		unlock(t, hold)
	})
}

// During a rolling deployment, a caller that accepts the stored number agrees with the old and the new number.
//
//zklock:promise P1.7
func TestACallerCanAcceptTheStoredNumber(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term).Semaphore(path, 0)
		for _, lock := range []func(context.Context, int) (*zklock.Hold, error){b.Acquire, b.TryAcquire} {
			_, err := lock(t.Context(), 1)
			require.ErrorIs(t, err, zklock.ErrMismatch)
			require.ErrorContains(t, err, "no stored number")
		}
		require.Equal(t, []string{"zookeeper"}, srv.Children("/"), "nothing was made")
		for _, n := range []int{2, 3} {
			require.NoError(t, a.Semaphore(path, 2).Resize(t.Context(), n))
			for _, lock := range []func(context.Context, int) (*zklock.Hold, error){b.Acquire, b.TryAcquire} {
				hold, err := lock(t.Context(), n)
				require.NoError(t, err)
				_, err = lock(t.Context(), n+1)
				require.ErrorIs(t, err, zklock.ErrLimit)
				unlock(t, hold)
				time.Sleep(time.Second) // the node with which Acquire queued is deleted in the background, and counts until then
			}
		}
		require.ErrorIs(t, b.Resize(t.Context(), 0), zklock.ErrInvalid)
	})
}

//
//zklock:promise P1.7
func TestALaggingServerCausesNoMismatchOfTheLimit(t *testing.T) {
	for _, c := range []struct {
		name           string
		before, now    int
		others, behind int
	}{{"more", 1, 3, 0, 2}, {"fewer", 3, 2, 0, 2}, {"more at the leader", 1, 3, 2, 0}, {"fewer at the leader", 3, 2, 2, 0}} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, zktest.Options{Servers: 3}, func(t *testing.T, srv *zktest.Server) {
				a := connect(t, srv, "a", term, c.others)
				b := connect(t, srv, "b", term, c.behind).Semaphore(path, c.now)
				hold, err := a.Semaphore(path, c.before).Acquire(t.Context(), 1)
				require.NoError(t, err)
				unlock(t, hold)
				time.Sleep(time.Second)
				srv.Member(c.behind).Lag(500 * time.Millisecond)
				for _, lock := range []func(context.Context, int) (*zklock.Hold, error){b.Acquire, b.TryAcquire} {
					require.NoError(t, a.Semaphore(path, c.before).Resize(t.Context(), c.before))
					time.Sleep(time.Second)
					require.NoError(t, a.Semaphore(path, c.now).Resize(t.Context(), c.now))
					hold, err := lock(t.Context(), 2)
					require.NoError(t, err)
					unlock(t, hold)
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// Between the read and the write, another client stores the number, or ZooKeeper removes the directory.
//
//zklock:promise P1.7
func TestTheNumberOfPermitsIsStoredDespiteConcurrentChanges(t *testing.T) {
	for _, code := range []int32{zktest.CodeBadVersion, zktest.CodeNoNode} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			s := connect(t, srv, "a", term).Semaphore(path, 2)
			for _, lock := range []func(context.Context, int) (*zklock.Hold, error){s.Acquire, s.TryAcquire} {
				left := srv.Next(1, zktest.Answer(code), zktest.OpSetData)
				hold, err := lock(t.Context(), 1)
				require.NoError(t, err)
				require.Zero(t, left(), "the number was written")
				unlock(t, hold)
				require.NoError(t, srv.PutNode(path+"/leases", nil))
			}
		})
	}
}

//zklock:promise P1.6
func TestTriesAtOnceTakeNoMorePermitsThanThereAre(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(10 * time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		var all []*zklock.Semaphore
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, connect(t, srv, name, term).Semaphore(path, 2))
		}
		hold, err := all[0].Acquire(t.Context(), 1)
		require.NoError(t, err)
		unlock(t, hold)
		var tries []*attempt // all have read the queue before any of them has a node
		for _, s := range all {
			tries = append(tries, lockLater(t.Context(), func(ctx context.Context) (*zklock.Hold, error) { return s.TryAcquire(ctx, 1) }))
		}
		got := 0
		for _, a := range tries {
			<-a.done
			if a.err == nil {
				got++
				defer unlock(t, a.hold)
				continue
			}
			require.ErrorIs(t, a.err, zklock.ErrLocked)
		}
		require.Equal(t, 2, got)
		require.Len(t, srv.Children(path+"/leases"), 2, "the one that came too late has gone")
	})
}

//zklock:promise P1.7
func TestATryThatCannotReadTheNumberOfPermitsReturnsTheReason(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		s, reads := connect(t, srv, "a", term).Semaphore(path, 2), 0
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpGetData && r.Path == path+"/leases" {
				if reads++; reads > 1 {
					return zktest.Answer(zktest.CodeNoAuth) // when its node is there
				}
			}
			return zktest.Pass
		})
		require.NoError(t, srv.PutNode(path+"/leases", node.LimitData(2)))
		_, err := s.TryAcquire(t.Context(), 1)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		noGhost(t, srv, path)
	})
}

//zklock:promise P1.7
func TestANumberOfPermitsThatMayNotBeStoredIsAnError(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		s := connect(t, srv, "a", term).Semaphore(path, 2)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpCreate || r.Op == zktest.OpCreateContainer {
				return zktest.Answer(zktest.CodeNoAuth)
			}
			return zktest.Pass
		})
		require.ErrorIs(t, s.Resize(t.Context(), 3), zk.ErrNoAuth)
	})
}

//zklock:promise P1.7
func TestALimitThatCannotBeReadIsAnError(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(path+"/leases", []byte("somebody's")))
		s := connect(t, srv, "a", term).Semaphore(path, 3)
		_, err := s.Acquire(t.Context(), 1)
		require.ErrorIs(t, err, zklock.ErrMismatch)
		require.NoError(t, s.Resize(t.Context(), 3), "unless it is set again")
		hold, err := s.Acquire(t.Context(), 1)
		require.NoError(t, err)
		unlock(t, hold)
	})
}

//zklock:promise P1.7
func TestWaitersSeeThatTheLimitHasChanged(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		all := inTurn(t, acquire(a, 2, 2), acquire(b, 2, 1), acquire(b, 2, 2), acquire(b, 2, 1))
		time.Sleep(time.Second)
		require.Equal(t, "x...", granted(all))
		require.NoError(t, a.Semaphore(path, 2).Resize(t.Context(), 5))
		time.Sleep(time.Second)
		require.Equal(t, "xxx.", granted(all), "two, one and two are five")
		_, err := a.Semaphore(path, 2).TryAcquire(t.Context(), 1)
		require.ErrorIs(t, err, zklock.ErrMismatch)

		require.NoError(t, a.Semaphore(path, 5).Resize(t.Context(), 1))
		time.Sleep(time.Second)
		require.Equal(t, "xxx.", granted(all))
		for _, i := range []int{0, 1} {
			require.NoError(t, all[i].hold.Check(), "holders keep holding")
			unlock(t, all[i].hold)
			time.Sleep(time.Second)
			require.Equal(t, "xxx.", granted(all), "two are held, and there is one")
		}
		unlock(t, all[2].hold)
		time.Sleep(time.Second)
		require.Equal(t, "xxxx", granted(all))
		unlock(t, all[3].hold)
		noGhost(t, srv, path)
	})
}

//zklock:promise P1.7
func TestAWaiterThatNeedsMoreThanAllPermitsGetsErrLimit(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		all := inTurn(t, acquire(c, 3, 2), acquire(c, 3, 3), acquire(c, 3, 1))
		time.Sleep(time.Second)
		require.NoError(t, c.Semaphore(path, 3).Resize(t.Context(), 2))
		<-all[1].done
		require.ErrorIs(t, all[1].err, zklock.ErrLimit)
		require.Equal(t, "x..", granted(all))
		unlock(t, all[0].hold)
		<-all[2].done
		unlock(t, all[2].hold)
		noGhost(t, srv, path)
	})
}

//zklock:promise P5.4
func TestTryAcquireReturnsAtOnceAndLeavesNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, s := connect(t, srv, "a", term), connect(t, srv, "b", term).Semaphore(path, 3)
		two, err := c.Semaphore(path, 3).TryAcquire(t.Context(), 2)
		require.NoError(t, err)
		time.Sleep(time.Second)
		resetCounts(srv)
		_, err = s.TryAcquire(t.Context(), 2)
		require.ErrorIs(t, err, zklock.ErrLocked)
		require.Zero(t, srv.Requests()[zktest.OpCreate], "it writes only where it sees enough")
		one, err := s.TryAcquire(t.Context(), 1)
		require.NoError(t, err)
		require.Len(t, queue(srv, path), 3)
		waiter := inTurn(t, acquire(c, 3, 1))
		unlock(t, two)
		<-waiter[0].done
		unlock(t, waiter[0].hold)
		unlock(t, one)
		srv.Partition("b")
		time.Sleep(term)
		_, err = s.TryAcquire(t.Context(), 1)
		require.ErrorIs(t, err, zklock.ErrNotConnected)
		noGhost(t, srv, path)
	})
}

// A release wakes only one waiter, regardless of their number.
//
//zklock:promise P9.5
func TestOnlyOneWaiterWatchesTheHolders(t *testing.T) {
	cost, size := map[int]int{}, map[int]int64{}
	for _, waiters := range []int{10, 200} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			var clients []*zklock.Client
			for i := range 5 {
				clients = append(clients, connect(t, srv, fmt.Sprint("c", i), 40*time.Second))
			}
			all := inTurn(t, acquire(clients[0], 2, 1), acquire(clients[1], 2, 1))
			for i := range waiters {
				all = append(all, inTurn(t, acquire(clients[i%5], 2, 1))...)
			}
			time.Sleep(time.Second)
			resetCounts(srv)
			in, out := srv.Bytes()
			for i := range 8 {
				unlock(t, all[i].hold)
				<-all[i+2].done
				require.NoError(t, all[i+2].err)
				time.Sleep(100 * time.Millisecond)
			}
			n := srv.Requests()
			cost[waiters] = srv.RequestCount() - n[zktest.OpPing]
			nowIn, nowOut := srv.Bytes()
			size[waiters] = nowIn - in + nowOut - out
			t.Log(waiters, "waiters:", cost[waiters], "requests", size[waiters], "bytes", n)
		})
	}
	require.LessOrEqual(t, cost[200], cost[10]*3/2)
	require.LessOrEqual(t, size[200], size[10]*3/2)
}

//zklock:promise P7.1
func TestAWaiterForPermitsKeepsItsNodesAndItsLease(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		holder, waiter := connect(t, srv, "holder", term), connect(t, srv, "waiter", term)
		all := inTurn(t, acquire(holder, 2, 2), acquire(waiter, 2, 2))
		time.Sleep(time.Second)
		var beats atomic.Int32
		defer srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "waiter" && r.Op == zktest.OpMulti {
				beats.Add(1)
			}
			return zktest.Pass
		})()
		time.Sleep(3 * term)
		require.GreaterOrEqual(t, beats.Load(), int32(9), "the next in line has its session confirmed")

		for i := range 2 {
			mine := slices.DeleteFunc(srv.Children(path+"/leases"), func(name string) bool {
				return slices.ContainsFunc(all[0].hold.Guard(), guards(path+"/leases/"+name))
			})
			slices.SortFunc(mine, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
			require.Len(t, mine, 2)
			require.NoError(t, srv.DeleteNode(path+"/leases/"+mine[i]))
			time.Sleep(time.Second)
			require.Len(t, srv.Children(path+"/leases"), 4, "what somebody deleted is made again")
			require.NotSubset(t, srv.Children(path+"/leases"), mine[1-i:2-i], "with all that belong together")
		}
		unlock(t, all[0].hold)
		<-all[1].done
		require.NoError(t, all[1].err)
		unlock(t, all[1].hold)
		noGhost(t, srv, path)
	})
}

// guards returns a predicate for guard operations of the given node.
func guards(node string) func(op any) bool {
	return func(op any) bool { return op.(*zk.CheckVersionRequest).Path == node }
}

//zklock:promise P13.7
func TestPermitsAmongOtherLocks(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		set := func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
			return func(ctx context.Context) (*zklock.Hold, error) {
				return c.LockAll(ctx, c.Semaphore(pathC, 3).Permits(2), c.RWMutex(pathA).Reader(), c.RWMutex(pathB), c.Mutex(path))
			}
		}
		all := inTurn(t, set(a), set(b))
		reader, err := b.RWMutex(pathA).TryRLock(t.Context())
		require.NoError(t, err, "readers share")
		unlock(t, reader)
		_, err = b.RWMutex(pathB).TryRLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		_, err = b.Semaphore(pathC, 3).TryAcquire(t.Context(), 2)
		require.ErrorIs(t, err, zklock.ErrLocked)
		require.Equal(t, "x.", granted(all))
		unlock(t, all[0].hold)
		<-all[1].done
		require.NoError(t, all[1].err)
		unlock(t, all[1].hold)
	})
}

//zklock:promise P19.1
func TestInspectShowsPermits(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		all := inTurn(t, acquire(c, 3, 2), acquire(c, 3, 2), acquire(c, 3, 1))
		time.Sleep(time.Second)
		q, err := operate.Inspect(t.Context(), c, path)
		require.NoError(t, err)
		require.Equal(t, 3, q.Permits)
		holds := 0
		for _, who := range q.Contenders {
			require.Equal(t, operate.KindPermit, who.Kind)
			require.Equal(t, operate.ClientZklock, who.Client)
			require.Equal(t, "a", who.Label)
			if who.Holds {
				holds++
			}
		}
		require.Equal(t, 2, holds, "one of the two that are next is free, but not held")
		require.Len(t, q.Contenders, 2+2, "two permits, and two that wait, each shown once")
		require.NoError(t, operate.Revoke(t.Context(), c, q.Contenders[0]))
		<-all[0].hold.Revoked()
		require.NoError(t, operate.Evict(t.Context(), c, "", q.Contenders[0]))
		<-all[0].hold.Context().Done()
		require.ErrorIs(t, context.Cause(all[0].hold.Context()), zklock.ErrLost)
		for _, a := range all[1:] {
			<-a.done
			require.NoError(t, a.err)
			unlock(t, a.hold)
		}
		noGhost(t, srv, path)
	})
}

// Curator's semaphore creates one node per permit, under a mutex with the same layout, and counts all nodes.
//
//zklock:promise P1.6
func TestPermitsOfCuratorsCount(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		hold, err := c.Semaphore(path, 2).Acquire(t.Context(), 1)
		require.NoError(t, err)
		curator := rawClient(t, srv, term)
		lease, err := curator.Create(path+"/leases/_c_01234567-89ab-cdef-0123-456789abcdef-lease-", []byte("10.0.0.1"), zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		all := inTurn(t, acquire(c, 2, 1))
		time.Sleep(time.Second)
		require.Equal(t, ".", granted(all))
		require.NoError(t, curator.Delete(lease, -1))
		time.Sleep(time.Second)
		require.Equal(t, "x", granted(all))
		unlock(t, all[0].hold)
		unlock(t, hold)
	})
}

// removeSemaphore deletes the directories of the semaphore in one step: otherwise the holder of
// two permits would delete the second when it has lost the first.
func removeSemaphore(t *testing.T, srv *zktest.Server) {
	t.Helper()
	var nodes []string
	for _, dir := range []string{path + "/leases", path + "/locks"} {
		for _, name := range srv.Children(dir) {
			nodes = append(nodes, dir+"/"+name)
		}
		nodes = append(nodes, dir)
	}
	require.NoError(t, srv.DeleteNodes(nodes...))
}

// If ZooKeeper or an operator removes the directory, the stored number is lost. A waiter stores it again: its own, or the one
// that it has read.
//
//zklock:promise P7.4 P1.7
func TestASemaphoreWhoseDirectoryVanishesIsCreatedAgain(t *testing.T) {
	for _, number := range []int{2, 0} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			c := connect(t, srv, "a", term)
			all := inTurn(t, acquire(c, 2, 2), acquire(c, number, 1))
			time.Sleep(time.Second)
			require.Equal(t, "x.", granted(all))
			removeSemaphore(t, srv)
			<-all[0].hold.Context().Done()
			require.ErrorIs(t, context.Cause(all[0].hold.Context()), zklock.ErrLost)
			<-all[1].done
			require.NoError(t, all[1].err)
			_, err := c.Semaphore(path, 3).TryAcquire(t.Context(), 1)
			require.ErrorIs(t, err, zklock.ErrMismatch, "it was stored again")
			unlock(t, all[1].hold)
			noGhost(t, srv, path)
		})
	}
}

// TestPermitsNeverExceedTheLimit runs 100 goroutines in 10 clients on one semaphore while sessions end and connections break.
//
//zklock:promise P1.6
func TestPermitsNeverExceedTheLimit(t *testing.T) {
	t.Parallel()
	const limit = 5
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		var mu sync.Mutex
		held, full, grants := 0, 0, 0 // guarded by mu
		add := func(k int) {
			mu.Lock()
			defer mu.Unlock()
			held += k
			grants++
			if held == limit {
				full++
			}
			assert.LessOrEqual(t, held, limit)
		}
		crowd(t, srv, func(c *zklock.Client, r *rand.Rand) {
			k := 1 + r.IntN(3)
			lock := c.Semaphore(path, limit).Acquire
			if r.IntN(5) == 0 {
				lock = c.Semaphore(path, limit).TryAcquire
			}
			if hold, err := lock(t.Context(), k); err == nil {
				use(hold, r, func() { add(k) }, func() { add(-k) })
			}
		})
		require.Greater(t, grants, 500)
		require.Greater(t, full, 50, "it was used to the full")
	})
}

// TestAWaiterForPermitsThatLosesNodeAndConnectionQueuesAgain deletes a waiter's place and breaks its connection at the
// same time, while it reads the holders. The failed request must not end its wait. It is random which of both it notices first,
// so the test repeats this often.
//
//zklock:promise P7.1
func TestAWaiterForPermitsThatLosesNodeAndConnectionQueuesAgain(t *testing.T) {
	t.Parallel()
	for round := range 300 / oneIn(10) {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
			held, err := a.Semaphore(path, 3).Acquire(t.Context(), 2)
			require.NoError(t, err)
			leaving, err := a.Semaphore(path, 3).Acquire(t.Context(), 1)
			require.NoError(t, err)
			waiting := lockLater(t.Context(), acquire(b, 3, 3))
			time.Sleep(time.Second)
			place := srv.Children(path + "/locks")
			require.Len(t, place, 1)
			var struck atomic.Bool
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if r.Client != "b" || r.Op != zktest.OpGetChildren2 || struck.Swap(true) {
					return zktest.Pass
				}
				if round%2 == 0 {
					srv.ExpireSession(r.Session)
					return zktest.DropBefore
				}
				assert.NoError(t, srv.DeleteNode(path+"/locks/"+place[0]))
				return zktest.LoseReply
			})
			unlock(t, leaving) // b reads the holders
			time.Sleep(5 * time.Second)
			require.True(t, struck.Load())
			require.False(t, waiting.returned(), "%v", waiting.err)
			unlock(t, held)
			<-waiting.done
			require.NoError(t, waiting.err)
			unlock(t, waiting.hold)
			noGhost(t, srv, path)
		})
	}
}

// TestAWaiterWhoseSessionExpiresAfterAResizeQueuesAgain changes the number of permits during a wait.
//
//zklock:promise P7.1
func TestAWaiterWhoseSessionExpiresAfterAResizeQueuesAgain(t *testing.T) {
	for _, permits := range []int{2, 4} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			holder, waiter := connect(t, srv, "holder", term), connect(t, srv, "waiter", term)
			hold, err := holder.Semaphore(path, 3).Acquire(t.Context(), 3)
			require.NoError(t, err)
			next := lockLater(t.Context(), func(ctx context.Context) (*zklock.Hold, error) { return waiter.Semaphore(path, 3).Acquire(ctx, 2) })
			time.Sleep(time.Second)
			require.NoError(t, holder.Semaphore(path, permits).Resize(t.Context(), permits))
			time.Sleep(time.Second)
			for _, s := range srv.Sessions() {
				if s.Client == "waiter" {
					srv.ExpireSession(s.ID)
				}
			}
			time.Sleep(time.Minute)
			require.False(t, next.returned(), "%v", next.err)
			unlock(t, hold)
			<-next.done
			require.NoError(t, next.err)
			unlock(t, next.hold)
			_, err = waiter.Semaphore(path, 3).Acquire(t.Context(), 1)
			require.ErrorIs(t, err, zklock.ErrMismatch, "who comes later says the number that is stored")
			noGhost(t, srv, path)
		})
	}
}

// TestABatchOfWhichAListingShowsAPartIsNotGranted deletes one of two permits as a third party before they are listed.
//
//zklock:promise P1.6
func TestABatchOfWhichAListingShowsAPartIsNotGranted(t *testing.T) {
	for _, part := range []int{0, 1} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			deleted := false
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if nodes := srv.Children(path + "/leases"); !deleted && r.Op == zktest.OpGetChildren2 && r.Path == path+"/leases" && len(nodes) == 2 {
					deleted = true
					slices.SortFunc(nodes, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
					assert.NoError(t, srv.DeleteNode(path+"/leases/"+nodes[part]))
				}
				return zktest.Pass
			})
			hold, err := connect(t, srv, "a", term).Semaphore(path, 3).Acquire(t.Context(), 2)
			require.NoError(t, err)
			require.True(t, deleted)
			for _, check := range hold.Guard() {
				_, there := srv.Node(check.(*zk.CheckVersionRequest).Path)
				require.True(t, there)
			}
			require.NoError(t, hold.Confirm(t.Context()))
			unlock(t, hold)
			noGhost(t, srv, path)
		})
	}
}

// TestTheFirstInLineForPermitsWhoseQueueNodeIsGoneLetsOthersPass deletes the place of a waiter that requests more permits than become
// free soon.
//
//zklock:promise P7.1
func TestTheFirstInLineForPermitsWhoseQueueNodeIsGoneLetsOthersPass(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		holder := connect(t, srv, "holder", term)
		one, err := permitsOf(holder, 1)(t.Context())
		require.NoError(t, err)
		two, err := permitsOf(holder, 2)(t.Context())
		require.NoError(t, err)
		first := lockLater(t.Context(), permitsOf(connect(t, srv, "first", term), 2))
		time.Sleep(time.Second)
		places := srv.Children(path + "/locks")
		require.Len(t, places, 1)
		second := lockLater(t.Context(), permitsOf(connect(t, srv, "second", term), 1))
		time.Sleep(time.Second)
		require.NoError(t, srv.DeleteNode(path+"/locks/"+places[0]))
		time.Sleep(time.Second)
		require.Len(t, srv.Children(path+"/leases"), 4, "the second is first now")
		unlock(t, one)
		time.Sleep(time.Second)
		require.True(t, second.returned())
		require.NoError(t, second.err)
		unlock(t, two)
		<-first.done
		require.NoError(t, first.err)
		unlock(t, first.hold)
		unlock(t, second.hold)
		noGhost(t, srv, path)
	})
}

// TestATryForPermitsDoesNotOvertakeAnAcquireUnderWay tries while another caller has queued but not created its permits' nodes yet.
//
//zklock:promise P4.3
func TestATryForPermitsDoesNotOvertakeAnAcquireUnderWay(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		hold, err := permitsOf(b, 2)(t.Context())
		require.NoError(t, err)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "a" && makesContender(r) && strings.HasPrefix(append(r.Paths, r.Path)[0], path+"/leases") {
				return zktest.Delay(time.Second)
			}
			return zktest.Pass
		})
		asks := lockLater(t.Context(), permitsOf(a, 1))
		time.Sleep(500 * time.Millisecond)
		require.Len(t, srv.Children(path+"/locks"), 1)
		require.Len(t, srv.Children(path+"/leases"), 2)
		_, err = b.Semaphore(path, 3).TryAcquire(t.Context(), 1)
		require.ErrorIs(t, err, zklock.ErrLocked)
		<-asks.done
		require.NoError(t, asks.err)
		unlock(t, asks.hold)
		unlock(t, hold)
	})
}

// What heartbeats ask for, they ask for as long as there is something to lose.
//
//zklock:promise P9.7
func TestReleasedPermitsAreNoLongerChecked(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		all := inTurn(t, acquire(c, 3, 2))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := acquire(c, 3, 2)(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = c.Semaphore(path, 3).TryAcquire(t.Context(), 2)
		require.ErrorIs(t, err, zklock.ErrLocked)
		unlock(t, all[0].hold)
		noGhost(t, srv, path)
		resetCounts(srv)
		time.Sleep(10 * term)
		require.Zero(t, srv.Requests()[zktest.OpMulti])
	})
}
