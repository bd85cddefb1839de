// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"context"
	"fmt"

	"github.com/zklock-go/zklock/internal/queue"
)

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
// The contenders ahead are those in the listing that comes with the node, holders included. Of a
// semaphore, only callers that wait for permits count. Of a Cohort, the goroutines of this process
// count as well. A lock that has to queue again, after its session has expired or, for a Cohort, when
// the place is passed on, counts again.
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
