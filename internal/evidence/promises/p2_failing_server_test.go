// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// No hold is lost when a follower freezes, crashes or loses its leader, as long as another server and a quorum with a leader are
// available. At least a fifth of the timeout remains, in which a program can finish its work.
//
//zklock:promise P2.7
func TestAFollowerThatFailsCostsNoHold(t *testing.T) {
	const tick = 2 * time.Second
	fails := map[string]func(m *zktest.Member){
		"frozen":  (*zktest.Member).Freeze,
		"killed":  (*zktest.Member).Stop,
		"cut off": (*zktest.Member).CutOff,
	}
	for name, fail := range fails {
		for _, session := range []time.Duration{2 * tick, 3 * tick, 10 * time.Second, 30 * time.Second} {
			for phase := 0; phase < 8; phase += oneIn(4) {
				t.Run(fmt.Sprint(name, session, phase), func(t *testing.T) {
					virtual(t, zktest.Options{Servers: 3, TickTime: tick, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
						leader := leaderIs(srv, 3)
						follower, other := (leader+1)%3, (leader+2)%3
						c := connect(t, srv, "a", session, follower, other)
						hold, err := c.Mutex(path).Lock(t.Context())
						require.NoError(t, err)
						waiter := lockLater(t.Context(), connect(t, srv, "b", session, other, follower).Mutex(path).Lock)
						time.Sleep(2*session + time.Duration(phase)*session/16)
						for _, i := range []int{follower, other} {
							m := srv.Member(i)
							fail(m)
							require.GreaterOrEqual(t, lowest(hold, 3*session), session/5, "member %d", i)
							require.NoError(t, hold.Check(), "member %d", i)
							if name == "killed" {
								m.Start()
							} else {
								m.Thaw()
								m.Rejoin()
							}
							time.Sleep(3 * session)
						}
						require.GreaterOrEqual(t, lowest(hold, session), session*4/10)
						unlock(t, hold)
						<-waiter.done
						require.NoError(t, waiter.err)
						unlock(t, waiter.hold)
					})
				})
			}
		}
	}
}

// A leader that is killed is replaced as soon as its followers notice. If it freezes or is cut off, they wait for it for syncLimit
// ticks. Meanwhile there is no quorum, wherever a client is connected. Each hold ends, and the next client gets the lock once there is a
// leader again, unless the session timeout is so long that 0.4 of it outlasts these ticks, the election and a reconnect.
//
//zklock:promise P2.7
func TestAHoldOutlivesALeaderThatIsKilledAndWithALongTimeoutOneThatFreezesOrIsCutOff(t *testing.T) {
	const tick, syncLimit, election = 2 * time.Second, 5, 300 * time.Millisecond
	for name, c := range map[string]struct {
		fail  func(m *zktest.Member)
		after time.Duration // until another leader is elected
	}{
		"killed":  {(*zktest.Member).Stop, election},
		"frozen":  {(*zktest.Member).Freeze, syncLimit*tick + election},
		"cut off": {(*zktest.Member).CutOff, syncLimit*tick + election},
	} {
		for _, session := range []time.Duration{4 * time.Second, 6 * time.Second, 10 * time.Second, 30 * time.Second} {
			kept := c.after < session*4/10
			for phase := 0; phase < 8; phase += oneIn(4) {
				t.Run(fmt.Sprint(name, session, phase), func(t *testing.T) {
					virtual(t, zktest.Options{Servers: 3, TickTime: tick, SyncLimit: syncLimit, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
						leader := leaderIs(srv, 3)
						follower := (leader + 1) % 3
						var holds []*zklock.Hold
						for i := range 3 {
							c := connect(t, srv, fmt.Sprint("client of ", i), session, i, (i+1)%3, (i+2)%3)
							hold, err := c.Mutex(fmt.Sprint(path, i)).Lock(t.Context())
							require.NoError(t, err)
							holds = append(holds, hold)
						}
						time.Sleep(2*session + time.Duration(phase)*session/32) // heartbeats are at most a quarter of the timeout apart
						c.fail(srv.Member(leader))
						time.AfterFunc(c.after, func() { srv.ElectLeader(follower) })
						time.Sleep(session)
						for i, hold := range holds {
							if kept {
								require.NoError(t, hold.Check(), "client %d", i)
								continue
							}
							require.ErrorIs(t, hold.Check(), zklock.ErrLost, "client %d", i)
							next := lockLater(t.Context(), connect(t, srv, fmt.Sprint("next", i), session, follower).Mutex(fmt.Sprint(path, i)).Lock)
							<-next.done
							require.NoError(t, next.err)
							unlock(t, next.hold)
						}
					})
				})
			}
		}
	}
}

// No server serves for 0.3 T, for example because a leader is elected, and one of three stays away. A hold outlives that.
//
//zklock:promise P2.7
func TestAHoldOutlivesServersThatServeAgainInTime(t *testing.T) {
	for _, session := range []time.Duration{2 * time.Second, 3 * time.Second, 10 * time.Second} {
		for phase := 0; phase < 32; phase += oneIn(2) {
			t.Run(fmt.Sprint(session, phase), func(t *testing.T) {
				virtual(t, zktest.Options{Servers: 3, TickTime: time.Second, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
					leader := leaderIs(srv, 3)
					var holds []*zklock.Hold
					for i := range 3 {
						c := connect(t, srv, fmt.Sprint("client of ", i), session, i, (i+1)%3, (i+2)%3)
						hold, err := c.Mutex(fmt.Sprint(path, i)).Lock(t.Context())
						require.NoError(t, err)
						holds = append(holds, hold)
					}
					time.Sleep(2*session + time.Duration(phase)*session/4/32) // heartbeats are at most a quarter of the timeout apart
					srv.Member(leader).Stop()
					for i := range 3 {
						if i != leader {
							srv.Member(i).Refuse(true)
							time.AfterFunc(session*3/10, func() { srv.Member(i).Refuse(false) })
						}
					}
					srv.DropConnections()
					time.Sleep(session)
					for i, hold := range holds {
						require.NoError(t, hold.Check(), "client %d", i)
					}
				})
			})
		}
	}
}

// Another leader is there 10.9 s after the fault: the servers wait for 10.7 s, and elect in 0.2 s. At T = 30 s at least 12 s remain of a
// hold at the fault. The 1.1 s that are left are enough for the reconnect: dials that all fail are at most 0.3 s apart by then, and while the
// frozen server is waited for, another one is asked each time that two fifths of the remaining lease are over.
//
//zklock:promise P2.7
func TestAHoldOutlivesALeaderThatIsReplacedJustInTime(t *testing.T) {
	const session, tick, syncLimit = 30 * time.Second, 100 * time.Millisecond, 107
	opts := zktest.Options{Servers: 3, TickTime: tick, MaxSessionTimeout: session, SyncLimit: syncLimit, Latency: fixed(time.Millisecond)}
	ways := map[string]func(t *testing.T, srv *zktest.Server, i int) *zklock.Client{
		"servers": func(t *testing.T, srv *zktest.Server, i int) *zklock.Client {
			return connect(t, srv, fmt.Sprint("client of ", i), session, i, (i+1)%3, (i+2)%3)
		},
		"one name": func(t *testing.T, srv *zktest.Server, i int) *zklock.Client {
			return connectToName(t, srv, &zklock.Options{Label: fmt.Sprint("client of ", i), SessionTimeout: session}, i)
		},
	}
	for way, connect := range ways {
		for name, fail := range map[string]func(m *zktest.Member){"frozen": (*zktest.Member).Freeze, "cut off": (*zktest.Member).CutOff} {
			for phase := 0; phase < 64; phase += oneIn(4) {
				t.Run(fmt.Sprint(way, name, phase), func(t *testing.T) {
					virtual(t, opts, func(t *testing.T, srv *zktest.Server) {
						var holds []*zklock.Hold
						for i := range 3 {
							hold, err := connect(t, srv, i).Mutex(fmt.Sprint(path, i)).Lock(t.Context())
							require.NoError(t, err)
							holds = append(holds, hold)
						}
						time.Sleep(2*session + time.Duration(phase)*session/4/64) // heartbeats are at most a quarter of the timeout apart
						fail(srv.Leader())
						time.Sleep(session)
						for i, hold := range holds {
							require.NoError(t, hold.Check(), "client %d", i)
						}
					})
				})
			}
		}
	}
}

// Idle clients and clients that wait further back in a queue write nothing.
//
//zklock:promise P9.7
func TestOnlyHoldersAndTheNextInLineAskTheQuorum(t *testing.T) {
	const session = 10 * time.Second
	during := 20 * time.Minute / time.Duration(oneIn(4))
	// requestsPerMinute returns the requests per minute of n clients of an election, including the leader.
	requestsPerMinute := func(t *testing.T, n int) (transactions, syncs, reads float64) {
		virtual(t, zktest.Options{Servers: 3, TickTime: 2 * time.Second, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
			var standing []*attempt
			for i := range n {
				c := connect(t, srv, fmt.Sprint("c", i), session)
				standing = append(standing, lockLater(t.Context(), campaign(c.Election(path, nil))))
				time.Sleep(100 * time.Millisecond)
			}
			connect(t, srv, "idle", session)
			time.Sleep(3 * session)
			resetCounts(srv)
			time.Sleep(during)
			seen := srv.Requests()
			perMinute := func(op zktest.Op) float64 { return float64(seen[op]) / during.Minutes() }
			transactions, syncs, reads = perMinute(zktest.OpMulti), perMinute(zktest.OpSync), perMinute(zktest.OpExists)
			for _, a := range standing {
				<-a.done
				require.NoError(t, a.err)
				unlock(t, a.hold)
			}
		})
		return transactions, syncs, reads
	}
	transactions, syncs, reads := requestsPerMinute(t, 0)
	t.Logf("an idle client: %.1f transactions, %.1f syncs and %.1f reads a minute", transactions, syncs, reads)
	require.Zero(t, transactions)
	require.LessOrEqual(t, syncs+reads, 72.0)
	two, _, _ := requestsPerMinute(t, 3)
	many, _, _ := requestsPerMinute(t, 60)
	t.Logf("an election: %.1f transactions a minute with 3 clients, %.1f with 60", two, many)
	require.LessOrEqual(t, two, 72.0)
	require.InDelta(t, two, many, 3)
}

// A client that has just connected holds as safely as any other: its first proof does not depend on the leader's pings being on
// time.
//
//zklock:promise P2.1 A4
func TestAFirstLockAfterALeaderWasFrozenLeavesOneHolder(t *testing.T) {
	for _, session := range []time.Duration{4 * time.Second, 10 * time.Second} {
		for wait := time.Duration(0); wait < 4*time.Second; wait += 500 * time.Millisecond {
			for _, still := range []time.Duration{session * 6 / 10, session * 75 / 100, session * 9 / 10} {
				t.Run(fmt.Sprint(session, wait, still), func(t *testing.T) {
					opts := lab.With(zktest.Options{Servers: 3, TickTime: 2 * time.Second, Latency: fixed(time.Millisecond)}, lab.Options{LatePing: 90 * time.Millisecond})
					virtual(t, opts, func(t *testing.T, srv *zktest.Server) {
						leader := leaderIs(srv, 3)
						follower := srv.Member((leader + 1) % 3)
						next := connect(t, srv, "next", session, leader)
						unlockSoon(t, next)
						holder := connect(t, srv, "holder", session, (leader+1)%3)
						time.Sleep(wait)
						srv.Member(leader).Freeze()
						time.Sleep(still - session/8)
						first := lockLater(t.Context(), holder.Mutex(path).Lock)
						time.Sleep(session / 8)
						srv.Member(leader).Thaw()
						time.Sleep(3 * time.Millisecond)     // the server replies to the lock's create
						lab.CutStreams(follower, true, true) // its answer to the leader's overdue ping never arrives
						second := lockLater(t.Context(), next.Mutex(path).Lock)
						<-second.done
						require.NoError(t, second.err)
						if first.returned() && first.err == nil {
							require.Error(t, first.hold.Check(), "two hold, for %v more", first.hold.Remaining())
						}
						time.Sleep(session)
						unlock(t, second.hold)
						lab.CutStreams(follower, false, false)
						<-first.done
						_ = first.hold.Unlock(t.Context())
					})
				})
			}
		}
	}
}

// If every server is slow to answer quorum writes, moving to another one does not help. If the client left each server before its
// reply, it would never get one. At T/4 no heartbeat can keep a hold, and so suddenly it looks like a queue at the servers, which may
// delay grants for 24 T.
//
//zklock:promise P7.2
func TestSlowServersDelayNoCallForEver(t *testing.T) {
	for slow, within := range map[time.Duration]time.Duration{term / 5: 6 * term, term / 4: 26 * term} {
		t.Run(fmt.Sprint(slow), func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				clients := []*zklock.Client{connect(t, srv, "a", term), connect(t, srv, "b", term)}
				for i := range 3 {
					srv.Member(i).Lag(slow)
				}
				for i := range 6 {
					began := time.Now()
					hold, err := clients[i%2].Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					require.Less(t, time.Since(began), within)
					next := lockLater(t.Context(), clients[1-i%2].Mutex(path).Lock)
					time.Sleep(term)
					_ = hold.Unlock(t.Context()) // it may be lost
					<-next.done
					require.NoError(t, next.err)
					require.Less(t, time.Since(began), 2*within)
					_ = next.hold.Unlock(t.Context())
				}
			})
		})
	}
}

// A client that knows only one server reconnects to it at once. The client library would pause for a second.
//
//zklock:promise P18.7 A17
func TestTheOnlyServerIsDialedAgainAtOnce(t *testing.T) {
	const session = time.Second
	virtual(t, zktest.Options{TickTime: session / 2, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "a", session).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		for range 20 {
			srv.DropConnections()
			require.GreaterOrEqual(t, lowest(hold, session*103/100), session*4/10)
		}
		unlock(t, hold)
	})
}

// If a server stops replying during an acquire, the lock is granted through another server, as soon as a hold would be proven
// there.
//
//zklock:promise P7.1
func TestALockRequestedFromASilentServerIsGrantedByAnother(t *testing.T) {
	for phase := range 8 {
		virtual(t, zktest.Options{Servers: 3, TickTime: 2 * time.Second, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
			leader := leaderIs(srv, 3)
			follower, other := (leader+1)%3, (leader+2)%3
			spare := connect(t, srv, "b", term, other, follower)
			struck := srv.Sessions()[0].Member
			client := connect(t, srv, "a", term, struck)
			time.Sleep(term + time.Duration(phase)*term/16)
			srv.Member(struck).Freeze()
			began := time.Now()
			alone := lockLater(t.Context(), client.Mutex(path+"-other").Lock)
			hold, err := spare.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			require.Less(t, time.Since(began), term/5+term/4+50*time.Millisecond, "and half a tick, until another connection proves")
			unlock(t, hold)
			srv.Member(struck).Thaw()
			<-alone.done
			require.NoError(t, alone.err)
			unlock(t, alone.hold)
		})
	}
}

// Servers 3.6.0 to 3.6.3, 3.7.0 to 3.7.1 and 3.8.0 can delay a commit until the next request or commit (ZOOKEEPER-4537). An acquire
// waits at most until the client's next heartbeat. If a heartbeat was in flight, it is delayed as well, and another connection
// has to prove the lease.
//
//zklock:promise P7.1
func TestACommitThatAServerDoesNotReportWaitsOnlyForAHeartbeat(t *testing.T) {
	const patience = term/5 + term/4 + 20*time.Millisecond
	for ahead := range 4 {
		for phase := range 16 {
			t.Run(fmt.Sprint(ahead, phase), func(t *testing.T) {
				virtual(t, zktest.Options{Servers: 3, TickTime: 2 * time.Second, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
					lazy := (leaderIs(srv, 3) + 1) % 3
					others, last := connect(t, srv, "others", term, (lazy+1)%3), connect(t, srv, "last", term, lazy)
					var before []*attempt
					for range ahead {
						before = append(before, lockLater(t.Context(), others.Mutex(path).Lock))
						time.Sleep(time.Second)
					}
					time.Sleep(term + time.Duration(phase)*term/16)
					leaveCommitsLying(srv, lazy)
					began := time.Now()
					mine := lockLater(t.Context(), last.Mutex(path).Lock)
					for _, b := range before {
						time.Sleep(term)
						<-b.done
						require.NoError(t, b.err)
						leaveCommitsLying(srv, lazy)
						began = time.Now()
						unlock(t, b.hold)
					}
					<-mine.done
					require.NoError(t, mine.err)
					require.Less(t, time.Since(began), patience)
					leaveCommitsLying(srv, lazy)
					began = time.Now()
					unlock(t, mine.hold)
					require.Less(t, time.Since(began), patience)
				})
			})
		}
	}
}

// leaveCommitsLying makes a server apply nothing until a request arrives after the next commit.
func leaveCommitsLying(srv *zktest.Server, member int) {
	srv.Member(member).Lag(time.Hour)
	var committed atomic.Pointer[time.Time]
	remove := srv.OnTxn(func(zktest.Txn) {
		now := time.Now()
		committed.CompareAndSwap(nil, &now)
	})
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if at := committed.Load(); at != nil && r.Member == member && time.Since(*at) > 2*time.Millisecond {
			srv.Member(member).Lag(0)
			remove()
			committed.Store(nil)
		}
		return zktest.Pass
	})
}

// A server can fail to reply to one session, and still send it events of others' changes. The client does not take that for a
// sign of life: it moves to another server before the lease expires.
//
//zklock:promise P2.7
func TestAServerThatSendsEventsButNoRepliesIsLeft(t *testing.T) {
	virtual(t, zktest.Options{Servers: 3}, func(t *testing.T, srv *zktest.Server) {
		busy, c := connect(t, srv, "busy", term), connect(t, srv, "c", term)
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		const locks = 60
		lock := func(i int) string { return fmt.Sprintf("%s-%d", path, i) }
		for i := range locks {
			_, err := busy.Mutex(lock(i)).Lock(t.Context())
			require.NoError(t, err)
			lockLater(t.Context(), c.Mutex(lock(i)).Lock)
		}
		time.Sleep(2 * term)

		var owes atomic.Int64 // the first member that gets a request, and one more
		never := make(chan struct{})
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "c" && (owes.CompareAndSwap(0, int64(r.Member)+1) || owes.Load() == int64(r.Member)+1) {
				return zktest.Hold(never)
			}
			return zktest.Pass
		})
		for i := range locks {
			nodes := srv.Children(lock(i))
			require.NotEmpty(t, nodes)
			require.NoError(t, srv.DeleteNode(lock(i)+"/"+nodes[0]))
			time.Sleep(term / 20)
		}
		require.NoError(t, hold.Check())
		unlock(t, hold)
	})
}
