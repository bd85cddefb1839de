package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Locker is a lock that LockAll can take: a Mutex, a Reentrant, an RWMutex's Reader or
// Writer, a Semaphore's Permits.
type Locker interface {
	Lock(ctx context.Context) (*Hold, error)
	lockable() lockable
}

// PathOf returns the path of a lock, as the client was given it.
func PathOf(lock Locker) string { return lock.lockable().path }

// lockable is what LockAll has to know of a lock.
type lockable struct {
	c    *Client
	path string // as it was given to the client
	err  error  // what is wrong with it, if that can be known without a server
	// enters names the recipe under whose holds this lock is entered again instead of waited for; mostly none.
	enters string
}

func (m *Mutex) lockable() lockable { return lockable{c: m.c, path: m.path, err: checkPath(m.path)} }

func (r *Reentrant) lockable() lockable {
	return lockable{c: r.c, path: r.path, err: checkPath(r.path), enters: reentrantRecipe.name}
}

// LockAll takes several locks of this client, all or none. It takes them one after the
// other in an order of its own, by path, so that callers who name the same locks in
// different orders do not block each other; ctx is for all of them. On an error it has
// given up again what it had.
//
// The hold stands for all of them: its Context ends when any is lost, which gives up
// the others; Guard and Confirm cover all, Unlock releases all. Its Token is the largest
// of theirs. That grows from grant to grant of this very set; to fence what one of the
// locks protects against holders of that lock alone, use TokenOf.
//
// Two locks of one path, or one of another client, is ErrInvalid, and a lock that ctx holds
// already ErrDeadlock, both before any request.
func (c *Client) LockAll(ctx context.Context, lockers ...Locker) (*Hold, error) {
	ordered, path, err := c.arrange(lockers)
	if err != nil {
		return nil, fmt.Errorf("zklock: lock all: %w", err)
	}
	for _, l := range ordered {
		if is := l.lockable(); c.holdsUnder(ctx, is.path, is.enters) {
			return nil, fmt.Errorf("zklock: lock all of %s: %w: %s", path, ErrDeadlock, is.path)
		}
	}
	for {
		locks, err := takeAll(ctx, ordered)
		switch {
		case err == nil:
			return c.combine(ctx, path, locks), nil
		case !errors.Is(err, errPartLost) || ctx.Err() != nil || c.life.Err() != nil:
			return nil, fmt.Errorf("zklock: lock all of %s: %w", path, err)
		}
		c.log.Info("zklock: locking all again", "path", path, "why", err)
	}
}

// arrange returns the lockers in the order in which everybody takes them.
func (c *Client) arrange(lockers []Locker) (ordered []Locker, path string, err error) {
	if len(lockers) == 0 {
		return nil, "", fmt.Errorf("%w: no locks given", ErrInvalid)
	}
	for _, l := range lockers {
		switch is := l.lockable(); {
		case is.err != nil:
			return nil, "", is.err
		case is.c != c:
			return nil, "", fmt.Errorf("%w: %s is a lock of another client", ErrInvalid, is.path)
		}
	}
	ordered = slices.SortedFunc(slices.Values(lockers), comparePlaces)
	paths := make([]string, len(ordered))
	for i, l := range ordered {
		paths[i] = l.lockable().path
		if i > 0 && comparePlaces(ordered[i-1], l) == 0 {
			return nil, "", fmt.Errorf("%w: %s is given twice", ErrInvalid, paths[i])
		}
	}
	return ordered, strings.Join(paths, ","), nil
}

func comparePlaces(a, b Locker) int {
	x, y := a.lockable(), b.lockable()
	return strings.Compare(x.path, y.path)
}

// errPartLost says that a lock was lost while others were waited for.
var errPartLost = errors.New("one of the locks was lost meanwhile")

// takeAll takes one lock after the other, or none.
func takeAll(ctx context.Context, lockers []Locker) (locks []*Hold, err error) {
	inside := ctx
	for _, l := range lockers {
		h, err := l.Lock(inside)
		if err == nil {
			locks = append(locks, h)
			both, stop := either(inside, h.Context())
			defer stop()
			inside = both
		}
		if err = partLost(locks, err); err != nil {
			for _, h := range slices.Backward(locks) {
				h.Unlock(ctx) // what fails here is lost or goes on being released
			}
			return nil, err
		}
	}
	return locks, nil
}

// partLost completes err if one of locks was lost.
func partLost(locks []*Hold, err error) error {
	for _, h := range locks {
		if h.Context().Err() != nil {
			return errors.Join(errPartLost, context.Cause(h.Context()), err)
		}
	}
	return err
}

// combine makes one hold of several, in the order in which they were taken.
func (c *Client) combine(ctx context.Context, path string, locks []*Hold) *Hold {
	g := &holding{
		c: c, recipe: "all", path: path, locks: locks, since: time.Now(),
		levels: 1, released: make(chan struct{}),
	}
	for _, lock := range locks {
		g.parts = append(g.parts, lock.parts...)
		g.token = max(g.token, lock.token)
	}
	h := &Hold{holding: g, outer: HoldOf(ctx)}
	g.ctx, g.cancel = context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), holdKey{}, h))
	h.ctx = g.ctx
	g.heed()
	c.enlist(g)
	for _, lock := range locks {
		// Runs once, when that lock is lost or, with all of them, released.
		context.AfterFunc(lock.Context(), func() { g.lose(context.Cause(lock.Context())) })
	}
	return h
}

// releaseAll begins to release locks, because their hold has ended for a reason; what it
// returns waits for the outcome. The last goes first, so that one who waits for the first
// finds the others free, but none waits for another's answer.
func releaseAll(locks []*Hold, why error) func() error {
	var leaving []*Hold
	for _, h := range slices.Backward(locks) {
		if errors.Is(why, ErrClosed) {
			h.lose(why)
			leaving = append(leaving, h)
		} else if last, err := h.release(); last && err == nil { // else it is lost, or still held by its owner
			leaving = append(leaving, h)
		}
		yield()
	}
	return func() (err error) {
		for _, h := range leaving {
			<-h.released
			err = errors.Join(err, h.err)
		}
		return err
	}
}

// TokenOf is the token of the lock at path, if the hold is of that lock or LockAll has
// taken it with others; else zero.
func (h *Hold) TokenOf(path string) int64 {
	if h.path == path {
		return h.token
	}
	for _, lock := range h.locks {
		if lock.path == path {
			return lock.token
		}
	}
	return 0
}
