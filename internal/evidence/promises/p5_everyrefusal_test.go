// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// In these tests, a server refuses the n-th request of a call, for every n. The connection and the session are not affected, so
// the refusal is the only sign of a problem.

// refusals are errors with which a server may answer any request: a missing permission, because of a temporary ACL, and an
// internal error.
var refusals = map[string]int32{"permission": zktest.CodeNoAuth, "its own error": zktest.CodeRuntimeInconsistency}

// company counts the holders of a lock.
type company struct {
	mu      sync.Mutex
	inside  []*zklock.Hold // guarded by mu
	clashes int            // guarded by mu: how many times a holder entered while another one had a valid hold
}

func (c *company) enter(h *zklock.Hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.inside, func(other *zklock.Hold) bool { return other.Check() == nil }) {
		c.clashes++
	}
	c.inside = append(c.inside, h)
}

func (c *company) leave(h *zklock.Hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside = slices.DeleteFunc(c.inside, func(other *zklock.Hold) bool { return other == h })
}

// stay returns a call that locks, calls do with the hold, and unlocks.
func (c *company) stay(lock lockFunc, do func(ctx context.Context, h *zklock.Hold) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		hold, err := lock(ctx)
		if err != nil {
			return err
		}
		c.enter(hold)
		done := do(ctx, hold)
		c.leave(hold)
		return errors.Join(done, hold.Unlock(ctx))
	}
}

// cycle returns a call that locks, waits for a while, checks the hold and unlocks.
func (c *company) cycle(lock lockFunc) func(ctx context.Context) error {
	return c.stay(lock, func(ctx context.Context, h *zklock.Hold) error {
		time.Sleep(100 * time.Millisecond)
		return h.Confirm(ctx)
	})
}

// lead returns a call in which a leader changes its value.
func (c *company) lead(e *zklock.Election) func(ctx context.Context) error {
	campaign := func(ctx context.Context) (*zklock.Hold, error) { return e.Campaign(ctx, []byte("a")) }
	return c.stay(campaign, func(ctx context.Context, h *zklock.Hold) error {
		told := e.Proclaim(h.Context(), []byte("b"))
		_, found := e.Leader(ctx)
		return errors.Join(told, found)
	})
}

// downgrade returns a call in which a writer downgrades.
func (c *company) downgrade(lock *zklock.RWMutex) func(ctx context.Context) error {
	return c.stay(lock.Lock, func(ctx context.Context, h *zklock.Hold) error { return h.Downgrade(ctx) })
}

// all returns a function that acquires two locks with LockAll.
func all(c *zklock.Client) lockFunc {
	return func(ctx context.Context) (*zklock.Hold, error) {
		return c.LockAll(ctx, c.Mutex(path), c.Mutex("/locks/other"))
	}
}

// refusable are the calls whose requests are refused in turn.
var refusable = []struct {
	name  string
	delay time.Duration
	call  func(c *zklock.Client, inside *company) func(ctx context.Context) error
}{
	{"mutex", 0, func(c *zklock.Client, inside *company) func(ctx context.Context) error {
		return inside.cycle(c.Mutex(path).Lock)
	}},
	{"try", 0, func(c *zklock.Client, inside *company) func(ctx context.Context) error {
		return inside.cycle(c.Mutex(path).TryLock)
	}},
	{"reentrant", 0, func(c *zklock.Client, inside *company) func(ctx context.Context) error {
		return inside.cycle(c.Reentrant(path).Lock)
	}},
	{"writer", 0, func(c *zklock.Client, inside *company) func(ctx context.Context) error {
		return inside.cycle(c.RWMutex(path).Lock)
	}},
	{"writer that becomes a reader", 0, func(c *zklock.Client, inside *company) func(ctx context.Context) error {
		return inside.downgrade(c.RWMutex(path))
	}},
	{"several locks", 0, func(c *zklock.Client, inside *company) func(ctx context.Context) error { return inside.cycle(all(c)) }},
	{"leader", 0, func(c *zklock.Client, inside *company) func(ctx context.Context) error {
		return inside.lead(c.Election(path, nil))
	}},
	{"cohort", 0, func(c *zklock.Client, inside *company) func(ctx context.Context) error {
		return inside.cycle(c.Cohort(path, nil).Lock)
	}},
	{"lock-delay", time.Second, func(c *zklock.Client, inside *company) func(ctx context.Context) error {
		return inside.cycle(c.Mutex(path).Lock)
	}},
	{"slot", 0, func(c *zklock.Client, inside *company) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			return slots.Named(c, path, "nightly").Do(ctx, func(context.Context) error { return nil })
		}
	}},
}

// TestARefusalOfAnyRequestHarmsNoOther also acquires the lock with another client. Whatever the first client's call returns, the two
// never hold together, and no node of the first client blocks the other, although its session is alive.
//
//zklock:promise P5.5
func TestARefusalOfAnyRequestHarmsNoOther(t *testing.T) {
	t.Parallel()
	for _, r := range refusable {
		for refusal, code := range refusals {
			for _, waits := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/waits %v", r.name, refusal, waits), func(t *testing.T) {
					atEveryRequest(t, func(t *testing.T, srv *zktest.Server, n int) bool {
						victim, other := delayedBy(t, srv, "victim", r.delay), delayedBy(t, srv, "other", r.delay)
						synctest.Wait() // the client library reads its last zxid without synchronization when it has just connected
						var inside company
						theirs := later(t.Context(), 10*time.Millisecond, inside.cycle(other.Mutex(path).Lock))
						if waits {
							time.Sleep(50 * time.Millisecond)
						}
						struck := strikeOnce(srv, "victim", n, func(*zktest.Request) zktest.Verdict { return zktest.Answer(code) })
						ctx, cancel := context.WithTimeout(t.Context(), 3*term)
						defer cancel()
						err := r.call(victim, &inside)(ctx)
						assert.NotErrorIs(t, err, context.DeadlineExceeded)
						require.NoError(t, <-theirs)
						require.Zero(t, inside.clashes, "both were inside")
						unlockSoonAs(t, other, asMutex)
						time.Sleep(3 * term) // until an idle cohort's place is deleted, and refused requests are retried
						noGhost(t, srv, path)
						return struck() && n < 30 // heartbeats never stop
					})
				})
			}
		}
	}
}

// later makes a call after a delay.
func later(ctx context.Context, after time.Duration, call func(ctx context.Context) error) (err <-chan error) {
	done := make(chan error, 1)
	go func() {
		time.Sleep(after)
		done <- call(ctx)
	}()
	return done
}

// atEveryRequest calls strike for every n. strike runs a scenario in which the n-th request is refused, and returns false if
// there was none.
func atEveryRequest(t *testing.T, strike func(t *testing.T, srv *zktest.Server, n int) bool) {
	for n, struck := 0, true; struck; n += oneIn(16) {
		t.Run(fmt.Sprint("request ", n), func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) { struck = strike(t, srv, n) })
		})
		require.False(t, t.Failed(), "request %d", n)
		require.True(t, struck || n > 0, "no request was refused")
	}
}

// A refused call of an operator returns the refusal, and any other call returns a correct result.
//
//zklock:promise P19.6
func TestARefusedListingIsNotAnEmptyQueue(t *testing.T) {
	looks := map[string]func(ctx context.Context, c *zklock.Client) (int, error){
		"a mutex": func(ctx context.Context, c *zklock.Client) (int, error) {
			return contendersOf(operate.Inspect(ctx, c, path))
		},
		"permits": func(ctx context.Context, c *zklock.Client) (int, error) {
			return contendersOf(operate.Inspect(ctx, c, "/permits"))
		},
		"all queues": func(ctx context.Context, c *zklock.Client) (int, error) {
			queues, err := operate.Queues(ctx, c, "/")
			n := 0
			for _, q := range queues {
				n += len(q.Contenders)
			}
			return n / 2, err
		},
	}
	for name, look := range looks {
		for refusal, code := range refusals {
			t.Run(name+"/"+refusal, func(t *testing.T) {
				atEveryRequest(t, func(t *testing.T, srv *zktest.Server, n int) bool {
					holder, victim := connect(t, srv, "holder", term), connect(t, srv, "victim", term)
					_, err := holder.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					_, err = holder.Semaphore("/permits", 2).Acquire(t.Context(), 1)
					require.NoError(t, err)
					struck := strikeOnce(srv, "victim", n, func(*zktest.Request) zktest.Verdict { return zktest.Answer(code) })
					ctx, cancel := context.WithTimeout(t.Context(), term)
					defer cancel()
					found, err := look(ctx, victim)
					if err == nil {
						require.Equal(t, 1, found)
					}
					require.NotErrorIs(t, err, context.DeadlineExceeded)
					return struck() && n < 30
				})
			})
		}
	}
}

func contendersOf(q *operate.Queue, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return len(q.Contenders), nil
}
