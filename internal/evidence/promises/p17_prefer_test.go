// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// larger prefers larger values.
func larger(a, b []byte) bool { return string(a) > string(b) }

// ranks is an election whose members have values of different rank. It checks that one leads at a time: a term has ended when the
// next one begins. If the servers end a session at once, both happen at the same moment, in any order.
type ranks struct {
	t    *testing.T
	srv  *zktest.Server
	opts zklock.ElectionOptions

	mu     sync.Mutex
	leader string    // guarded by mu: of the last term that began; empty if it has ended
	since  time.Time // guarded by mu: when that was
	terms  []string  // guarded by mu: who has led
	begun  int       // guarded by mu: how many terms
	causes []error   // guarded by mu: why terms have ended
	stops  map[string]func()
}

func newRanks(t *testing.T, srv *zktest.Server, opts zklock.ElectionOptions) *ranks {
	return &ranks{t: t, srv: srv, opts: opts, stops: map[string]func(){}}
}

// join starts a member with a value.
func (r *ranks) join(value string) { r.joinWith(connect(r.t, r.srv, value, term), value, r.opts) }

func (r *ranks) joinWith(c *zklock.Client, value string, opts zklock.ElectionOptions) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := c.Election(path, &opts).Run(ctx, []byte(value), func(ctx context.Context) error {
			r.mu.Lock()
			r.leader, r.since = value, time.Now()
			r.terms = append(r.terms, value)
			r.begun++
			n := r.begun
			r.mu.Unlock()
			<-ctx.Done()
			r.mu.Lock()
			defer r.mu.Unlock()
			if n == r.begun {
				r.leader = ""
			} else {
				assert.Zero(r.t, time.Since(r.since), "two leaders")
			}
			r.causes = append(r.causes, context.Cause(ctx))
			return ctx.Err()
		})
		assert.ErrorIs(r.t, err, context.Canceled)
	}()
	r.stops[value] = func() { cancel(); <-done }
}

func (r *ranks) leave(value string) {
	r.stops[value]()
	delete(r.stops, value)
}

func (r *ranks) leads() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leader
}

// led returns who has led, and why their terms have ended.
func (r *ranks) led() (terms []string, causes []error) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.terms), slices.Clone(r.causes)
}

func (r *ranks) end() {
	for _, stop := range r.stops {
		stop()
	}
	noGhost(r.t, r.srv, path)
}

// The preferred member leads a session timeout after it has joined, if the leader has led for as long.
//
//zklock:promise P17.13
func TestAPreferredMemberThatJoinsLeads(t *testing.T) {
	t.Parallel()
	for _, latch := range []bool{false, true} {
		virtual(t, three, func(t *testing.T, srv *zktest.Server) {
			r := newRanks(t, srv, zklock.ElectionOptions{Prefer: larger, Latch: latch})
			for _, value := range []string{"1a", "1b", "1c", "1d"} {
				r.join(value)
				time.Sleep(time.Second)
			}
			require.Equal(t, "1a", r.leads())
			time.Sleep(2 * term)
			terms, _ := r.led()
			require.Equal(t, []string{"1a", "1d"}, terms, "1b and 1c are granted, and do not lead")
			r.join("9")
			time.Sleep(100 * time.Millisecond)
			require.Equal(t, "9", r.leads(), "the leader had led for long enough")
			_, causes := r.led()
			require.Equal(t, []error{zklock.ErrPreferred, zklock.ErrPreferred}, causes)
			r.join("5")
			time.Sleep(3 * term)
			require.Equal(t, "9", r.leads())
			r.leave("9")
			time.Sleep(time.Second)
			require.Equal(t, "5", r.leads(), "the best of those that are left")
			r.end()
		})
	}
}

// Whoever is granted the leadership while a preferred member waits campaigns again, and does not lead.
//
//zklock:promise P17.13
func TestAMemberDoesNotLeadWhileAPreferredOneWaits(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "without a preference", term).Election(path, nil).Campaign(t.Context(), []byte("0"))
		require.NoError(t, err)
		r := newRanks(t, srv, zklock.ElectionOptions{Prefer: larger})
		for i := range 8 {
			r.join(fmt.Sprint(i))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(3 * term)
		terms, _ := r.led()
		require.Empty(t, terms, "a member without a preference does not give up its leadership")
		unlock(t, hold)
		time.Sleep(time.Second)
		terms, _ = r.led()
		require.Equal(t, []string{"7"}, terms)
		r.end()
	})
}

// A preferred member that comes and goes costs the fleet at most one term in a session timeout, and others lead meanwhile.
//
//zklock:promise P17.14
func TestAPreferredMemberThatComesAndGoesCostsFewTerms(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		r := newRanks(t, srv, zklock.ElectionOptions{Prefer: larger})
		r.join("1")
		r.join("2")
		time.Sleep(3 * term)
		require.Equal(t, "2", r.leads())
		r.mu.Lock()
		r.terms = nil
		r.mu.Unlock()
		c := connect(t, srv, "flapping", term)
		begin := time.Now()
		led := time.Duration(0)
		for range 300 {
			r.joinWith(c, "9", r.opts)
			time.Sleep(70 * time.Millisecond)
			r.leave("9")
			time.Sleep(230 * time.Millisecond)
			if l := r.leads(); l == "1" || l == "2" {
				led += 300 * time.Millisecond
			}
		}
		elapsed := time.Since(begin)
		own := 0
		terms, _ := r.led()
		for _, who := range terms {
			if who != "9" {
				own++
			}
		}
		require.LessOrEqual(t, own, 2*int(elapsed/term)+2, "two members each end at most one term in a session timeout")
		require.Greater(t, led, elapsed/2)
		time.Sleep(3 * term)
		require.Equal(t, "2", r.leads())
		r.end()
	})
}

// A fleet is upgraded one member at a time, in any order. It ends on the newest version, and no older one begins to lead while a newer one waits.
//
//zklock:promise P17.13
func TestARollingUpgradeEndsOnTheNewestVersion(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		virtual(t, three, func(t *testing.T, srv *zktest.Server) {
			rnd := rand.New(rand.NewPCG(seed, 17))
			r := newRanks(t, srv, zklock.ElectionOptions{Prefer: func(a, b []byte) bool { return string(a[:2]) > string(b[:2]) }})
			members := rnd.Perm(5)
			for _, m := range members {
				r.join(fmt.Sprint("v1 ", m))
				time.Sleep(time.Duration(rnd.Int64N(int64(term))))
			}
			rnd.Shuffle(5, func(i, j int) { members[i], members[j] = members[j], members[i] })
			for _, m := range members {
				r.leave(fmt.Sprint("v1 ", m))
				time.Sleep(time.Duration(rnd.Int64N(int64(time.Second))))
				r.join(fmt.Sprint("v2 ", m))
				time.Sleep(time.Duration(rnd.Int64N(int64(2 * term))))
			}
			time.Sleep(2 * term)
			require.Equal(t, "v2", r.leads()[:2])
			seen := false
			terms, _ := r.led()
			for _, who := range terms {
				seen = seen || who[:2] == "v2"
				require.False(t, seen && who[:2] == "v1", "%v", terms)
			}
			r.end()
		})
	}
}

//zklock:promise P17.15
func TestAPreferenceThatIsNoOrderIsRefused(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		resetCounts(srv)
		for name, opts := range map[string]zklock.ElectionOptions{
			"itself": {Prefer: func(a, b []byte) bool { return true }},
			"every":  {HealthEvery: -1},
		} {
			err := a.Election(path, &opts).Run(t.Context(), []byte("a"), nothing)
			require.ErrorIs(t, err, zklock.ErrInvalid, name)
		}
		require.Zero(t, srv.RequestCount())

		opts := zklock.ElectionOptions{Prefer: func(a, b []byte) bool { return string(a) != string(b) }} // each prefers the other
		// The leader learns it when the other one joins, the other one when it is granted the leadership.
		var wg sync.WaitGroup
		for _, c := range []*zklock.Client{a, b} {
			wg.Go(func() {
				err := c.Election(path, &opts).Run(t.Context(), []byte(c.String()), func(ctx context.Context) error {
					<-ctx.Done()
					return nil
				})
				assert.ErrorIs(t, err, zklock.ErrInvalid)
				assert.ErrorContains(t, err, "Prefer is no order")
			})
			time.Sleep(time.Second)
		}
		time.Sleep(term)
		hold, err := connect(t, srv, "c", term).Election(path, nil).Campaign(t.Context(), []byte("c"))
		require.NoError(t, err)
		time.Sleep(term)
		unlock(t, hold)
		wg.Wait()
		noGhost(t, srv, path)
	})
}

// A panic of Prefer releases the leadership before it continues in Run, whether it happens before the term or in it.
//
//zklock:promise P17.15
func TestAPreferenceThatPanics(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		opts := zklock.ElectionOptions{Prefer: func(a, b []byte) bool {
			if string(a) == "bad" {
				panic("no rank")
			}
			return false
		}}
		for _, joins := range []string{"before", "later"} {
			t.Log(joins)
			c, other := connect(t, srv, "a "+joins, term), connect(t, srv, "b "+joins, term).Election(path, nil)
			var first *zklock.Hold
			var bad *attempt
			if joins == "before" {
				var err error
				first, err = connect(t, srv, "first", term).Election(path, nil).Campaign(t.Context(), nil)
				require.NoError(t, err)
			}
			panicked := make(chan any)
			go func() {
				defer func() { panicked <- recover() }()
				c.Election(path, &opts).Run(t.Context(), []byte("good"), func(ctx context.Context) error { <-ctx.Done(); return nil })
			}()
			time.Sleep(time.Second)
			bad = campaignLater(t.Context(), other, "bad")
			time.Sleep(time.Second)
			if first != nil {
				unlock(t, first)
			}
			require.Equal(t, "no rank", <-panicked)
			<-bad.done
			require.NoError(t, bad.err, "the leadership is free")
			unlock(t, bad.hold)
		}
		noGhost(t, srv, path)
	})
}

// What a preference costs: a member reads the value of each other member once, a leader also reads that of each one that joins.
//
//zklock:promise P17.14
func TestCostOfAPreference(t *testing.T) {
	t.Parallel()
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		const members = 60
		r := newRanks(t, srv, zklock.ElectionOptions{Prefer: larger})
		r.join("90")
		time.Sleep(2 * term)
		for i := range members - 1 {
			r.join(fmt.Sprint(10 + i))
		}
		time.Sleep(2 * term)
		resetCounts(srv)
		r.join("50 again")
		time.Sleep(term)
		joined := srv.Requests()
		resetCounts(srv)
		r.leave("90")
		time.Sleep(term / 2)
		handed := srv.Requests()
		require.Equal(t, "68", r.leads())
		reads := func(of map[zktest.Op]int) int {
			return of[zktest.OpGetData] + of[zktest.OpGetChildren2] + of[zktest.OpGetChildren]
		}
		t.Log("one joins:", reads(joined), "the leader leaves, and all who wait are granted in turn:", reads(handed))
		require.LessOrEqual(t, reads(joined), 10)
		require.LessOrEqual(t, reads(handed), 8*members)
		r.end()
	})
}

// A preference survives every fault: one leads at a time, and the preferred member in the end.
//
//zklock:promise P17.13
func TestAPreferenceThroughAnyFault(t *testing.T) {
	t.Parallel()
	throughEveryFault(t, 10, func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) (struck bool) {
		r := newRanks(t, srv, zklock.ElectionOptions{Prefer: larger})
		r.join("1")
		time.Sleep(term + time.Second)
		var mu sync.Mutex
		seen, over := 0, false
		srv.Intercept(func(q *zktest.Request) zktest.Verdict {
			mu.Lock()
			defer mu.Unlock()
			if q.Op == zktest.OpPing {
				return zktest.Pass
			}
			seen++
			if seen != n+1 || over {
				return zktest.Pass
			}
			struck = true
			return verdict(srv, q, func() {})
		})
		r.join("2")
		time.Sleep(2 * term)
		mu.Lock()
		over = true
		mu.Unlock()
		time.Sleep(4 * term)
		require.Equal(t, "2", r.leads())
		r.end()
		return struck
	})
}

// A check that fails ends the term. Until one succeeds, the member has no node in the queue.
//
//zklock:promise P17.16
func TestAMemberThatIsNotHealthyDoesNotLead(t *testing.T) {
	t.Parallel()
	sick := errors.New("disk is full")
	hang := errors.New("hang")
	for name, failure := range map[string]error{"fails": sick, "hangs": hang, "panics": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				var mu sync.Mutex
				bad, atOnce, most := false, 0, 0
				r := newRanks(t, srv, zklock.ElectionOptions{HealthEvery: 2 * time.Second})
				opts := r.opts
				opts.Healthy = func(ctx context.Context) error {
					mu.Lock()
					is := bad
					atOnce++
					most = max(most, atOnce)
					mu.Unlock()
					defer func() {
						mu.Lock()
						atOnce--
						mu.Unlock()
					}()
					switch {
					case !is:
						return nil
					case failure == hang:
						time.Sleep(9 * time.Second) // ignores its context
						return nil
					case failure == nil:
						panic("broken check")
					}
					return failure
				}
				set := func(is bool) {
					mu.Lock()
					defer mu.Unlock()
					bad = is
				}
				r.joinWith(connect(t, srv, "a", term), "a", opts)
				time.Sleep(time.Second)
				r.join("b")
				time.Sleep(term)
				require.Equal(t, "a", r.leads())
				set(true)
				time.Sleep(5 * time.Second)
				require.Equal(t, "b", r.leads())
				_, causes := r.led()
				require.ErrorIs(t, causes[0], zklock.ErrUnhealthy)
				if failure == sick {
					require.ErrorIs(t, causes[0], sick)
				}
				require.Len(t, queue(srv, path), 1, "it does not campaign")
				time.Sleep(3 * term)
				terms, _ := r.led()
				require.Len(t, terms, 2)
				set(false)
				time.Sleep(2 * term)
				require.Len(t, queue(srv, path), 2)
				r.leave("b")
				time.Sleep(time.Second)
				require.Equal(t, "a", r.leads())
				r.end()
				mu.Lock()
				defer mu.Unlock()
				require.Equal(t, 1, most, "one check at a time")
			})
		})
	}
}

// A member that is not healthy at first does not campaign, and says why it waits.
//
//zklock:promise P17.16
func TestAMemberThatWasNeverHealthyDoesNotCampaign(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		opts := &zklock.ElectionOptions{Healthy: func(context.Context) error { return errors.New("not warm yet") }}
		c := connect(t, srv, "a", term)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.Election(path, opts).Run(ctx, nil, nothing)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "not warm yet")
		require.Nil(t, srv.Children(path))
		done := make(chan error)
		go func() { done <- c.Election(path, opts).Run(t.Context(), nil, nothing) }()
		time.Sleep(time.Second)
		c.Close()
		require.ErrorIs(t, <-done, zklock.ErrClosed)
	})
}

// Both options together: a preferred member leads only while it is healthy.
//
//zklock:promise P17.13 P17.16
func TestAPreferredMemberThatIsNotHealthyDoesNotLead(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		var mu sync.Mutex
		var sick error
		r := newRanks(t, srv, zklock.ElectionOptions{Prefer: larger})
		best := r.opts
		best.HealthEvery = time.Second
		best.Healthy = func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			return sick
		}
		r.join("1")
		r.joinWith(connect(t, srv, "9", term), "9", best)
		time.Sleep(2 * term)
		require.Equal(t, "9", r.leads())
		for range 3 {
			mu.Lock()
			sick = errors.New("sick")
			mu.Unlock()
			time.Sleep(2 * term)
			require.Equal(t, "1", r.leads())
			mu.Lock()
			sick = nil
			mu.Unlock()
			time.Sleep(2 * term)
			require.Equal(t, "9", r.leads())
		}
		r.end()
	})
}
