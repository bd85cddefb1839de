package zklock

import (
	"context"
	"fmt"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/queue"
)

// Semaphore is a number of permits, of which each holder takes one or several. They are
// granted in the order of asking: a caller that asks for few waits behind one that asked for
// many. Curator's InterProcessSemaphoreV2 on the same path shares the permits, but ignores
// the stored number.
//
// The number of permits is stored with the semaphore as long as it is used. A caller with
// another number gets ErrMismatch. Resize changes the stored number.
type Semaphore struct {
	owner
	path    string
	permits int
}

// Semaphore returns the semaphore at path with a number of permits, of 100,000 at most. With a number
// that cannot be, its methods return ErrInvalid.
func (c *Client) Semaphore(path string, permits int) *Semaphore {
	return &Semaphore{owner{c}, path, permits}
}

// Acquire waits until it holds k permits, and returns one hold of them. If ctx ends first, it
// gives up its place in the queue and returns an error that wraps ctx.Err(). If the session
// expires while it waits, it queues again at the end.
//
// Acquire returns ErrMismatch if the semaphore's number is not the stored one, and ErrLimit if
// k is more than there are permits. It also returns ErrLimit, before any request, if k permits
// do not fit into one; some thousands do. If ctx is the context of a hold of this semaphore, it
// returns ErrDeadlock: take all permits at once.
func (s *Semaphore) Acquire(ctx context.Context, k int) (*Hold, error) {
	return s.obtain(ctx, "acquire", k, func(ctx context.Context, p queue.Permits) (*queue.Grant, error) { return p.Obtain(ctx, k) })
}

// TryAcquire returns a hold of k permits if they are free besides one for each caller that is
// waiting. Otherwise it returns ErrLocked without waiting, and leaves no node behind. Without
// a connection it returns ErrNotConnected.
func (s *Semaphore) TryAcquire(ctx context.Context, k int) (*Hold, error) {
	return s.obtain(ctx, "try", k, func(ctx context.Context, p queue.Permits) (*queue.Grant, error) {
		return queue.AtOnce(ctx, s.c().engine, func(ctx context.Context) (*queue.Grant, error) { return p.TryObtain(ctx, k) })
	})
}

// Permits returns k permits in the form in which LockAll takes them.
func (s *Semaphore) Permits(k int) Locker { return someOf{s, k} }

type someOf struct {
	s *Semaphore
	k int
}

func (p someOf) Lock(ctx context.Context) (*Hold, error) { return p.s.Acquire(ctx, p.k) }

func (p someOf) Path() string { return p.s.path }

func (p someOf) lockable() lockable {
	of := p.s.of(p.s.permits)
	return lockable{c: p.s.c(), path: p.s.path, err: of.Check(p.k)}
}

// of returns the permits in the queue's terms, of which there are so many.
func (s *Semaphore) of(total int) queue.Permits {
	return queue.Permits{Engine: s.c().engine, Path: s.path, Dir: s.c().root + s.path, Total: total, Data: s.c().identity}
}

// obtain makes a hold of the permits that get returns.
func (s *Semaphore) obtain(ctx context.Context, verb string, k int, get func(ctx context.Context, p queue.Permits) (*queue.Grant, error)) (*Hold, error) {
	verb = fmt.Sprint(verb, " ", k, " of")
	p := s.of(s.permits)
	if err := p.Check(k); err != nil {
		return nil, fmt.Errorf("zklock: %s %s: %w", verb, node.Printable(s.path), err)
	}
	return s.c().obtain(ctx, &attempt{verb, queue.PermitRecipe.Name, s.path}, func(ctx context.Context, _ string) (*queue.Grant, error) { return get(ctx, p) })
}

// Resize changes the number of permits. Waiters see the change as soon as their server does.
// Current holders keep their permits, even if they now hold more than there are. Later calls
// with the old number return ErrMismatch. So does Resize where another kind of lock is held or
// waited for.
func (s *Semaphore) Resize(ctx context.Context, permits int) error {
	inside := s.c().engine.Inside(ctx)
	defer inside.Leave()
	p := s.of(permits)
	err := p.Check(1)
	if err == nil {
		err = p.Resize(inside)
	}
	if err != nil {
		return fmt.Errorf("zklock: resize %s to %d: %w", node.Printable(s.path), permits, s.c().engine.Explain(inside, err))
	}
	return nil
}
