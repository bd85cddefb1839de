// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// sharing is a connection that the program has made and several clients share.
type sharing struct {
	conn  *zk.Conn
	hooks *zklock.Hooks
}

// shareOn makes a connection to the given members, or to all if there are none.
func shareOn(t *testing.T, srv *zktest.Server, label string, timeout time.Duration, members ...int) sharing {
	t.Helper()
	addrs := srv.Addrs()
	if len(members) > 0 {
		addrs = nil
	}
	for _, m := range members {
		addrs = append(addrs, srv.Member(m).Addr())
	}
	hooks := zklock.NewHooks(srv.DialFrom(label))
	conn, _, err := zk.Connect(addrs, timeout, zk.WithDialer(hooks.Dial), zk.WithLogInfo(false), zk.WithHostProvider(&oneRound{}), zk.WithLogger(silent{}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return sharing{conn, hooks}
}

// attach returns a client on the connection, which is closed at the end of the test if the caller has not done so.
func (s sharing) attach(t *testing.T, opts *zklock.Options) *zklock.Client {
	t.Helper()
	c, err := zklock.Attach(t.Context(), s.conn, s.hooks, opts)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// leastOf samples a hold for a time, calls each before each sample, and returns the least share of the timeout that remained.
func leastOf(hold *zklock.Hold, timeout, lasts time.Duration, each func(i int)) (least float64) {
	least = 1
	for i := range int(lasts * 100 / timeout) {
		each(i)
		time.Sleep(timeout / 100)
		least = min(least, hold.Remaining().Seconds()/timeout.Seconds())
	}
	return least
}

// The session has one lease, so its clients have one schedule of heartbeats. One client holds while others rest, hold, close, or come and go.
//
//zklock:promise P2.6 P18.11
func TestNoClientOfAConnectionCostsAnotherItsLease(t *testing.T) {
	neighbors := map[string]func(t *testing.T, on sharing, o *zklock.Options) (each func(i int)){
		"one rests": func(t *testing.T, on sharing, o *zklock.Options) func(int) {
			on.attach(t, o)
			return func(int) {}
		},
		"four hold": func(t *testing.T, on sharing, o *zklock.Options) func(int) {
			for i := range 4 {
				_, err := on.attach(t, o).Mutex(fmt.Sprint("/other/", i)).Lock(t.Context())
				require.NoError(t, err)
			}
			return func(int) {}
		},
		"one closes": func(t *testing.T, on sharing, o *zklock.Options) func(int) {
			other := on.attach(t, o)
			return func(i int) {
				if i == 50 {
					other.Close()
				}
			}
		},
		"one comes and goes": func(t *testing.T, on sharing, o *zklock.Options) func(int) {
			return func(i int) {
				if i%20 == 0 {
					other, err := zklock.Attach(t.Context(), on.conn, on.hooks, o)
					require.NoError(t, err)
					other.Close()
				}
			}
		},
		"one is refused again and again": func(t *testing.T, on sharing, o *zklock.Options) func(int) {
			return func(i int) {
				if i%10 == 0 {
					_, err := zklock.Attach(t.Context(), on.conn, on.hooks, &zklock.Options{TickTime: 60 * time.Second})
					require.ErrorIs(t, err, zklock.ErrInvalid)
				}
			}
		},
	}
	for name, beside := range neighbors {
		for _, timeout := range []time.Duration{4 * time.Second, 10 * time.Second, 30 * time.Second} {
			for _, tick := range []time.Duration{0, 2 * time.Second} {
				virtual(t, zktest.Options{Servers: 3, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
					on, o := shareOn(t, srv, "a", timeout), &zklock.Options{TickTime: tick}
					hold, err := on.attach(t, o).Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					each := beside(t, on, o)
					least := leastOf(hold, timeout, 6*timeout, each)
					assert.GreaterOrEqual(t, least, 0.4, "%s, T = %v, tick = %v", name, timeout, tick)
					assert.NoError(t, hold.Check())
				})
			}
		}
	}
}

// A client closes while its requests are unanswered. What they were sent for is due again for the others.
//
//zklock:promise P18.11
func TestRequestsOfAClientThatHasClosedAreNoLongerWaitedFor(t *testing.T) {
	virtual(t, zktest.Options{Servers: 3, Latency: fixed(50 * time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		on := shareOn(t, srv, "a", term)
		hold, err := on.attach(t, nil).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		other := on.attach(t, nil)
		time.Sleep(2 * term)
		stop := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpSync {
				return zktest.Answer(-127)
			}
			return zktest.Pass
		})
		time.Sleep(term / 5)
		other.Close()
		stop()
		time.Sleep(term)
		least := leastOf(hold, term, 4*term, func(int) {})
		assert.GreaterOrEqual(t, least, 0.4)
		assert.NoError(t, hold.Check())
	})
}

// Two clients share a connection and hold nothing. Each is granted a free lock within the time that a single client needs.
//
//zklock:promise P7.1 P18.11
func TestAGrantNeedsNoNeighborsHeartbeats(t *testing.T) {
	for i := range 20 {
		virtual(t, zktest.Options{Servers: 3, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
			on := shareOn(t, srv, "a", term)
			one, two := on.attach(t, nil), on.attach(t, nil)
			time.Sleep(3*term + time.Duration(i)*term/20)
			for _, c := range []*zklock.Client{one, two, one} {
				began := time.Now()
				hold, err := c.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				assert.Less(t, time.Since(began), term/3)
				unlock(t, hold)
			}
		})
	}
}

// overlap lets holder, whose server is member 1 of three with a leader of that tick, hold a lock, and cuts its server off with it. It
// returns whether the next client was granted the lock before the hold had ended.
func overlap(t *testing.T, srv *zktest.Server, holder *zklock.Client, timeout, tick, cut time.Duration) bool {
	t.Helper()
	next := connectWith(t, srv, &zklock.Options{Label: "next", SessionTimeout: timeout, TickTime: tick}, 2)
	hold, err := holder.Mutex(path).Lock(t.Context())
	require.NoError(t, err)
	end := endOf(hold)
	second := lockLater(t.Context(), next.Mutex(path).Lock)
	time.Sleep(cut)
	srv.Member(1).CutOff()
	<-second.done
	require.NoError(t, second.err)
	both := hold.Context().Err() == nil
	srv.Member(1).Rejoin()
	<-end.done
	unlock(t, second.hold)
	return both
}

// The longest tick that a client of the connection has set counts, from when its Attach has succeeded until it is closed. A client that has
// set none assumes at most half the timeout. The leader's tick here is longer than both.
//
//zklock:promise P2.1 A3 P18.12
func TestTheLongestTickOfAConnectionsClientsCounts(t *testing.T) {
	const tick, timeout = 4600 * time.Millisecond, 4 * time.Second
	type attach func(t *testing.T, srv *zktest.Server, on sharing, rest time.Duration) (holder *zklock.Client)
	right := &zklock.Options{TickTime: tick}
	cases := map[string]attach{
		"a second client has set none": func(t *testing.T, _ *zktest.Server, on sharing, _ time.Duration) *zklock.Client {
			holder := on.attach(t, right)
			on.attach(t, nil)
			return holder
		},
		"a second client has set a shorter one": func(t *testing.T, _ *zktest.Server, on sharing, _ time.Duration) *zklock.Client {
			holder := on.attach(t, right)
			on.attach(t, &zklock.Options{TickTime: time.Second})
			return holder
		},
		"another connection's Attach is refused": func(t *testing.T, srv *zktest.Server, on sharing, _ time.Duration) *zklock.Client {
			holder := on.attach(t, right)
			_, err := zklock.Attach(t.Context(), shareOn(t, srv, "other", timeout, 2).conn, on.hooks, nil)
			require.ErrorIs(t, err, zklock.ErrInvalid)
			return holder
		},
		"a client with the same tick has closed": func(t *testing.T, _ *zktest.Server, on sharing, _ time.Duration) *zklock.Client {
			holder := on.attach(t, right)
			on.attach(t, right).Close()
			return holder
		},
		"a client with a shorter one was there first": func(t *testing.T, _ *zktest.Server, on sharing, rest time.Duration) *zklock.Client {
			_, err := on.attach(t, &zklock.Options{TickTime: time.Second}).Mutex("/first").Lock(t.Context())
			require.NoError(t, err)
			time.Sleep(2*timeout + rest)
			return on.attach(t, right)
		},
		"a client without one was there first": func(t *testing.T, _ *zktest.Server, on sharing, rest time.Duration) *zklock.Client {
			on.attach(t, nil)
			time.Sleep(2*timeout + rest)
			return on.attach(t, right)
		},
	}
	for name, attach := range cases {
		t.Run(name, func(t *testing.T) {
			for since := time.Duration(0); since < tick; since += tick / 8 {
				for cut := tick / 2; cut < 2*tick; cut += tick / 12 {
					o := slowLeader(tick)
					o.TickTimes[1], o.TickTimes[2] = time.Second, time.Second
					virtual(t, o, func(t *testing.T, srv *zktest.Server) {
						time.Sleep(since)
						srv.ElectLeader(0)
						holder := attach(t, srv, shareOn(t, srv, "holder", timeout, 1), 3*since)
						require.False(t, overlap(t, srv, holder, timeout, tick, cut), "leader since %v, cut off after %v", since, cut)
					})
				}
			}
		})
	}
}

// A hold of the first client survives the longer tick of a second one, whose Attach waits until the session is proven with it.
//
//zklock:promise P18.12
func TestALongerTickCostsNoHold(t *testing.T) {
	for _, first := range []time.Duration{time.Second / 2, 2 * time.Second} {
		for i := range 20 {
			virtual(t, zktest.Options{Servers: 3, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
				on := shareOn(t, srv, "a", term)
				hold, err := on.attach(t, &zklock.Options{TickTime: first}).Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				time.Sleep(2*term + time.Duration(i)*term/40)
				began := time.Now()
				on.attach(t, nil)
				assert.Greater(t, time.Since(began), term/4, "it waits for a proof that assumes its tick")
				least := leastOf(hold, term, 3*term, func(int) {})
				assert.Positive(t, least)
				assert.NoError(t, hold.Check())
				assert.GreaterOrEqual(t, leastOf(hold, term, 3*term, func(int) {}), 0.4)
			})
		}
	}
}

// Clients with a longer tick come and go, one after the other. Some of them give up before the session is proven with that tick.
//
//zklock:promise P18.12
func TestClientsWithALongerTickThatComeAndGoCostNoHold(t *testing.T) {
	for _, patience := range []time.Duration{term / 40, term / 10, term / 4, term} {
		virtual(t, zktest.Options{Servers: 3, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
			on := shareOn(t, srv, "a", term)
			hold, err := on.attach(t, &zklock.Options{TickTime: time.Second}).Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			for start := time.Now(); time.Since(start) < 10*term; {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				c, err := zklock.Attach(ctx, on.conn, on.hooks, nil)
				cancel()
				if err == nil {
					require.NoError(t, c.Close())
				}
				time.Sleep(term / 100)
				require.NoError(t, hold.Check(), "with a patience of %v, after %v", patience, time.Since(start))
			}
		})
	}
}

// The clients of a connection have the same login. The connection has logged in for the first of them, and is not replaced for the
// others: then a tick that is longer than that of the first client would be new each time one comes.
//
//zklock:promise P18.11 P18.12 P18.3
func TestClientsWithTheLoginOfTheConnectionKeepIt(t *testing.T) {
	virtual(t, walled, func(t *testing.T, srv *zktest.Server) {
		var logins atomic.Int32
		srv.Intercept(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.OpSASL {
				logins.Add(1)
			}
			return zktest.Pass
		})
		on, opts := shareOn(t, srv, "a", term), loggedInAs(`joe:se"cret`, "")
		opts.TickTime = time.Second
		hold, err := on.attach(t, opts).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		once := logins.Load()
		opts.TickTime = 0
		least := leastOf(hold, term, 10*term, func(i int) {
			if i%30 == 0 {
				require.NoError(t, on.attach(t, opts).Close())
			}
		})
		assert.Positive(t, least)
		assert.NoError(t, hold.Check())
		assert.Equal(t, once, logins.Load(), "the connection is replaced")

		_, err = zklock.Attach(t.Context(), on.conn, on.hooks, loggedInAs("joe:guess", ""))
		require.ErrorIs(t, err, zk.ErrAuthFailed, "another password is presented")
		unlock(t, hold)
	})
}

// The node of one client's hold is deleted while another client of the connection waits for it.
//
//zklock:promise P2.1 P18.11
func TestAHoldEndsBeforeANeighborIsGrantedItsLock(t *testing.T) {
	for i := range 60 {
		for name, rest := range map[string]time.Duration{"it watches its node": 100 * time.Millisecond, "it does not yet": 2 * time.Millisecond} {
			virtual(t, zktest.Options{Seed: uint64(i), Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
				on := shareOn(t, srv, "a", term)
				one, two := on.attach(t, nil), on.attach(t, nil)
				hold, err := one.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				ended := make(chan bool, 1)
				go func() { // ends with the grant
					next, err := two.Mutex(path).Lock(context.Background())
					ended <- err == nil && hold.Context().Err() != nil
					if err == nil {
						_ = next.Unlock(context.Background())
					}
				}()
				time.Sleep(rest)
				require.NoError(t, srv.DeleteNode(hold.Node()))
				require.True(t, <-ended, name)
			})
		}
	}
}

// Waiters of two clients on one node share a watch. When one client is closed, its waiter returns, and the other one's waits on without a
// request.
//
//zklock:promise P16.5 P18.11
func TestACloseWakesOnlyItsOwnWaiters(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		holder := connect(t, srv, "holder", term)
		hold, err := holder.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		on := shareOn(t, srv, "a", term)
		one, two := on.attach(t, nil), on.attach(t, nil)
		first, second := lockLater(t.Context(), one.Mutex(path).Lock), lockLater(t.Context(), two.Mutex(path).Lock)
		third := lockLater(t.Context(), two.Mutex(path).Lock)
		time.Sleep(term)
		one.Close()
		<-first.done
		require.ErrorIs(t, first.err, zklock.ErrClosed)
		require.False(t, second.returned())
		unlock(t, hold)
		for range 2 {
			select {
			case <-second.done:
				require.NoError(t, second.err)
				unlock(t, second.hold)
				second.done = nil
			case <-third.done:
				require.NoError(t, third.err)
				unlock(t, third.hold)
				third.done = nil
			}
		}
	})
}
