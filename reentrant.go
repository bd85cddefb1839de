// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"context"
	"errors"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/queue"
)

// Reentrant is a mutex that its owner may lock again while holding it. A Reentrant has no state of
// its own: all values for one path of one client are the same lock.
//
// The owner is a context, not a goroutine: a call under a hold's Context, or under a context
// derived from it, enters the lock again. Any goroutine that has that context is the owner; a
// goroutine with another context waits as other processes do.
//
// A Reentrant is in the same queue as every Mutex of its path. Under the context of a hold of one,
// the other returns ErrDeadlock.
type Reentrant struct {
	owner
	path string
}

var reentrantRecipe = &queue.Recipe{Name: "reentrant", TakesDelay: true, Infix: node.LockInfix, Rule: node.AfterAll}

// Reentrant returns the reentrant mutex at path, below which every contender has a node. It sends
// nothing; an invalid path is reported by the first call.
func (c *Client) Reentrant(path string) *Reentrant { return &Reentrant{owner{c}, path} }

// Lock waits as Mutex.Lock does. If ctx belongs to a hold of this lock, Lock instead enters it
// again, without a request and with the same token. Each hold has its own Unlock, which ends its
// own Context; the last Unlock, in whatever order, releases the lock.
//
// If ctx belongs to a hold that was lost, Lock returns ErrLost and does not queue again, because
// the caller's work may depend on the lost hold.
func (r *Reentrant) Lock(ctx context.Context) (*Hold, error) {
	return r.lockWithin(ctx, nil)
}

func (r *Reentrant) lockWithin(ctx context.Context, admit queue.Admission) (*Hold, error) {
	return r.acquire(ctx, func(ctx context.Context) (*Hold, error) {
		return r.client().lock(ctx, "lock", reentrantRecipe, r.path, r.client().identity, admit)
	})
}

// TryLock enters the lock again as Lock does, and otherwise behaves like Mutex.TryLock.
func (r *Reentrant) TryLock(ctx context.Context) (*Hold, error) {
	return r.acquire(ctx, func(ctx context.Context) (*Hold, error) {
		return r.client().tryLock(ctx, "try", reentrantRecipe, r.path, r.client().identity)
	})
}

// Do locks, runs fn, and unlocks, as Mutex.Do does.
func (r *Reentrant) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	hold, err := r.Lock(ctx)
	if err != nil {
		return err
	}
	return hold.Do(ctx, fn)
}

func (r *Reentrant) acquire(ctx context.Context, lock func(ctx context.Context) (*Hold, error)) (*Hold, error) {
	if h, err := r.enter(ctx); h != nil || err != nil {
		return h, err
	}
	h, err := lock(ctx)
	if err != nil {
		return nil, err
	}
	return h.holding().level(ctx), nil
}

// enter returns another hold of the lock if ctx already holds it, or nil if it does not.
func (r *Reentrant) enter(ctx context.Context) (*Hold, error) {
	for g := range chainOf(ctx).holdings {
		if g.engine == r.engine() && g.path == r.path && g.recipe == reentrantRecipe.Name {
			if h, err := g.enter(ctx); h != nil || err != nil {
				return h, err
			}
		}
	}
	return nil, nil
}

// enter adds a level and returns its hold. If the holding was released, it returns neither a hold
// nor an error.
func (ho *holding) enter(ctx context.Context) (*Hold, error) {
	ho.checkLease()
	ho.mu.Lock()
	defer ho.mu.Unlock()
	cause := context.Cause(ho.ctx)
	switch {
	case errors.Is(cause, ErrReleased):
		return nil, nil
	case cause != nil:
		return nil, notAcquired("lock", ho.path, cause)
	case ctx.Err() != nil:
		return nil, notAcquired("lock", ho.path, outcome.CauseOf(ctx, ctx.Err()))
	}
	ho.levels++
	return ho.level(ctx), nil
}

// Path returns the lock's path, as it was passed to the client.
func (r *Reentrant) Path() string { return r.path }

func (r *Reentrant) lockable() lockable {
	return lockable{c: r.client(), path: r.path, err: node.CheckPath(r.path), enters: reentrantRecipe.Name}
}
