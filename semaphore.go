// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"context"
	"fmt"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/queue"
)

// Semaphore has a number of permits, and each holder takes one or several of them. Permits are
// granted first come, first served: a caller that requests few permits waits behind one that
// requested many. Curator's InterProcessSemaphoreV2 on the same path shares the permits, but
// ignores the stored number.
//
// The number of permits is stored with the semaphore while it is in use. A caller with a different
// number gets ErrMismatch. Resize changes the stored number. A caller that passes zero
// accepts any stored number.
type Semaphore struct {
	owner
	path    string
	permits int
}

// Semaphore returns the semaphore at path with the given number of permits, at most 100,000. Zero
// means the stored number: such a program needs no change when the semaphore is resized, but its
// acquires return ErrMismatch until a number is stored. Semaphore sends nothing; an invalid path or
// number is reported by the first call, as ErrInvalid.
func (c *Client) Semaphore(path string, permits int) *Semaphore {
	return &Semaphore{owner{c}, path, permits}
}

// Path returns the semaphore's path, as it was passed to the client.
func (s *Semaphore) Path() string { return s.path }

// Acquire waits until it holds k permits, and returns one hold for all of them. If ctx ends first,
// Acquire leaves the queue and returns an error that wraps ctx.Err(). If the session expires while
// Acquire waits, it queues again at the end.
//
// Acquire returns ErrMismatch if the semaphore's number of permits differs from the stored one, and
// ErrLimit if k is more than that number. It also returns ErrLimit, without sending anything, if k
// permits do not fit into one request; several thousand do. If ctx belongs to a hold of this
// semaphore, Acquire returns ErrDeadlock: acquire all permits at once instead.
func (s *Semaphore) Acquire(ctx context.Context, k int) (*Hold, error) {
	return someOf{s, k}.lockWithin(ctx, nil)
}

// TryAcquire acquires k permits if at least one permit per waiting caller would remain free.
// Otherwise it returns ErrLocked without waiting, and leaves no node behind. Without a connection
// it returns ErrNotConnected. It returns ErrMismatch, ErrLimit and ErrDeadlock as Acquire does.
func (s *Semaphore) TryAcquire(ctx context.Context, k int) (*Hold, error) {
	return s.obtain(ctx, "try", k, func(ctx context.Context, p queue.Permits) (*queue.Grant, error) {
		return queue.WithoutWaiting(ctx, s.engine(), func(ctx context.Context) (*queue.Grant, error) { return p.TryObtain(ctx, k) })
	})
}

// Permits returns a Locker that acquires k permits, for use with Do and LockAll. It sends nothing; an
// invalid k is reported by these, as ErrInvalid or ErrLimit.
func (s *Semaphore) Permits(k int) Locker { return someOf{s, k} }

type someOf struct {
	s *Semaphore
	k int
}

func (p someOf) Lock(ctx context.Context) (*Hold, error) { return p.s.Acquire(ctx, p.k) }

func (p someOf) lockWithin(ctx context.Context, admit queue.Admission) (*Hold, error) {
	return p.s.obtain(ctx, "acquire", p.k, func(ctx context.Context, of queue.Permits) (*queue.Grant, error) {
		of.Admit = admit
		return of.Obtain(ctx, p.k)
	})
}

func (p someOf) Path() string { return p.s.path }

func (p someOf) lockable() lockable {
	of := p.s.of(p.s.permits)
	return lockable{c: p.s.client(), path: p.s.path, err: of.Check(p.k)}
}

// of returns the semaphore as the queue package sees it, with the given total number of permits.
func (s *Semaphore) of(total int) queue.Permits {
	return queue.Permits{Engine: s.engine(), Path: s.path, Dir: s.client().root + s.path, Total: total, Data: s.client().identity}
}

// obtain calls get to acquire permits, and returns a hold of them.
func (s *Semaphore) obtain(ctx context.Context, verb string, k int, get func(ctx context.Context, p queue.Permits) (*queue.Grant, error)) (*Hold, error) {
	verb = fmt.Sprint(verb, " ", k, " of")
	p := s.of(s.permits)
	if err := p.Check(k); err != nil {
		return nil, notAcquired(verb, s.path, err)
	}
	return s.client().obtain(ctx, &attempt{verb, queue.PermitRecipe.Name, s.path}, func(ctx context.Context, _ string) (*queue.Grant, error) { return get(ctx, p) })
}

// Resize changes the number of permits. Waiters see the change as soon as their server does.
// Current holders keep their permits, even if they hold more than the new number. Later calls with
// the old number return ErrMismatch. Resize also returns ErrMismatch if another kind of lock is in
// use at the path, and ErrInvalid if permits is not between 1 and 100,000. If ctx ends first, the
// number may or may not have been changed.
func (s *Semaphore) Resize(ctx context.Context, permits int) error {
	requests := s.engine().Requests
	inside := requests.CallContext(ctx)
	defer inside.Cancel()
	p := s.of(permits)
	err := p.Check(1)
	if err == nil && permits == 0 {
		err = fmt.Errorf("%w: no number of permits given", ErrInvalid)
	}
	if err == nil {
		err = p.Resize(inside)
	}
	if err != nil {
		return fmt.Errorf("zklock: resize %s to %d: %w", node.Printable(s.path), permits, requests.Explain(inside, err))
	}
	return nil
}
