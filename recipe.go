package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/observe"
)

// An attempt is what a caller asks for, by whatever recipe and verb.
type attempt struct {
	verb   string // for errors: "lock", "try", "campaign"
	recipe string // its name, for observers
	path   string // as the caller names it
}

// A way to a place returns it when it was granted. On an error, the place has left the queue. dir is the path in ZooKeeper.
// It is no field of an attempt, which reaches observers and would take it to the heap.
type way = func(ctx context.Context, dir string) (*queue.Grant, error)

// obtain is the one way to a hold.
func (c *Client) obtain(ctx context.Context, w *attempt, get way) (*Hold, error) {
	start := time.Now()
	granted, attempted, err := c.acquire(ctx, w.path, get)
	if err != nil {
		err = w.failed(err)
		if attempted {
			c.observeFailure(ctx, w, time.Since(start), err)
		}
		return nil, err
	}
	defer c.acquires.Leave()
	h := c.hold(ctx, w.recipe, w.path, granted)
	h.observeSuccess(time.Since(start), granted.Proving)
	return h, nil
}

func (w *attempt) failed(err error) error {
	return fmt.Errorf("zklock: %s %s: %w", w.verb, node.Printable(w.path), err)
}

// acquire returns the place that an attempt was granted. If there is no error the caller must call acquires.leave.
// attempted is false for a bad argument.
func (c *Client) acquire(ctx context.Context, path string, get way) (_ *queue.Grant, attempted bool, _ error) {
	dir, err := c.admit(ctx, path)
	if err != nil {
		return nil, !errors.Is(err, ErrInvalid), err
	}
	inside := c.engine.Inside(ctx)
	defer inside.Leave()
	granted, err := get(inside, dir)
	if err != nil {
		c.acquires.Leave()
		return nil, true, c.engine.Explain(inside, err)
	}
	return granted, true, nil
}

// lock acquires by any recipe that stands in the queue at path.
func (c *Client) lock(ctx context.Context, verb string, r *queue.Recipe, path string, data []byte) (*Hold, error) {
	return c.obtain(ctx, &attempt{verb, r.Name, path}, func(ctx context.Context, dir string) (*queue.Grant, error) {
		return c.engine.Obtain(ctx, &queue.Want{Recipe: r, Path: path, Dir: dir, Data: data})
	})
}

// tryLock is lock without the waiting.
func (c *Client) tryLock(ctx context.Context, verb string, r *queue.Recipe, path string, data []byte) (*Hold, error) {
	return c.obtain(ctx, &attempt{verb, r.Name, path}, func(ctx context.Context, dir string) (*queue.Grant, error) {
		return queue.AtOnce(ctx, c.engine, func(ctx context.Context) (*queue.Grant, error) {
			return c.engine.TryObtain(ctx, &queue.Want{Recipe: r, Path: path, Dir: dir, Data: data})
		})
	})
}

// admit checks what can be known without a server and returns the full path. If there
// is no error the caller must call acquires.leave.
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
		return "", context.Cause(c.engine.Life)
	}
	return c.root + path, nil
}

// holdsUnder reports whether ctx was made under a hold of the lock at path that lasts, of
// another recipe than the one named.
func (c *Client) holdsUnder(ctx context.Context, path, except string) (held bool) {
	around(ctx, func(g *holding) bool {
		held = g.c == c.engine && g.path == path && g.recipe != except && g.ctx.Err() == nil
		return !held
	})
	return held
}

// observeSuccess reports an attempt that was granted. If the observer panics, nobody gets the hold, so it ends. An event in the
// frame of obtain would be a part of every waiter's stack.
func (h *Hold) observeSuccess(took, proving time.Duration) {
	returned := false
	defer func() {
		if !returned {
			h.release()
		}
	}()
	ev := h.of().event(observe.Acquired, nil)
	ev.Elapsed, ev.Proving = took, proving
	h.of().c.Observe(ev)
	returned = true
}

// observeFailure reports an attempt that failed.
func (c *Client) observeFailure(ctx context.Context, w *attempt, took time.Duration, err error) {
	kind := observe.Refused
	if ctx.Err() != nil || errors.Is(err, ErrClosed) {
		kind = observe.GivenUp
	}
	c.engine.Observe(observe.Event{Kind: kind, Recipe: w.recipe, Path: w.path, Elapsed: took, Err: err})
}

// hold returns a hold of a place that was granted.
func (c *Client) hold(ctx context.Context, recipe, path string, granted *queue.Grant) *Hold {
	g := &holding{c: c.engine, among: &c.holds, recipe: recipe, path: path, nodes: granted.Nodes(), token: granted.Token}
	g.release = func(why error) func() error { return granted.Leave(g.wasLost(why)) }
	h := newHold(ctx, g)
	granted.WatchSelf(false)
	for _, n := range g.nodes {
		g.watchOver(n)
	}
	return h
}
