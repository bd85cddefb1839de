// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// Locker is a lock that Do and LockAll can acquire: a Mutex, a Reentrant, an RWMutex or Cohort (for an
// exclusive hold), the Reader of an RWMutex, or a Semaphore's Permits. Your own type also works if
// its Lock calls the Lock of one of these and returns its hold. AtMost bounds the queue in which a
// Locker waits.
type Locker interface {
	Lock(ctx context.Context) (*Hold, error)
	// Path returns the lock's path, as it was passed to the client.
	Path() string
}

// lockable describes a lock to LockAll.
type lockable struct {
	c    *Client
	path string // as it was passed to the client
	err  error  // of an invalid argument, found without a request
	// enters is the recipe whose holds of the path can enter this lock again; empty for most locks.
	enters string
	// wrapped reports that the lock is the caller's own type, of which only the path is known.
	wrapped bool
}

// describe returns a description of the lock l.
func (c *Client) describe(l Locker) lockable {
	if own, ok := l.(interface{ lockable() lockable }); ok {
		return own.lockable()
	}
	return lockable{c: c, path: l.Path(), err: node.CheckPath(l.Path()), wrapped: true}
}

// LockAll acquires several locks of this client, and returns one hold for all of them. If one of
// them cannot be acquired, or ctx ends first, LockAll releases the locks that it holds and returns an
// error. It acquires the locks in the order of their paths, so callers that pass the same locks in
// different orders do not block each other. If the session ends while LockAll waits, it starts
// again. If one of the locks is lost in another way while LockAll waits for the others, it returns
// ErrEvicted if operate.Evict removed it, and otherwise ErrLost.
//
// The hold's Context ends when any of the locks is lost. The others stay held until Unlock, or
// until the function of Do has returned, because the work may not have stopped yet: always call
// Unlock, even after a loss. Guard and Confirm cover all of the locks, and Unlock releases all of
// them. The hold's Token is the largest of their tokens, which increases with every grant of this
// same set of locks. If other callers acquire one of the locks alone, fence its writes with TokenOf.
//
// LockAll returns ErrInvalid for two locks with the same path or a lock of another client, and
// ErrDeadlock if ctx belongs to a hold of one of the locks. For locks that are types of this
// package, it checks both before it sends a request.
func (c *Client) LockAll(ctx context.Context, lockers ...Locker) (*Hold, error) {
	ordered, path, err := c.arrange(lockers)
	if err != nil {
		return nil, outcome.NotAcquired(fmt.Errorf("zklock: lock all: %w", err))
	}
	locks, err := c.lockAll(ctx, ordered, path)
	if err != nil {
		return nil, notAcquired("lock all of", path, err)
	}
	return c.combine(ctx, path, locks), nil
}

// lockAll acquires the locks in their order.
func (c *Client) lockAll(ctx context.Context, ordered []Locker, path string) ([]*Hold, error) {
	for _, l := range ordered {
		if is := c.describe(l); !is.wrapped && c.holdsUnder(ctx, is.path, is.enters) {
			return nil, fmt.Errorf("%w: %s", ErrDeadlock, is.path)
		}
	}
	callCtx := c.engine.Requests.CallContext(ctx)
	defer callCtx.Cancel()
	var p session.Pace
	for {
		locks, lost, err := c.takeAll(ctx, ordered)
		if err == nil || lost == nil || callCtx.Err() != nil {
			return locks, err
		}
		if alone := lost.lostAlone(callCtx); alone != nil {
			return nil, alone
		}
		c.engine.Requests.Log.Info("zklock: LockAll restarting", "path", path, "err", err)
		p.Next(callCtx) // if the context ends, the next attempt returns the error
	}
}

// lostAlone returns the error of LockAll if somebody ended the hold of one of the locks alone. It
// returns nil if the hold ended because its session did: then LockAll can start again, like an
// acquire whose session ends while it waits. It also returns nil if ctx ends before it knows.
func (h *Hold) lostAlone(ctx context.Context) error {
	why := context.Cause(h.Context())
	if g := h.holding().grant; g != nil && errors.Is(why, ErrLost) {
		switch fate := g.Fate(ctx); {
		case errors.Is(fate, ErrEvicted):
			why = fate
		case errors.Is(fate, outcome.ErrSessionOver), ctx.Err() != nil:
			return nil
		}
	}
	return h.partLost(why)
}

// arrange returns the lockers in the order in which every caller acquires them.
func (c *Client) arrange(lockers []Locker) (ordered []Locker, path string, err error) {
	if len(lockers) == 0 {
		return nil, "", fmt.Errorf("%w: no locks passed", ErrInvalid)
	}
	for _, l := range lockers {
		if l == nil {
			return nil, "", fmt.Errorf("%w: nil lock", ErrInvalid)
		}
		switch is := c.describe(l); {
		case is.err != nil:
			return nil, "", is.err
		case is.c != c:
			return nil, "", fmt.Errorf("%w: %s is a lock of another client", ErrInvalid, is.path)
		}
	}
	ordered = slices.SortedFunc(slices.Values(lockers), comparePaths)
	paths := make([]string, len(ordered))
	for i, l := range ordered {
		paths[i] = l.Path()
		if i > 0 && comparePaths(ordered[i-1], l) == 0 {
			return nil, "", fmt.Errorf("%w: %s is passed twice", ErrInvalid, paths[i])
		}
	}
	return ordered, strings.Join(paths, ","), nil
}

func comparePaths(a, b Locker) int { return strings.Compare(a.Path(), b.Path()) }

// takeAll acquires one lock after the other. If it fails, or a Locker of the caller's panics, it
// releases the locks that it holds. lost is the hold that was lost while takeAll waited for other
// locks, or nil if none was.
func (c *Client) takeAll(ctx context.Context, lockers []Locker) (locks []*Hold, lost *Hold, err error) {
	inside, all := ctx, false
	defer func() {
		if all {
			return
		}
		for _, h := range slices.Backward(locks) {
			_ = h.unlock(ctx) // if this fails, the lock is lost or its release continues
		}
		locks = nil
	}()
	for _, l := range lockers {
		h, err := l.Lock(inside)
		if err == nil {
			locks = append(locks, h)
			if err := c.checkPart(l, h); err != nil {
				return locks, nil, err
			}
			both, stop := session.Either(inside, h.Context())
			defer stop()
			inside = both
		}
		lost = firstEnded(locks)
		if lost != nil {
			return locks, lost, join(lost.partLost(context.Cause(lost.Context())), err)
		}
		if err != nil {
			return locks, nil, err
		}
	}
	all = true
	return locks, nil, nil
}

// checkPart checks the hold that l has returned. Only the Lock of a caller's own type can return
// one that is not of this client, or that was used before.
func (c *Client) checkPart(l Locker, h *Hold) error {
	switch {
	case h.holding().engine != c.engine: // or there is none
		return fmt.Errorf("%w: %s is a lock of another client", ErrInvalid, l.Path())
	case h.done.Load():
		return fmt.Errorf("%w: the Lock method for %s returned a hold that was unlocked", ErrInvalid, l.Path())
	}
	return nil
}

// firstEnded returns the first of the holds that has ended, or nil if none has.
func firstEnded(locks []*Hold) *Hold {
	for _, h := range locks {
		if h.Context().Err() != nil {
			return h
		}
	}
	return nil
}

// partLost returns the error of a LockAll whose hold h ended while it waited for other locks.
func (h *Hold) partLost(why error) error {
	return fmt.Errorf("the hold of %s ended while waiting for other locks: %w", node.Printable(h.Path()), why)
}

// combine returns one hold for several locks, which are in the order in which they were acquired.
func (c *Client) combine(ctx context.Context, path string, locks []*Hold) *Hold {
	g := &holding{engine: c.engine, set: &c.holds, recipe: "all", path: path, quiet: true, parts: locks}
	for _, lock := range locks {
		part := lock.holding()
		g.nodes = append(g.nodes, part.nodes...)
		g.token = max(g.token, part.token)
	}
	g.release = func(_ error, done func(error)) {
		released := releaseAll(locks)
		// Owned by the client; ends with the removals of the parts, which Close bounds.
		if !c.engine.Removals.Run(func() { done(released()) }) {
			done(ErrClosed)
		}
	}
	h := newHold(ctx, g)
	for _, lock := range locks {
		lock.OnEnd(g.lose)
	}
	return h
}

// releaseAll starts to release the locks, and returns a function that waits for the outcome. It
// starts with the last lock, so that the next caller that is granted the first one finds the
// others free. It does not wait in between. Locks that are lost already do not matter.
func releaseAll(locks []*Hold) func() error {
	var leaving []*Hold
	for _, h := range slices.Backward(locks) {
		if last, _ := h.release(); last {
			leaving = append(leaving, h)
		}
	}
	return func() (err error) {
		for _, h := range leaving {
			g := h.holding()
			<-g.removed.Done()
			err = errors.Join(err, g.err)
		}
		return err
	}
}

// TokenOf returns the token of the lock at path if the hold is of that lock, either alone or as one
// of several from LockAll. Otherwise it returns -1, which is smaller than every token.
func (h *Hold) TokenOf(path string) int64 { return h.of(path).Token() }
