// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/observe"
)

// An attempt describes one acquire, for any recipe and verb.
type attempt struct {
	verb   string // for errors: "lock", "try", "campaign"
	recipe string // the recipe's name, for observers
	path   string // as the caller passed it
}

// A way acquires a place in the queue and returns it once it is granted. If it fails, the place has
// left the queue. dir is the path in ZooKeeper. A way is not a field of attempt, because an attempt
// is passed to observers, which would move the way to the heap.
type way = func(ctx context.Context, dir string) (*queue.Grant, error)

// obtain acquires a place with get and returns a hold of it. All recipes except Cohort use it.
func (c *Client) obtain(ctx context.Context, w *attempt, get way) (*Hold, error) {
	start := time.Now()
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	granted, attempted, err := c.acquire(ctx, w.path, get)
	if err != nil {
		err = notAcquired(w.verb, w.path, err)
		if attempted {
			c.observeFailure(ctx, w, time.Since(start), err)
		}
		return nil, err
	}
	defer c.acquires.Done()
	h := c.hold(ctx, w.recipe, w.path, granted)
	h.observeSuccess(time.Since(start), granted.Proving)
	return h, nil
}

// notAcquired returns the error of an acquire that failed with err. It wraps ErrNotAcquired.
func notAcquired(verb, path string, err error) error {
	return outcome.NotAcquired(fmt.Errorf("zklock: %s %s: %w", verb, node.Printable(path), err))
}

// acquire returns the place that an attempt was granted. If there is no error, the caller must call
// acquires.Done. attempted is false for an invalid argument.
func (c *Client) acquire(ctx context.Context, path string, get way) (granted *queue.Grant, attempted bool, err error) {
	dir, err := c.admit(ctx, path)
	if err != nil {
		return nil, !errors.Is(err, ErrInvalid), err
	}
	defer func() {
		if granted == nil { // also if the observer panicked
			c.acquires.Done()
		}
	}()
	callCtx := c.engine.Requests.CallContext(ctx)
	defer callCtx.Cancel()
	granted, err = get(callCtx, dir)
	if err != nil {
		return nil, true, c.engine.Requests.Explain(callCtx, err)
	}
	return granted, true, nil
}

// lock acquires the lock at path, for every recipe whose nodes are in the queue at path.
func (c *Client) lock(ctx context.Context, verb string, r *queue.Recipe, path string, data []byte, admit queue.Admission) (*Hold, error) {
	return c.obtain(ctx, &attempt{verb, r.Name, path}, func(ctx context.Context, dir string) (*queue.Grant, error) {
		return c.engine.Obtain(ctx, &queue.Want{Recipe: r, Path: path, Dir: dir, Data: data, Admit: admit})
	})
}

// tryLock is lock without waiting.
func (c *Client) tryLock(ctx context.Context, verb string, r *queue.Recipe, path string, data []byte) (*Hold, error) {
	return c.obtain(ctx, &attempt{verb, r.Name, path}, func(ctx context.Context, dir string) (*queue.Grant, error) {
		return queue.WithoutWaiting(ctx, c.engine, func(ctx context.Context) (*queue.Grant, error) {
			return c.engine.TryObtain(ctx, &queue.Want{Recipe: r, Path: path, Dir: dir, Data: data})
		})
	})
}

// admit checks what can be checked without a server, and returns the full path. If there is no
// error, the caller must call acquires.Done.
func (c *Client) admit(ctx context.Context, path string) (string, error) {
	if err := node.CheckPath(path); err != nil {
		return "", err
	}
	if ctx.Err() != nil {
		return "", outcome.CauseOf(ctx, ctx.Err())
	}
	if c.holdsUnder(ctx, path, "") {
		return "", ErrDeadlock
	}
	if !c.acquires.Enter() {
		return "", cmp.Or(context.Cause(c.engine.Requests.Life), ErrClosed)
	}
	return c.root + path, nil
}

// holdsUnder reports whether ctx derives from a hold of the lock at path that has not ended. It
// ignores holds of the recipe except.
func (c *Client) holdsUnder(ctx context.Context, path, except string) bool {
	for g := range chainOf(ctx).holdings {
		if g.engine == c.engine && g.path == path && g.recipe != except && g.ctx.Err() == nil {
			return true
		}
	}
	return false
}

// observeSuccess reports to the observer an attempt that was granted. If the observer panics, no
// caller receives the hold, so observeSuccess releases it. It is a separate function because an
// event in the frame of obtain would be part of every waiter's stack.
func (h *Hold) observeSuccess(took, proving time.Duration) {
	returned := false
	defer func() {
		if !returned {
			h.release()
		}
	}()
	g := h.holding()
	ev := g.event(observe.Acquired, nil)
	ev.Elapsed, ev.Proving = took, proving
	g.engine.Reporter.Observe(ev)
	returned = true
}

// observeFailure reports to the observer an attempt that failed.
func (c *Client) observeFailure(ctx context.Context, w *attempt, took time.Duration, err error) {
	kind := observe.Refused
	if ctx.Err() != nil || errors.Is(err, ErrClosed) {
		kind = observe.GivenUp
	}
	c.engine.Reporter.Observe(observe.Event{Kind: kind, Recipe: w.recipe, Path: w.path, Elapsed: took, Err: err})
}

// hold returns a hold of a granted place.
func (c *Client) hold(ctx context.Context, recipe, path string, granted *queue.Grant) *Hold {
	g := &holding{engine: c.engine, set: &c.holds, recipe: recipe, path: path, grant: granted, nodes: granted.Nodes(), token: granted.Token}
	g.release = func(why error, done func(error)) { granted.Release(errors.Is(why, ErrLost), done) }
	h := newHold(ctx, g)
	granted.WatchSelf()
	for _, n := range g.nodes {
		g.watchOver(n)
	}
	return h
}

// AtMost returns a lock like l whose Lock does not wait behind more than k contenders. If it has
// entered the queue, must wait, and more than k contenders are ahead, it returns ErrLocked at once and
// leaves no node. So a server whose requests need one lock refuses some of them, instead of letting
// all of them wait:
//
//	err := zklock.Do(ctx, zklock.AtMost(client.Mutex("/reports"), 10), work)
//	if errors.Is(err, zklock.ErrLocked) {
//		// too many requests wait already
//	}
//
// The listing that comes with the node shows the contenders ahead, holders included. For a semaphore,
// only callers that wait for permits count. For a Cohort, the goroutines of this process count as well.
// A lock that queues again counts again: after its session has expired, or when the place of a Cohort is
// passed on.
//
// AtMost sends nothing. If k is negative, or if l is not a lock of this package, Lock returns
// ErrInvalid.
func AtMost(l Locker, k int) Locker { return bounded{l, k} }

type bounded struct {
	of   Locker
	most int
}

// lockWithin is implemented by the locks of this package.
type lockWithin interface {
	lockable() lockable
	lockWithin(ctx context.Context, admit queue.Admission) (*Hold, error)
}

// own returns the lock that b is of. A type of the program that embeds one has its methods, but also a
// Lock of its own, which AtMost would not call.
func (b bounded) own() (lockWithin, error) {
	if b.most >= 0 {
		switch l := b.of.(type) {
		case *Mutex:
			return l, nil
		case *RWMutex:
			return l, nil
		case reader:
			return l, nil
		case someOf:
			return l, nil
		case *Reentrant:
			return l, nil
		case *Cohort:
			return l, nil
		case bounded:
			return l, nil
		}
	}
	return nil, fmt.Errorf("%w: AtMost of a %T and %d", ErrInvalid, b.of, b.most)
}

func (b bounded) Lock(ctx context.Context) (*Hold, error) { return b.lockWithin(ctx, nil) }

func (b bounded) lockWithin(ctx context.Context, admit queue.Admission) (*Hold, error) {
	own, err := b.own()
	if err != nil {
		return nil, notAcquired("lock", b.Path(), err)
	}
	return own.lockWithin(ctx, func(ahead int) error {
		if ahead > b.most {
			return fmt.Errorf("%w: %d contenders are ahead, more than %d", ErrLocked, ahead, b.most)
		}
		if admit != nil {
			return admit(ahead)
		}
		return nil
	})
}

func (b bounded) Path() string {
	if b.of == nil {
		return ""
	}
	return b.of.Path()
}

func (b bounded) lockable() lockable {
	own, err := b.own()
	if err != nil {
		return lockable{c: none, path: b.Path(), err: err}
	}
	return own.lockable()
}
