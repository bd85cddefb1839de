package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// Expiring returns a channel that is closed as soon as no more than margin of the hold is
// certain, which is the warning before a loss, or when the hold is over. It is closed once
// and for all, although heartbeats that are answered later may prolong the hold.
//
// A margin of a quarter of the session timeout or less gives no warning while the servers
// answer: see Remaining.
func (h *Hold) Expiring(margin time.Duration) <-chan struct{} {
	soon := make(chan struct{})
	// Owned by the hold; ends with it, at the latest by Close, which waits.
	if !h.of.c.Calls.Run(func() {
		defer close(soon)
		h.untilExpiring(margin)
	}) {
		close(soon)
	}
	return soon
}

func (h *Hold) untilExpiring(margin time.Duration) {
	timer := time.NewTimer(h.Remaining() - margin)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-h.ctx.Done():
			return
		}
		left := h.Remaining() - margin
		if left <= 0 {
			return
		}
		timer.Reset(left)
	}
}

// failStopShare is the part of the session timeout that a guarded function has for stopping
// before Options.FailStop is called.
const failStopShare = 8

// errExpiring ends a guarded function's context before the hold's, if Options.FailStop is set.
var errExpiring = fmt.Errorf("%w: the session is about to expire", ErrLost)

// within returns the context of a function that works under the hold: it ends with the hold
// or with ctx. The function that it returns is to be called when that one has returned.
func (h *Hold) within(ctx context.Context) (context.Context, func()) {
	inside, stop := session.Either(h.ctx, ctx)
	failStop := h.of.c.FailStop
	if failStop == nil {
		return inside, stop
	}
	inside, cut := context.WithCancelCause(inside)
	returned := make(chan struct{})
	// Owned by the hold; ends when the function has returned, or soon after the hold; Close waits for it.
	h.of.c.Calls.Run(func() { h.oversee(cut, returned) })
	return inside, func() {
		close(returned)
		cut(nil)
		stop()
	}
}

// oversee tells a guarded function to stop, by cut, when its hold is about to end or has ended. It
// calls FailStop if the hold is lost and the function has not returned in the time that it has for
// that: before the loss if that is foreseen, otherwise after it.
func (h *Hold) oversee(cut context.CancelCauseFunc, returned <-chan struct{}) {
	grace := h.of.nodes[0].Sess.Lease.Term() / failStopShare
	h.untilExpiring(grace)
	cut(errExpiring)
	told := time.Now()
	select {
	case <-returned:
		return
	case <-h.ctx.Done():
	}
	why := context.Cause(h.ctx)
	if !errors.Is(why, ErrLost) {
		return
	}
	timer := time.NewTimer(grace - time.Since(told))
	defer timer.Stop()
	select {
	case <-returned:
	case <-timer.C:
		if !session.IsClosed(returned) {
			h.of.c.FailStop(fmt.Errorf("zklock: %s: the guarded function has not returned: %w", node.Printable(h.of.path), why))
		}
	}
}

func (h *Hold) do(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	inside, stop := h.within(ctx)
	defer func() {
		stop()
		err = errors.Join(err, h.leave(ctx))
	}()
	return fn(inside)
}
