package zklock

import (
	"context"
	"errors"
)

// Reentrant is a mutex that its owner may take again while it holds it. It has no state
// of its own: all that are made for one path in one client are the same lock.
//
// The owner is the context: who locks under a hold's Context, or one made from it,
// enters again. A goroutine that was given that context is the owner as well; one with
// another context waits, as other processes do. It stands in one queue with every Mutex
// of the path; under the context of a hold of that Mutex it returns ErrDeadlock, and so
// does the Mutex under a hold of this.
type Reentrant struct {
	c    *Client
	path string
}

var reentrantRecipe = &recipe{name: "reentrant", infix: "-lock-", rule: afterAll}

// Reentrant returns the lock at path, below which every contender has a node.
func (c *Client) Reentrant(path string) *Reentrant { return &Reentrant{c, path} }

// Lock waits as Mutex.Lock does, or enters again: without a request, with the same
// token, and with an Unlock of its own. The lock is given up with the last Unlock,
// whatever their order; the context of each hold ends with its own Unlock. Entering
// a lock that was lost returns ErrLost: what was done under it needs to know.
func (r *Reentrant) Lock(ctx context.Context) (*Hold, error) {
	return r.acquire(ctx, func(ctx context.Context) (*Hold, error) {
		return r.c.lock(ctx, "lock", reentrantRecipe, r.path, r.c.identity)
	})
}

// TryLock enters again, or does as Mutex.TryLock.
func (r *Reentrant) TryLock(ctx context.Context) (*Hold, error) {
	return r.acquire(ctx, func(ctx context.Context) (*Hold, error) {
		return r.c.tryLock(ctx, reentrantRecipe, r.path, r.c.identity)
	})
}

// Do runs fn under the lock, as Mutex.Do does.
func (r *Reentrant) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	hold, err := r.Lock(ctx)
	if err != nil {
		return err
	}
	return hold.do(ctx, fn)
}

func (r *Reentrant) acquire(ctx context.Context, lock func(ctx context.Context) (*Hold, error)) (*Hold, error) {
	if h, err := r.enter(ctx); h != nil || err != nil {
		return h, err
	}
	h, err := lock(ctx)
	if err != nil {
		return nil, err
	}
	return h.level(ctx), nil
}

// enter returns another hold of what ctx holds already, nil for nothing.
func (r *Reentrant) enter(ctx context.Context) (h *Hold, err error) {
	around(ctx, func(g *holding) bool {
		if g.c != r.c || g.path != r.path || g.recipe != reentrantRecipe.name {
			return true
		}
		h, err = g.enter(ctx)
		return h == nil && err == nil
	})
	return h, err
}

// enter adds a level. What was released is nobody's: then there is neither hold nor error.
func (g *holding) enter(ctx context.Context) (*Hold, error) {
	g.vouch()
	g.mu.Lock()
	defer g.mu.Unlock()
	cause := context.Cause(g.ctx)
	switch {
	case errors.Is(cause, ErrReleased):
		return nil, nil
	case cause != nil:
		return nil, g.failure("lock", cause)
	case ctx.Err() != nil:
		return nil, g.failure("lock", causeOf(ctx, ctx.Err()))
	}
	g.levels++
	return g.level(ctx), nil
}

// level returns a Hold whose context ends with its own Unlock, or with the holding. It
// stands for a level that was counted before.
func (g *holding) level(ctx context.Context) *Hold {
	h := &Hold{holding: g, outer: HoldOf(ctx)}
	life, end := context.WithCancelCause(g.ctx)
	h.ctx = levelContext{life, context.WithValue(context.WithoutCancel(ctx), holdKey{}, h)}
	h.end = end
	return h
}

// levelContext ends as the first of its contexts does and has the values of the second.
type levelContext struct {
	context.Context
	values context.Context
}

func (l levelContext) Value(key any) any {
	if v := l.values.Value(key); v != nil {
		return v
	}
	return l.Context.Value(key) // what package context asks for, to find the cause
}
