package zklock_test

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
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// What Options.LockDelay promises.

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

// departures notes when each contender's node was deleted.
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

// waitsOutTheDelay fails unless the attempt was granted once the delay had passed since a node went, and soon after that.
func waitsOutTheDelay(t *testing.T, a *attempt, gone time.Time) {
	t.Helper()
	<-a.done
	require.NoError(t, a.err)
	require.False(t, gone.IsZero(), "the node is there")
	require.GreaterOrEqual(t, a.at.Sub(gone), lockDelay)
	require.Less(t, a.at.Sub(gone), lockDelay+5*time.Second)
}

// delayedRecipes are the recipes that take part, as the holder that crashes and as the one after it.
var delayedRecipes = []exclusion{
	{"a mutex", asMutex, asMutex},
	{"a reentrant mutex", asReentrant, asReentrant},
	{"a writer after a writer", asWriter, asWriter},
	{"a reader after a writer", asWriter, asReader},
	{"an election", asLeader, asLeader},
	{"a latch", asLatch, asLatch},
	{"a mutex after a leader", asLeader, asMutex},
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

// One that comes to an empty queue finds out that the last holder has crashed, also when ZooKeeper has removed the directory meanwhile.
func TestANewcomerWaitsForTheLockDelayOfACrashThatNobodySaw(t *testing.T) {
	for _, x := range delayedRecipes {
		for _, after := range []time.Duration{2 * term, time.Hour} {
			t.Run(fmt.Sprint(x.name, " ", after), func(t *testing.T) {
				virtual(t, zktest.Options{ContainerCheck: time.Minute}, func(t *testing.T, srv *zktest.Server) {
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

// A contender whose node was deleted while it waits for the delay queues again at once, although it met nobody in the queue.
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

// A holder whose entry in the record was made without an answer does not take itself for one that crashed.
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

// A hold that its caller or its client has ended is followed at once, as without a delay.
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

// over returns a context that has ended.
func over(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// A hold that was lost although its session lives is no released one: its process may just have woken up.
func TestAHoldThatWasLostIsFollowedAfterTheLockDelay(t *testing.T) {
	losses := map[string]func(t *testing.T, srv *zktest.Server, hold *zklock.Hold){
		"its node was deleted": func(t *testing.T, srv *zktest.Server, hold *zklock.Hold) {
			require.NoError(t, srv.DeleteNode(hold.Node()))
		},
		"it was evicted": func(t *testing.T, srv *zktest.Server, hold *zklock.Hold) {
			operator := connect(t, srv, "operator", term)
			q, err := operate.Inspect(t.Context(), operator, path)
			require.NoError(t, err)
			require.NoError(t, operate.Evict(t.Context(), operator, q.Contenders[0]))
		},
		"its lease ran out": func(t *testing.T, srv *zktest.Server, hold *zklock.Hold) {
			session := srv.Sessions()[0].ID // no server hears of the client for as long as its lease lasts
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

// What LockAll gives up because one of the locks was lost is followed after the delay, too: its caller worked under all.
func TestALossOfOneOfSeveralLocksDelaysAll(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		gone := departures(srv)
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
		b := "/b/" + byNumber(srv.Children("/b"))[0]
		require.NoError(t, srv.DeleteNode(hold.Node()))
		<-hold.Context().Done()
		synctest.Wait()
		waitsOutTheDelay(t, waits, gone(b))
		unlock(t, waits.hold)

		start := time.Now()
		unlock(t, all()) // nobody has seen that /a was lost
		require.GreaterOrEqual(t, time.Since(start), lockDelay)
		start = time.Now()
		both, err := second.LockAll(t.Context(), second.Mutex("/a"), second.Mutex("/b"))
		require.NoError(t, err)
		require.Less(t, time.Since(start), time.Second)
		unlock(t, both)
	})
}

// A contender of another library that was ahead and is gone is not known to have released. The record of an earlier hold says nothing of it.
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
			if round == 1 { // the one behind it has to look for it
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

// byNumber sorts the names of nodes by their numbers.
func byNumber(names []string) []string {
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	return names
}

// TryLock answers at once while the delay runs. It begins the delay itself if nobody has, so that attempts of processes that
// never wait get the lock one day.
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

// crashWith has a client take the lock and crash; it returns when the servers have ended its session.
func crashWith(t *testing.T, srv *zktest.Server, as way) *zklock.Hold {
	t.Helper()
	hold, err := as(delayed(t, srv, "crashes"))(t.Context())
	require.NoError(t, err)
	srv.Partition("crashes")
	require.NoError(t, srv.WaitGone(t.Context(), hold.Node()))
	return hold
}

// A wait that ends before the delay does is not for nothing: the next one waits for the rest only.
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

// Those that wait for the delay keep their places, and one that crashes as well begins it anew.
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
		require.False(t, q.Contenders[0].Holds, "nobody holds while the delay runs")
		srv.DropConnections()
		require.NoError(t, operate.Evict(t.Context(), next, q.Contenders[0]))
		<-waits.done
		require.ErrorIs(t, waits.err, zklock.ErrEvicted)
		waitsOutTheDelay(t, second, gone(hold.Node()))
		q, err = operate.Inspect(t.Context(), behind, path)
		require.NoError(t, err)
		require.True(t, q.Contenders[0].Holds)
		unlock(t, second.hold)
	})
}

// Readers that a writer lets in beside it need not wait, and the end of readers delays nobody.
func TestReadersBesideADowngradedWriterDoNotWaitForTheLockDelay(t *testing.T) {
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

func TestThoseWhoDisagreeAboutTheLockDelayAreTold(t *testing.T) {
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
		_, err = other.Mutex(path).Lock(t.Context())
		require.ErrorIs(t, err, zklock.ErrMismatch, "the delay stays when nobody holds")

		// An operator changes it by removing the record while nobody holds.
		waits := lockLater(t.Context(), func(ctx context.Context) (*zklock.Hold, error) {
			guard, err := ours.Mutex(path).Lock(ctx)
			if err == nil {
				defer guard.Unlock(ctx)
			}
			return ours.Mutex("/elsewhere").Lock(ctx)
		})
		<-waits.done
		require.NoError(t, waits.err)
		require.NoError(t, srv.DeleteNode(path+".zklock-delay"))
		unlockSoonAs(t, other, asMutex)
		_, err = delayed(t, srv, "late").Mutex(path).Lock(t.Context())
		require.ErrorIs(t, err, zklock.ErrMismatch)
		unlock(t, waits.hold)
	})
}

// A server that lags may show the delay of a record that was replaced; only the quorum's counts.
func TestALaggingServerMakesNobodyDisagreeAboutTheLockDelay(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		follower := 0
		if srv.Leader() == srv.Member(0) {
			follower = 1
		}
		old := delayedBy(t, srv, "old", time.Second)
		unlockSoonAs(t, old, asMutex)
		lagging := connectWith(t, srv, &zklock.Options{Label: "lagging", SessionTimeout: term, LockDelay: lockDelay}, follower)
		time.Sleep(time.Second)
		srv.Member(follower).Lag(time.Second)
		require.NoError(t, srv.DeleteNode(path+".zklock-delay"))
		require.NoError(t, srv.PutNode(path+".zklock-delay", []byte("zklock: delay 30s")))
		unlockSoonAs(t, lagging, asMutex)
	})
}

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

// A client without the right to make the record gets that error, and not that others disagree about the delay.
func TestARecordThatCannotBeMadeIsRefused(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpCreate && r.Path == path+".zklock-delay" {
				return zktest.Answer(zktest.CodeNoAuth)
			}
			return zktest.Pass
		})
		_, err := delayed(t, srv, "a").Mutex(path).Lock(t.Context())
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.NotErrorIs(t, err, zklock.ErrMismatch)
		require.Empty(t, queue(srv, path))
	})
}

// Whatever strikes any request of a holder, the next one is granted after the delay if the hold was lost, and at once if its
// release succeeded.
func TestNoFaultOfAHolderShortensTheLockDelay(t *testing.T) {
	t.Parallel()
	throughEveryFault(t, 8, func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
		gone := departures(srv)
		var ended sync.Map // nodes that have gone with their sessions
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
		return struck() && n < 20 // heartbeats go on for ever
	})
}

// Whatever strikes any request of the one that waits for the delay, neither it nor another is granted before that has passed.
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
						err = nil // the release goes on
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

// What a lock-delay costs those that have one, and that it costs nobody else anything: the numbers in docs/guarantees.md.
func TestWhatALockDelayCosts(t *testing.T) {
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

// A hand-off waits for a delete and an event, and with a lock-delay for two requests more: a read of the record, and a write.
func TestAHandOffWithALockDelayTakesTwoRoundTripsMore(t *testing.T) {
	const oneWay = 10 * time.Millisecond
	virtual(t, zktest.Options{Latency: fixed(oneWay)}, func(t *testing.T, srv *zktest.Server) {
		stays := inLine(t, srv, 6, time.Second, func(c *zklock.Client) lockFunc {
			return delayed(t, srv, "delayed").Mutex(path).Lock
		})
		for i := range stays[1:] {
			require.LessOrEqual(t, stays[i+1].from.Sub(stays[i].to), 6*oneWay+time.Millisecond)
		}
	})
}

// A process that is stopped in the middle of its work, and then writes what it had computed, spoils nothing if it was stopped
// for less than the delay: nobody has held meanwhile. Its stock is like that of the sale in compare.
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
					srv.Partition(name) // nothing of a stopped process reaches a server
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

// What a client remembers of a record is worth nothing on servers that were restored to an earlier state: the versions that
// it has seen come again, with other words.
func TestARestoredRecordIsReadAnew(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := delayed(t, srv, "a"), delayed(t, srv, "b")
		unlockSoonAs(t, a, asMutex)
		snap := srv.Dump()
		snap.Sessions = nil
		unlockSoonAs(t, a, asMutex) // and remembers the version of that
		srv.Restore(snap)
		_, err := b.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		for _, s := range srv.Sessions() {
			srv.ExpireSession(s.ID)
		}
		time.Sleep(3 * time.Second) // until all are back
		came := time.Now()
		_, err = b.Mutex(path).TryLock(t.Context()) // has the record say that the lock was lost: the same version again
		require.ErrorIs(t, err, zklock.ErrLocked)
		unlockSoonAs(t, a, asMutex)
		require.GreaterOrEqual(t, time.Since(came), lockDelay)
	})
}

// Those that have queued before a crash wait one after the other.
func TestAWaitOfOneThatStoodThereBeforeTheCrashCounts(t *testing.T) {
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
