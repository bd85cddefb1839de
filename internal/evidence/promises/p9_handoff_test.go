// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// stay has the start and the end of a hold.
type stay struct{ from, to time.Time }

// inLine queues n clients one after the other. Each holds for the time held, except the first one, which holds for a minute. It
// returns the times of the holds.
func inLine(t *testing.T, srv *zktest.Server, n int, held time.Duration, lock func(c *zklock.Client) lockFunc) []stay {
	t.Helper()
	stays, errs := make([]stay, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		get := lock(connect(t, srv, fmt.Sprint("c", i), term))
		all.Go(func() {
			hold, err := get(t.Context())
			if errs[i] = err; err != nil {
				return
			}
			stays[i].from = time.Now()
			time.Sleep(held)
			if i == 0 {
				time.Sleep(time.Minute)
			}
			stays[i].to = time.Now()
			errs[i] = hold.Unlock(t.Context())
		})
		time.Sleep(time.Second) // the first one creates the directories
	}
	all.Wait()
	require.Equal(t, make([]error, n), errs)
	return stays
}

// A release takes a delete and an event, regardless of the length of the queue and of its history.
//
//zklock:promise P9.3
func TestEveryHandOffTakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	const oneWay = 10 * time.Millisecond
	for name, lock := range map[string]func(c *zklock.Client) lockFunc{
		"mutex":    func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock },
		"writer":   func(c *zklock.Client) lockFunc { return c.RWMutex(path).Lock },
		"election": func(c *zklock.Client) lockFunc { return campaign(c.Election(path, nil)) },
		"cohort":   func(c *zklock.Client) lockFunc { return c.Cohort(path, nil).Lock },
	} {
		for _, held := range []time.Duration{0, time.Second, 5 * time.Millisecond, time.Minute}[:4/oneIn(2)] {
			t.Run(fmt.Sprint(name, " ", held), func(t *testing.T) {
				virtual(t, zktest.Options{Latency: fixed(oneWay)}, func(t *testing.T, srv *zktest.Server) {
					for round := range 2 {
						var took []time.Duration
						stays := inLine(t, srv, 11, held, lock)
						for i := range stays[1:] {
							took = append(took, stays[i+1].from.Sub(stays[i].to))
						}
						t.Log("round", round, took)
						for _, d := range took {
							require.LessOrEqual(t, d, 2*oneWay+time.Millisecond, "%v", took)
						}
					}
				})
			})
		}
	}
}

// When the last writer ahead of a reader has left, the reader checks whether the writers further ahead have left as well. A
// waiter for permits checks how many permits are free and how many there are.
//
//zklock:promise P9.3
func TestAnUnpreparedHandOffTakesAtMostThreeRoundTrips(t *testing.T) {
	const oneWay, members = 10 * time.Millisecond, 9
	reader := func(c *zklock.Client) lockFunc { return c.RWMutex(path).RLock }
	permit := func(c *zklock.Client) lockFunc { return c.Semaphore(path, 1).Permits(1).Lock }
	for name, kind := range map[string]struct {
		writers int // who come first
		lock    func(c *zklock.Client) lockFunc
		trips   int
	}{
		"a reader behind one writer": {1, reader, 1}, "a reader behind two": {2, reader, 3}, "a reader behind six": {6, reader, 3},
		"a permit": {0, permit, 3},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{Latency: fixed(oneWay)}, func(t *testing.T, srv *zktest.Server) {
				come := 0
				stays := inLine(t, srv, members, 3*time.Second, func(c *zklock.Client) lockFunc {
					if come++; come <= kind.writers {
						return c.RWMutex(path).Lock
					}
					return kind.lock(c)
				})
				for i := max(1, kind.writers); i < members; i++ {
					before := stays[i-1] // of a permit
					if kind.writers > 0 {
						before = stays[kind.writers-1]
					}
					took := stays[i].from.Sub(before.to)
					require.LessOrEqual(t, took, time.Duration(kind.trips)*2*oneWay+time.Millisecond)
					require.Positive(t, took)
				}
			})
		})
	}
}

// A release fires the watches of the next waiter and of the one after it, in a queue of any length.
//
//zklock:promise P9.5
func TestAReleaseWakesTwo(t *testing.T) {
	for _, n := range []int{3, 30} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			ctx, cancel := context.WithCancel(t.Context())
			holds := make(chan *zklock.Hold, n)
			var all sync.WaitGroup
			for i := range n {
				c := connect(t, srv, fmt.Sprint("c", i), term)
				all.Go(func() {
					if hold, err := c.Mutex(path).Lock(ctx); err == nil {
						holds <- hold
					}
				})
				time.Sleep(time.Second)
			}
			for left := n; left > 0; left-- {
				hold := <-holds
				woken, foreign := 0, map[string]int{}
				for watched, watchers := range srv.Watches() {
					if watched == hold.Node() {
						woken += watchers
					}
					if strings.HasPrefix(watched, path+"/") {
						foreign[watched] += watchers
					}
				}
				require.LessOrEqual(t, woken, min(left, 3), "the holder, the next and the one after it")
				for node, watchers := range foreign {
					require.LessOrEqual(t, watchers, 3, node)
				}
				unlock(t, hold)
				time.Sleep(time.Second)
			}
			cancel()
			all.Wait()
		})
	}
}

// The last of three waiters must not take the end of the first for the end of the second. When the second gives up, the last must
// not take those behind the second for gone.
//
//zklock:promise P1.1
func TestContendersThatGiveUpAroundAWaiterCauseNoGrant(t *testing.T) {
	for mask := range 16 { // which of four waiters between the holder and the last give up
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			holder, err := connect(t, srv, "holder", term).Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			var waiters []*attempt
			var cancels []context.CancelFunc
			for i := range 5 {
				ctx, cancel := context.WithCancel(t.Context())
				waiters = append(waiters, lockLater(ctx, connect(t, srv, fmt.Sprint("c", i), term).Mutex(path).Lock))
				cancels = append(cancels, cancel)
				time.Sleep(time.Second)
			}
			for _, i := range []int{2, 0, 3, 1} {
				if mask&(1<<i) != 0 {
					cancels[i]()
					<-waiters[i].done
					require.Error(t, waiters[i].err)
					time.Sleep(time.Second)
				}
			}
			for _, w := range waiters {
				require.False(t, w.returned() && w.err == nil, "granted while another holds")
			}
			hold := holder
			for i, w := range waiters {
				if mask&(1<<i) != 0 && i < 4 {
					continue
				}
				require.False(t, w.returned())
				unlock(t, hold)
				time.Sleep(time.Second)
				require.True(t, w.returned(), "%04b: %d waits on", mask, i)
				require.NoError(t, w.err)
				hold = w.hold
			}
			unlock(t, hold)
			for _, cancel := range cancels {
				cancel()
			}
		})
	}
}
