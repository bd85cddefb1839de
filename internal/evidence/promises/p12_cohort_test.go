// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// These tests are about what Cohort promises to its goroutines and to other contenders.

var asCohort way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Cohort(path, nil).Lock }

// cohortOf returns the client's cohort at path.
func cohortOf(c *zklock.Client) *zklock.Cohort { return c.Cohort(path, nil) }

// lasting returns a cohort that keeps an idle place for a minute.
func lasting(c *zklock.Client) *zklock.Cohort {
	return c.Cohort(path, &zklock.CohortOptions{Keep: time.Minute})
}

// lockLoops is a group of goroutines that lock and unlock in a loop. It counts grants and measures waits.
type lockLoops struct {
	inside, most atomic.Int32
	mu           sync.Mutex
	grants       map[string]int           // guarded by mu
	longest      map[string]time.Duration // guarded by mu
	tokens       []int64                  // guarded by mu: in the order of the grants
	stop         chan struct{}
	all          sync.WaitGroup
}

func newLockLoops() *lockLoops {
	return &lockLoops{grants: map[string]int{}, longest: map[string]time.Duration{}, stop: make(chan struct{})}
}

// join starts a goroutine of the given group that locks and unlocks until the group is stopped. lock returns a function that
// unlocks, and the token.
func (c *lockLoops) join(t *testing.T, group string, holds time.Duration, lock func() (unlock func() error, token int64, err error)) {
	c.all.Go(func() {
		for !isClosed(c.stop) {
			asked := time.Now()
			unlock, token, err := lock()
			if errors.Is(err, zklock.ErrLocked) {
				continue
			}
			if !assert.NoError(t, err, group) {
				return
			}
			c.most.Store(max(c.most.Load(), c.inside.Add(1)))
			c.mu.Lock()
			c.grants[group]++
			c.longest[group] = max(c.longest[group], time.Since(asked))
			if token != 0 {
				c.tokens = append(c.tokens, token)
			}
			c.mu.Unlock()
			time.Sleep(holds)
			c.inside.Add(-1)
			if !assert.NoError(t, unlock(), group) {
				return
			}
		}
	})
}

// with starts n goroutines that use a client's lock.
func (c *lockLoops) with(t *testing.T, group string, n int, holds time.Duration, lock lockFunc) {
	for range n {
		c.join(t, group, holds, func() (func() error, int64, error) {
			hold, err := lock(t.Context())
			if err != nil {
				return nil, 0, err
			}
			return func() error { return hold.Unlock(t.Context()) }, hold.Token(), nil
		})
	}
}

// withPlain starts one goroutine that uses the client library's own lock.
func (c *lockLoops) withPlain(t *testing.T, srv *zktest.Server, holds time.Duration) {
	lock := zk.NewLock(rawClient(t, srv, term), path, zk.WorldACL(zk.PermAll))
	c.join(t, "plain", holds, func() (func() error, int64, error) { return lock.Unlock, 0, lock.Lock() })
}

func (c *lockLoops) run(t *testing.T, d time.Duration) {
	t.Helper()
	time.Sleep(d)
	close(c.stop)
	c.all.Wait()
	require.EqualValues(t, 1, c.most.Load(), "several held at once")
}

//zklock:promise P12.1
func TestCohortsAndOthersHoldOneAtATime(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		c := newLockLoops()
		for i := range 4 {
			c.with(t, "cohort", 4, time.Millisecond, cohortOf(connect(t, srv, fmt.Sprint("cohort ", i), term)).Lock)
		}
		c.with(t, "mutex", 2, time.Millisecond, connect(t, srv, "mutex", term).Mutex(path).Lock)
		c.withPlain(t, srv, time.Millisecond)
		c.run(t, 5*time.Second)
		for _, group := range []string{"cohort", "mutex", "plain"} {
			require.Greater(t, c.grants[group], 50, "%v", c.grants)
		}
		require.True(t, slices.IsSorted(c.tokens), "a token is smaller than an earlier one")
		noGhost(t, srv, path)
	})
}

//zklock:promise P12.4
func TestEachHoldOfACohortHasATokenAndAGuardOfItsOwn(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/account", nil))
		cohort, raw := connect(t, srv, "a", term).Cohort(path, nil), rawClient(t, srv, term)
		var last *zklock.Hold
		for range 5 {
			hold, err := cohort.Lock(t.Context())
			require.NoError(t, err)
			_, err = hold.Multi(&zk.SetDataRequest{Path: "/account", Version: -1})
			require.NoError(t, err)
			if last != nil {
				require.Greater(t, hold.Token(), last.Token())
				_, err = raw.Multi(append(last.Guard(), &zk.SetDataRequest{Path: "/account", Version: -1})...)
				require.ErrorIs(t, err, zk.ErrNoNode, "an earlier guard commits during a later hold")
			}
			last = hold
			unlock(t, hold)
		}
	})
}

// A contender of another process that queued between two goroutines of a cohort is granted before the second, and its token is
// between theirs.
//
//zklock:promise P12.1 P12.5
func TestAnotherContenderBetweenTwoGoroutinesOfACohortComesFirst(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		ours, other := connect(t, srv, "ours", term), connect(t, srv, "other", term)
		first, err := ours.Cohort(path, nil).Lock(t.Context())
		require.NoError(t, err)
		second := lockLater(t.Context(), ours.Cohort(path, nil).Lock)
		time.Sleep(time.Second)
		stranger := lockLater(t.Context(), other.Mutex(path).Lock)
		time.Sleep(time.Second)
		unlock(t, first)
		<-stranger.done
		require.NoError(t, stranger.err)
		time.Sleep(time.Second)
		require.False(t, second.returned())
		unlock(t, stranger.hold)
		<-second.done
		require.NoError(t, second.err)
		require.Greater(t, stranger.hold.Token(), first.Token())
		require.Greater(t, second.hold.Token(), stranger.hold.Token())
		unlock(t, second.hold)
		noGhost(t, srv, path)
	})
}

//zklock:promise P12.9
func TestAHandOffInACohortIsOneRequest(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		cohort := connect(t, srv, "a", term).Cohort(path, nil)
		cycle := func() {
			hold, err := cohort.Lock(t.Context())
			require.NoError(t, err)
			unlock(t, hold)
		}
		for range 3 {
			cycle()
		}
		time.Sleep(200 * time.Millisecond) // for the client's first heartbeat
		started := time.Now()
		c := costOf(srv, func() {
			for range 100 {
				cycle()
			}
		})
		require.Equal(t, cost{writes: 100}, cost{writes: c.writes, reads: c.reads})
		require.Less(t, time.Since(started), 100*3*time.Millisecond, "one round trip each")

		lockLoops := newLockLoops()
		time.Sleep(time.Second) // the place was released
		first, err := cohort.Lock(t.Context())
		require.NoError(t, err)
		lockLoops.with(t, "ours", 32, 0, cohort.Lock)
		time.Sleep(time.Millisecond)
		c = costOf(srv, func() {
			unlock(t, first)
			lockLoops.run(t, 500*time.Millisecond)
		})
		require.InDelta(t, lockLoops.grants["ours"], c.writes, 3)
		require.Zero(t, c.reads)
	})
}

// A process whose goroutines wait for other processes in between does not have to release the lock for these after a while.
//
//zklock:promise P12.9
func TestAHandOffNextToOthersIsOneRequest(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		deletes := 0
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "ours" && r.Op == zktest.OpDelete {
				deletes++
			}
			return zktest.Pass
		})
		c := newLockLoops()
		c.with(t, "ours", 32, time.Millisecond, cohortOf(connect(t, srv, "ours", term)).Lock)
		c.with(t, "mutex", 1, 0, connect(t, srv, "mutex", term).Mutex(path).Lock)
		c.run(t, 10*time.Second)
		require.Greater(t, c.grants["mutex"], 80)
		require.LessOrEqual(t, deletes, 1, "transactions that only release")
	})
}

// If other processes and the goroutines of a cohort all lock in loops, each of them acquires the lock often, and none waits for long.
//
//zklock:promise P12.7
func TestNoContenderStarvesNextToACohort(t *testing.T) {
	t.Parallel()
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		c := newLockLoops()
		c.with(t, "ours", 32, time.Millisecond, cohortOf(connect(t, srv, "ours", term)).Lock)
		c.with(t, "mutex", 1, time.Millisecond, connect(t, srv, "mutex", term).Mutex(path).Lock)
		c.withPlain(t, srv, time.Millisecond)
		c.run(t, 10*time.Second)
		t.Logf("grants %v, longest waits %v", c.grants, c.longest)
		for _, group := range []string{"ours", "mutex", "plain"} {
			require.Greater(t, c.grants[group], 80, group)
		}
		require.Less(t, c.longest["mutex"], 300*time.Millisecond)
		require.Less(t, c.longest["plain"], 300*time.Millisecond)
		require.Less(t, c.longest["ours"], time.Second)
	})
}

// TryLock on a held lock writes nothing that a cohort could notice.
//
//zklock:promise P12.7
func TestATryInALoopSucceedsNextToABusyCohort(t *testing.T) {
	t.Parallel()
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		c := newLockLoops()
		c.with(t, "ours", 8, time.Millisecond, cohortOf(connect(t, srv, "ours", term)).Lock)
		c.with(t, "try", 1, time.Millisecond, connect(t, srv, "other", term).Mutex(path).TryLock)
		c.run(t, 10*time.Second)
		t.Logf("grants %v", c.grants)
		require.Greater(t, c.grants["try"], 5)
		require.Greater(t, c.grants["ours"], 500)
	})
}

//zklock:promise P12.7
func TestAKeptPlaceIsReleasedAfterItsTimeOrWhenOthersWantIt(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		ours, other := connect(t, srv, "ours", term), connect(t, srv, "other", term)
		lockBriefly := func(k *zklock.Cohort) {
			hold, err := k.Lock(t.Context())
			require.NoError(t, err)
			time.Sleep(20 * time.Millisecond)
			unlock(t, hold)
		}
		lockBriefly(cohortOf(ours))
		time.Sleep(50 * time.Millisecond)
		require.Len(t, queue(srv, path), 1, "it is kept")
		time.Sleep(300 * time.Millisecond)
		require.Empty(t, queue(srv, path), "but not forever")

		lockBriefly(cohortOf(ours))
		asked := time.Now()
		hold, err := other.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.Less(t, time.Since(asked), 15*time.Millisecond)
		unlock(t, hold)

		lockBriefly(ours.Cohort(path, &zklock.CohortOptions{Keep: -1}))
		time.Sleep(10 * time.Millisecond)
		require.Empty(t, queue(srv, path), "kept against the option")
	})
}

// A contender that queues and leaves at once counts as a request for the lock, although it is gone when the cohort lists the
// queue.
//
//zklock:promise P12.3
func TestAnotherContenderThatComesAndGoesEndsAKeptPlace(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		cohort, raw := lasting(connect(t, srv, "ours", term)), rawClient(t, srv, term)
		unlock(t, grantedSoon(t, cohort.Lock))
		time.Sleep(10 * time.Second)
		require.Len(t, queue(srv, path), 1, "it is kept")
		node, err := raw.Create(path+"/lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		require.NoError(t, raw.Delete(node, -1))
		time.Sleep(50 * time.Millisecond)
		require.Empty(t, queue(srv, path))
	})
}

// A contender that queued before the place was idle is in the list that comes with the watch.
//
//zklock:promise P12.3
func TestAnotherContenderThatQueuedDuringAHoldEndsAKeptPlace(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		ours, other := connect(t, srv, "ours", term), connect(t, srv, "other", term)
		hold := grantedSoon(t, lasting(ours).Lock)
		stranger := lockLater(t.Context(), other.Mutex(path).Lock)
		time.Sleep(time.Second)
		unlock(t, hold)
		time.Sleep(20 * time.Millisecond)
		require.True(t, stranger.returned())
		require.NoError(t, stranger.err)
		unlock(t, stranger.hold)
	})
}

// The cause of a hold's context in a cohort is correct at all times.
//
//zklock:promise P12.2
func TestTheContextOfAHoldInACohortHasItsCause(t *testing.T) {
	type look func(hold *zklock.Hold) (inside context.Context)
	looks := []struct {
		name  string
		early look
	}{
		{"looked at before", func(hold *zklock.Hold) context.Context {
			inside, cancel := context.WithCancel(hold.Context())
			t.Cleanup(cancel)
			return inside
		}},
		{"looked at afterwards", func(hold *zklock.Hold) context.Context { return hold.Context() }},
	}
	ends := []struct {
		name  string
		end   func(t *testing.T, srv *zktest.Server, hold *zklock.Hold)
		cause error
	}{
		{"an unlock", func(t *testing.T, _ *zktest.Server, hold *zklock.Hold) { unlock(t, hold) }, zklock.ErrReleased},
		{"an unlock and then the loss of the place", func(t *testing.T, srv *zktest.Server, hold *zklock.Hold) {
			unlock(t, hold)
			require.NoError(t, srv.DeleteNode(hold.Node()))
			time.Sleep(time.Second)
		}, zklock.ErrReleased},
		{"a loss", func(t *testing.T, srv *zktest.Server, hold *zklock.Hold) {
			require.NoError(t, srv.DeleteNode(hold.Node()))
			time.Sleep(time.Second)
		}, zklock.ErrLost},
		{"a loss and then an unlock", func(t *testing.T, srv *zktest.Server, hold *zklock.Hold) {
			require.NoError(t, srv.DeleteNode(hold.Node()))
			time.Sleep(time.Second)
			require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrLost)
		}, zklock.ErrLost},
	}
	type key struct{}
	for _, end := range ends {
		for _, look := range looks {
			t.Run(end.name+"/"+look.name, func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					hold, err := lasting(connect(t, srv, "a", term)).Lock(context.WithValue(t.Context(), key{}, "value"))
					require.NoError(t, err)
					time.Sleep(100 * time.Millisecond)
					require.NoError(t, hold.Check())
					inside := look.early(hold)
					end.end(t, srv, hold)
					require.ErrorIs(t, inside.Err(), context.Canceled)
					require.ErrorIs(t, hold.Check(), end.cause)
					require.ErrorIs(t, context.Cause(inside), end.cause)
					<-inside.Done()
					require.Same(t, hold, zklock.HoldOf(inside))
					require.Equal(t, "value", inside.Value(key{}))
					later, cancel := context.WithCancel(hold.Context())
					defer cancel()
					require.ErrorIs(t, context.Cause(later), end.cause)
				})
			})
		}
	}
}

//zklock:promise P12.5
func TestGoroutinesOfACohortHoldInTheOrderOfTheirCalls(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		first, err := cohortOf(client).Lock(t.Context())
		require.NoError(t, err)
		var all []*attempt
		for range 20 {
			all = append(all, inTurn(t, cohortOf(client).Lock)...)
		}
		gone, cancel := context.WithCancel(t.Context())
		between := lockLater(gone, cohortOf(client).Lock)
		all = append(all, inTurn(t, cohortOf(client).Lock)...)
		cancel()
		require.True(t, between.returned())
		require.ErrorIs(t, between.err, context.Canceled)
		unlock(t, first)
		for i, a := range all {
			<-a.done
			require.NoError(t, a.err)
			if i+1 < len(all) {
				require.False(t, all[i+1].returned(), "number %d", i+1)
			}
			unlock(t, a.hold)
		}
		noGhost(t, srv, path)
	})
}

// The first goroutine that waits gives up. The cohort's place in the queue remains for the other one.
//
//zklock:promise P12.5
func TestAGoroutineThatGivesUpLeavesThePlaceToTheOthers(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		stranger, err := cohortOf(connect(t, srv, "other", term)).Lock(t.Context())
		require.NoError(t, err)
		lock := cohortOf(connect(t, srv, "ours", term)).Lock
		ctx, cancel := context.WithCancel(t.Context())
		first := lockLater(ctx, lock)
		synctest.Wait()
		second := inTurn(t, lock)[0]
		queued := srv.Children(path)
		require.Len(t, queued, 2)
		cancel()
		require.True(t, first.returned())
		require.ErrorIs(t, first.err, context.Canceled)
		time.Sleep(time.Second)
		require.Equal(t, queued, srv.Children(path))
		unlock(t, stranger)
		<-second.done
		require.NoError(t, second.err)
		unlock(t, second.hold)
		noGhost(t, srv, path)
	})
}

// The loss of a place ends its hold. Waiting goroutines are granted the lock later, in their order.
//
//zklock:promise P12.7
func TestWaitersOfACohortQueueAgainInOrderAfterALoss(t *testing.T) {
	for name, strike := range map[string]func(srv *zktest.Server, h *zklock.Hold){
		"somebody deletes the node": func(srv *zktest.Server, h *zklock.Hold) { srv.DeleteNode(h.Node()) },
		"an operator ends the session": func(srv *zktest.Server, h *zklock.Hold) {
			node, _ := srv.Node(h.Node())
			srv.ExpireSession(node.EphemeralOwner)
		},
		"the client is cut off for long": func(srv *zktest.Server, _ *zklock.Hold) {
			srv.Partition("ours")
			time.Sleep(2 * term)
			srv.HealClient("ours")
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				ours, other := connect(t, srv, "ours", term), connect(t, srv, "other", term)
				hold, err := cohortOf(ours).Lock(t.Context())
				require.NoError(t, err)
				waiting := inTurn(t, cohortOf(ours).Lock, cohortOf(ours).Lock, cohortOf(ours).Lock)
				stranger := lockLater(t.Context(), other.Mutex(path).Lock)
				time.Sleep(time.Second)
				strike(srv, hold)
				<-stranger.done
				require.NoError(t, stranger.err)
				synctest.Wait() // both are notified at the same time of the node's deletion
				require.ErrorIs(t, hold.Check(), zklock.ErrLost)
				require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrLost)
				time.Sleep(time.Second)
				require.False(t, waiting[0].returned())
				last := stranger.hold
				for i, a := range waiting {
					unlock(t, last)
					<-a.done
					require.NoError(t, a.err)
					require.Equal(t, i == len(waiting)-1, waiting[len(waiting)-1].returned())
					last = a.hold
				}
				unlock(t, last)
				noGhost(t, srv, path)
			})
		})
	}
}

// Another user of the client shares the watch on the directory. The server does not support SetWatches, which could show
// what happened while the client was cut off.
//
//zklock:promise P12.3
func TestAnotherContenderThatQueuesDuringAReconnectEndsAKeptPlace(t *testing.T) {
	virtual(t, zktest.Options{UnknownOps: []zktest.Op{zktest.OpSetWatches}}, func(t *testing.T, srv *zktest.Server) {
		client, other := connect(t, srv, "ours", term), connect(t, srv, "other", term)
		time.Sleep(time.Second) // the server hangs up on the first SetWatches, which would end the place
		unlock(t, grantedSoon(t, lasting(client).Lock))
		watching, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			for range operate.Watch(watching, client, path) { // until the test ends
			}
		}()
		time.Sleep(time.Second)
		require.Len(t, queue(srv, path), 1, "it is kept")
		srv.Partition("ours")
		srv.DropConnections()
		time.Sleep(time.Second)
		stranger := lockLater(t.Context(), other.Mutex(path).Lock)
		time.Sleep(time.Second)
		srv.HealClient("ours")
		time.Sleep(2 * time.Second)
		require.True(t, stranger.returned())
		require.NoError(t, stranger.err)
		unlock(t, stranger.hold)
	})
}

// If the directory cannot be watched, nothing is shared or kept.
//
//zklock:promise P12.3 A27
func TestAPlaceThatCannotBeWatchedIsNotShared(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Watch && r.Path == path {
				return zktest.Answer(-102) // not authorized
			}
			return zktest.Pass
		})
		cohort := cohortOf(connect(t, srv, "ours", term))
		nodes := map[string]bool{}
		for range 5 {
			hold, err := cohort.Lock(t.Context())
			require.NoError(t, err)
			nodes[hold.Node()] = true
			time.Sleep(50 * time.Millisecond)
			unlock(t, hold)
			time.Sleep(20 * time.Millisecond)
			require.Empty(t, queue(srv, path), "it is kept")
		}
		require.Len(t, nodes, 5)
	})
}

// A hand-off that the server refuses is made in two steps.
//
//zklock:promise P12.6
func TestAHandOffThatIsRefusedLeavesNoOldNode(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpMulti && len(r.Ops) > 1 && r.Ops[0] == zktest.OpDelete {
				return zktest.Answer(-102) // not authorized
			}
			return zktest.Pass
		})
		cohort := connect(t, srv, "ours", term).Cohort(path, nil)
		for range 3 {
			hold, err := cohort.Lock(t.Context())
			require.NoError(t, err)
			require.Len(t, queue(srv, path), 1)
			unlock(t, hold)
		}
		noGhost(t, srv, path)
	})
}

//zklock:promise P12.6
func TestACancelledHandOffLeavesNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		cohort := connect(t, srv, "ours", term).Cohort(path, nil)
		hold, err := cohort.Lock(t.Context())
		require.NoError(t, err)
		unlock(t, hold)
		ctx, cancel := context.WithCancel(t.Context())
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op != zktest.OpMulti || len(r.Ops) < 2 || ctx.Err() != nil {
				return zktest.Pass
			}
			cancel()
			return zktest.DropBefore
		})
		_, err = cohort.Lock(ctx)
		require.ErrorIs(t, err, context.Canceled)
		noGhost(t, srv, path)
	})
}

//zklock:promise P12.7
func TestAKeptNodeThatAThirdPartyDeletedIsNotReplaced(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		cohort := connect(t, srv, "ours", term).Cohort(path, nil)
		for range 5 {
			hold, err := cohort.Lock(t.Context())
			require.NoError(t, err)
			unlock(t, hold)
			require.NoError(t, srv.DeleteNode(hold.Node()))
		}
		noGhost(t, srv, path)
	})
}

//zklock:promise P12.8
func TestARevocationEndsASharedPlace(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		ours, operator := connect(t, srv, "ours", term), connect(t, srv, "operator", term)
		first, err := cohortOf(ours).Lock(t.Context())
		require.NoError(t, err)
		next := lockLater(t.Context(), cohortOf(ours).Lock)
		time.Sleep(time.Second)
		stranger := lockLater(t.Context(), operator.Mutex(path).Lock)
		time.Sleep(time.Second)
		shown := contendersAtPath(t, operator)
		require.True(t, shown[0].Cohort)
		require.False(t, shown[1].Cohort)
		require.NoError(t, operate.Revoke(t.Context(), operator, shown[0]))
		time.Sleep(time.Second)
		require.True(t, isClosed(first.Revoked()))
		unlock(t, first)
		time.Sleep(time.Second)
		require.False(t, next.returned(), "holds on a node that was asked for")
		require.True(t, stranger.returned())
		require.NoError(t, stranger.err)
		unlock(t, stranger.hold)
		<-next.done
		require.NoError(t, next.err)
		require.False(t, isClosed(next.hold.Revoked()))
		unlock(t, next.hold)

		time.Sleep(time.Second)
		unlock(t, grantedSoon(t, cohortOf(ours).Lock))
		time.Sleep(20 * time.Millisecond)
		kept := contendersAtPath(t, operator)
		require.Len(t, kept, 1)
		require.NoError(t, operate.Revoke(t.Context(), operator, kept[0]))
		time.Sleep(10 * time.Millisecond)
		require.Empty(t, queue(srv, path), "kept although it was asked for")
	})
}

// The refusal of one acquire is no answer to goroutines that call after it was given.
//
//zklock:promise P12.8
func TestACohortGivesNoAnswerOlderThanTheCall(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		ours, operator := connect(t, srv, "ours", term), connect(t, srv, "operator", term)
		holder, err := operator.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		early := lockLater(t.Context(), cohortOf(ours).Lock)
		time.Sleep(time.Second)
		srv.Partition("ours") // it learns of its eviction later
		require.NoError(t, operate.Evict(t.Context(), operator, "", contendersAtPath(t, operator)[1]))
		late := lockLater(t.Context(), cohortOf(ours).Lock)
		time.Sleep(term / 10)
		srv.HealClient("ours")
		<-early.done
		require.ErrorIs(t, early.err, zklock.ErrEvicted)
		require.False(t, late.returned())
		unlock(t, holder)
		<-late.done
		require.NoError(t, late.err)
		unlock(t, late.hold)
		noGhost(t, srv, path)
	})
}

//zklock:promise P12.8
func TestAnEvictedCohortGetsErrEvicted(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		ours, operator := connect(t, srv, "ours", term), connect(t, srv, "operator", term)
		before, err := cohortOf(ours).Lock(t.Context())
		require.NoError(t, err)
		operators := lockLater(t.Context(), operator.Mutex(path).Lock)
		time.Sleep(time.Second)
		waiting := []*attempt{lockLater(t.Context(), cohortOf(ours).Lock), lockLater(t.Context(), cohortOf(ours).Lock)}
		synctest.Wait()
		unlock(t, before) // the next node is requested now, for both
		<-operators.done
		require.NoError(t, operators.err)
		holder := operators.hold
		time.Sleep(time.Second)
		require.NoError(t, operate.Evict(t.Context(), operator, "", contendersAtPath(t, operator)[1]))
		for _, a := range waiting {
			<-a.done
			require.ErrorIs(t, a.err, zklock.ErrEvicted)
		}
		unlock(t, holder)
		hold, err := cohortOf(ours).Lock(t.Context())
		require.NoError(t, err)
		next := lockLater(t.Context(), cohortOf(ours).Lock)
		time.Sleep(time.Second)
		require.NoError(t, operate.Evict(t.Context(), operator, "", contendersAtPath(t, operator)[0]))
		<-next.done
		require.NoError(t, next.err)
		require.ErrorIs(t, hold.Check(), zklock.ErrLost)
		unlock(t, next.hold)
		noGhost(t, srv, path)
	})
}

//zklock:promise P12.7
func TestACohortUnderItsOwnHoldIsADeadlock(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		first, err := cohortOf(client).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		c := costOf(srv, func() {
			for _, lock := range []lockFunc{cohortOf(client).Lock, cohortOf(client).TryLock, client.Mutex(path).Lock, client.Reentrant(path).Lock} {
				_, err = lock(first.Context())
				require.ErrorIs(t, err, zklock.ErrDeadlock)
			}
		})
		require.Equal(t, cost{}, c)
		require.Equal(t, 1, levelsOf(first))
		require.Same(t, first, zklock.HoldOf(first.Context()))
		unlock(t, first)
		require.ErrorIs(t, first.Unlock(t.Context()), zklock.ErrNotHeld)
		require.ErrorIs(t, first.Check(), zklock.ErrReleased)
		require.ErrorIs(t, context.Cause(first.Context()), zklock.ErrReleased)
		second, err := cohortOf(client).Lock(context.WithoutCancel(first.Context()))
		require.NoError(t, err, "the first hold has ended, although its place is kept")
		require.NoError(t, second.Check())
		unlock(t, second)
	})
}

//zklock:promise P12.6
func TestATryOfACohortReturnsAtOnceAndLeavesNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		ours, other := connect(t, srv, "ours", term), connect(t, srv, "other", term)
		hold, err := cohortOf(ours).TryLock(t.Context())
		require.NoError(t, err)
		_, err = cohortOf(ours).TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		_, err = cohortOf(other).TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		unlock(t, hold)
		hold, err = cohortOf(ours).TryLock(t.Context())
		require.NoError(t, err, "the process keeps the place")
		stranger := lockLater(t.Context(), other.Mutex(path).Lock)
		time.Sleep(time.Second)
		unlock(t, hold)
		_, err = cohortOf(ours).TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked, "others come first")
		<-stranger.done
		require.Len(t, queue(srv, path), 1)
		unlock(t, stranger.hold)

		srv.Partition("ours")
		time.Sleep(term / 2)
		_, err = cohortOf(ours).TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrNotConnected)
		srv.HealClient("ours")
		time.Sleep(term)
		noGhost(t, srv, path)
	})
}

//zklock:promise P12.6
func TestACohortEndsWithItsClient(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		before := goroutines(t)
		hold, err := cohortOf(client).Lock(t.Context())
		require.NoError(t, err)
		waiting := inTurn(t, cohortOf(client).Lock, cohortOf(client).Lock)
		end := endOf(hold)
		require.NoError(t, client.Close())
		<-end.done
		require.ErrorIs(t, end.cause, zklock.ErrClosed)
		for _, a := range waiting {
			<-a.done
			require.ErrorIs(t, a.err, zklock.ErrClosed)
		}
		_, err = cohortOf(client).Lock(t.Context())
		require.ErrorIs(t, err, zklock.ErrClosed)
		require.LessOrEqual(t, goroutines(t), before)
		require.Empty(t, queue(srv, path))
	})
}

//zklock:promise P12.6
func TestCancelledWaitsOfACohortLeaveNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		ours, other := connect(t, srv, "ours", term), connect(t, srv, "other", term)
		hold, err := other.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		before := goroutines(t)
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_, err := cohortOf(ours).Lock(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
		}
		time.Sleep(time.Second)
		require.Len(t, queue(srv, path), 1)
		require.LessOrEqual(t, goroutines(t), before+2, "one watch on the holder's node stays")
		unlock(t, hold)
		noGhost(t, srv, path)
	})
}

//zklock:promise P12.6
func TestACohortLeavesNoWatches(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		for range 200 {
			hold, err := cohortOf(client).Lock(t.Context())
			require.NoError(t, err)
			time.Sleep(15 * time.Millisecond)
			unlock(t, hold)
		}
		time.Sleep(time.Second)
		require.Empty(t, srv.Watches())
		require.Empty(t, queue(srv, path))
	})
}

// TestACohortThroughAnyFault runs the cycles of three goroutines with a fault at each request in turn.
//
//zklock:promise P12.6
func TestACohortThroughAnyFault(t *testing.T) {
	t.Parallel()
	throughEveryFault(t, 4, func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
		ours, other := connect(t, srv, "victim", term), connect(t, srv, "other", term)
		time.Sleep(2 * time.Second) // otherwise it would reconnect only after a pause, and notice the end of its session late
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		struck := strikeOnce(srv, "victim", n, func(r *zktest.Request) zktest.Verdict { return verdict(srv, r, cancel) })
		c := newLockLoops()
		visit := func(ctx context.Context, lock lockFunc) {
			hold, err := lock(ctx)
			if err != nil {
				assert.Error(t, ctx.Err(), "%v", err)
				return
			}
			time.Sleep(time.Nanosecond) // if an operator ended a holder's session, the holder is notified now
			if hold.Context().Err() != nil {
				return // it was this holder's session
			}
			c.most.Store(max(c.most.Load(), c.inside.Add(1)))
			select {
			case <-time.After(20 * time.Millisecond):
			case <-hold.Context().Done():
			}
			c.inside.Add(-1)
			c.mu.Lock()
			c.tokens = append(c.tokens, hold.Token())
			c.mu.Unlock()
			_ = hold.Unlock(t.Context()) // the hold may have been lost
		}
		visit(ctx, cohortOf(ours).Lock)
		for i := range 3 {
			c.all.Go(func() { visit(ctx, cohortOf(ours).Lock) })
			c.all.Go(func() {
				time.Sleep(time.Duration(15*i) * time.Millisecond)
				visit(t.Context(), other.Mutex(path).Lock)
			})
		}
		c.all.Wait()
		visit(ctx, cohortOf(ours).Lock)
		visit(t.Context(), cohortOf(ours).Lock)
		require.EqualValues(t, 1, c.most.Load())
		require.True(t, slices.IsSorted(c.tokens), "%v", c.tokens)
		time.Sleep(2 * term) // for a create that was only delayed
		noGhost(t, srv, path)
		return struck()
	})
}

// A goroutine does not hold before another process if its client already knew of that process's node when the goroutine called:
// the event of the node's creation had arrived.
//
//zklock:promise P12.5
func TestCohortsOvertakeNoExistingNode(t *testing.T) {
	const oneWay = time.Millisecond
	for _, goroutines := range []int{1, 4} {
		t.Run(fmt.Sprint(goroutines, " in each process"), func(t *testing.T) {
			virtual(t, zktest.Options{Latency: fixed(oneWay)}, func(t *testing.T, srv *zktest.Server) {
				var mu sync.Mutex
				var turns []grantedTurn // in the order of the grants
				var all sync.WaitGroup
				until := time.Now().Add(2 * time.Second)
				for i := range 8 {
					lock := cohortOf(connect(t, srv, fmt.Sprint(i), term)).Lock
					for range goroutines {
						all.Go(func() {
							for time.Now().Before(until) {
								asked := time.Now()
								hold, err := lock(t.Context())
								if !assert.NoError(t, err) {
									return
								}
								node, _ := srv.Node(hold.Node())
								mu.Lock()
								turns = append(turns, grantedTurn{asked, time.UnixMilli(node.Ctime + 1)})
								mu.Unlock()
								time.Sleep(10 * time.Microsecond) // otherwise virtual time would not advance
								assert.NoError(t, hold.Unlock(t.Context()))
							}
						})
					}
				}
				all.Wait()
				require.Greater(t, len(turns), 900, "a grant in each round trip of two milliseconds")
				require.Zero(t, overtakings(turns, oneWay), "of %d grants", len(turns))
			})
		})
	}
}

// A grantedTurn has the time of a goroutine's call and the approximate creation time of the node that it held with.
type grantedTurn struct{ asked, created time.Time }

// overtakings counts the turns that were granted before another turn whose node had existed for longer than known when the
// goroutine called.
func overtakings(turns []grantedTurn, known time.Duration) (n int) {
	for i, g := range turns {
		if slices.ContainsFunc(turns[i+1:], func(w grantedTurn) bool { return w.created.Add(known).Before(g.asked) }) {
			n++
		}
	}
	return n
}

// A client that may not read the directory when it changes does not receive the event, but the server removes its watch. The next
// place does not wait for that event.
//
//zklock:promise P12.3 A27
func TestAPlaceWhoseWatchIsWithheldIsReleased(t *testing.T) {
	for name, cohort := range map[string]func(c *zklock.Client) *zklock.Cohort{"kept briefly": cohortOf, "kept for long": lasting} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
				ours, raw := connect(t, srv, "ours", term), rawClient(t, srv, term)
				lockFor := func(d time.Duration) {
					hold := grantedSoon(t, cohort(ours).Lock)
					time.Sleep(d)
					unlock(t, hold)
				}
				lockFor(50 * time.Millisecond)
				time.Sleep(50 * time.Millisecond)
				require.Len(t, queue(srv, path), 1, "it is kept, and the directory watched")
				giveBack := withholdRead(t, srv, path)
				node, err := raw.Create(path+"/lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
				require.NoError(t, err)
				require.NoError(t, raw.Delete(node, -1))
				lockFor(0)
				time.Sleep(50 * time.Millisecond)
				giveBack()
				stranger := lockLater(t.Context(), connect(t, srv, "other", term).Mutex(path).Lock)
				time.Sleep(term / 5)
				require.True(t, stranger.returned(), "a place that does not see a stranger is not kept")
				require.NoError(t, stranger.err)
				unlock(t, stranger.hold)
				for range 3 {
					lockFor(5 * time.Millisecond)
					time.Sleep(term / 5)
					unlock(t, grantedSoon(t, connect(t, srv, "another", term).Mutex(path).Lock))
				}
			})
		})
	}
}

// A TryLock that fails does not make the Lock calls after it fail.
//
//zklock:promise P12.7
func TestALockBehindATryThatFailsContinuesToWait(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		ours, other := connect(t, srv, "ours", term), connect(t, srv, "other", term)
		holder := grantedSoon(t, other.Mutex(path).Lock)
		asked := inTurn(t, cohortOf(ours).TryLock, cohortOf(ours).Lock)
		time.Sleep(time.Second)
		require.True(t, asked[0].returned())
		require.ErrorIs(t, asked[0].err, zklock.ErrLocked)
		require.False(t, asked[1].returned())
		unlock(t, holder)
		time.Sleep(time.Second)
		require.True(t, asked[1].returned())
		require.NoError(t, asked[1].err)
		unlock(t, asked[1].hold)
		noGhost(t, srv, path)
	})
}

// A goroutine calls Lock while its process waits in the queue and another process is already behind it. The goroutine holds
// after that process.
//
//zklock:promise P12.5
func TestAGoroutineThatCallsAfterAnotherContenderHasQueuedHoldsAfterIt(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		ours, other := connect(t, srv, "ours", term), connect(t, srv, "other", term)
		holder := grantedSoon(t, other.Mutex(path).Lock)
		var waiting []*attempt
		for _, lock := range []lockFunc{cohortOf(ours).Lock, other.Mutex(path).Lock, cohortOf(ours).Lock} {
			waiting = append(waiting, inTurn(t, lock)...)
			time.Sleep(10 * time.Millisecond)
		}
		unlock(t, holder)
		for i, a := range waiting {
			time.Sleep(20 * time.Millisecond)
			require.True(t, a.returned(), "number %d", i)
			require.NoError(t, a.err)
			unlock(t, a.hold)
		}
		noGhost(t, srv, path)
	})
}

// The goroutine for which the place was requested gives up before the place is granted.
//
//zklock:promise P12.1
func TestAGoroutineDoesNotHoldInAPlaceRequestedBeforeItsCall(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		ours, other := connect(t, srv, "ours", term), connect(t, srv, "other", term)
		holder := grantedSoon(t, other.Mutex(path).Lock)
		ctx, cancel := context.WithCancel(t.Context())
		first := inTurn(t, func(context.Context) (*zklock.Hold, error) { return cohortOf(ours).Lock(ctx) })[0]
		time.Sleep(10 * time.Millisecond)
		stranger := inTurn(t, other.Mutex(path).Lock)[0]
		time.Sleep(10 * time.Millisecond)
		late := inTurn(t, cohortOf(ours).Lock)[0]
		time.Sleep(10 * time.Millisecond)
		cancel()
		<-first.done
		require.Error(t, first.err)
		unlock(t, holder)
		time.Sleep(50 * time.Millisecond)
		require.True(t, stranger.returned(), "it asked before the goroutine that holds")
		require.False(t, late.returned())
		unlock(t, stranger.hold)
		<-late.done
		require.NoError(t, late.err)
		unlock(t, late.hold)
		noGhost(t, srv, path)
	})
}

// A goroutine gives up while its process finds out whether others want the lock. The process still notices them later.
//
//zklock:promise P12.7
func TestAnIdlePlaceIsReleasedThoughAWaiterGaveUpBefore(t *testing.T) {
	const latency = 20 * time.Millisecond
	for holds := 2 * latency; holds <= 10*latency; holds += latency / 4 {
		t.Run(fmt.Sprint("held for ", holds), func(t *testing.T) {
			virtual(t, zktest.Options{Latency: fixed(latency)}, func(t *testing.T, srv *zktest.Server) {
				c, other := connect(t, srv, "c", term), connect(t, srv, "other", term)
				shared := lasting(c)
				hold, err := shared.Lock(t.Context())
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), latency/2)
				defer cancel()
				_, err = shared.Lock(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				time.Sleep(holds)
				require.NoError(t, hold.Unlock(t.Context()))
				time.Sleep(time.Second)
				waits, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				next, err := other.Mutex(path).Lock(waits)
				require.NoError(t, err)
				unlock(t, next)
			})
		})
	}
}
