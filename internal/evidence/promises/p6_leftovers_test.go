// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/bubble"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/shards"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// users is what the cycles of a test use: two clients with an observer, of which the first is attached to a connection.
type users struct {
	t    *testing.T
	srv  *zktest.Server
	a, b *zklock.Client
	more func(opts zklock.Options) *zklock.Client // connects another one

	attach func() (*zklock.Client, error) // attaches another client to the connection of a
	slow   *zklock.Client                 // see delayed
	long   []*longHold                    // one of each client: some things last as long as a client holds something
	paths  int                            // how many were used
	keeps  int                            // how many objects may remain of a cycle
}

// A usage is a cycle of acquiring and releasing, from the first acquire until nothing is held. Each must leave nothing behind.
type usage struct {
	name string
	cost int // how many acquires take as long
	do   func(u *users)
}

var usages = []usage{
	{"a mutex passes from client to client", 2, each(asMutex)},
	{"a writer passes the lock to a reader", 2, func(u *users) {
		u.after(u.take(asWriter(u.a)), asReader(u.b), func(hold *zklock.Hold) { unlock(u.t, hold) })
	}},
	{"a reader passes the lock to a writer", 2, func(u *users) {
		u.after(u.take(asReader(u.a)), asWriter(u.b), func(hold *zklock.Hold) { unlock(u.t, hold) })
	}},
	{"a writer becomes a reader", 2, func(u *users) {
		hold := u.take(asWriter(u.a))
		require.NoError(u.t, hold.Downgrade(u.t.Context()))
		unlock(u.t, hold)
	}},
	{"permits pass from client to client", 4, each(forTwo)},
	{"permits are refused", 2, func(u *users) {
		hold := u.take(forTwo(u.a))
		_, err := u.b.Semaphore(path, 3).TryAcquire(u.t.Context(), 2)
		require.ErrorIs(u.t, err, zklock.ErrLocked)
		unlock(u.t, hold)
	}},
	{"a waiter for permits gives up", 2, func(u *users) {
		hold := u.take(forTwo(u.a))
		u.giveUp(forTwo(u.b))
		unlock(u.t, hold)
	}},
	{"a semaphore is resized", 4, func(u *users) {
		hold := u.take(forTwo(u.a))
		u.after(nil, forTwo(u.b), func(*zklock.Hold) {
			require.NoError(u.t, u.a.Semaphore(path, 3).Resize(u.t.Context(), 4))
		})
		unlock(u.t, hold)
		require.NoError(u.t, u.b.Semaphore(path, 4).Resize(u.t.Context(), 3))
	}},
	{"the goroutines of a cohort follow each other", 2, func(u *users) { u.together(asCohort(u.a), asCohort(u.a), asCohort(u.a)) }},
	{"cohorts of two processes follow each other", 8, func(u *users) { u.together(asCohort(u.a), asCohort(u.b), asCohort(u.a), asCohort(u.b)) }},
	{"a cohort keeps no idle place", 1, func(u *users) {
		unlock(u.t, u.take(u.a.Cohort(path, &zklock.CohortOptions{Keep: -1}).Lock))
	}},
	{"an idle place of a cohort is given up", 2, func(u *users) {
		unlock(u.t, u.take(asCohort(u.a)))
		time.Sleep(time.Second)
	}},
	{"a goroutine of a cohort gives up", 2, func(u *users) {
		hold := u.take(asCohort(u.a))
		u.giveUp(asCohort(u.a))
		u.giveUp(asCohort(u.b))
		unlock(u.t, hold)
	}},
	{"a place of a cohort is lost", 4, func(u *users) { u.lose(asCohort(u.a)) }},
	{"two levels of a reentrant lock", 1, func(u *users) {
		outer := u.take(asReentrant(u.a))
		inner, err := u.a.Reentrant(path).Lock(outer.Context())
		require.NoError(u.t, err)
		unlock(u.t, inner)
		unlock(u.t, outer)
	}},
	{"several locks pass from client to client", 4, each(asBoth)},
	{"one of several locks is lost", 4, func(u *users) { u.lose(asBoth(u.a)) }},
	{"the second of several locks is not available", 4, func(u *users) {
		hold := u.take(u.a.Mutex(path + "/also").Lock)
		u.giveUp(asBoth(u.b))
		unlock(u.t, hold)
	}},
	{"a lock that is held is tried", 1, func(u *users) {
		hold := u.take(asMutex(u.a))
		_, err := u.b.Mutex(path).TryLock(u.t.Context())
		require.ErrorIs(u.t, err, zklock.ErrLocked)
		unlock(u.t, hold)
	}},
	{"a waiter gives up", 2, func(u *users) {
		hold := u.take(asMutex(u.a))
		u.giveUp(asMutex(u.b))
		unlock(u.t, hold)
	}},
	{"a queue is too long for AtMost", 2, func(u *users) {
		hold := u.take(asMutex(u.a))
		for _, l := range []zklock.Locker{u.b.Mutex(path), u.b.Cohort(path)} {
			_, err := zklock.AtMost(l, 0).Lock(u.t.Context())
			require.ErrorIs(u.t, err, zklock.ErrLocked)
		}
		unlock(u.t, hold)
	}},
	{"a queue for permits is too long for AtMost", 4, func(u *users) {
		u.after(u.take(forTwo(u.a)), forTwo(u.b), func(hold *zklock.Hold) {
			_, err := zklock.AtMost(u.a.Semaphore(path, 3).Permits(2), 0).Lock(u.t.Context())
			require.ErrorIs(u.t, err, zklock.ErrLocked)
			unlock(u.t, hold)
		})
	}},
	{"Do returns", 2, func(u *users) {
		for _, c := range []*zklock.Client{u.a, u.b} {
			require.NoError(u.t, c.Mutex(path).Do(u.t.Context(), func(context.Context) error { return nil }))
		}
	}},
	{"the function of Do panics", 1, func(u *users) {
		require.Panics(u.t, func() { _ = zklock.Do(u.t.Context(), u.a.Mutex(path), func(context.Context) error { panic("ours") }) })
	}},
	{"the function of Do loses its lock", 2, func(u *users) {
		hold := u.take(asMutex(u.a))
		err := hold.Do(u.t.Context(), func(ctx context.Context) error {
			require.NoError(u.t, u.srv.DeleteNodes(hold.Node()))
			<-ctx.Done()
			return ctx.Err()
		})
		require.ErrorIs(u.t, err, zklock.ErrLost)
	}},
	{"a hold has what a hold can have", 2, func(u *users) {
		hold := u.take(asMutex(u.a))
		hold.Expiring(time.Second)
		for range 2 {
			_, cancel := context.WithCancelCause(u.t.Context())
			defer hold.OnEnd(cancel)()
		}
		require.NoError(u.t, hold.Check())
		require.NoError(u.t, hold.Confirm(u.t.Context()))
		_, err := hold.Multi()
		require.NoError(u.t, err)
		unlock(u.t, hold)
	}},
	{"a node is deleted by a third party", 2, func(u *users) { u.lose(asMutex(u.a)) }},
	{"permits are lost", 4, func(u *users) { u.lose(forTwo(u.a)) }},
	{"a waiter is evicted", 4, func(u *users) {
		hold := u.take(asMutex(u.a))
		waiter := lockLater(u.t.Context(), u.b.Mutex(path).Lock)
		synctest.Wait()
		require.NoError(u.t, operate.Evict(u.t.Context(), u.a, "", contenderAt(u.t, u.a, 1)))
		<-waiter.done
		require.ErrorIs(u.t, waiter.err, zklock.ErrEvicted)
		unlock(u.t, hold)
	}},
	{"a holder is evicted", 4, func(u *users) {
		hold := u.take(asMutex(u.a))
		require.NoError(u.t, operate.Evict(u.t.Context(), u.b, "", contenderAt(u.t, u.b, 0)))
		<-hold.Context().Done()
		require.ErrorIs(u.t, hold.Unlock(u.t.Context()), zklock.ErrEvicted)
	}},
	{"a holder is asked to release the lock", 4, func(u *users) {
		hold := u.take(asMutex(u.a))
		require.NoError(u.t, operate.Revoke(u.t.Context(), u.b, contenderAt(u.t, u.b, 0)))
		<-hold.Revoked()
		unlock(u.t, hold)
	}},
	{"the session of a holder and of a waiter expires", 20, func(u *users) {
		hold := u.take(asMutex(u.b))
		waiter := lockLater(u.t.Context(), asMutex(u.a))
		synctest.Wait()
		u.srv.ExpireSession(u.sessionOf(hold))
		<-hold.Context().Done()
		require.ErrorIs(u.t, hold.Unlock(u.t.Context()), zklock.ErrLost)
		<-waiter.done
		require.NoError(u.t, waiter.err)
		again := lockLater(u.t.Context(), asMutex(u.b))
		synctest.Wait()
		u.srv.ExpireSession(u.sessionOf(waiter.hold))
		<-waiter.hold.Context().Done()
		<-again.done
		require.NoError(u.t, again.err)
		require.ErrorIs(u.t, waiter.hold.Unlock(u.t.Context()), zklock.ErrLost)
		unlock(u.t, again.hold)
	}},
	{"the connections of a holder and of a waiter are lost", 20, func(u *users) {
		u.after(u.take(asMutex(u.a)), asMutex(u.b), func(hold *zklock.Hold) {
			u.srv.DropConnections()
			time.Sleep(2 * time.Second)
			unlock(u.t, hold)
		})
	}},
	{"replies to creates and deletes are lost", 20, func(u *users) {
		u.srv.Next(1, zktest.LoseReply, zktest.OpCreate, zktest.OpCreateContainer, zktest.OpMulti)
		hold := u.take(asMutex(u.a))
		u.srv.Next(1, zktest.LoseReply, zktest.OpDelete, zktest.OpMulti)
		unlock(u.t, hold)
	}},
	{"a client with a lock-delay", 4, func(u *users) {
		delayed := u.delayed()
		unlock(u.t, u.take(asMutex(delayed)))
		hold := u.take(asMutex(delayed))
		require.NoError(u.t, u.srv.DeleteNodes(hold.Node()))
		<-hold.Context().Done()
		require.ErrorIs(u.t, hold.Unlock(u.t.Context()), zklock.ErrLost)
		unlock(u.t, u.take(asMutex(delayed)))
	}},
	{"a client comes and goes", 20, func(u *users) {
		c := u.more(zklock.Options{Label: "guest", SessionTimeout: term})
		u.take(asMutex(c))
		u.take(c.Semaphore(path+"/permits", 2).Permits(1).Lock)
		require.NoError(u.t, c.Close())
	}},
	{"a client joins a connection and leaves", 10, func(u *users) {
		c, err := u.attach()
		require.NoError(u.t, err)
		u.take(asMutex(c))
		waiter := lockLater(u.t.Context(), asMutex(u.a))
		synctest.Wait()
		require.NoError(u.t, c.Close())
		<-waiter.done
		require.NoError(u.t, waiter.err)
		unlock(u.t, waiter.hold)
	}},
	{"a long hold is entered again and used", 4, func(u *users) {
		long, lock := u.long[0].hold, u.long[0].lock
		inner, err := lock.Lock(long.Context())
		require.NoError(u.t, err)
		several, err := u.a.LockAll(inner.Context(), lock, u.a.Mutex(path))
		require.NoError(u.t, err)
		unlock(u.t, several)
		require.NoError(u.t, lock.Do(inner.Context(), func(context.Context) error { return nil }))
		_, cancel := context.WithCancelCause(u.t.Context())
		long.OnEnd(cancel)()
		cancel(nil)
		long.Expiring(time.Second)
		unlock(u.t, inner)
		require.NoError(u.t, long.Confirm(u.t.Context()))
	}},
	{"every lock has a path of its own", 20, func(u *users) {
		u.paths++
		at := fmt.Sprint("/locks/of/", u.paths)
		u.together(u.a.Mutex(at+"/mutex").Lock, u.b.Mutex(at+"/mutex").Lock)
		u.together(u.a.RWMutex(at+"/rw").RLock, u.b.RWMutex(at+"/rw").Lock)
		u.together(u.a.Semaphore(at+"/semaphore", 2).Permits(2).Lock, u.b.Semaphore(at+"/semaphore", 2).Permits(1).Lock)
		u.together(u.a.Cohort(at+"/cohort").Lock, u.a.Cohort(at+"/cohort").Lock)
		u.together(campaign(u.a.Election(at+"/election")), campaign(u.b.Election(at+"/election")))
		_, err := u.a.Election(at + "/election").Leader(u.t.Context())
		require.ErrorIs(u.t, err, zklock.ErrNoLeader)
		_, err = operate.Inspect(u.t.Context(), u.a, at+"/mutex")
		require.NoError(u.t, err)
		u.keeps = 11 // a client remembers up to 10,000 directories
	}},
	{"a leader campaigns, proclaims and resigns", 4, func(u *users) {
		e := u.a.Election(path)
		hold := u.take(campaign(e))
		require.NoError(u.t, e.Proclaim(hold.Context(), []byte("other")))
		u.after(hold, campaign(u.b.Election(path)), func(hold *zklock.Hold) { unlock(u.t, hold) })
	}},
	{"Election.Run leads once", 4, func(u *users) {
		opts := &zklock.ElectionOptions{
			Prefer:  func(a, b []byte) bool { return string(a) > string(b) },
			Healthy: func(context.Context) error { return nil },
		}
		err := u.a.Election(path, opts).Run(u.t.Context(), []byte("value"), func(context.Context) error { return errDone })
		require.ErrorIs(u.t, err, errDone)
	}},
	{"an election is observed", 6, func(u *users) {
		e := u.b.Election(path)
		hold := u.take(campaign(u.a.Election(path)))
		for _, leaders := range []iter.Seq2[zklock.Contender, error]{e.Observe(u.t.Context()), e.Follow(u.t.Context())} {
			for leader, err := range leaders {
				require.NoError(u.t, err)
				if leader.Node == hold.Node() {
					break
				}
			}
		}
		_, err := e.Leader(u.t.Context())
		require.NoError(u.t, err)
		unlock(u.t, hold)
	}},
	{"an operator watches and inspects", 10, func(u *users) {
		hold := u.take(asMutex(u.a))
		for q, err := range operate.Watch(u.t.Context(), u.b, path) {
			require.NoError(u.t, err)
			if len(q.Contenders) == 1 {
				break
			}
		}
		_, err := operate.Queues(u.t.Context(), u.b, path)
		require.NoError(u.t, err)
		unlock(u.t, hold)
	}},
	{"a slot is done, and is done already", 4, func(u *users) {
		slot := slots.Due(u.a, "/slots/job", time.Now())
		require.NoError(u.t, slot.Do(u.t.Context(), func(context.Context) error { return nil }))
		require.ErrorIs(u.t, slot.Do(u.t.Context(), func(context.Context) error { return nil }), slots.ErrDone)
		time.Sleep(time.Second)
	}},
	{"a member of a fleet comes and goes", 20, func(u *users) {
		ctx, leave := context.WithCancel(u.t.Context())
		defer leave()
		err := shards.Run(ctx, u.a, shardsPath, 2, func(ctx context.Context, _ int) error {
			leave()
			<-ctx.Done()
			return nil
		})
		require.ErrorIs(u.t, err, context.Canceled)
	}},
	{"numbers are taken", 6, func(u *users) {
		first, n, err := shards.Number(u.t.Context(), u.a, "/numbers", 1)
		require.NoError(u.t, err)
		require.Zero(u.t, n)
		_, _, err = shards.Number(u.t.Context(), u.b, "/numbers", 1)
		require.ErrorIs(u.t, err, zklock.ErrLocked)
		unlock(u.t, first)
	}},
}

var errDone = errors.New("done")

// each returns a cycle in which both clients take the lock at the same time.
func each(lock way) func(u *users) {
	return func(u *users) { u.together(lock(u.a), lock(u.b)) }
}

func (u *users) take(lock lockFunc) *zklock.Hold {
	u.t.Helper()
	hold, err := lock(u.t.Context())
	require.NoError(u.t, err)
	return hold
}

// together takes the locks at the same time, in any order, and releases each one at once.
func (u *users) together(locks ...lockFunc) {
	u.t.Helper()
	var all sync.WaitGroup
	errs := make([]error, len(locks))
	for i, lock := range locks {
		all.Go(func() {
			hold, err := lock(u.t.Context())
			if err == nil {
				err = hold.Unlock(u.t.Context())
			}
			errs[i] = err
		})
	}
	all.Wait()
	require.NoError(u.t, errors.Join(errs...))
}

// after takes a lock that is not free before the function free has returned, and releases it.
func (u *users) after(hold *zklock.Hold, lock lockFunc, free func(hold *zklock.Hold)) {
	u.t.Helper()
	waiter := lockLater(u.t.Context(), lock)
	require.False(u.t, waiter.returned())
	free(hold)
	<-waiter.done
	require.NoError(u.t, waiter.err)
	unlock(u.t, waiter.hold)
}

// giveUp waits for a lock that is not free, and gives up.
func (u *users) giveUp(lock lockFunc) {
	u.t.Helper()
	ctx, cancel := context.WithCancel(u.t.Context())
	waiter := lockLater(ctx, lock)
	require.False(u.t, waiter.returned())
	cancel()
	<-waiter.done
	require.ErrorIs(u.t, waiter.err, context.Canceled)
}

// lose takes a lock and deletes its node, and takes it again.
func (u *users) lose(lock lockFunc) {
	u.t.Helper()
	hold := u.take(lock)
	require.NoError(u.t, u.srv.DeleteNodes(hold.Node()))
	<-hold.Context().Done()
	require.ErrorIs(u.t, hold.Unlock(u.t.Context()), zklock.ErrLost)
	unlock(u.t, u.take(lock))
}

func (u *users) sessionOf(hold *zklock.Hold) int64 {
	u.t.Helper()
	n, ok := u.srv.Node(hold.Node())
	require.True(u.t, ok)
	return n.EphemeralOwner
}

// delayed returns the client with a lock-delay, which is connected when it is first used.
func (u *users) delayed() *zklock.Client {
	if u.slow == nil {
		u.slow = u.more(zklock.Options{Label: "delayed", SessionTimeout: term, LockDelay: time.Second})
		u.t.Cleanup(func() { u.slow.Close() })
		u.hold(u.slow)
	}
	return u.slow
}

// longHold is what a client holds all the time.
type longHold struct {
	client *zklock.Client
	lock   *zklock.Reentrant
	hold   *zklock.Hold
}

const longPath = "/locks/long"

// hold makes a client hold a lock of its own from the next rest on.
func (u *users) hold(c *zklock.Client) {
	u.long = append(u.long, &longHold{client: c, lock: c.Reentrant(fmt.Sprint(longPath, "/", len(u.long)))})
}

// rest is what remains of cycles.
type rest struct {
	goroutines, watches, sessions int
	nodes                         []string
	objects, bytes                int64 // of the heap, the servers' included
}

// rest waits until the clients have ended what they do in the background, and the servers have removed empty directories.
func (u *users) rest() rest {
	u.t.Helper()
	for _, l := range u.long {
		if l.hold == nil || l.hold.Check() != nil {
			l.hold = u.take(l.lock.Lock)
		}
	}
	time.Sleep(3 * time.Minute)
	for _, l := range u.long {
		lines := strings.Split(l.client.String(), "\n")
		require.Len(u.t, lines, 2, "what is left, for example %.300s", lines[len(lines)-1])
		require.Contains(u.t, lines[1], l.hold.Node())
	}
	r := rest{
		goroutines: goroutines(u.t), watches: u.srv.WatchCount(), sessions: len(u.srv.Sessions()),
		nodes: slices.DeleteFunc(slices.Sorted(maps.Keys(u.srv.Tree())), func(name string) bool { return strings.HasPrefix(name, longPath) }),
	}
	runtime.GC()
	runtime.GC() // what a pool has kept
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	r.objects, r.bytes = int64(stats.HeapObjects), int64(stats.HeapAlloc)
	return r
}

// cycles is how many cycles of each kind run in all rounds together, divided by their cost.
var cycles = flag.Int("cycles", 1000, "cycles of each kind; make test-all has 10,000")

// leftoverRounds is how many rounds of cycles run at most. At first, several rounds in a row can leave something that is no leak: of 40
// fresh processes, five had no other round among three.
const leftoverRounds = 10

// TestCyclesOfEveryKindLeaveNothingBehind counts after each round of cycles, until one has left nothing. A leak grows in every round; a
// table that a map or a pool keeps does not. To see where the memory was allocated, run one cycle with -memprofile.
//
//zklock:promise P6.1
func TestCyclesOfEveryKindLeaveNothingBehind(t *testing.T) {
	for _, c := range usages {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				u := newUsers(t, srv)
				u.rest() // from now on each client holds something
				n := max(30, *cycles/3/oneIn(30)/c.cost)
				for range max(n, 130) { // a slot keeps 128 marks
					c.do(u)
				}
				first := u.rest()
				last, objects, bytes := first, int64(1<<62), int64(1<<62)
				mostObjects := int64(n/2 + n*u.keeps)
				mostBytes := int64(1<<10 + 16*n + 100*n*u.keeps) // the heap of a round without a leak varies by some hundred
				for range leftoverRounds {
					for range n {
						c.do(u)
					}
					now := u.rest()
					objects, bytes = min(objects, now.objects-last.objects), min(bytes, now.bytes-last.bytes)
					last = now
					if objects < mostObjects && bytes < mostBytes {
						break
					}
				}
				require.Equal(t, first.nodes, last.nodes)
				require.Equal(t, first.sessions, last.sessions, "sessions")
				require.LessOrEqual(t, last.watches, first.watches, "watches: %v", srv.Watches())
				require.LessOrEqual(t, last.goroutines, first.goroutines, "goroutines: %s", bubble.Stacks())
				require.Less(t, objects, mostObjects, "objects that each round of %d cycles leaves", n)
				require.Less(t, bytes, mostBytes, "bytes that each round of %d cycles leaves", n)
			})
		})
	}
}

func newUsers(t *testing.T, srv *zktest.Server) *users {
	conn, hooks := hooked(t, srv)
	attach := func() (*zklock.Client, error) {
		return zklock.Attach(t.Context(), conn, hooks, &zklock.Options{Observer: everyEvent(func(observe.Event) {})})
	}
	more := func(opts zklock.Options) *zklock.Client {
		opts.Dialer = srv.DialFrom(opts.Label)
		c, err := zklock.Connect(t.Context(), srv.Addrs(), &opts)
		require.NoError(t, err)
		return c
	}
	a, err := attach()
	require.NoError(t, err)
	t.Cleanup(func() { a.Close() })
	b := connectWith(t, srv, &zklock.Options{Label: "b", SessionTimeout: term, Observer: everyEvent(func(observe.Event) {}), FailStop: func(error) {}})
	u := &users{t: t, srv: srv, a: a, b: b, more: more, attach: attach}
	u.hold(a)
	u.hold(b)
	return u
}
