// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// If an operator removes a place in the queue, the next caller can create its nodes as well.
//
//zklock:promise P7.5
func TestSeveralAcquiresOfPermitsDoNotWaitForEachOther(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		made := 0
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "a" && makesContender(r) && strings.Contains(r.Path+strings.Join(r.Paths, ""), "/leases/") {
				if made++; made == 2 || r.Op == zktest.OpMulti {
					return zktest.Delay(2 * time.Second) // the other comes between
				}
			}
			return zktest.Pass
		})
		all := []*attempt{lockLater(t.Context(), acquire(connect(t, srv, "a", term), 2, 2))}
		time.Sleep(time.Second)
		all = append(all, lockLater(t.Context(), acquire(connect(t, srv, "b", term), 2, 2)))
		time.Sleep(500 * time.Millisecond)
		gate := front(srv, path+"/locks")
		require.NoError(t, srv.DeleteNode(gate))
		time.Sleep(5 * time.Second)
		require.ElementsMatch(t, []bool{true, false}, []bool{all[0].returned(), all[1].returned()}, "they wait for each other")
		for range all {
			for i, a := range all {
				if a != nil && a.returned() {
					require.NoError(t, a.err)
					unlock(t, a.hold)
					all[i] = nil
				}
			}
			time.Sleep(5 * time.Second)
		}
		require.Equal(t, []*attempt{nil, nil}, all)
		noGhost(t, srv, path)
	})
}

// Acquiring any number of permits takes one request, and so does releasing them.
//
//zklock:promise P9.5
func TestPermitsAreAcquiredAndReleasedTogether(t *testing.T) {
	cost, size := map[int]int{}, map[int]int64{}
	for _, k := range []int{2, 100, 1000} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			s := connect(t, srv, "a", 40*time.Second).Semaphore(path, 1000)
			hold, err := s.Acquire(t.Context(), 1)
			require.NoError(t, err)
			unlock(t, hold)
			time.Sleep(time.Second)
			resetCounts(srv)
			in, out := srv.Bytes()
			hold, err = s.Acquire(t.Context(), k)
			require.NoError(t, err)
			require.Len(t, srv.Children(path+"/leases"), k)
			require.Len(t, hold.Guard(), k)
			unlock(t, hold)
			require.Empty(t, srv.Children(path+"/leases"))
			cost[k] = srv.RequestCount()
			nowIn, nowOut := srv.Bytes()
			size[k] = nowIn - in + nowOut - out
			t.Log(k, "permits:", cost[k], "requests", size[k], "bytes", srv.Requests())
		})
	}
	for _, n := range cost {
		require.LessOrEqual(t, n, 12, "some more where answers cross")
	}
	require.Less(t, size[1000], 11*size[100])
}

// Either all or none were created: one read finds out by their GUIDs.
//
//zklock:promise P7.5
func TestABatchWhoseReplyWasLostIsSearchedForAsAWhole(t *testing.T) {
	for name, verdict := range map[string]zktest.Verdict{"it was done": zktest.LoseReply, "it was not": zktest.DropBefore} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				c := connect(t, srv, "a", term)
				var struck atomic.Bool
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Op == zktest.OpMulti && makesContender(r) && !struck.Swap(true) {
						return verdict
					}
					return zktest.Pass
				})
				resetCounts(srv)
				hold, err := c.Semaphore(path, 200).Acquire(t.Context(), 200)
				require.NoError(t, err)
				require.True(t, struck.Load())
				require.Len(t, srv.Children(path+"/leases"), 200)
				require.Less(t, srv.RequestCount(), 100, "the permits are not looked for one by one")
				require.NoError(t, hold.Confirm(t.Context()))
				unlock(t, hold)
				noGhost(t, srv, path)
			})
		})
	}
}

//zklock:promise P7.5
func TestABatchThatAThirdPartyDeletesInPartIsReleasedWhole(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		for i := range 3 {
			hold, err := c.Semaphore(path, 3).Acquire(t.Context(), 3)
			require.NoError(t, err)
			time.Sleep(time.Second)
			require.NoError(t, srv.DeleteNode(hold.Guard()[i].(*zk.CheckVersionRequest).Path))
			<-hold.Context().Done()
			require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrLost)
			time.Sleep(time.Second)
			require.Empty(t, queue(srv, path))
		}
		noGhost(t, srv, path)
	})
}

//zklock:promise P7.5
func TestMorePermitsThanFitARequestAreRefusedBeforeAny(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		long := "/" + strings.Repeat("x", 1000)
		c := connectWith(t, srv, &zklock.Options{Label: strings.Repeat("l", 1024), SessionTimeout: 40 * time.Second, Dialer: srv.DialFrom("a")})
		time.Sleep(time.Second) // for its first heartbeat
		resetCounts(srv)
		for p, k := range map[string]int{path: 10_000, long: 1000} {
			s := c.Semaphore(p, 100_000)
			for _, ask := range []func(context.Context, int) (*zklock.Hold, error){s.Acquire, s.TryAcquire} {
				_, err := ask(t.Context(), k)
				require.ErrorIs(t, err, zklock.ErrInvalid)
				require.ErrorIs(t, err, zklock.ErrLimit)
			}
			_, err := c.LockAll(t.Context(), s.Permits(k))
			require.ErrorIs(t, err, zklock.ErrLimit)
		}
		require.Zero(t, srv.RequestCount())
		hold, err := c.Semaphore(long, 100_000).Acquire(t.Context(), 400)
		require.NoError(t, err)
		unlock(t, hold)
	})
}

// tooLong counts requests that are too long for a server with the usual settings.
func tooLong(srv *zktest.Server) *atomic.Int32 {
	var n atomic.Int32
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if requestSize(r) > 1<<20 {
			n.Add(1)
		}
		return zktest.Pass
	})
	return &n
}

// requestSize returns the approximate size of a request in bytes.
func requestSize(r *zktest.Request) int {
	size := len(r.Path) + len(r.Data)
	for _, p := range r.Paths {
		size += len(p) + 17
	}
	return size
}

// With thousands of locks with long paths, no request is longer than servers accept.
//
//zklock:promise P7.5
func TestRequestsAboutManyHoldsStayWithinALimit(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		over := tooLong(srv)
		var lockers []zklock.Locker
		dir := "/" + strings.Repeat("d", 2000) + "/"
		for i := range 800 {
			lockers = append(lockers, c.Mutex(dir+strconv.Itoa(i)))
		}
		hold, err := c.LockAll(t.Context(), lockers...)
		require.NoError(t, err)
		time.Sleep(3 * term)
		require.NoError(t, hold.Check())
		require.NoError(t, hold.Confirm(t.Context()))
		resetCounts(srv)
		_, err = hold.Multi(&zk.SetDataRequest{Path: "/x", Version: -1})
		require.ErrorIs(t, err, zklock.ErrInvalid)
		require.Zero(t, srv.RequestCount(), "it is refused before it is sent")
		require.NoError(t, hold.Check(), "and the hold lasts")
		require.Zero(t, over.Load())
		require.NoError(t, srv.DeleteNode(hold.Guard()[799].(*zk.CheckVersionRequest).Path))
		require.ErrorIs(t, hold.Confirm(t.Context()), zklock.ErrLost, "the last of them counts as well")
		unlockAnyway(hold)
	})
}

func unlockAnyway(h *zklock.Hold) { h.Unlock(context.Background()) }

//zklock:promise P8.4
func TestInvalidOperationsAreRefused(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "a", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		resetCounts(srv)
		for _, op := range []any{nil, "set", zk.SetDataRequest{}, &zk.SetDataRequest{Path: "/x", Data: make([]byte, 1<<20)}} {
			_, err = hold.Multi(op)
			require.ErrorIs(t, err, zklock.ErrInvalid)
			require.NotErrorIs(t, err, zklock.ErrUncertain)
		}
		require.Zero(t, srv.RequestCount())
		unlock(t, hold)
	})
}

//zklock:promise P8.4
func TestAPathTooLongForARequestIsRefused(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		time.Sleep(time.Second) // for its first heartbeat
		resetCounts(srv)
		_, err := c.Mutex("/" + strings.Repeat("x", 1<<20)).Lock(t.Context())
		require.ErrorIs(t, err, zklock.ErrInvalid)
		require.Zero(t, srv.RequestCount())
	})
}
