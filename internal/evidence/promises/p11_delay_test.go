// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// Tests of Options.LockDelay.

const lockDelay = 30 * time.Second

// delayed connects a client with the lock-delay.
func delayed(t *testing.T, srv *zktest.Server, label string) *zklock.Client {
	t.Helper()
	return delayedBy(t, srv, label, lockDelay)
}

func delayedBy(t *testing.T, srv *zktest.Server, label string, delay time.Duration) *zklock.Client {
	t.Helper()
	return connectWith(t, srv, &zklock.Options{Label: label, SessionTimeout: term, LockDelay: delay})
}

// departures records when each contender's node was deleted.
func departures(srv *zktest.Server) func(node string) time.Time {
	var mu sync.Mutex
	at := map[string]time.Time{}
	srv.OnTxn(func(tx zktest.Txn) {
		mu.Lock()
		defer mu.Unlock()
		for _, step := range append(tx.Steps, tx) {
			if step.Op == zktest.OpDelete && tx.Code == 0 {
				at[step.Path] = tx.Time
			}
			for _, node := range step.Deleted {
				at[node] = tx.Time
			}
		}
	})
	return func(node string) time.Time {
		mu.Lock()
		defer mu.Unlock()
		return at[node]
	}
}

// waitsOutTheDelay fails the test unless the attempt is granted after the delay since a node's deletion has passed, and soon
// after that.
func waitsOutTheDelay(t *testing.T, a *attempt, gone time.Time) {
	t.Helper()
	<-a.done
	require.NoError(t, a.err)
	require.False(t, gone.IsZero(), "the node is there")
	require.GreaterOrEqual(t, a.at.Sub(gone), lockDelay)
	require.Less(t, a.at.Sub(gone), lockDelay+5*time.Second)
}

// delayedRecipes are the recipes with a lock-delay, for the holder that crashes and for the next one.
var delayedRecipes = []exclusion{
	{"Mutex", "a mutex", asMutex, asMutex},
	{"Reentrant", "a reentrant mutex", asReentrant, asReentrant},
	{"RWMutex", "a writer after a writer", asWriter, asWriter},
	{"RWMutex", "a reader after a writer", asWriter, asReader},
	{"Election", "an election", asLeader, asLeader},
	{"Election", "a latch", asLatch, asLatch},
	{"Election", "a mutex after a leader", asLeader, asMutex},
}

var (
	asReentrant way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Reentrant(path).Lock }
	asLeader    way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return campaign(c.Election(path, nil))
	}
	asLatch way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return campaign(c.Election(path, &zklock.ElectionOptions{Latch: true}))
	}
)

//zklock:promise P11.1
func TestAfterACrashTheNextHolderWaitsForTheLockDelay(t *testing.T) {
	for _, x := range delayedRecipes {
		t.Run(x.name, func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				gone := departures(srv)
				hold, err := x.first(delayed(t, srv, "first"))(t.Context())
				require.NoError(t, err)
				second := delayed(t, srv, "second")
				waits := lockLater(t.Context(), x.second(second))
				srv.Partition("first")
				time.Sleep(2 * term)
				require.False(t, waits.returned())
				require.Greater(t, len(queue(srv, path)), 0)
				waitsOutTheDelay(t, waits, gone(hold.Node()))
				require.GreaterOrEqual(t, waits.hold.Remaining(), term*4/10)
				require.Greater(t, waits.hold.Token(), hold.Token())
				unlock(t, waits.hold)
			})
		})
	}
}

// A contender that finds an empty queue notices that the last holder crashed, even if ZooKeeper has removed the directory
// meanwhile.
//
//zklock:promise P11.2 A24
func TestANewcomerWaitsForTheLockDelayOfAnUnnoticedCrash(t *testing.T) {
	for _, x := range delayedRecipes {
		for _, after := range []time.Duration{2 * term, time.Hour} {
			t.Run(fmt.Sprint(x.name, " ", after), func(t *testing.T) {
				virtual(t, lab.With(zktest.Options{}, lab.Options{ContainerCheck: time.Minute}), func(t *testing.T, srv *zktest.Server) {
					second := delayed(t, srv, "second")
					_, err := x.first(delayed(t, srv, "first"))(t.Context())
					require.NoError(t, err)
					srv.Partition("first")
					time.Sleep(after)
					require.Empty(t, queue(srv, path))
					_, there := srv.Node(path)
					require.Equal(t, after < time.Minute, there)
					came := time.Now()
					next := lockLater(t.Context(), x.second(second))
					waitsOutTheDelay(t, next, came)
					unlock(t, next.hold)
					again := time.Now()
					unlockSoonAs(t, second, x.second)
					require.Less(t, time.Since(again), time.Second, "the lock was released since")
				})
			})
		}
	}
}

// A contender whose node is deleted while it waits for the delay queues again at once, although its queue was empty.
//
//zklock:promise P11.2
func TestANewcomerThatIsDeletedDuringTheLockDelayQueuesAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		crashes, other := delayed(t, srv, "crashes"), delayed(t, srv, "other")
		_, err := crashes.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		srv.Partition("crashes")
		time.Sleep(2 * term)
		came := time.Now()
		waits := lockLater(t.Context(), other.Mutex(path).Lock)
		time.Sleep(lockDelay / 3)
		before := queue(srv, path)
		require.Len(t, before, 1)
		require.NoError(t, srv.DeleteNode(path+"/"+before[0]))
		time.Sleep(time.Second)
		require.Len(t, queue(srv, path), 1, "it has another node")
		require.NotEqual(t, before, queue(srv, path))
		waitsOutTheDelay(t, waits, came)
		unlock(t, waits.hold)
	})
}

// A holder that got no reply to the creation of its record does not mistake itself for a crashed holder.
//
//zklock:promise P11.4
func TestALostAnswerToTheRecordCostsNoLockDelay(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := delayed(t, srv, "a")
		unlockSoon(t, c)
		var struck atomic.Bool
		defer srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if slices.Contains(r.Paths, path+".zklock-delay") && struck.CompareAndSwap(false, true) {
				return zktest.LoseReply
			}
			return zktest.Pass
		})()
		began := time.Now()
		unlockSoon(t, c)
		require.True(t, struck.Load())
		require.Less(t, time.Since(began), lockDelay/3)
	})
}

func unlockSoonAs(t *testing.T, c *zklock.Client, as way) {
	t.Helper()
	hold, err := as(c)(t.Context())
	require.NoError(t, err)
	unlock(t, hold)
}

// After a hold that its caller or its client ended, the next grant comes at once, as without a delay.
//
//zklock:promise P11.4
func TestAfterAReleaseThereIsNoLockDelay(t *testing.T) {
	t.Parallel()
	releases := map[string]func(t *testing.T, c *zklock.Client, hold *zklock.Hold){
		"unlock":           func(t *testing.T, _ *zklock.Client, hold *zklock.Hold) { unlock(t, hold) },
		"close":            func(t *testing.T, c *zklock.Client, hold *zklock.Hold) { c.Close() },
		"unlock, given up": func(t *testing.T, _ *zklock.Client, hold *zklock.Hold) { require.Error(t, hold.Unlock(over(t))) },
		"a restart between": func(t *testing.T, _ *zklock.Client, hold *zklock.Hold) {
			unlock(t, hold)
			time.Sleep(time.Hour / time.Duration(oneIn(6)))
		},
	}
	for name, release := range releases {
		for _, x := range delayedRecipes {
			t.Run(fmt.Sprint(x.name, " ", name), func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					first, second, third := delayed(t, srv, "first"), delayed(t, srv, "second"), delayed(t, srv, "third")
					hold, err := x.first(first)(t.Context())
					require.NoError(t, err)
					waits := lockLater(t.Context(), x.second(second))
					synctest.Wait()
					behind := lockLater(t.Context(), x.second(third))
					time.Sleep(time.Minute)
					require.False(t, waits.returned())
					at := time.Now()
					release(t, first, hold)
					<-waits.done
					require.NoError(t, waits.err)
					require.Less(t, waits.at.Sub(at), time.Second)
					at = time.Now()
					unlock(t, waits.hold)
					<-behind.done
					require.NoError(t, behind.err)
					require.Less(t, behind.at.Sub(at), time.Second)
					unlock(t, behind.hold)
				})
			})
		}
	}
}

// over returns a context that is already done.
func over(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// A hold that was lost without the end of its session does not count as released: its process may continue after a pause.
//
//zklock:promise P11.5
func TestAHoldThatWasLostIsFollowedAfterTheLockDelay(t *testing.T) {
	losses := map[string]func(t *testing.T, srv *zktest.Server, hold *zklock.Hold){
		"its node was deleted": func(t *testing.T, srv *zktest.Server, hold *zklock.Hold) {
			require.NoError(t, srv.DeleteNode(hold.Node()))
		},
		"it was evicted": func(t *testing.T, srv *zktest.Server, hold *zklock.Hold) {
			operator := connect(t, srv, "operator", term)
			q, err := operate.Inspect(t.Context(), operator, path)
			require.NoError(t, err)
			require.NoError(t, operate.Evict(t.Context(), operator, "", q.Contenders[0]))
		},
		"its lease ran out": func(t *testing.T, srv *zktest.Server, hold *zklock.Hold) {
			session := srv.Sessions()[0].ID // no server receives a request from the client for as long as its lease lasts
			stop := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if r.Session == session && r.Op != zktest.OpPing {
					return zktest.DropBefore
				}
				return zktest.Pass
			})
			<-hold.Context().Done()
			stop()
		},
	}
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				gone := departures(srv)
				first := delayed(t, srv, "first")
				hold, err := first.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				waits := lockLater(t.Context(), delayed(t, srv, "second").Mutex(path).Lock)
				synctest.Wait()
				lose(t, srv, hold)
				<-hold.Context().Done()
				require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrLost)
				time.Sleep(term)
				waitsOutTheDelay(t, waits, gone(hold.Node()))
			})
		})
	}
}

// The remaining locks of a LockAll are released by Unlock, when the caller has finished its work. No delay follows.
//
//zklock:promise P11.5
func TestALossOfOneOfSeveralLocksDelaysThatLockOnly(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		first, second := delayed(t, srv, "first"), delayed(t, srv, "second")
		all := func() *zklock.Hold {
			hold, err := first.LockAll(t.Context(), first.Mutex("/a"), first.RWMutex("/b"))
			require.NoError(t, err)
			return hold
		}
		unlock(t, all())
		hold := all()
		waits := lockLater(t.Context(), second.Mutex("/b").Lock)
		synctest.Wait()
		require.NoError(t, srv.DeleteNode(hold.Node()))
		<-hold.Context().Done()
		time.Sleep(3 * lockDelay)
		require.False(t, waits.returned(), "the caller may still be working")
		start := time.Now()
		require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrLost)
		<-waits.done
		require.NoError(t, waits.err)
		require.Less(t, time.Since(start), time.Second)
		unlock(t, waits.hold)

		start = time.Now()
		unlock(t, all()) // no contender has noticed that /a was lost
		require.GreaterOrEqual(t, time.Since(start), lockDelay)
		start = time.Now()
		both, err := second.LockAll(t.Context(), second.Mutex("/a"), second.Mutex("/b"))
		require.NoError(t, err)
		require.Less(t, time.Since(start), time.Second)
		unlock(t, both)
	})
}

// It is not known whether a contender of another library that is gone has released. The record of an earlier hold does not show
// it.
//
//zklock:promise P11.3 A25
func TestAForeignPredecessorIsFollowedAfterTheLockDelay(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		gone := departures(srv)
		ours := delayed(t, srv, "ours")
		for round := range 3 {
			foreign := zk.NewLock(rawClient(t, srv, term), path, zk.WorldACL(zk.PermAll))
			require.NoError(t, foreign.Lock())
			node := path + "/" + srv.Children(path)[0]
			waits := lockLater(t.Context(), ours.Mutex(path).Lock)
			synctest.Wait()
			behind := lockLater(t.Context(), delayed(t, srv, "behind").Mutex(path).Lock)
			time.Sleep(time.Second)
			if round == 1 { // the next contender has to look for it
				require.NoError(t, srv.DeleteNode(path+"/"+byNumber(srv.Children(path))[1]))
				time.Sleep(time.Second)
			}
			require.NoError(t, foreign.Unlock())
			first, second := waits, behind
			if round == 1 {
				first, second = behind, waits // it has queued again
			}
			waitsOutTheDelay(t, first, gone(node))
			at := time.Now()
			unlock(t, first.hold)
			<-second.done
			require.NoError(t, second.err)
			require.Less(t, second.at.Sub(at), time.Second, "the one between them has released")
			unlock(t, second.hold)
		}
	})
}

// While a reader waits for the delay after a lost hold, a writer of another library ends between it and another reader.
//
//zklock:promise P11.3 A25
func TestAReaderWaitsForASecondDelayAfterAForeignWriter(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		gone := departures(srv)
		_, err := asWriter(delayed(t, srv, "crashes"))(t.Context())
		require.NoError(t, err)
		first := lockLater(t.Context(), asReader(delayed(t, srv, "first")))
		synctest.Wait()
		foreign, err := rawClient(t, srv, term).CreateProtectedEphemeralSequential(path+"/lock-", nil, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		second := lockLater(t.Context(), asReader(delayed(t, srv, "second")))
		synctest.Wait()
		crashed := front(srv, path)
		srv.Partition("crashes")
		require.NoError(t, srv.WaitGone(t.Context(), crashed))
		time.Sleep(lockDelay / 2)
		require.NoError(t, srv.DeleteNode(foreign))
		waitsOutTheDelay(t, first, gone(foreign))
		<-second.done
		require.NoError(t, second.err)
		unlock(t, first.hold)
		unlock(t, second.hold)
	})
}

// byNumber sorts the names of nodes by their numbers.
func byNumber(names []string) []string {
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	return names
}

// TryLock returns at once during the delay. It starts the delay if no other contender has, so that processes that never wait can
// acquire the lock eventually.
//
//zklock:promise P11.6
func TestAnAttemptThatDoesNotWaitIsRefusedWhileTheLockDelayRuns(t *testing.T) {
	tries := map[string]func(c *zklock.Client) lockFunc{
		"a mutex":  func(c *zklock.Client) lockFunc { return c.Mutex(path).TryLock },
		"a writer": func(c *zklock.Client) lockFunc { return c.RWMutex(path).TryLock },
		"a reader": func(c *zklock.Client) lockFunc { return c.RWMutex(path).TryRLock },
	}
	for name, try := range tries {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				unlockSoonAs(t, delayed(t, srv, "before"), asWriter)
				crashWith(t, srv, asWriter)
				came := time.Now()
				for {
					client := delayed(t, srv, "one of many") // as a cron job is, which tries and ends
					start := time.Now()
					hold, err := try(client)(t.Context())
					require.Less(t, time.Since(start), time.Second)
					if err == nil {
						require.GreaterOrEqual(t, time.Since(came), lockDelay)
						require.Less(t, time.Since(came), lockDelay+5*time.Second)
						unlock(t, hold)
						break
					}
					require.ErrorIs(t, err, zklock.ErrLocked)
					require.Empty(t, queue(srv, path))
					client.Close()
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// crashWith makes a client acquire the lock and crash. It returns when the servers have ended its session.
func crashWith(t *testing.T, srv *zktest.Server, as way) *zklock.Hold {
	t.Helper()
	hold, err := as(delayed(t, srv, "crashes"))(t.Context())
	require.NoError(t, err)
	srv.Partition("crashes")
	require.NoError(t, srv.WaitGone(t.Context(), hold.Node()))
	return hold
}

// A wait that ends before the delay still counts: the next one waits only for the remaining time.
//
//zklock:promise P11.6
func TestShortWaitsOutlastTheLockDelayTogether(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := delayed(t, srv, "a")
		crashWith(t, srv, asMutex)
		came := time.Now()
		for {
			ctx, cancel := context.WithTimeout(t.Context(), lockDelay/5)
			hold, err := client.Mutex(path).Lock(ctx)
			cancel()
			if err == nil {
				require.GreaterOrEqual(t, time.Since(came), lockDelay)
				require.Less(t, time.Since(came), lockDelay+5*time.Second)
				unlock(t, hold)
				return
			}
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
	})
}

// Contenders that wait for the delay keep their places. If one of them crashes, too, the delay starts again.
//
//zklock:promise P11.7 A26
func TestTheNextInLineKeepsItsPlaceDuringTheLockDelay(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		gone := departures(srv)
		next, behind := delayed(t, srv, "next"), delayed(t, srv, "behind")
		hold := crashWith(t, srv, asMutex)
		waits := lockLater(t.Context(), next.Mutex(path).Lock)
		time.Sleep(time.Second)
		second := lockLater(t.Context(), behind.Mutex(path).Lock)
		time.Sleep(time.Second)
		q, err := operate.Inspect(t.Context(), behind, path)
		require.NoError(t, err)
		require.Len(t, q.Contenders, 2)
		require.False(t, q.Contenders[0].Holds, "no contender holds while the delay runs")
		srv.DropConnections()
		require.NoError(t, operate.Evict(t.Context(), next, "", q.Contenders[0]))
		<-waits.done
		require.ErrorIs(t, waits.err, zklock.ErrEvicted)
		waitsOutTheDelay(t, second, gone(hold.Node()))
		q, err = operate.Inspect(t.Context(), behind, path)
		require.NoError(t, err)
		require.True(t, q.Contenders[0].Holds)
		unlock(t, second.hold)
	})
}

// Readers that a downgraded writer admits need not wait, and the end of readers delays no one.
//
//zklock:promise P11.8
func TestReadersBehindADowngradedWriterDoNotWaitForTheLockDelay(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		gone := departures(srv)
		writer, reader := delayed(t, srv, "writer"), delayed(t, srv, "reader")
		hold, err := writer.RWMutex(path).Lock(t.Context())
		require.NoError(t, err)
		reads := lockLater(t.Context(), reader.RWMutex(path).RLock)
		synctest.Wait()
		start := time.Now()
		require.NoError(t, hold.Downgrade(t.Context()))
		<-reads.done
		require.NoError(t, reads.err)
		late, err := reader.RWMutex(path).TryRLock(t.Context())
		require.NoError(t, err)
		require.Less(t, time.Since(start), time.Second)
		waits := lockLater(t.Context(), delayed(t, srv, "next").RWMutex(path).Lock)
		synctest.Wait()
		srv.Partition("writer")
		require.NoError(t, srv.WaitGone(t.Context(), hold.Node()))
		unlock(t, late)
		unlock(t, reads.hold)
		waitsOutTheDelay(t, waits, gone(reads.hold.Node()))
		unlock(t, waits.hold)

		_, err = reader.RWMutex(path).RLock(t.Context())
		require.NoError(t, err)
		srv.Partition("reader")
		time.Sleep(2 * term)
		start = time.Now()
		unlockSoonAs(t, delayed(t, srv, "last"), asWriter)
		require.Less(t, time.Since(start), time.Second, "a reader that crashed has written nothing")
	})
}

//zklock:promise P11.12 A23
func TestClientsWithDifferentLockDelaysGetErrMismatch(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		ours := delayed(t, srv, "ours")
		hold, err := ours.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		other := delayedBy(t, srv, "other", time.Second)
		none := connect(t, srv, "none", term)
		for name, get := range map[string]lockFunc{
			"another delay":            other.Mutex(path).Lock,
			"another delay, at once":   other.Mutex(path).TryLock,
			"another delay, a reader":  other.RWMutex(path).RLock,
			"another delay, an office": campaign(other.Election(path, nil)),
			"none":                     none.Mutex(path).Lock,
			"none, at once":            none.Mutex(path).TryLock,
			"none, a reader":           none.RWMutex(path).RLock,
			"none, an office":          campaign(none.Election(path, nil)),
		} {
			_, err := get(t.Context())
			require.ErrorIs(t, err, zklock.ErrMismatch, name)
			require.ErrorContains(t, err, "lock-delay", name)
		}
		for c, why := range map[*zklock.Client]error{ours: zklock.ErrInvalid, none: zklock.ErrMismatch} {
			_, err := c.Cohort(path, nil).Lock(t.Context())
			require.ErrorIs(t, err, why, "a cohort")
			require.ErrorContains(t, err, "lock-delay", "a cohort")
		}
		time.Sleep(time.Second)
		require.Len(t, queue(srv, path), 1)
		unlock(t, hold)
		for _, c := range []*zklock.Client{other, ours, other} {
			unlockSoonAs(t, c, asMutex) // there is no holder in between, so no record of the delay
		}
	})
}

// A client that has just released the lock assumes that there is no record, until it finds another contender ahead.
//
//zklock:promise P11.12
func TestARecentReleaseHidesNoOtherLockDelay(t *testing.T) {
	for _, since := range []time.Duration{0, time.Second, 9 * time.Second, 11 * time.Second} {
		for name, get := range map[string]func(c *zklock.Client) lockFunc{
			"Lock":    func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock },
			"TryLock": func(c *zklock.Client) lockFunc { return c.Mutex(path).TryLock },
			"RLock":   func(c *zklock.Client) lockFunc { return c.RWMutex(path).RLock },
		} {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				ours, other := delayed(t, srv, "ours"), delayedBy(t, srv, "other", time.Second)
				unlockSoonAs(t, ours, asMutex)
				hold, err := other.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				time.Sleep(since)
				_, err = get(ours)(t.Context())
				require.ErrorIs(t, err, zklock.ErrMismatch, "%s, %v after the grant", name, since)
				require.ErrorContains(t, err, "lock-delay")
				unlock(t, hold)
				unlockSoonAs(t, ours, asMutex)
			})
		}
	}
}

//zklock:promise P11.8
func TestTheCrashOfADowngradedWriterIsFollowedByTheDelay(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		crashWith(t, srv, func(c *zklock.Client) lockFunc {
			return func(ctx context.Context) (*zklock.Hold, error) {
				hold, err := c.RWMutex(path).Lock(ctx)
				if err == nil {
					err = hold.Downgrade(ctx)
				}
				return hold, err
			}
		})
		came, next := time.Now(), delayed(t, srv, "next")
		hold, err := next.RWMutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(came), lockDelay)
		unlock(t, hold)
	})
}

// The delay after a lost hold is that of its client, not that of the next one.
//
//zklock:promise P11.12
func TestALostHoldIsFollowedAfterItsOwnLockDelay(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		crashWith(t, srv, asMutex)
		came, other := time.Now(), delayedBy(t, srv, "other", time.Second)
		_, err := other.Mutex(path).TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		unlockSoonAs(t, other, asMutex)
		require.GreaterOrEqual(t, time.Since(came), lockDelay)
	})
}

// The record exists during a hold, and after a lost hold until the next one is released.
//
//zklock:promise P11.4
func TestALockThatWasReleasedHasNoRecord(t *testing.T) {
	const record = path + ".zklock-delay"
	for _, x := range delayedRecipes {
		t.Run(x.name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				a, b := delayed(t, srv, "a"), delayed(t, srv, "b")
				for range 2 {
					hold, err := x.first(a)(t.Context())
					require.NoError(t, err)
					_, there := srv.Node(record)
					require.True(t, there)
					waits := lockLater(t.Context(), x.second(b))
					synctest.Wait()
					unlock(t, hold)
					<-waits.done
					require.NoError(t, waits.err)
					unlock(t, waits.hold)
					_, there = srv.Node(record)
					require.False(t, there)
				}
				crashWith(t, srv, x.first)
				time.Sleep(time.Hour)
				_, there := srv.Node(record)
				require.True(t, there)
				unlockSoonAs(t, b, x.second)
				_, there = srv.Node(record)
				require.False(t, there)
			})
		})
	}
}

// A lagging server may show the delay of a replaced record. Only the current record counts.
//
//zklock:promise P11.12 A23
func TestALaggingServerCausesNoMismatchOfTheLockDelay(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		follower := 0
		if srv.Leader() == srv.Member(0) {
			follower = 1
		}
		old := delayedBy(t, srv, "old", time.Second)
		hold, err := old.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		lagging := connectWith(t, srv, &zklock.Options{Label: "lagging", SessionTimeout: term, LockDelay: lockDelay}, follower)
		time.Sleep(time.Second)
		srv.Member(follower).Lag(time.Second)
		require.NoError(t, srv.DeleteNodes(hold.Node(), path+".zklock-delay")) // what a release does
		unlockSoonAs(t, lagging, asMutex)
	})
}

//zklock:promise P11.2 A24
func TestARecordThatCannotBeReadIsRefused(t *testing.T) {
	for _, data := range []string{"", "mine", "zklock: delay ", "zklock: delay 0s", "zklock: delay -1s", "zklock: delay 30s\nmade by x", "zklock: delay 30s\n"} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			require.NoError(t, srv.PutNode(path+".zklock-delay", []byte(data)))
			_, err := delayed(t, srv, "a").Mutex(path).Lock(t.Context())
			require.ErrorIs(t, err, zklock.ErrMismatch, data)
			require.Empty(t, queue(srv, path))
		})
	}
}

// A client that may not create the record gets this error, and not ErrMismatch.
//
//zklock:promise P11.2 A24
func TestARecordThatCannotBeMadeIsRefused(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if slices.Contains(r.Ops, zktest.OpCreate) && slices.Contains(r.Paths, path+".zklock-delay") {
				return zktest.Answer(zktest.CodeNoAuth)
			}
			return zktest.Pass
		})
		_, err := delayed(t, srv, "a").Mutex(path).Lock(t.Context())
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.NotErrorIs(t, err, zklock.ErrMismatch)
		noGhost(t, srv, path)
	})
}

// With any fault at any request of a holder, the next contender is granted after the delay if the hold was lost, and at once if
// its release succeeded.
//
//zklock:promise P11.9 A1
func TestNoFaultOfAHolderShortensTheLockDelay(t *testing.T) {
	t.Parallel()
	throughEveryFault(t, 8, func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
		gone := departures(srv)
		var ended sync.Map // nodes that were deleted with their sessions
		srv.OnTxn(func(tx zktest.Txn) {
			for _, node := range tx.Deleted {
				ended.Store(node, true)
			}
		})
		victim, other := delayed(t, srv, "victim"), delayed(t, srv, "other")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		struck := strikeOnce(srv, "victim", n, func(r *zktest.Request) zktest.Verdict { return verdict(srv, r, cancel) })
		hold, err := victim.Mutex(path).Lock(ctx)
		waits := lockLater(t.Context(), other.Mutex(path).Lock)
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			<-waits.done
			require.NoError(t, waits.err)
			return struck()
		}
		time.Sleep(time.Second)
		unlocked := hold.Unlock(t.Context())
		released := time.Now()
		<-waits.done
		require.NoError(t, waits.err)
		switch _, expired := ended.Load(hold.Node()); {
		case errors.Is(unlocked, zklock.ErrLost):
			require.GreaterOrEqual(t, waits.at.Sub(gone(hold.Node())), lockDelay)
		case !expired:
			require.NoError(t, unlocked)
			require.Less(t, waits.at.Sub(released), time.Second)
		}
		unlock(t, waits.hold)
		noGhost(t, srv, path)
		return struck() && n < 20 // heartbeats never stop
	})
}

// With any fault at any request of a contender that waits for the delay, no one is granted before the delay has passed.
//
//zklock:promise P11.9 A1
func TestNoFaultOfAWaiterShortensTheLockDelay(t *testing.T) {
	t.Parallel()
	throughEveryFault(t, 8, func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
		const delay = 2 * time.Second
		victim, other := delayedBy(t, srv, "victim", delay), delayedBy(t, srv, "other", delay)
		_, err := delayedBy(t, srv, "crashes", delay).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		srv.Partition("crashes")
		time.Sleep(2 * term)
		came := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		struck := strikeOnce(srv, "victim", n, func(r *zktest.Request) zktest.Verdict { return verdict(srv, r, cancel) })
		var granted sync.Map
		cycle := func(c *zklock.Client) lockFunc {
			return func(ctx context.Context) (*zklock.Hold, error) {
				hold, err := c.Mutex(path).Lock(ctx)
				if err == nil {
					granted.Store(hold, time.Since(came))
					if err = hold.Unlock(t.Context()); errors.Is(err, zklock.ErrUncertain) {
						err = nil // the release continues
					}
				}
				return hold, err
			}
		}
		first := lockLater(ctx, cycle(victim))
		time.Sleep(time.Second)
		second := lockLater(t.Context(), cycle(other))
		<-first.done
		<-second.done
		if first.err != nil {
			require.ErrorIs(t, first.err, context.Canceled)
		}
		require.NoError(t, second.err)
		granted.Range(func(_, after any) bool {
			require.GreaterOrEqual(t, after, delay)
			return true
		})
		noGhost(t, srv, path)
		return struck() && n < 20
	})
}

// The cost of a lock-delay, and that it costs nothing without one: the numbers in docs/promises.md.
//
//zklock:promise P9.9
func TestTheCostOfALockDelay(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		ctx := t.Context()
		a, plain := delayed(t, srv, "a"), connect(t, srv, "plain", term)
		for name, c := range map[string]struct {
			lock          lockFunc
			writes, reads int
		}{
			"mutex":                  {a.Mutex("/m").Lock, 3, 0},
			"mutex, without waiting": {a.Mutex("/m").TryLock, 3, 0},
			"writer":                 {a.RWMutex("/rw").Lock, 3, 0},
			"reader":                 {a.RWMutex("/r").RLock, 2, 2},
			"a term":                 {campaign(a.Election("/e", nil)), 3, 0},
			"without a delay":        {plain.Mutex("/p").Lock, 2, 0},
			"a permit":               {a.Semaphore("/s", 1).Permits(1).Lock, 4, 3},
		} {
			cycle := func() {
				hold, err := c.lock(ctx)
				require.NoError(t, err)
				unlock(t, hold)
			}
			cycle()
			require.Equal(t, cost{writes: c.writes, reads: c.reads}, costOfOne(srv, cycle), name)
		}
		_, there := srv.Node("/p.zklock-delay")
		require.False(t, there)
	})
}

// A hand-off takes a delete and an event, and with a lock-delay one more write.
//
//zklock:promise P9.9
func TestAHandOffWithALockDelayTakesOneRoundTripMore(t *testing.T) {
	const oneWay = 10 * time.Millisecond
	virtual(t, zktest.Options{Latency: fixed(oneWay)}, func(t *testing.T, srv *zktest.Server) {
		stays := inLine(t, srv, 6, time.Second, func(c *zklock.Client) lockFunc {
			return delayed(t, srv, "delayed").Mutex(path).Lock
		})
		for i := range stays[1:] {
			require.LessOrEqual(t, stays[i+1].from.Sub(stays[i].to), 4*oneWay+time.Millisecond)
		}
	})
}

// A process that is suspended during its work, and writes its result afterwards, does no harm if the pause was shorter than the
// delay, because there was no other holder meanwhile. The stock is like that of the sale in compare.
//
//zklock:promise P11.10
func TestAPauseShorterThanTheLockDelayOversellsNothing(t *testing.T) {
	for _, c := range []struct {
		delay, pause time.Duration // the pause is after the session's end
		oversold     int
	}{
		{0, lockDelay * 9 / 10, 3}, {lockDelay, lockDelay * 9 / 10, 0}, {lockDelay, lockDelay * 11 / 10, 3},
	} {
		t.Run(fmt.Sprint(c.delay, " ", c.pause), func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				const items = 3
				var mu sync.Mutex
				left, sold := items, 0 // guarded by mu
				look := func() int {
					mu.Lock()
					defer mu.Unlock()
					return left
				}
				sell := func(seen int) {
					mu.Lock()
					defer mu.Unlock()
					left, sold = seen-1, sold+1
				}
				for look() > 0 {
					name := fmt.Sprint("pauses ", sold)
					hold, err := delayedBy(t, srv, name, c.delay).Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					seen, other := look(), delayedBy(t, srv, name+" next", c.delay)
					next := lockLater(t.Context(), func(ctx context.Context) (*zklock.Hold, error) {
						hold, err := other.Mutex(path).Lock(ctx)
						if left := look(); err == nil && left > 0 {
							sell(left)
						}
						return hold, errors.Join(err, hold.Unlock(ctx))
					})
					srv.Partition(name) // no request of a stopped process reaches a server
					require.NoError(t, srv.WaitGone(t.Context(), hold.Node()))
					time.Sleep(c.pause)
					sell(seen)
					<-next.done
					require.NoError(t, next.err)
				}
				require.Equal(t, c.oversold, sold-items)
			})
		})
	}
}

// A client must not rely on its memory of a record after servers were restored to an earlier state: the versions that it has seen
// occur again, with different data.
//
//zklock:promise P11.2 A24
func TestARestoredRecordIsReadAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := delayed(t, srv, "a"), delayed(t, srv, "b")
		unlockSoonAs(t, a, asMutex)
		snap := srv.Dump()
		snap.Sessions = nil
		unlockSoonAs(t, a, asMutex) // and remembers its version
		srv.Restore(snap)
		_, err := b.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		for _, s := range srv.Sessions() {
			srv.ExpireSession(s.ID)
		}
		time.Sleep(3 * time.Second) // until all are back
		came := time.Now()
		_, err = b.Mutex(path).TryLock(t.Context()) // records that the lock was lost, with the same version again
		require.ErrorIs(t, err, zklock.ErrLocked)
		unlockSoonAs(t, a, asMutex)
		require.GreaterOrEqual(t, time.Since(came), lockDelay)
	})
}

// Contenders that queued before a crash are granted one after the other.
//
//zklock:promise P11.1
func TestAWaitThatBeganBeforeTheCrashCounts(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		crashes := delayed(t, srv, "crashes")
		hold, err := crashes.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		next := inTurn(t, func(context.Context) (*zklock.Hold, error) { return delayed(t, srv, "next").Mutex(path).Lock(ctx) })[0]
		second := inTurn(t, delayed(t, srv, "second").Mutex(path).Lock)[0]
		srv.Partition("crashes")
		require.NoError(t, srv.WaitGone(t.Context(), hold.Node()))
		gone := time.Now()
		time.Sleep(lockDelay - time.Second)
		cancel()
		<-next.done
		<-second.done
		require.NoError(t, second.err)
		require.Less(t, time.Since(gone), lockDelay+5*time.Second)
		unlock(t, second.hold)
	})
}
