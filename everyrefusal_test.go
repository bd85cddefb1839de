package zklock_test

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

// The tests here have a server refuse the n-th request of a call, for every n. The connection stands and the session lives:
// nothing but the refusal tells the client that anything is wrong.

// refusals are what a server may answer to any request: an ACL that was changed for a moment, and an error of its own.
var refusals = map[string]int32{"permission": zktest.CodeNoAuth, "its own error": zktest.CodeRuntimeInconsistency}

// company are those who are inside of a lock.
type company struct {
	mu      sync.Mutex
	inside  []*zklock.Hold // guarded by mu
	clashes int            // guarded by mu: how often somebody entered while another was inside and had not lost its hold
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

// stay is a call that locks, does something with the hold, and unlocks.
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

// cycle stays for a while, and looks whether it still holds.
func (c *company) cycle(lock lockFunc) func(ctx context.Context) error {
	return c.stay(lock, func(ctx context.Context, h *zklock.Hold) error {
		time.Sleep(100 * time.Millisecond)
		return h.Confirm(ctx)
	})
}

// lead is a term of a leader that changes its value.
func (c *company) lead(e *zklock.Election) func(ctx context.Context) error {
	campaign := func(ctx context.Context) (*zklock.Hold, error) { return e.Campaign(ctx, []byte("a")) }
	return c.stay(campaign, func(ctx context.Context, h *zklock.Hold) error {
		told := e.Proclaim(h.Context(), []byte("b"))
		_, found := e.Leader(ctx)
		return errors.Join(told, found)
	})
}

// downgrade is a writer that lets readers in.
func (c *company) downgrade(lock *zklock.RWMutex) func(ctx context.Context) error {
	return c.stay(lock.Lock, func(ctx context.Context, h *zklock.Hold) error { return h.Downgrade(ctx) })
}

// all takes two locks at once.
func all(c *zklock.Client) lockFunc {
	return func(ctx context.Context) (*zklock.Hold, error) {
		return c.LockAll(ctx, c.Mutex(path), c.Mutex("/locks/other"))
	}
}

// refusable are the calls whose requests are refused, one after the other.
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
	{"unfenced cohort", 0, func(c *zklock.Client, inside *company) func(ctx context.Context) error {
		return inside.cycle(unfenced(c).Lock)
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

// TestARefusalAnywhereHarmsNobody has another client ask for the lock as well. Whatever the victim's call returns, the two are
// never inside together, and nothing of the victim's remains in the other's way, although its session goes on.
func TestARefusalAnywhereHarmsNobody(t *testing.T) {
	t.Parallel()
	for _, r := range refusable {
		for refusal, code := range refusals {
			for _, waits := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/waits %v", r.name, refusal, waits), func(t *testing.T) {
					atEveryRequest(t, func(t *testing.T, srv *zktest.Server, n int) bool {
						victim, other := delayedBy(t, srv, "victim", r.delay), delayedBy(t, srv, "other", r.delay)
						synctest.Wait() // the client library reads what it has seen so far, unguarded, when it has just connected
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
						time.Sleep(3 * term) // an idle cohort's place is given up, what was refused is tried again
						noGhost(t, srv, path)
						return struck() && n < 30 // heartbeats go on for ever
					})
				})
			}
		}
	}
}

// later makes a call after a time.
func later(ctx context.Context, after time.Duration, call func(ctx context.Context) error) (err <-chan error) {
	done := make(chan error, 1)
	go func() {
		time.Sleep(after)
		done <- call(ctx)
	}()
	return done
}

// atEveryRequest plays a scenario in which the n-th request is refused, for every n until it says that there was none.
func atEveryRequest(t *testing.T, strike func(t *testing.T, srv *zktest.Server, n int) bool) {
	for n, struck := 0, true; struck; n += oneIn(16) {
		t.Run(fmt.Sprint("request ", n), func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) { struck = strike(t, srv, n) })
		})
		require.False(t, t.Failed(), "request %d", n)
		require.True(t, struck || n > 0, "no request was refused")
	}
}

// An operator's call that was refused says so, and one that was not tells the truth.
func TestARefusedLookIsNoEmptyQueue(t *testing.T) {
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
