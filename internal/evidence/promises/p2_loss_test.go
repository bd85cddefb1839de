// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/internal/testclock"
	"github.com/zklock-go/zklock/zktest"
)

// P2: one holder at a time, by the holders' view.

// lossCases are the ways to lose a lock while its holder is running. The holder uses member 2 of three, the contender the other
// members.
var lossCases = []struct {
	name   string
	strike func(srv *zktest.Server, h *zklock.Hold)
	atOnce bool // notified immediately
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

//zklock:promise P2.1 A1
func TestTheHoldEndsBeforeAnotherHolds(t *testing.T) {
	t.Parallel()
	mutexes := excluding[0]
	for _, timeout := range []time.Duration{4 * time.Second, 10 * time.Second, 40 * time.Second}[:3/oneIn(3)] {
		for _, pause := range []time.Duration{0, 100 * time.Millisecond, timeout / 3, 3 * timeout} {
			t.Run(fmt.Sprintf("%v/after %v", timeout, pause), func(t *testing.T) { mutexes.endsInTime(t, timeout, pause) })
		}
	}
}

// The same for every recipe. Recipes differ in the contenders and the number of nodes that they wait for.
//
//zklock:promise P2.1 P12.2 P13.3 A1
func TestEveryHoldEndsBeforeAnotherHolds(t *testing.T) {
	t.Parallel()
	for _, x := range excluding {
		for _, pause := range []time.Duration{100 * time.Millisecond, 3 * term}[:2/oneIn(2)] {
			t.Run(fmt.Sprintf("%s/after %v", x.name, pause), func(t *testing.T) { x.endsInTime(t, term, pause) })
		}
	}
}

// endsInTime loses the first contender's hold, in every possible way, while the second one waits.
func (x exclusion) endsInTime(t *testing.T, timeout, pause time.Duration) {
	for _, c := range lossCases {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				holder, contender := connect(t, srv, "holder", timeout, 2), connect(t, srv, "contender", timeout, 0, 1)
				hold, err := x.first(holder)(t.Context())
				require.NoError(t, err)
				end := endOf(hold)
				unlocked := make(chan error, 1)
				go func() { // ends after the hold; the other locks of a LockAll are held until then
					<-end.done
					unlocked <- hold.Unlock(context.Background())
				}()
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
				require.ErrorIs(t, <-unlocked, zklock.ErrLost)
				unlock(t, next.hold)
				noGhost(t, srv, path)
			})
		})
	}
}

//zklock:promise P2.7
func TestAHoldLastsThroughFaultsThatDoNotEndItsSession(t *testing.T) {
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
		{"a leader that lags", func(srv *zktest.Server) { srv.Leader().Lag(time.Second) }},
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

//zklock:promise P2.11 A2
func TestASuspendedMachineIsNoticedAtTheFirstCheck(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var asleep atomic.Int64
		ctx := testclock.With(t.Context(), func() time.Time { return time.Now().Add(time.Duration(asleep.Load())) })
		client, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
		require.NoError(t, err)
		defer client.Close()
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Check())
		asleep.Store(int64(time.Hour)) // the wall clock advanced, the monotonic clock did not
		require.ErrorIs(t, hold.Check(), zklock.ErrLost)
		require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrLost)
		require.ErrorContains(t, context.Cause(hold.Context()), "did not run for 1h0m", "the reason is not the servers")
		_, err = hold.Multi(&zk.CreateRequest{Path: "/x", Acl: zk.WorldACL(zk.PermAll)})
		require.ErrorIs(t, err, zklock.ErrLost)
	})
}

// The reason of a loss says whether the servers did not answer or the process did not run. A look at the clock that comes first, and
// the end of the context, give the same reason.
//
//zklock:promise P2.11 P8.1
func TestALossSaysWhetherTheProcessRan(t *testing.T) {
	for _, looks := range []bool{false, true} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			var asleep atomic.Int64
			ctx := testclock.With(t.Context(), func() time.Time { return time.Now().Add(time.Duration(asleep.Load())) })
			client, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom("a"), SessionTimeout: term})
			require.NoError(t, err)
			defer client.Close()
			hold := grantedSoon(t, client.Mutex(path).Lock)
			time.Sleep(time.Hour)
			srv.Partition("a")
			for looks && hold.Check() == nil {
				time.Sleep(time.Millisecond)
			}
			<-hold.Context().Done()
			require.ErrorContains(t, context.Cause(hold.Context()), "no quorum has answered")
			srv.HealClient("a")

			hold = grantedSoon(t, client.Mutex(path).Lock)
			time.Sleep(time.Hour)
			asleep.Store(int64(11 * time.Second))
			if looks {
				require.ErrorIs(t, hold.Check(), zklock.ErrLost)
			}
			<-hold.Context().Done()
			require.ErrorContains(t, context.Cause(hold.Context()), "this process did not run for 11")
		})
	}
}

// turnOfAStaleWaiter returns a hold and the attempt right behind it: client "waiter" has sent nothing for so long that its lease
// is old.
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

// A watch event is not evidence that our session is still alive at the leader.
//
//zklock:promise P2.4
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
		time.Sleep(term) // without a quorum's reply to a heartbeat
		unlock(t, second)
		time.Sleep(time.Second)
		require.False(t, third.returned(), "granted on an event alone")
		close(answer)
		<-third.done
		require.NoError(t, third.err)
		unlock(t, third.hold)
	})
}

//zklock:promise P2.4
func TestANodeThatIsGoneIsNotGranted(t *testing.T) {
	t.Parallel()
	for offset := time.Duration(0); offset < 3*time.Second; offset += time.Duration(oneIn(5)) * 25 * time.Millisecond {
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

//zklock:promise P2.3
func TestASessionReplacedWithoutAnEventEndsEveryHold(t *testing.T) {
	virtual(t, lab.With(zktest.Options{}, lab.Options{ForgetSessions: true}), func(t *testing.T, srv *zktest.Server) {
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
		time.Sleep(3 * term) // the forgotten session ends, and its nodes are deleted
		noGhost(t, srv, path)
	})
}

// An event that arrives together with the reply to the watch's request is not lost.
//
//zklock:promise P2.2 A8
func TestAnEventRightAfterTheReplyEndsTheHold(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client) // the first hold of a client is watched from its start
		for i := range 100 {
			lock := fmt.Sprint("/locks/", i)
			hold, err := client.Mutex(lock).Lock(t.Context())
			require.NoError(t, err)
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if r.Op == zktest.OpGetData && r.Path == hold.Node() {
					time.AfterFunc(0, func() { _ = srv.DeleteNode(hold.Node()) })
				}
				return zktest.Pass
			})
			time.Sleep(50 * time.Millisecond) // no heartbeat is due
			require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrLost)
		}
	})
}

// The outages last between one and ten minutes.
//
//zklock:promise P7.6
func TestAnOutageOfAnyLengthCostsNoWaiterItsPlace(t *testing.T) {
	lost := 0
	for i := range 20 {
		virtual(t, zktest.Options{Servers: 3}, func(t *testing.T, srv *zktest.Server) {
			front := connect(t, srv, "front", term)
			waiter := connect(t, srv, "waiter", term)
			_, err := front.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			second := lockLater(t.Context(), waiter.Mutex(path).Lock)
			synctest.Wait()
			before := queue(srv, path)
			for i := range 3 {
				srv.Member(i).Stop()
			}
			time.Sleep(2 * time.Second)
			srv.Member(0).Start() // without a quorum, a server accepts connections and closes them
			time.Sleep(time.Minute + time.Duration(i)*28137*time.Millisecond)
			srv.Member(1).Start()
			time.Sleep(4 * term)
			require.True(t, second.returned())
			require.NoError(t, second.err)
			kept := false
			for _, name := range before {
				kept = kept || path+"/"+name == second.hold.Node()
			}
			if !kept {
				lost++
			}
			unlock(t, second.hold)
		})
	}
	require.Zero(t, lost)
}
