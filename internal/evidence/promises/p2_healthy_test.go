// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// lowest samples Remaining for a while and returns the lowest value.
func lowest(h *zklock.Hold, during time.Duration) time.Duration {
	least := h.Remaining()
	for until := time.Now().Add(during); time.Now().Before(until); time.Sleep(7 * time.Millisecond) {
		least = min(least, h.Remaining())
	}
	return least
}

// On a healthy network, four tenths of the timeout remain at all times from the grant on, for every recipe and regardless of the
// wait.
//
//zklock:promise P2.5
func TestAWarmHoldHasFourTenthsOfTheTimeoutLeftAtEveryMoment(t *testing.T) {
	t.Parallel()
	locks := map[string]func(c *zklock.Client) lockFunc{
		"mutex":     func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock },
		"writer":    func(c *zklock.Client) lockFunc { return c.RWMutex(path).Lock },
		"reader":    func(c *zklock.Client) lockFunc { return c.RWMutex(path).RLock },
		"semaphore": func(c *zklock.Client) lockFunc { return c.Semaphore(path, 1).Permits(1).Lock },
		"election":  func(c *zklock.Client) lockFunc { return campaign(c.Election(path, nil)) },
	}
	for name, lock := range locks {
		for _, session := range []time.Duration{4 * time.Second, 10 * time.Second, 30 * time.Second}[:3/oneIn(3)] {
			for _, wait := range []time.Duration{0, session / 10, session / 2, 3 * session, 40 * session} {
				t.Run(fmt.Sprint(name, " ", session, " ", wait), func(t *testing.T) {
					virtual(t, zktest.Options{Servers: 3, TickTime: 2 * time.Second, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
						front, behind := connect(t, srv, "front", session), connect(t, srv, "behind", session)
						first, err := front.RWMutex(path).Lock(t.Context())
						if name == "semaphore" {
							require.NoError(t, first.Unlock(t.Context()))
							first, err = front.Semaphore(path, 1).Acquire(t.Context(), 1)
						}
						require.NoError(t, err)
						second := lockLater(t.Context(), lock(behind))
						time.Sleep(wait)
						unlock(t, first)
						<-second.done
						require.NoError(t, second.err)
						require.GreaterOrEqual(t, lowest(second.hold, 3*session), session*4/10)
						unlock(t, second.hold)
						again, err := lock(behind)(t.Context())
						require.NoError(t, err)
						require.GreaterOrEqual(t, lowest(again, session), session*4/10, "used a while ago")
						unlock(t, again)
					})
				})
			}
		}
	}
}

// If a round trip takes a tenth of the timeout, heartbeats follow one another without waiting for the answers.
//
//zklock:promise P7.2
func TestAHoldFarFromItsServersIsCertainAllTheTime(t *testing.T) {
	const session = 10 * time.Second
	virtual(t, zktest.Options{Servers: 3, TickTime: 2 * time.Second, Latency: fixed(session / 20)}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "far", session).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(session)
		require.Positive(t, lowest(hold, 20*session))
		require.NoError(t, hold.Check())
		unlock(t, hold)
	})
}

// A client that has just connected, an idle one and a busy one are all granted at once, and four tenths of the timeout remain
// from the grant on.
//
//zklock:promise P2.6
func TestAHoldsLeaseDoesNotDependOnEarlierIdleTime(t *testing.T) {
	t.Parallel()
	for _, session := range []time.Duration{4 * time.Second, 10 * time.Second, 30 * time.Second}[:3/oneIn(3)] {
		idles := []time.Duration{20 * session, 1000 * session}
		for phase := 0; phase < 24; phase += oneIn(12) {
			idles = append(idles, time.Duration(phase)*session/16, 200*session+time.Duration(phase)*session/16)
		}
		for _, idle := range idles {
			virtual(t, zktest.Options{Servers: 3, TickTime: 2 * time.Second, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
				client := connect(t, srv, "a", session)
				time.Sleep(idle)
				began := time.Now()
				hold, err := client.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				require.Less(t, time.Since(began), 20*time.Millisecond, "nobody waits for a proof")
				require.GreaterOrEqual(t, lowest(hold, 2*session), session*4/10, "session %v, idle %v", session, idle)
				unlock(t, hold)
			})
		}
	}
}

// If replies vary, so that some take ten times as long as others, the interval of heartbeats adapts.
//
//zklock:promise P2.5
func TestAHoldHasFourTenthsLeftThoughReplyTimesVary(t *testing.T) {
	t.Parallel()
	const tick, slow = 6 * time.Second, 25 * time.Millisecond
	varies := func(r *rand.Rand) time.Duration {
		if r.IntN(100) == 0 {
			return slow
		}
		return time.Duration(r.Int64N(int64(slow / 5)))
	}
	for ticks := time.Duration(2); ticks <= 4; ticks++ {
		virtual(t, zktest.Options{Servers: 3, TickTime: tick, Latency: varies}, func(t *testing.T, srv *zktest.Server) {
			hold, err := connect(t, srv, "a", ticks*tick).Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			least := lowest(hold, time.Hour/time.Duration(oneIn(6)))
			t.Logf("%d ticks: %.3f of the timeout remained at least", ticks, least.Seconds()/(ticks*tick).Seconds())
			require.GreaterOrEqual(t, least, ticks*tick*4/10-ticks*tick/64-4*slow, "the heartbeat that proves more can itself be slow")
			unlock(t, hold)
		})
	}
}

// A waiter far back in the queue sends no syncs until it is next. If all contenders ahead leave at the same time, the proof from
// the reply to its create may be old, although still sufficient. It gets a new proof before its grant.
//
//zklock:promise P2.5
func TestAnUnexpectedHoldHasFourTenthsOfTheTimeoutLeft(t *testing.T) {
	t.Parallel()
	const session = 10 * time.Second
	for waited := session / 20; waited < session; waited += time.Duration(oneIn(4)) * session / 20 {
		t.Run(fmt.Sprint(waited), func(t *testing.T) {
			virtual(t, zktest.Options{Servers: 3, TickTime: 2 * time.Second, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for _, label := range []string{"first", "second", "third", "fourth"} {
					lockLater(ctx, connect(t, srv, label, session).Mutex(path).Lock)
					time.Sleep(100 * time.Millisecond)
				}
				fifth := lockLater(t.Context(), connect(t, srv, "fifth", session).Mutex(path).Lock)
				time.Sleep(waited)
				names := queue(srv, path)
				slices.SortFunc(names, func(a, b string) int {
					return strings.Compare(a[strings.LastIndex(a, "-"):], b[strings.LastIndex(b, "-"):])
				})
				for _, name := range names[:4] {
					require.NoError(t, srv.DeleteNode(path+"/"+name))
				}
				<-fifth.done
				require.NoError(t, fifth.err)
				require.GreaterOrEqual(t, lowest(fifth.hold, session), session*4/10)
				unlock(t, fifth.hold)
			})
		})
	}
}
