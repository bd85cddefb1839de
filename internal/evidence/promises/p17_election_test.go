// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

func campaignLater(ctx context.Context, e *zklock.Election, value string) *attempt {
	return lockLater(ctx, func(ctx context.Context) (*zklock.Hold, error) { return e.Campaign(ctx, []byte(value)) })
}

// watcher collects the leaders that an observer receives.
type watcher struct {
	mu    sync.Mutex
	seen  []string // values
	twice bool     // a leader was observed again
	err   error
	done  chan struct{}
}

func follow(ctx context.Context, e *zklock.Election) *watcher {
	w := &watcher{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		known := map[string]bool{}
		for who, err := range e.Observe(ctx) {
			w.mu.Lock()
			if w.err = err; err == nil {
				w.seen = append(w.seen, string(who.Data))
				key := who.Node + string(who.Data)
				w.twice = w.twice || known[key]
				known[key] = true
			}
			w.mu.Unlock()
		}
	}()
	return w
}

func (w *watcher) leaders() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.seen...)
}

//zklock:promise P17.1
func TestMembersLeadOneAfterTheOther(t *testing.T) {
	for name, opts := range map[string]*zklock.ElectionOptions{"-lock-": nil, "-latch-": {Latch: true}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				var members []*attempt
				observer := connect(t, srv, "observer", term).Election(path, opts)
				_, err := observer.Leader(t.Context())
				require.ErrorIs(t, err, zklock.ErrNoLeader)
				require.Empty(t, srv.Tree(), "asking made nodes")
				for i := range 4 {
					e := connect(t, srv, fmt.Sprint(i), term).Election(path, opts)
					members = append(members, campaignLater(t.Context(), e, fmt.Sprint("10.0.0.", i)))
					synctest.Wait()
				}
				for i, m := range members {
					<-m.done
					require.NoError(t, m.err)
					for _, later := range members[i+1:] {
						require.False(t, later.returned())
					}
					leader, err := observer.Leader(t.Context())
					require.NoError(t, err)
					require.Equal(t, fmt.Sprint("10.0.0.", i), string(leader.Data))
					require.Equal(t, m.hold.Node(), leader.Node)
					require.Equal(t, m.hold.Token(), leader.Token)
					require.True(t, leader.Holds)
					require.Contains(t, leader.Node, name)
					node, _ := srv.Node(leader.Node)
					require.Equal(t, fmt.Sprint("10.0.0.", i), string(node.Data), "not the raw value")
					unlock(t, m.hold)
				}
				_, err = observer.Leader(t.Context())
				require.ErrorIs(t, err, zklock.ErrNoLeader)
				noGhost(t, srv, path)
			})
		})
	}
}

// The IDs that Curator's LeaderSelector and LeaderLatch write are read correctly.
//
//zklock:promise P17.1
func TestCuratorsMembersAreShownAndWaitedFor(t *testing.T) {
	for name, opts := range map[string]*zklock.ElectionOptions{curatorName: nil, latchName: {Latch: true}} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			raw := rawClient(t, srv, term)
			node := createContender(t, raw, path, name, "curator-1")
			e := connect(t, srv, "a", term).Election(path, opts)
			mine := campaignLater(t.Context(), e, "ours")
			w := follow(t.Context(), e)
			require.Equal(t, []string{"curator-1"}, w.leaders())
			require.False(t, mine.returned())
			require.NoError(t, raw.Delete(node, -1))
			require.True(t, mine.returned())
			require.Equal(t, []string{"curator-1", "ours"}, w.leaders())
			unlock(t, mine.hold)
		})
	}
}

//zklock:promise P8.4
func TestBadValuesAreRefusedBeforeAnyRequest(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := connect(t, srv, "a", term).Election(path, nil)
		hold, err := e.Campaign(t.Context(), nil)
		require.NoError(t, err)
		time.Sleep(time.Second)
		resetCounts(srv)
		for _, value := range []string{"__REVOKE__", "__REVOKE__\nx", `{"revoke":true}`, strings.Repeat("x", 512<<10+1)} {
			_, err := e.Campaign(t.Context(), []byte(value))
			require.ErrorIs(t, err, zklock.ErrInvalid)
			require.ErrorIs(t, e.Proclaim(hold.Context(), []byte(value)), zklock.ErrInvalid)
			require.ErrorIs(t, e.Run(t.Context(), []byte(value), func(context.Context) error { return nil }), zklock.ErrInvalid)
		}
		bad := connect(t, srv, "b", term).Election("/a/../b", nil)
		resetCounts(srv)
		_, err = bad.Campaign(t.Context(), nil)
		require.ErrorIs(t, err, zklock.ErrInvalid)
		_, err = bad.Leader(t.Context())
		require.ErrorIs(t, err, zklock.ErrInvalid)
		for _, err := range bad.Observe(t.Context()) {
			require.ErrorIs(t, err, zklock.ErrInvalid)
		}
		require.Zero(t, srv.RequestCount())
		unlock(t, hold)
	})
}

//zklock:promise P17.3
func TestRunLeadsAgainAndAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var inside atomic.Int32
		turns := make([]int, 3)
		var wg sync.WaitGroup
		for i := range turns {
			e := connect(t, srv, fmt.Sprint(i), term).Election(path, nil)
			wg.Go(func() {
				last := int64(0)
				err := e.Run(ctx, []byte{byte(i)}, func(ctx context.Context) error {
					assert.EqualValues(t, 1, inside.Add(1))
					defer inside.Add(-1)
					turns[i]++
					token := zklock.HoldOf(ctx).Token()
					assert.Greater(t, token, last)
					last = token
					time.Sleep(time.Second)
					return nil
				})
				assert.ErrorIs(t, err, context.Canceled)
			})
		}
		time.Sleep(30*time.Second + 500*time.Millisecond)
		cancel()
		wg.Wait()
		for _, n := range turns {
			require.InDelta(t, 10, n, 1, "turns %v", turns)
		}
		noGhost(t, srv, path)
	})
}

// No one else leads while a leader that must stop still cleans up.
//
//zklock:promise P17.2
func TestTheLeadershipIsReleasedOnlyAfterTheFunctionHasReturned(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		first := connect(t, srv, "first", term).Election(path, nil)
		var returned, ended time.Time
		done := make(chan error, 1)
		go func() {
			done <- first.Run(ctx, nil, func(inside context.Context) error {
				<-inside.Done()
				assert.ErrorIs(t, context.Cause(inside), context.Canceled)
				assert.NoError(t, zklock.HoldOf(inside).Check(), "given up before the work has returned")
				ended = time.Now()
				time.Sleep(time.Minute)
				returned = time.Now()
				return nil
			})
		}()
		synctest.Wait()
		next := campaignLater(t.Context(), connect(t, srv, "next", term).Election(path, nil), "")
		time.Sleep(time.Second)
		stopped := time.Now()
		cancel()
		<-next.done
		require.NoError(t, next.err)
		require.ErrorIs(t, <-done, context.Canceled)
		require.Equal(t, stopped, ended)
		require.False(t, next.at.Before(returned), "led by another at %v, the work returned at %v", next.at, returned)
		require.Equal(t, time.Minute, next.at.Sub(stopped))
		unlock(t, next.hold)
	})
}

// A leader loses its session while its function runs: the function's context ends before another member leads, and the member
// campaigns again only when the function has returned.
//
//zklock:promise P17.3
func TestALeaderWhoseSessionEndsWhileItsFunctionRuns(t *testing.T) {
	for _, c := range lossCases {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				victim := connect(t, srv, "holder", term, 2).Election(path, nil)
				other := connect(t, srv, "contender", term, 0, 1).Election(path, nil)
				var working atomic.Int32
				told := make(chan time.Time, 10)
				holds := make(chan *zklock.Hold, 10)
				done := make(chan error, 1)
				go func() {
					done <- victim.Run(ctx, []byte("victim"), func(inside context.Context) error {
						assert.EqualValues(t, 1, working.Add(1), "it leads twice")
						defer working.Add(-1)
						holds <- zklock.HoldOf(inside)
						<-inside.Done()
						told <- time.Now()
						time.Sleep(2 * term) // the work is slow to end
						return inside.Err()
					})
				}()
				hold := <-holds
				next := campaignLater(t.Context(), other, "other")
				time.Sleep(time.Second)
				c.strike(srv, hold)
				<-next.done
				require.NoError(t, next.err)
				at := <-told
				require.False(t, at.After(next.at), "told at %v, another leads at %v", at, next.at)
				require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrLost)
				synctest.Wait()
				require.Len(t, queue(srv, path), 1, "it stands again while its work runs")

				for i := range 3 {
					srv.Member(i).Rejoin()
					srv.Member(i).Thaw()
					srv.Member(i).Start()
				}
				srv.HealClient("holder")
				unlock(t, next.hold)
				again := <-holds
				require.Greater(t, again.Token(), next.hold.Token())
				cancel()
				require.ErrorIs(t, <-done, context.Canceled)
			})
		})
	}
}

//zklock:promise P17.3
func TestNoFailedConnectionEndsRun(t *testing.T) {
	for name, fault := range map[string]func(srv *zktest.Server){
		"connections drop":    func(srv *zktest.Server) { srv.DropConnections() },
		"all servers restart": func(srv *zktest.Server) { srv.Restart() },
		"a partition":         func(srv *zktest.Server) { srv.Partition("a"); time.Sleep(3 * term); srv.HealClient("a") },
		"servers are down":    func(srv *zktest.Server) { srv.Member(0).Stop(); time.Sleep(3 * term); srv.Member(0).Start() },
		"the session ends":    func(srv *zktest.Server) { srv.ExpireSession(srv.Sessions()[0].ID) },
		"its node is deleted": func(srv *zktest.Server) { srv.DeleteNode(front(srv, path)) },
		"refused for some time": func(srv *zktest.Server) {
			srv.Member(0).Refuse(true)
			srv.DropConnections()
			time.Sleep(3 * term)
			srv.Member(0).Refuse(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				ctx, cancel := context.WithCancel(t.Context())
				client := connect(t, srv, "a", term)
				done := make(chan error, 1)
				var leads, turns atomic.Int32
				go func() {
					done <- client.Election(path, nil).Run(ctx, nil, func(ctx context.Context) error {
						turns.Add(1)
						leads.Add(1)
						defer leads.Add(-1)
						<-ctx.Done()
						return ctx.Err()
					})
				}()
				for range 3 {
					time.Sleep(2 * term)
					require.EqualValues(t, 1, leads.Load())
					fault(srv)
				}
				time.Sleep(2 * term)
				require.EqualValues(t, 1, leads.Load(), "it leads no more, after %d turns", turns.Load())
				cancel()
				require.ErrorIs(t, <-done, context.Canceled)
				noGhost(t, srv, path)
			})
		})
	}
}

//zklock:promise P17.3
func TestRunEndsWithTheClientAndAtARefusal(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		done := make(chan error, 1)
		go func() {
			done <- client.Election(path, nil).Run(t.Context(), nil, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		}()
		time.Sleep(time.Second)
		client.Close()
		require.ErrorIs(t, <-done, zklock.ErrClosed)

		raw := rawClient(t, srv, term)
		_, err := raw.Create("/closed", nil, 0, zk.WorldACL(zk.PermRead))
		require.NoError(t, err)
		e := connect(t, srv, "b", term).Election("/closed", nil)
		require.ErrorIs(t, e.Run(t.Context(), nil, func(context.Context) error { return nil }), zk.ErrNoAuth)
	})
}

//zklock:promise P17.2
func TestALeaderThatPanicsReleasesItsLeadership(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := connect(t, srv, "a", term).Election(path, nil)
		require.PanicsWithValue(t, "boom", func() { e.Run(t.Context(), nil, func(context.Context) error { panic("boom") }) })
		require.Empty(t, queue(srv, path))
	})
}

//zklock:promise P17.7
func TestAnObserverSeesEveryLeaderOnceAndTheCurrentOneFirst(t *testing.T) {
	for name, disturb := range map[string]func(srv *zktest.Server){
		"in peace":             func(*zktest.Server) {},
		"across reconnects":    func(srv *zktest.Server) { srv.DropConnections() },
		"across restarts":      func(srv *zktest.Server) { srv.Restart() },
		"across leader change": func(srv *zktest.Server) { srv.ElectLeader(1) },
		"across sessions": func(srv *zktest.Server) {
			for _, s := range srv.Sessions() {
				if s.Client == "observer" {
					srv.ExpireSession(s.ID)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{Servers: 3}, func(t *testing.T, srv *zktest.Server) {
				client, observer := connect(t, srv, "members", 40*time.Second), connect(t, srv, "observer", term)
				e := client.Election(path, nil)
				ctx, cancel := context.WithCancel(t.Context())
				early := follow(ctx, observer.Election(path, nil))
				require.Empty(t, early.leaders())
				var members []*attempt
				for i := range 12 {
					members = append(members, campaignLater(t.Context(), e, fmt.Sprint("m", i)))
					synctest.Wait()
				}
				var want []string
				var late *watcher
				for i, m := range members {
					<-m.done
					require.NoError(t, m.err)
					want = append(want, fmt.Sprint("m", i))
					if i == 5 {
						late = follow(ctx, observer.Election(path, nil))
					}
					disturb(srv)
					time.Sleep(5 * time.Second)
					require.NoError(t, m.hold.Check())
					unlock(t, m.hold)
				}
				time.Sleep(time.Second)
				require.Equal(t, want, early.leaders())
				require.Equal(t, want[5:], late.leaders())
				cancel()
				<-early.done
				require.ErrorIs(t, early.err, context.Canceled)
				<-late.done
			})
		})
	}
}

// A leader whose term an observer missed is skipped, and never delivered late.
//
//zklock:promise P17.7
func TestAnObserverThatReconnectsContinuesWithTheCurrentLeader(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, observer := connect(t, srv, "members", 40*time.Second), connect(t, srv, "observer", term)
		w := follow(t.Context(), observer.Election(path, nil))
		var members []*attempt
		for i := range 6 {
			members = append(members, campaignLater(t.Context(), client.Election(path, nil), fmt.Sprint("m", i)))
			synctest.Wait()
		}
		time.Sleep(time.Second)
		require.Equal(t, []string{"m0"}, w.leaders())
		srv.Partition("observer")
		for _, m := range members[:4] {
			<-m.done
			unlock(t, m.hold)
		}
		time.Sleep(3 * term)
		require.Equal(t, []string{"m0"}, w.leaders())
		srv.HealClient("observer")
		time.Sleep(3 * term)
		require.Equal(t, []string{"m0", "m4"}, w.leaders())
		for _, m := range members[4:] {
			<-m.done
			unlock(t, m.hold)
			time.Sleep(time.Second)
		}
		require.Equal(t, []string{"m0", "m4", "m5"}, w.leaders())
		hold, err := client.Election(path, nil).Campaign(t.Context(), []byte("m6"))
		require.NoError(t, err)
		require.Equal(t, []string{"m0", "m4", "m5", "m6"}, w.leaders(), "after nobody led")
		unlock(t, hold)
		observer.Close()
		<-w.done
		require.ErrorIs(t, w.err, zklock.ErrClosed)
	})
}

// An event does not advance the client library's last zxid, so a server that lags behind the event accepts the client.
//
//zklock:promise P17.7
func TestAnObserverWhoseNextServerLagsIsShownOnlyLeaders(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "members", term, 0)
		ctx, giveUp := context.WithCancel(t.Context())
		first := campaignLater(t.Context(), client.Election(path, nil), "first")
		synctest.Wait()
		second := campaignLater(ctx, client.Election(path, nil), "second")
		synctest.Wait()
		third := campaignLater(t.Context(), client.Election(path, nil), "third")
		srv.Member(2).Refuse(true)
		w := follow(t.Context(), connect(t, srv, "observer", term, 1, 2).Election(path, nil))
		time.Sleep(time.Second)
		require.Equal(t, []string{"first"}, w.leaders())

		srv.Member(2).Lag(5 * time.Second)
		giveUp()
		<-second.done
		time.Sleep(100 * time.Millisecond)
		var moved atomic.Bool
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client != "observer" || r.Path == "/" || moved.Swap(true) {
				return zktest.Pass
			}
			// After the event was received and before the next read.
			srv.Member(2).Refuse(false)
			srv.Member(1).Refuse(true)
			return zktest.DropBefore
		})
		unlock(t, first.hold)
		<-third.done
		time.Sleep(3 * term) // its server lags, and each of its replies is late, so the client leaves it twice before it waits
		require.True(t, moved.Load())
		require.Equal(t, []string{"first", "third"}, w.leaders())
		unlock(t, third.hold)
	})
}

//zklock:promise P17.7
func TestObserversThatComeAndGoLeaveNoWatchEach(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, observer := connect(t, srv, "a", term), connect(t, srv, "observer", term)
		look := func() {
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				<-follow(ctx, observer.Election(path, nil)).done
				cancel()
			}
		}
		look()
		_, made := srv.Node(path)
		require.False(t, made, "an observer may not be allowed to")
		require.Zero(t, srv.WatchCount(), "%v", srv.Watches())
		require.NoError(t, srv.PutNode(path, nil))
		look()
		require.Equal(t, 1, srv.WatchCount(), "%v", srv.Watches())
		hold, err := client.Election(path, nil).Campaign(t.Context(), nil)
		require.NoError(t, err)
		time.Sleep(time.Second)
		look()
		for range 3 {
			for who, err := range observer.Election(path, nil).Observe(t.Context()) {
				require.NoError(t, err)
				require.Equal(t, hold.Node(), who.Node)
				break
			}
		}
		require.Equal(t, 2, srv.WatchCount(), "the leader's own and one of all observers: %v", srv.Watches())
		unlock(t, hold)
		time.Sleep(time.Second)
		require.Zero(t, srv.WatchCount(), "%v", srv.Watches())
	})
}

// TestAHandoverAmongAHundredCostsWhatItCostsAmongTwenty counts the requests and events of a hand-over, with adjacent members in
// different clients, and one observer.
//
//zklock:promise P17.11
func TestAHandoverAmongAHundredCostsWhatItCostsAmongTwenty(t *testing.T) {
	type cost struct{ requests, bytes, watches int }
	costs := map[int]cost{}
	for _, n := range []int{20, 100} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			observer := connect(t, srv, "observer", 40*time.Second).Election(path, nil)
			var clients []*zklock.Client
			for i := range 10 { // each has heartbeats of its own
				clients = append(clients, connect(t, srv, fmt.Sprint("m", i), 40*time.Second))
			}
			var members []*attempt
			for i := range n {
				e := clients[i%len(clients)].Election(path, nil)
				members = append(members, campaignLater(t.Context(), e, fmt.Sprintf("m%03d", i)))
				synctest.Wait()
			}
			w := follow(t.Context(), observer)
			resign := func(m *attempt) {
				<-m.done
				require.NoError(t, m.err)
				time.Sleep(time.Second)
				unlock(t, m.hold)
			}
			resign(members[0]) // the second member has not read a note
			time.Sleep(time.Second)
			watches := srv.WatchCount()
			resetCounts(srv)
			_, before := srv.Bytes()
			for _, m := range members[1:9] {
				resign(m)
			}
			time.Sleep(time.Second)
			requests := srv.RequestCount()
			_, after := srv.Bytes()
			costs[n] = cost{requests / 8, int(after-before) / 8, watches}
			require.Len(t, w.leaders(), 10)
			for _, m := range members[9:] {
				resign(m)
			}
			time.Sleep(time.Second)
			require.Len(t, w.leaders(), n)
			require.Zero(t, len(queue(srv, path)))
		})
	}
	t.Logf("a handover among 20: %+v, among 100: %+v", costs[20], costs[100])
	require.LessOrEqual(t, costs[100].requests, costs[20].requests)
	require.LessOrEqual(t, float64(costs[100].bytes), 1.2*float64(costs[20].bytes))
	require.LessOrEqual(t, costs[100].watches, 100+3, "one for each waiter, the leader's own, the next one's, the observer's")
}

//zklock:promise P17.9
func TestProclaimChangesTheValueWhileLeading(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
		e := client.Election(path, nil)
		require.NoError(t, srv.PutNode(path, nil))
		w := follow(t.Context(), other.Election(path, nil))
		require.ErrorIs(t, e.Proclaim(t.Context(), []byte("x")), zklock.ErrNotHeld)
		hold, err := e.Campaign(t.Context(), []byte("one"))
		require.NoError(t, err)
		next := campaignLater(t.Context(), other.Election(path, nil), "next")
		synctest.Wait()
		for _, v := range []string{"two", "three", "three", ""} {
			require.NoError(t, e.Proclaim(hold.Context(), []byte(v)))
			leader, err := other.Election(path, nil).Leader(t.Context())
			require.NoError(t, err)
			require.Equal(t, v, string(leader.Data))
			require.Equal(t, hold.Token(), leader.Token)
			synctest.Wait()
		}
		require.Equal(t, []string{"one", "two", "three", ""}, w.leaders())
		require.False(t, next.returned(), "a value admitted another member")
		require.ErrorIs(t, e.Proclaim(t.Context(), []byte("x")), zklock.ErrNotHeld, "not the leader's context")
		require.ErrorIs(t, other.Election(path, nil).Proclaim(hold.Context(), []byte("x")), zklock.ErrNotHeld, "another client's")
		unlock(t, hold)
		require.ErrorIs(t, e.Proclaim(hold.Context(), []byte("x")), zklock.ErrReleased)
		<-next.done
		require.NoError(t, srv.DeleteNode(next.hold.Node()))
		require.ErrorIs(t, other.Election(path, nil).Proclaim(next.hold.Context(), []byte("x")), zklock.ErrLost)
		require.ErrorIs(t, next.hold.Check(), zklock.ErrLost)
	})
}

//zklock:promise P17.10
func TestALatchProclaimsNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := connect(t, srv, "a", term).Election(path, &zklock.ElectionOptions{Latch: true})
		hold, err := e.Campaign(t.Context(), []byte("one"))
		require.NoError(t, err)
		require.ErrorIs(t, e.Proclaim(hold.Context(), []byte("two")), zklock.ErrInvalid)
		node, _ := srv.Node(hold.Node())
		require.Zero(t, node.Version)
		unlock(t, hold)
	})
}

// A request to release and a change of the value do not overwrite each other.
//
//zklock:promise P19.5
func TestProclaimAndRevokeDoNotOverwriteEachOther(t *testing.T) {
	for _, by := range []string{"us", "Curator's Revoker"} {
		for _, first := range []string{"proclaim", "revoke", "both at once"} {
			t.Run(by+", "+first, func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					client, operator, raw := connect(t, srv, "a", term), connect(t, srv, "operator", term), rawClient(t, srv, term)
					e := client.Election(path, nil)
					w := follow(t.Context(), operator.Election(path, nil))
					hold, err := e.Campaign(t.Context(), []byte("one"))
					require.NoError(t, err)
					time.Sleep(time.Second)
					who := contenderAt(t, operator, 0)
					revoke := func() {
						if by == "us" {
							require.NoError(t, operate.Revoke(t.Context(), operator, who))
							return
						}
						_, err := raw.Set(hold.Node(), []byte("__REVOKE__"), -1)
						require.NoError(t, err)
					}
					proclaim := func() { require.NoError(t, e.Proclaim(hold.Context(), []byte("two"))) }
					switch first {
					case "proclaim":
						proclaim()
						revoke()
					case "revoke":
						revoke()
						require.True(t, isRevoked(hold))
						leader, err := e.Leader(t.Context())
						require.NoError(t, err)
						require.Equal(t, "one", string(leader.Data))
						proclaim()
					default:
						var once sync.Once
						srv.Intercept(func(r *zktest.Request) zktest.Verdict {
							if r.Client == "a" && r.Op == zktest.OpSetData {
								once.Do(revoke) // between the leader's read and its write
							}
							return zktest.Pass
						})
						proclaim()
					}
					require.True(t, isRevoked(hold))
					node, _ := srv.Node(hold.Node())
					require.Equal(t, "__REVOKE__\ntwo", string(node.Data), "the value, and that it was asked")
					leader, err := e.Leader(t.Context())
					require.NoError(t, err)
					require.Equal(t, "two", string(leader.Data))
					require.True(t, leader.Revoked)
					require.Equal(t, []string{"one", "two"}, w.leaders())
					require.NoError(t, hold.Confirm(t.Context()))
					unlock(t, hold)
				})
			})
		}
	}
}

// The caller may write to its slice after the call. The value that is restored after Curator's message has overwritten it is the one of the call.
//
//zklock:promise P17.12
func TestALeadersValueIsThatOfTheCall(t *testing.T) {
	for name, campaign := range map[string]func(context.Context, *zklock.Election, []byte) (*zklock.Hold, error){
		"Campaign": func(ctx context.Context, e *zklock.Election, value []byte) (*zklock.Hold, error) {
			return e.Campaign(ctx, value)
		},
		"TryCampaign": func(ctx context.Context, e *zklock.Election, value []byte) (*zklock.Hold, error) {
			return e.TryCampaign(ctx, value)
		},
		"Proclaim": func(ctx context.Context, e *zklock.Election, value []byte) (*zklock.Hold, error) {
			hold, err := e.Campaign(ctx, []byte("another"))
			if err != nil {
				return nil, err
			}
			return hold, e.Proclaim(hold.Context(), value)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				election := connect(t, srv, "a", term).Election(path, nil)
				value := []byte("one")
				hold, err := campaign(t.Context(), election, value)
				require.NoError(t, err)
				copy(value, "two")
				time.Sleep(time.Second)
				leader, err := election.Leader(t.Context())
				require.NoError(t, err)
				require.NoError(t, srv.PutNode(leader.Node, node.CuratorRevocation))
				time.Sleep(time.Second)
				leader, err = election.Leader(t.Context())
				require.NoError(t, err)
				require.Equal(t, "one", string(leader.Data))
				unlock(t, hold)
			})
		})
	}
}

//zklock:promise P17.12
func TestARevokedLeaderThatIsCutOffKeepsItsValue(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, operator := connect(t, srv, "a", term), connect(t, srv, "operator", term)
		hold, err := client.Election(path, nil).Campaign(t.Context(), []byte("one"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		srv.Partition("a") // it cannot see the request, nor put its value back
		require.NoError(t, operate.Revoke(t.Context(), operator, contenderAt(t, operator, 0)))
		leader, err := operator.Election(path, nil).Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, "one", string(leader.Data))
		require.True(t, leader.Revoked)
		require.True(t, contenderAt(t, operator, 0).Revoked)
		srv.HealClient("a")
		time.Sleep(3 * time.Second)
		require.True(t, isRevoked(hold))
		leader, err = operator.Election(path, nil).Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, "one", string(leader.Data))
		require.True(t, leader.Revoked, "it is still shown as revoked")
		unlock(t, hold)
	})
}

// TestAnElectionThroughAnyFault runs a member that campaigns behind another, proclaims and resigns, with an observer in its own
// client, and with every fault at every request.
//
//zklock:promise P17.3
func TestAnElectionThroughAnyFault(t *testing.T) {
	t.Parallel()
	throughEveryFault(t, 10, electThrough)
}

func electThrough(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
	other := connect(t, srv, "other", term)
	held, err := other.Election(path, nil).Campaign(t.Context(), []byte("other"))
	require.NoError(t, err)
	e := connect(t, srv, "victim", term).Election(path, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	struck := strikeOnce(srv, "victim", n, func(r *zktest.Request) zktest.Verdict { return verdict(srv, r, cancel) })
	w := follow(t.Context(), e)
	a := campaignLater(ctx, e, "one")
	time.Sleep(2 * term)
	require.False(t, a.returned() && a.err == nil, "two leaders")
	unlock(t, held)
	<-a.done
	want := []string{"other"}
	switch {
	case a.err != nil:
		require.ErrorIs(t, a.err, context.Canceled)
	default:
		want = append(want, "one")
		time.Sleep(2 * term)
		both, stop := context.WithCancel(a.hold.Context())
		defer context.AfterFunc(ctx, stop)()
		err := e.Proclaim(both, []byte("two"))
		if err == nil {
			want = append(want, "two")
		} else {
			require.True(t, errors.Is(err, zklock.ErrLost) || errors.Is(err, context.Canceled), "%v", err)
		}
		time.Sleep(2 * term)
		if err := a.hold.Unlock(t.Context()); err != nil && !errors.Is(err, zklock.ErrUncertain) {
			require.ErrorIs(t, err, zklock.ErrLost)
			want = want[:len(want)-1] // it may have been deleted before the observer read it
		}
	}
	last, err := other.Election(path, nil).Campaign(t.Context(), []byte("last"))
	require.NoError(t, err)
	time.Sleep(2 * term)
	seen := w.leaders()
	require.Subset(t, []string{"other", "one", "two", "last"}, seen)
	// A member whose session ends as it is elected can be elected again, with another node.
	require.IsNonDecreasing(t, places(seen), "out of order: %v", seen)
	require.False(t, w.twice, "twice: %v", seen)
	require.Subset(t, seen, append(want, "last"), "missed one")
	unlock(t, last)
	noGhost(t, srv, path)
	return struck()
}

func places(seen []string) (at []int) {
	for _, s := range seen {
		at = append(at, strings.Index("other one two last", s))
	}
	return at
}

//zklock:promise P17.6
func TestTryCampaignDoesNotWait(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term).Election(path, nil), connect(t, srv, "b", term).Election(path, nil)
		leads, err := a.TryCampaign(t.Context(), []byte("a"))
		require.NoError(t, err)
		who, err := b.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, "a", string(who.Data))
		_, err = b.TryCampaign(t.Context(), []byte("b"))
		require.ErrorIs(t, err, zklock.ErrLocked)
		require.Len(t, queue(srv, path), 1)
		_, err = b.TryCampaign(t.Context(), []byte("__REVOKE__"))
		require.ErrorIs(t, err, zklock.ErrInvalid)
		unlock(t, leads)
		leads, err = b.TryCampaign(t.Context(), []byte("b"))
		require.NoError(t, err)
		unlock(t, leads)
	})
}

// A follower sees the times without a leader, the first one too, and no gap if one leader follows another.
//
//zklock:promise P17.8
func TestFollowReportsThatThereIsNoLeader(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		members := []*zklock.Election{connect(t, srv, "a", term).Election(path, nil), connect(t, srv, "b", term).Election(path, nil)}
		seen := make(chan string, 100)
		ended := make(chan struct{})
		observer := connect(t, srv, "observer", term).Election(path, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(ended)
			for who, err := range observer.Follow(ctx) {
				if err != nil {
					return
				}
				seen <- string(who.Data)
			}
		}()
		time.Sleep(time.Second)
		for range 3 {
			first, err := members[0].Campaign(t.Context(), []byte("a"))
			require.NoError(t, err)
			second := campaignLater(t.Context(), members[1], "b")
			time.Sleep(time.Second)
			unlock(t, first)
			<-second.done
			require.NoError(t, second.err)
			time.Sleep(time.Second)
			srv.DropConnections()
			time.Sleep(time.Minute)
			unlock(t, second.hold)
			time.Sleep(time.Second)
		}
		cancel()
		<-ended
		close(seen)
		var all []string
		for who := range seen {
			all = append(all, who)
		}
		require.Equal(t, []string{"", "a", "b", "", "a", "b", "", "a", "b", ""}, all)
	})
}

// A follower that no server answers does not show a leader who may have died. It shows the leader again when servers answer, and
// nothing while they do.
//
//zklock:promise P17.8
func TestFollowReportsThatNoLeaderIsKnown(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var seen []string
		start, when := time.Now(), []time.Duration(nil)
		observer := connect(t, srv, "observer", term)
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		first, err := a.Election(path).Campaign(t.Context(), []byte("a"))
		require.NoError(t, err)
		go func() {
			for who, err := range observer.Election(path).Follow(ctx) {
				if err != nil {
					ended <- err
					return
				}
				seen, when = append(seen, string(who.Data)), append(when, time.Since(start))
			}
		}()
		time.Sleep(time.Hour)
		srv.Partition("observer")
		time.Sleep(time.Minute)
		srv.HealClient("observer")
		time.Sleep(time.Hour)
		srv.Partition("observer")
		time.Sleep(5 * time.Second)
		srv.HealClient("observer")
		time.Sleep(time.Hour)
		srv.Partition("observer")
		unlock(t, first)
		second, err := b.Election(path).Campaign(t.Context(), []byte("b"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		srv.HealClient("observer")
		time.Sleep(time.Minute)
		unlock(t, second)
		srv.Partition("observer")
		time.Sleep(time.Minute)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Equal(t, []string{"a", "", "a", "", "b", ""}, seen)
		require.InDelta(t, term.Seconds(), (when[1] - time.Hour).Seconds(), term.Seconds()/2)
	})
}

// When leaders restart one after the other, each hand-over takes one round trip.
//
//zklock:promise P17.11
func TestARollingRestartCostsOneRoundTripForEachLeader(t *testing.T) {
	const oneWay, members = 10 * time.Millisecond, 5
	virtual(t, zktest.Options{Latency: fixed(oneWay)}, func(t *testing.T, srv *zktest.Server) {
		type turn struct{ from, to time.Time }
		turns := make(chan turn, members)
		var ends []context.CancelFunc
		for i := range members {
			e := connect(t, srv, fmt.Sprint("m", i), term).Election(path, nil)
			ctx, cancel := context.WithCancel(t.Context())
			ends = append(ends, cancel)
			go e.Run(ctx, nil, func(ctx context.Context) error {
				from := time.Now()
				<-ctx.Done()
				turns <- turn{from, time.Now()}
				return nil
			})
			time.Sleep(time.Second)
		}
		var last time.Time
		for i, end := range ends {
			time.Sleep(time.Minute)
			end()
			now := <-turns
			if i > 0 {
				require.LessOrEqual(t, now.from.Sub(last), 2*oneWay+time.Millisecond, "nobody led")
				require.Greater(t, now.from.Sub(last), time.Duration(0), "two led")
			}
			last = now.to
		}
		time.Sleep(time.Second)
	})
}

// TestTheLeaderIsKnownBeyondTheCountersEnd checks that Leader follows the order in which members queued when the sequence counter
// is exhausted.
//
//zklock:promise P17.12
func TestTheLeaderIsKnownBeyondTheCountersEnd(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		raw, c := rawClient(t, srv, term), connect(t, srv, "a", term)
		require.NoError(t, srv.PutNode(path, nil))
		for _, member := range []struct{ name, value string }{
			{"_c_00000000000000000000000000000002-lock-2147483647", "first"},
			{"_c_00000000000000000000000000000001-lock--2147483648", "second"},
			{"_c_00000000000000000000000000000003-lock-2147483647", "third"},
		} {
			_, err := raw.Create(path+"/"+member.name, []byte(member.value), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
		}
		election := c.Election(path, nil)
		stop := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "a" && r.Op == zktest.OpExists {
				return zktest.Answer(-102) // no permission
			}
			return zktest.Pass
		})
		_, err := election.Leader(t.Context())
		require.ErrorIs(t, err, zk.ErrNoAuth, "the order is unknown, so the leader is, too")
		stop()
		for _, want := range []string{"first", "second", "third"} {
			leader, err := election.Leader(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, string(leader.Data))
			require.True(t, leader.Holds)
			require.NoError(t, srv.DeleteNode(leader.Node))
		}
		_, err = election.Leader(t.Context())
		require.ErrorIs(t, err, zklock.ErrNoLeader)
	})
}

// TestAnObserverNeedsOnlyReadPermission observes with a client that has only read permission, before, during and after an election.
//
//zklock:promise P17.7
func TestAnObserverNeedsOnlyReadPermission(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		const dir, session = "/elections/all", time.Minute
		member, observer := connect(t, srv, "member", term), connect(t, srv, "observer", session)
		require.NoError(t, srv.PutNode("/elections", nil))
		reader := []zktest.ACL{{Perms: zktest.PermRead, Scheme: "ip", ID: lab.HostOf(srv, "observer")}, {Perms: zktest.PermAll, Scheme: "ip", ID: lab.HostOf(srv, "member")}}
		require.NoError(t, srv.Apply(zktest.Step{Op: zktest.OpSetACL, Path: "/elections", ACL: reader}))
		ctx, cancel := context.WithCancel(t.Context())
		w := follow(ctx, observer.Election(dir, nil))
		for i := range 2 {
			time.Sleep(time.Minute)
			_, made := srv.Node(dir)
			require.False(t, made)
			resetCounts(srv)
			time.Sleep(session)
			require.LessOrEqual(t, srv.Requests()[zktest.OpExists], 2*int(session/time.Second))
			hold, err := member.Election(dir, nil).Campaign(t.Context(), []byte{'a' + byte(i)})
			require.NoError(t, err)
			time.Sleep(time.Second)
			require.Len(t, w.leaders(), i+1)
			unlock(t, hold)
			time.Sleep(2 * time.Minute) // the directory is cleaned away
		}
		cancel()
		<-w.done
		require.ErrorIs(t, w.err, context.Canceled)
		require.Equal(t, []string{"a", "b"}, w.leaders())
	})
}

//zklock:promise P17.10
func TestALatchsDataIsNotWrittenByAnotherKindOfElection(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		hold, err := client.Election(path, &zklock.ElectionOptions{Latch: true}).Campaign(t.Context(), []byte("one"))
		require.NoError(t, err)
		err = client.Election(path, nil).Proclaim(hold.Context(), []byte("two"))
		n, _ := srv.Node(hold.Node())
		require.Zero(t, n.Version)
		require.Error(t, err)
		unlock(t, hold)
	})
}

// The leader unlocks its hold itself, and then its function fails.
//
//zklock:promise P17.4
func TestRunReturnsTheErrorOfALeaderThatHasResigned(t *testing.T) {
	for range 50 {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			c, _ := stopping(t, srv, "a")
			failed := errors.New("failed")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := c.Election(path, nil).Run(ctx, nil, func(ctx context.Context) error {
				require.NoError(t, zklock.HoldOf(ctx).Unlock(t.Context()))
				time.Sleep(time.Millisecond) // it learns of it
				return failed
			})
			require.ErrorIs(t, err, failed)
			require.NotErrorIs(t, err, zklock.ErrLost)
		})
	}
}

// A reader that waits for a writer reads its data, and does not mistake it for an election's.
//
//zklock:promise P17.10
func TestALeadersValueAdmitsNoReader(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		value := []byte(`{"pid":1,"shared":true}`)
		election := connect(t, srv, "a", term).Election(path, nil)
		_, err := election.Campaign(t.Context(), value)
		require.ErrorIs(t, err, zklock.ErrInvalid)
		hold, err := election.Campaign(t.Context(), []byte("a"))
		require.NoError(t, err)
		require.ErrorIs(t, election.Proclaim(hold.Context(), value), zklock.ErrInvalid)
		_, err = connect(t, srv, "b", term).RWMutex(path).TryRLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		unlock(t, hold)
	})
}
