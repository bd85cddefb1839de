package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	"github.com/zklock-go/zklock/internal/wall"
	"github.com/zklock-go/zklock/zktest"
)

const (
	path = "/locks/orders/42"
	term = 10 * time.Second
)

var three = zktest.Options{Servers: 3}

// P1

func TestOnlyOneHoldsAmongGoroutinesInstancesAndClients(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var inside, most, grants atomic.Int32
		var wg sync.WaitGroup
		for c := range 4 {
			client := connect(t, srv, fmt.Sprint("c", c), term)
			for range 5 {
				wg.Go(func() {
					for range 3 {
						err := client.Mutex(path).Do(t.Context(), func(context.Context) error {
							most.Store(max(most.Load(), inside.Add(1)))
							time.Sleep(time.Millisecond)
							inside.Add(-1)
							grants.Add(1)
							return nil
						})
						require.NoError(t, err)
					}
				})
			}
		}
		wg.Wait()
		require.EqualValues(t, 1, most.Load())
		require.EqualValues(t, 60, grants.Load())
		noGhost(t, srv, path)
	})
}

func TestForeignNodesHarmNobody(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		for _, name := range []string{
			"_c_short", "_c_", "lock-", "config", "-lock-", "_c_x-lock-", "_c_x-lock-12", "_c_x-lock-99999999999",
			"_c_x-lock-00000000-1", "__lock__", "lock-abc", "_c_x-lock-00000000000000000000000000", "READ", "x__lock__-",
		} {
			require.NoError(t, srv.PutNode(path+"/"+name, nil))
		}
		hold, err := connect(t, srv, "a", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		unlock(t, hold)
	})
}

func TestNodesOfOtherClientsAreHonoured(t *testing.T) {
	for _, name := range []string{
		"_c_0123456789abcdef0123456789abcdef-lock-0000000000", "_c_3f0a9bd4-1f34-4c1a-8ce4-93e2a1c0f0aa-lock-0000000000",
		"lock-0000000000", "0123456789abcdef0123456789abcdef__lock__0000000000", "_c_3f0a9bd4-1f34-4c1a-8ce4-93e2a1c0f0aa-__WRIT__0000000000",
		"_c_3f0a9bd4-1f34-4c1a-8ce4-93e2a1c0f0aa-__READ__0000000000", "0123456789abcdef0123456789abcdef__rlock__0000000000",
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.PutNode(path+"/"+name, nil))
				a := lockLater(t.Context(), connect(t, srv, "a", term).Mutex(path).Lock)
				time.Sleep(time.Minute)
				require.False(t, a.returned())
				require.NoError(t, srv.DeleteNode(path+"/"+name))
				<-a.done
				require.NoError(t, a.err)
				unlock(t, a.hold)
			})
		})
	}
}

func TestAnExhaustedCounterKeepsOrderAndExclusion(t *testing.T) {
	for _, wrap := range []bool{false, true} {
		t.Run(fmt.Sprintf("wrap=%v", wrap), func(t *testing.T) {
			virtual(t, zktest.Options{WrapCounter: wrap}, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.PutNode(path, nil))
				srv.SetChildCounter(path, math.MaxInt32-8)
				clients := []*zklock.Client{connect(t, srv, "a", term), connect(t, srv, "b", term), connect(t, srv, "c", term)}
				var inside atomic.Int32
				var wg sync.WaitGroup
				var mu sync.Mutex
				var order []int
				last := int64(0)
				for i := range 100 {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * time.Millisecond)
						hold, err := clients[i%3].Mutex(path).Lock(t.Context())
						require.NoError(t, err)
						require.EqualValues(t, 1, inside.Add(1))
						time.Sleep(time.Second)
						mu.Lock()
						order = append(order, i)
						require.Greater(t, hold.Token(), last)
						last = hold.Token()
						mu.Unlock()
						inside.Add(-1)
						unlock(t, hold)
					})
				}
				wg.Wait()
				for i := range order {
					require.Equal(t, i, order[i])
				}
				noGhost(t, srv, path)
			})
		})
	}
}

// P2

// lossCases are the ways to lose a lock while its holder runs. Each holds on member 2
// of three, with the contender on the others.
var lossCases = []struct {
	name   string
	strike func(srv *zktest.Server, h *zklock.Hold)
	atOnce bool // told at the moment that it happens
}{
	{"the holder's follower is cut off from its leader", func(srv *zktest.Server, _ *zklock.Hold) { srv.Member(2).CutOff() }, false},
	{"the holder is cut off", func(srv *zktest.Server, _ *zklock.Hold) { srv.Partition("holder") }, false},
	{"the holder's server is frozen", func(srv *zktest.Server, _ *zklock.Hold) { srv.Member(2).Freeze() }, false},
	{"the holder's server is gone", func(srv *zktest.Server, _ *zklock.Hold) { srv.Member(2).Stop() }, false},
	{"the holder is cut off and the leader replaced", func(srv *zktest.Server, _ *zklock.Hold) {
		srv.Partition("holder")
		time.Sleep(time.Second)
		srv.ElectLeader(1)
	}, false},
	{"the holder's server is a leader that is cut off and does not hear of the next", func(srv *zktest.Server, _ *zklock.Hold) {
		srv.ElectLeader(2)
		time.Sleep(time.Second)
		srv.Member(2).CutOff()
		srv.ElectLeader(1)
	}, false},
	{"somebody deletes the node", func(srv *zktest.Server, h *zklock.Hold) { srv.DeleteNode(h.Node()) }, true},
	{"an operator ends the session", func(srv *zktest.Server, h *zklock.Hold) {
		node, _ := srv.Node(h.Node())
		srv.ExpireSession(node.EphemeralOwner)
	}, true},
}

func TestTheHoldEndsBeforeAnyoneElseHolds(t *testing.T) {
	mutexes := excluding[0]
	for _, timeout := range []time.Duration{4 * time.Second, 10 * time.Second, 40 * time.Second} {
		for _, pause := range []time.Duration{0, 100 * time.Millisecond, timeout / 3, 3 * timeout} {
			t.Run(fmt.Sprintf("%v/after %v", timeout, pause), func(t *testing.T) { mutexes.endsInTime(t, timeout, pause) })
		}
	}
}

// The same for every recipe: what differs is who waits for whom and on how many nodes.
func TestEveryHoldEndsBeforeAnyoneElseHolds(t *testing.T) {
	for _, x := range excluding {
		for _, pause := range []time.Duration{100 * time.Millisecond, 3 * term} {
			t.Run(fmt.Sprintf("%s/after %v", x.name, pause), func(t *testing.T) { x.endsInTime(t, term, pause) })
		}
	}
}

// endsInTime has the first lose what it holds, in every way there is, while the second waits.
func (x exclusion) endsInTime(t *testing.T, timeout, pause time.Duration) {
	for _, c := range lossCases {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				holder, contender := connect(t, srv, "holder", timeout, 2), connect(t, srv, "contender", timeout, 0, 1)
				hold, err := x.first(holder)(t.Context())
				require.NoError(t, err)
				end := endOf(hold)
				next := lockLater(t.Context(), x.second(contender))
				time.Sleep(pause)
				require.NoError(t, hold.Check())
				if c.atOnce {
					time.Sleep(time.Second)
				}
				c.strike(srv, hold)
				<-next.done
				require.NoError(t, next.err)
				synctest.Wait()
				require.Error(t, hold.Check())
				<-end.done
				require.ErrorIs(t, end.cause, zklock.ErrLost)
				if c.atOnce {
					require.False(t, end.at.After(next.at), "told at %v, next holder at %v", end.at, next.at)
				} else {
					require.True(t, end.at.Before(next.at), "told at %v, next holder at %v", end.at, next.at)
				}
				require.Greater(t, next.hold.Token(), hold.Token())
				require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrLost)
				unlock(t, next.hold)
				noGhost(t, srv, path)
			})
		})
	}
}

func TestAHoldLastsThroughWhatDoesNotEndItsSession(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(srv *zktest.Server)
	}{
		{"nothing", func(*zktest.Server) {}},
		{"dropped connections", func(srv *zktest.Server) { srv.DropConnections() }},
		{"a short partition", func(srv *zktest.Server) {
			srv.Partition("holder")
			time.Sleep(term / 5)
			srv.HealClient("holder")
		}},
		{"a restart", func(srv *zktest.Server) { srv.Restart() }},
		{"a new leader", func(srv *zktest.Server) { srv.ElectLeader(1) }},
		{"a follower that lags", func(srv *zktest.Server) { srv.Member(2).Lag(time.Second) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				hold, err := connect(t, srv, "holder", term).Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				for range 10 {
					time.Sleep(3 * term)
					c.fault(srv)
				}
				time.Sleep(3 * term)
				require.NoError(t, hold.Check())
				require.NoError(t, hold.Confirm(t.Context()))
				unlock(t, hold)
			})
		})
	}
}

func TestASuspendedMachineIsNoticedAtTheFirstCheck(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var asleep atomic.Int64
		ctx := wall.With(t.Context(), func() time.Time { return time.Now().Add(time.Duration(asleep.Load())) })
		client, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
		require.NoError(t, err)
		defer client.Close()
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Check())
		asleep.Store(int64(time.Hour)) // the wall clock went on, the monotonic one did not
		require.ErrorIs(t, hold.Check(), zklock.ErrLost)
		require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrLost)
		_, err = hold.Multi(&zk.CreateRequest{Path: "/x", Acl: zk.WorldACL(zk.PermAll)})
		require.ErrorIs(t, err, zklock.ErrLost)
	})
}

// turnOfAStaleWaiter returns a hold and who comes right after it: client "waiter", which has sent nothing for so long that
// what it knows of its session is old.
func turnOfAStaleWaiter(t *testing.T, srv *zktest.Server) (*zklock.Hold, *attempt) {
	front, waiter := connect(t, srv, "front", term), connect(t, srv, "waiter", term)
	first, err := front.Mutex(path).Lock(t.Context())
	require.NoError(t, err)
	second := lockLater(t.Context(), front.Mutex(path).Lock)
	time.Sleep(time.Second)
	third := lockLater(t.Context(), waiter.Mutex(path).Lock)
	time.Sleep(3 * term) // it is not next in line
	unlock(t, first)
	<-second.done
	require.NoError(t, second.err)
	return second.hold, third
}

// A watch event is no evidence that our session still lives at the leader.
func TestAGrantOnStaleEvidenceIsConfirmedByTheQuorum(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		second, third := turnOfAStaleWaiter(t, srv)
		answer := make(chan struct{})
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "waiter" && r.Op == zktest.OpMulti {
				return zktest.Hold(answer)
			}
			return zktest.Pass
		})
		time.Sleep(term) // without the quorum's answer to a heartbeat
		unlock(t, second)
		time.Sleep(time.Second)
		require.False(t, third.returned(), "granted on an event alone")
		close(answer)
		<-third.done
		require.NoError(t, third.err)
		unlock(t, third.hold)
	})
}

func TestANodeThatIsGoneIsNotGranted(t *testing.T) {
	for offset := time.Duration(0); offset < 3*time.Second; offset += 25 * time.Millisecond {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			second, third := turnOfAStaleWaiter(t, srv)
			struck := false
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if r.Client == "waiter" && r.Op == zktest.OpMulti && !struck {
					struck = true
					return zktest.LoseReply
				}
				return zktest.Pass
			})
			unlock(t, second)
			time.Sleep(offset)
			if left := queue(srv, path); !third.returned() && len(left) == 1 {
				require.NoError(t, srv.DeleteNode(path+"/"+left[0]))
			}
			<-third.done
			require.NoError(t, third.err)
			_, there := srv.Node(third.hold.Node())
			require.True(t, there, "deleted %v after its turn came, granted all the same", offset)
			unlock(t, third.hold)
		})
	}
}

// P3

func TestTokensGrowWithEveryGrant(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		last := int64(0)
		for i := range 50 {
			client := []*zklock.Client{a, b}[i%2]
			hold, err := client.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			require.Greater(t, hold.Token(), last)
			last = hold.Token()
			unlock(t, hold)
			if i%10 == 9 { // the directory and its counter start anew
				require.NoError(t, srv.DeleteNode(path))
			}
		}
	})
}

func TestATransactionWithTheGuardCommitsOnlyWhileHeld(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/account", []byte("0")))
		client := connect(t, srv, "a", term)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		answers, err := hold.Multi(&zk.SetDataRequest{Path: "/account", Data: []byte("1"), Version: -1})
		require.NoError(t, err)
		require.Len(t, answers, 1)
		require.NotNil(t, answers[0].Stat)
		_, err = hold.Multi(&zk.SetDataRequest{Path: "/account", Data: []byte("2"), Version: 77})
		require.ErrorIs(t, err, zk.ErrBadVersion)
		require.NoError(t, hold.Check())

		conn := rawClient(t, srv, term)
		guard := hold.Guard()
		require.NoError(t, srv.DeleteNode(hold.Node()))
		_, err = conn.Multi(append(guard, &zk.SetDataRequest{Path: "/account", Data: []byte("3"), Version: -1})...)
		require.ErrorIs(t, err, zk.ErrNoNode)
		_, err = hold.Multi(&zk.SetDataRequest{Path: "/account", Data: []byte("4"), Version: -1})
		require.ErrorIs(t, err, zklock.ErrLost)
		account, _ := srv.Node("/account")
		require.Equal(t, "1", string(account.Data))
	})
}

func TestAGuardedTransactionWhoseAnswerIsLostIsUncertain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "a", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpMulti {
				return zktest.LoseReply
			}
			return zktest.Pass
		})
		_, err = hold.Multi(&zk.CreateRequest{Path: "/x", Acl: zk.WorldACL(zk.PermAll)})
		remove()
		require.ErrorIs(t, err, zklock.ErrUncertain)
		_, there := srv.Node("/x")
		require.True(t, there)
		unlock(t, hold)
	})
}

// P4

func TestGrantsFollowTheOrderOfArrival(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		var clients []*zklock.Client
		for i := range 5 {
			clients = append(clients, connect(t, srv, fmt.Sprint("c", i), term))
		}
		first, err := clients[0].Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 50 {
			time.Sleep(10 * time.Millisecond)
			wg.Go(func() {
				hold, err := clients[i%5].Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				unlock(t, hold)
			})
		}
		time.Sleep(time.Second)
		unlock(t, first)
		wg.Wait()
		for i := range order {
			require.Equal(t, i, order[i])
		}
	})
}

func TestANoteOfAnEarlierHolderGrantsNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		m := connect(t, srv, "a", term).Mutex(path)
		line := func(ctxs ...context.Context) (all []*attempt) {
			for _, ctx := range ctxs {
				all = append(all, lockLater(ctx, m.Lock))
				time.Sleep(time.Second)
			}
			return all
		}
		for _, a := range line(t.Context(), t.Context(), t.Context(), t.Context()) {
			<-a.done
			unlock(t, a.hold)
		}
		dir, _ := srv.Node(path)
		require.Contains(t, string(dir.Data), "last held by")

		ctx, giveUp := context.WithCancel(t.Context())
		all := line(t.Context(), ctx, t.Context())
		giveUp()
		time.Sleep(time.Second)
		require.False(t, all[2].returned(), "the first still holds")
		unlock(t, all[0].hold)
		<-all[2].done
		unlock(t, all[2].hold)
	})
}

// The data of a directory may be somebody's.
func TestANoteIsNeverWrittenOverForeignData(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(path, []byte("mine")))
		m := connect(t, srv, "a", term).Mutex(path)
		var all []*attempt
		for range 5 {
			all = append(all, lockLater(t.Context(), m.Lock))
			time.Sleep(time.Second)
		}
		for _, a := range all {
			<-a.done
			unlock(t, a.hold)
		}
		dir, _ := srv.Node(path)
		require.Equal(t, "mine", string(dir.Data))
	})
}

// P5

func TestALostCreateReplyLeavesNoGhostWhenTheCallerGivesUp(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client) // the directory exists
		remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpCreate {
				srv.Member(0).Refuse(true) // nor can anybody look what became of it
				return zktest.LoseReply
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := client.Mutex(path).Lock(ctx)
		remove()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, queue(srv, path), 1, "the create was applied")
		srv.Member(0).Refuse(false)
		time.Sleep(2 * time.Second)
		require.Empty(t, queue(srv, path))
		unlockSoon(t, client)
	})
}

func unlockSoon(t *testing.T, client *zklock.Client) {
	t.Helper()
	hold, err := client.Mutex(path).Lock(t.Context())
	require.NoError(t, err)
	unlock(t, hold)
}

func TestACreateThatRanOnALaterSessionIsUndone(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", 4*time.Second)
		unlockSoon(t, client)
		hold, err := client.Mutex("/locks/other").Lock(t.Context())
		require.NoError(t, err)
		srv.Partition("a")
		a := lockLater(t.Context(), client.Mutex(path).Lock)
		time.Sleep(20 * time.Second) // the session has ended
		srv.HealClient("a")
		<-a.done
		require.NoError(t, a.err)
		require.ErrorIs(t, hold.Check(), zklock.ErrLost)
		require.NoError(t, a.hold.Confirm(t.Context()))
		require.Len(t, queue(srv, path), 1)
		unlock(t, a.hold)
		noGhost(t, srv, path)
	})
}

func TestASessionReplacedWithoutAnEventEndsEveryHold(t *testing.T) {
	virtual(t, zktest.Options{ForgetSessions: true}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		waiting := lockLater(t.Context(), client.Mutex(path).Lock)
		time.Sleep(time.Second)
		srv.DropConnections()
		time.Sleep(time.Second)
		require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrLost)
		<-waiting.done
		require.NoError(t, waiting.err)
		require.NoError(t, waiting.hold.Confirm(t.Context()))
		unlock(t, waiting.hold)
		time.Sleep(3 * term) // the forgotten session ends with what it owned
		noGhost(t, srv, path)
	})
}

// faults are what may happen at any single request.
var faults = []struct {
	name    string
	verdict faultVerdict
}{
	{"the caller gives up before it is processed", func(_ *zktest.Server, _ *zktest.Request, cancel func()) zktest.Verdict {
		cancel()
		return zktest.Delay(time.Second)
	}},
	{"the caller gives up and the reply is lost", func(_ *zktest.Server, _ *zktest.Request, cancel func()) zktest.Verdict {
		cancel()
		return zktest.LoseReply
	}},
	{"the reply is lost", func(*zktest.Server, *zktest.Request, func()) zktest.Verdict { return zktest.LoseReply }},
	{"the request is lost", func(*zktest.Server, *zktest.Request, func()) zktest.Verdict { return zktest.DropBefore }},
	{"there is no reply", func(*zktest.Server, *zktest.Request, func()) zktest.Verdict { return zktest.DropReply }},
	{"the session ends before", func(srv *zktest.Server, r *zktest.Request, _ func()) zktest.Verdict {
		srv.ExpireSession(r.Session)
		return zktest.Pass
	}},
	{"the server calls it throttled", func(*zktest.Server, *zktest.Request, func()) zktest.Verdict { return zktest.Answer(-127) }},
}

// TestNothingBreaksAtAnySingleRequest strikes once, at the n-th request of a client that
// waits for another, holds and releases, for every n and every fault.
func TestNothingBreaksAtAnySingleRequest(t *testing.T) {
	for _, pair := range excluding {
		t.Run(pair.name, func(t *testing.T) { throughEveryFault(t, 3, pair.strikeAt) })
	}
}

// faultVerdict does what a fault does to one request; cancel is the caller giving up.
type faultVerdict func(srv *zktest.Server, r *zktest.Request, cancel func()) zktest.Verdict

// throughEveryFault has strike play a scenario in which the n-th request is struck, for every fault and every n until it
// says that there was none; there must be more than least.
func throughEveryFault(t *testing.T, least int, strike func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			for n, struck := 0, true; struck; n++ {
				t.Run(fmt.Sprint("request ", n), func(t *testing.T) {
					virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) { struck = strike(t, srv, n, f.verdict) })
				})
				require.False(t, t.Failed(), "request %d", n)
				require.True(t, struck || n > least, "too few requests were struck")
			}
		})
	}
}

// way is one of the ways to take the lock at path.
type way func(c *zklock.Client) func(context.Context) (*zklock.Hold, error)

var (
	asMutex  way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Mutex(path).Lock }
	asWriter way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.RWMutex(path).Lock }
	asReader way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.RWMutex(path).RLock }
	forTwo   way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return c.Semaphore(path, 3).Permits(2).Lock
	}
)

// exclusion is two ways that wait for each other.
type exclusion struct {
	name          string
	first, second way
}

var excluding = []exclusion{
	{"a mutex", asMutex, asMutex},
	{"a writer after a writer", asWriter, asWriter},
	{"a writer after a reader", asReader, asWriter},
	{"a reader after a writer", asWriter, asReader},
	{"a mutex after a reader", asReader, asMutex},
	{"two permits of three", forTwo, forTwo},
}

func (x exclusion) strikeAt(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
	other := connect(t, srv, "other", term)
	held, err := x.first(other)(t.Context())
	require.NoError(t, err)
	victim := connect(t, srv, "victim", term)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen atomic.Int32
	struck := false
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if r.Client != "victim" || r.Op == zktest.OpPing || int(seen.Add(1)) != n+1 {
			return zktest.Pass
		}
		struck = true
		return verdict(srv, r, cancel)
	})
	a := lockLater(ctx, x.second(victim))
	time.Sleep(2 * time.Second)
	require.False(t, a.returned() && a.err == nil, "two holders")
	unlock(t, held)
	<-a.done
	if a.err != nil {
		require.ErrorIs(t, a.err, context.Canceled)
		require.Nil(t, a.hold)
	} else {
		time.Sleep(time.Second) // time for the watch on the own node
		if err := a.hold.Unlock(t.Context()); err != nil {
			require.ErrorIs(t, err, zklock.ErrLost)
		}
	}
	noGhost(t, srv, path)
	unlockSoon(t, other)
	require.LessOrEqual(t, srv.WatchCount(), 0, "watches left: %v", srv.Watches())
	return struck
}

// TestAttemptsBreakAtNoSingleRequest is the same for those who do not wait: one gets its lock or an answer, and leaves nothing.
func TestAttemptsBreakAtNoSingleRequest(t *testing.T) {
	for name, try := range map[string]way{
		"mutex":  func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Mutex(path).TryLock },
		"writer": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.RWMutex(path).TryLock },
		"reader": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.RWMutex(path).TryRLock },
		"permits": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
			return func(ctx context.Context) (*zklock.Hold, error) { return c.Semaphore(path, 3).TryAcquire(ctx, 2) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			throughEveryFault(t, 2, func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
				victim := connect(t, srv, "victim", term)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				struck := strikeOnce(srv, "victim", n, func(r *zktest.Request) zktest.Verdict { return verdict(srv, r, cancel) })
				hold, err := try(victim)(ctx)
				if err != nil {
					require.True(t, errors.Is(err, zklock.ErrNotConnected) || errors.Is(err, context.Canceled), "%v", err)
				} else if err := hold.Unlock(t.Context()); err != nil {
					require.ErrorIs(t, err, zklock.ErrLost)
				}
				noGhost(t, srv, path)
				require.Zero(t, srv.WatchCount(), "watches left: %v", srv.Watches())
				return struck()
			})
		})
	}
}

// P6

func TestTenThousandCyclesLeaveNothingBehind(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		clients := []*zklock.Client{connect(t, srv, "a", term), connect(t, srv, "b", term)}
		cycle := func(workers, n int) {
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for range n {
						hold, err := clients[w%2].Mutex(path).Lock(t.Context())
						require.NoError(t, err)
						unlock(t, hold)
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		cycle(4, 10)
		before := goroutines()
		cycle(4, 2500)
		require.Zero(t, srv.WatchCount())
		require.Less(t, goroutines(), before+10, "the process's few others aside") // a leak would leave thousands
		require.Empty(t, queue(srv, path))
	})
}

func TestAttemptsGivenUpShareOneWatch(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "holder", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Equal(t, 1, srv.WatchCount(), "the holder's own")
		client := connect(t, srv, "a", term)
		for range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			_, err := client.Mutex(path).Lock(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		time.Sleep(time.Second)
		require.Equal(t, 2, srv.WatchCount(), "%v", srv.Watches())
		unlock(t, hold)
		time.Sleep(time.Second)
		require.Zero(t, srv.WatchCount())
	})
}

// P7

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
			if r.Op == zktest.OpCreate && struck < 3 { // gone when the create arrives
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

// P8

func TestBadInputIsRefusedBeforeAnyRequest(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		before := srv.RequestCount()
		for _, bad := range []string{"", "/", "x", "/x/", "//", "/x//y", "/./x", "/x/..", "/x/../y", "/a\x00b", "/a\tb", "/\xff", "/🔒"} {
			_, err := client.Mutex(bad).Lock(t.Context())
			require.ErrorIs(t, err, zklock.ErrInvalid, "%q", bad)
			_, err = client.Mutex(bad).TryLock(t.Context())
			require.ErrorIs(t, err, zklock.ErrInvalid, "%q", bad)
		}
		require.Equal(t, before, srv.RequestCount())
		for _, bad := range []zklock.Options{
			{SessionTimeout: -1}, {SessionTimeout: time.Microsecond}, {SessionTimeout: 1000 * 24 * time.Hour}, {TickTime: -1},
			{ACL: []zk.ACL{}}, {Root: "x"}, {Root: "/x/"}, {Label: string(make([]byte, 2000))},
		} {
			_, err := zklock.Connect(t.Context(), srv.Addrs(), &bad)
			require.ErrorIs(t, err, zklock.ErrInvalid, "%+v", bad)
		}
		_, err := zklock.Connect(t.Context(), nil, nil)
		require.ErrorIs(t, err, zklock.ErrInvalid)
		_, err = zklock.Attach(t.Context(), nil, nil, nil)
		require.ErrorIs(t, err, zklock.ErrInvalid)
	})
}

func TestErrorsNameWhatWasDoneAndWhatWentWrong(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		srv.Member(0).Stop()
		time.Sleep(time.Second)
		because := errors.New("shop is closing")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, because)
		defer cancel()
		_, err := client.Mutex(path).Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, because)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, "last trouble")
		_, err = client.Mutex(path).TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrNotConnected)
		ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "last trouble")
	})
}

func TestUnlockIsExact(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, path, hold.Path())
		_, there := srv.Node(hold.Node())
		require.True(t, there)
		unlock(t, hold)
		require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrReleased)
		require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrNotHeld)
		require.ErrorIs(t, hold.Check(), zklock.ErrReleased)

		hold, err = client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpDelete {
				return zktest.Delay(time.Second)
			}
			return zktest.Pass
		})
		require.ErrorIs(t, hold.Unlock(cancelled), context.Canceled)
		require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrNotHeld)
		noGhost(t, srv, path)
	})
}

func TestLockingInsideOnesOwnHoldIsADeadlock(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		err := client.Mutex(path).Do(t.Context(), func(ctx context.Context) error {
			return client.Mutex("/locks/other").Do(ctx, func(ctx context.Context) error {
				_, err := client.Mutex(path).Lock(ctx)
				require.ErrorIs(t, err, zklock.ErrDeadlock)
				_, err = client.Mutex(path).TryLock(ctx)
				require.ErrorIs(t, err, zklock.ErrDeadlock)
				return nil
			})
		})
		require.NoError(t, err)
		noGhost(t, srv, path)
	})
}

func TestDoReleasesWhateverHappens(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		m := connect(t, srv, "a", term).Mutex(path)
		failed := errors.New("failed")
		require.ErrorIs(t, m.Do(t.Context(), func(context.Context) error { return failed }), failed)
		require.Empty(t, queue(srv, path))
		require.PanicsWithValue(t, "boom", func() { m.Do(t.Context(), func(context.Context) error { panic("boom") }) })
		require.Empty(t, queue(srv, path))
		ctx, cancel := context.WithCancel(t.Context())
		err := m.Do(ctx, func(inside context.Context) error {
			cancel()
			<-inside.Done()
			return inside.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, queue(srv, path))
		err = m.Do(t.Context(), func(inside context.Context) error {
			time.Sleep(time.Second)
			srv.DeleteNode(path + "/" + queue(srv, path)[0])
			<-inside.Done()
			return context.Cause(inside)
		})
		require.ErrorIs(t, err, zklock.ErrLost)
	})
}

func TestTryLockAnswersAtOnceAndLeavesNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		hold, err := a.Mutex(path).TryLock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		srv.ResetCounts()
		start := time.Now()
		_, err = b.Mutex(path).TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		require.Equal(t, start, time.Now())
		require.Zero(t, srv.Requests()[zktest.OpCreate], "it writes only where it sees nobody")
		unlock(t, hold)
		hold, err = b.Mutex(path).TryLock(t.Context())
		require.NoError(t, err)
		unlock(t, hold)

		var wins, losses atomic.Int32
		var wg sync.WaitGroup
		for range 20 { // all look, see nobody and race
			wg.Go(func() {
				hold, err := a.Mutex(path).TryLock(t.Context())
				switch {
				case err == nil:
					wins.Add(1)
					time.Sleep(time.Second)
					unlock(t, hold)
				case errors.Is(err, zklock.ErrLocked):
					losses.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, wins.Load())
		require.EqualValues(t, 19, losses.Load())
		require.Empty(t, queue(srv, path))
	})
}

// Close

func TestCloseReleasesEverythingAndLeavesNoGoroutine(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		waiting := lockLater(t.Context(), client.Mutex(path).Lock)
		next := lockLater(t.Context(), other.Mutex(path).Lock)
		time.Sleep(time.Second)
		start := time.Now()
		require.NoError(t, client.Close())
		require.Less(t, time.Since(start), 100*time.Millisecond)
		require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrClosed)
		<-waiting.done
		require.ErrorIs(t, waiting.err, zklock.ErrClosed)
		<-next.done
		require.NoError(t, next.err)
		unlock(t, next.hold)
		_, err = client.Mutex(path).Lock(t.Context())
		require.ErrorIs(t, err, zklock.ErrClosed)
		require.NoError(t, client.Close())
		require.Len(t, srv.Sessions(), 1)
	})
}

func TestCloseEndsWhenNoServerAnswers(t *testing.T) {
	for name, fault := range map[string]func(*zktest.Server){
		"partitioned": func(srv *zktest.Server) { srv.Partition("a") },
		"frozen":      func(srv *zktest.Server) { srv.Member(0).Freeze() },
		"stopped":     func(srv *zktest.Server) { srv.Member(0).Stop() },
		"refusing":    func(srv *zktest.Server) { srv.Member(0).Refuse(true); srv.DropConnections() },
	} {
		for _, after := range []time.Duration{0, time.Second, 3 * term} {
			t.Run(fmt.Sprint(name, " after ", after), func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					client := connect(t, srv, "a", term)
					_, err := client.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					waiting := lockLater(t.Context(), client.Mutex(path).Lock)
					synctest.Wait()
					fault(srv)
					time.Sleep(after)
					start := time.Now()
					client.Close()
					require.LessOrEqual(t, time.Since(start), 10*time.Second)
					<-waiting.done
					require.ErrorIs(t, waiting.err, zklock.ErrClosed)
				})
			})
		}
	}
}
