package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// Locker is a lock that LockAll can take: a Mutex, a Reentrant, an RWMutex or a Cohort (to write),
// the Reader of one of these, or a Semaphore's Permits. A type of yours is one, too, if its Lock
// calls that of one of them and returns its hold.
type Locker interface {
	Lock(ctx context.Context) (*Hold, error)
	// Path returns the lock's path, as it was given to the client.
	Path() string
}

// lockable is what LockAll needs to know about a lock.
type lockable struct {
	c    *Client
	path string // as it was given to the client
	err  error  // of a bad argument, found without asking a server
	// enters is the recipe whose holds of the path let this lock be entered again; mostly none.
	enters string
	// wrapped means that the lock is a type of the caller's, of which only the path is known.
	wrapped bool
}

// describe returns what is known about a lock.
func (c *Client) describe(l Locker) lockable {
	if own, ok := l.(interface{ lockable() lockable }); ok {
		return own.lockable()
	}
	return lockable{c: c, path: l.Path(), err: node.CheckPath(l.Path()), wrapped: true}
}

// LockAll takes several locks of this client, and returns one hold of all of them. If one
// cannot be taken, or ctx ends first, it gives up those that it has and returns an error.
// It takes them in the order of their paths, so that callers that name the same locks in
// different orders do not block each other.
//
// The hold's Context ends when any of the locks is lost, and the others are released then.
// Guard and Confirm cover all of them, and Unlock releases all. Its Token is the largest of
// their tokens, which grows with every grant of this same set of locks. If what one of the
// locks protects is also used by holders of that lock alone, fence it with TokenOf.
//
// LockAll returns ErrInvalid for two locks of one path or a lock of another client. It returns
// ErrDeadlock if ctx is the context of a hold of one of the locks. Both come before any
// request, as far as the locks are types of this package.
func (c *Client) LockAll(ctx context.Context, lockers ...Locker) (*Hold, error) {
	ordered, path, err := c.arrange(lockers)
	if err != nil {
		return nil, fmt.Errorf("zklock: lock all: %w", err)
	}
	for _, l := range ordered {
		if is := c.describe(l); !is.wrapped && c.holdsUnder(ctx, is.path, is.enters) {
			return nil, fmt.Errorf("zklock: lock all of %s: %w: %s", path, ErrDeadlock, is.path)
		}
	}
	for {
		locks, err := c.takeAll(ctx, ordered)
		switch {
		case err == nil:
			return c.combine(ctx, path, locks), nil
		case !errors.Is(err, errPartLost) || ctx.Err() != nil || c.engine.Life.Err() != nil:
			return nil, fmt.Errorf("zklock: lock all of %s: %w", path, err)
		}
		c.engine.Log.Info("zklock: locking all again", "path", path, "why", err)
	}
}

// arrange returns the lockers in the order in which every caller takes them.
func (c *Client) arrange(lockers []Locker) (ordered []Locker, path string, err error) {
	if len(lockers) == 0 {
		return nil, "", fmt.Errorf("%w: no locks given", ErrInvalid)
	}
	for _, l := range lockers {
		if l == nil {
			return nil, "", fmt.Errorf("%w: a nil lock", ErrInvalid)
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
			return nil, "", fmt.Errorf("%w: %s is given twice", ErrInvalid, paths[i])
		}
	}
	return ordered, strings.Join(paths, ","), nil
}

func comparePaths(a, b Locker) int { return strings.Compare(a.Path(), b.Path()) }

// errPartLost is the error of a lock that was lost while LockAll waited for others.
var errPartLost = errors.New("one of the locks was lost meanwhile")

// takeAll takes one lock after the other. On an error, or if a Locker of the caller's panics, it releases those that it has.
func (c *Client) takeAll(ctx context.Context, lockers []Locker) (locks []*Hold, err error) {
	inside, all := ctx, false
	defer func() {
		if all {
			return
		}
		for _, h := range slices.Backward(locks) {
			h.Unlock(ctx) // if this fails, the lock is lost, or its release goes on
		}
		locks = nil
	}()
	for _, l := range lockers {
		h, err := l.Lock(inside)
		if err == nil {
			locks = append(locks, h)
			both, stop := session.Either(inside, h.Context())
			defer stop()
			inside = both
		}
		if err == nil && h.of().c != c.engine { // or it is none
			err = fmt.Errorf("%w: %s is a lock of another client", ErrInvalid, l.Path())
		} else {
			err = partLost(locks, err)
		}
		if err != nil {
			return locks, err
		}
	}
	all = true
	return locks, nil
}

// partLost adds to err that one of locks was lost, if so.
func partLost(locks []*Hold, err error) error {
	for _, h := range locks {
		if h.Context().Err() != nil {
			return errors.Join(errPartLost, context.Cause(h.Context()), err)
		}
	}
	return err
}

// combine returns one hold of several locks, which are in the order in which they were taken.
func (c *Client) combine(ctx context.Context, path string, locks []*Hold) *Hold {
	g := &holding{c: c.engine, among: &c.holds, recipe: "all", path: path, quiet: true}
	for _, lock := range locks {
		g.nodes, g.parts = append(g.nodes, lock.of().nodes...), append(g.parts, lock)
		g.token, g.unfenced = max(g.token, lock.of().token), g.unfenced || lock.of().unfenced
	}
	g.release = func(why error) func() error { return releaseAll(locks, why) }
	h := newHold(ctx, g)
	for _, lock := range locks {
		// Runs once, when that lock is lost or, with all of them, released.
		context.AfterFunc(lock.Context(), func() { g.lose(context.Cause(lock.Context())) })
	}
	return h
}

// releaseAll begins to release locks whose hold has ended for the reason why, and returns a
// function that waits for the outcome. It begins with the last lock, so that the next caller
// that is granted the first finds the others free; it does not wait in between.
func releaseAll(locks []*Hold, why error) func() error {
	var leaving []*Hold
	for _, h := range slices.Backward(locks) {
		if errors.Is(why, ErrLost) {
			h.of().giveUp() // the caller, who has lost one of them, may still work under all
		}
		if errors.Is(why, ErrClosed) {
			h.of().lose(why)
			leaving = append(leaving, h)
		} else if last, err := h.release(); last && err == nil { // else it is lost, or still held by its owner
			leaving = append(leaving, h)
		}
		session.Yield()
	}
	return func() (err error) {
		for _, h := range leaving {
			<-h.of().released.Done()
			err = errors.Join(err, h.of().err)
		}
		return err
	}
}

// TokenOf returns the token of the lock at path if the hold is of that lock, alone or among
// others that LockAll has taken. Otherwise it returns zero.
func (h *Hold) TokenOf(path string) int64 {
	if h.of().path == path && len(h.of().parts) == 0 {
		return h.of().token
	}
	for _, part := range h.of().parts {
		if part.Path() == path {
			return part.Token()
		}
	}
	return 0
}
