package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// Expiring returns a channel that is closed as soon as no more than margin of the hold is
// certain, or when the hold is over. The former is the warning before a loss. It is closed once
// and for all, although heartbeats that are answered later may prolong the hold.
//
// A margin of a quarter of the session timeout or less gives no warning while the servers
// answer. One of a fifth or less gives none either when a server fails and others go on.
func (h *Hold) Expiring(margin time.Duration) <-chan struct{} {
	soon := make(chan struct{})
	// Owned by the hold; ends with it, at the latest by Close, which waits.
	if !h.of().c.Calls.Run(func() {
		defer close(soon)
		h.untilExpiring(margin)
	}) {
		close(soon)
	}
	return soon
}

func (h *Hold) untilExpiring(margin time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-h.Context().Done():
			return
		}
		left := h.Remaining() - max(margin, 0)
		if left <= 0 {
			return
		}
		timer.Reset(min(left, h.of().nodes[0].Sess.Lease.Glance()))
	}
}

// failStopShare is the part of the session timeout that a guarded function has for stopping
// before Options.FailStop is called.
const failStopShare = 8

// errExpiring ends a guarded function's context before the hold's, if Options.FailStop is set.
var errExpiring = fmt.Errorf("%w: the session is about to expire", ErrLost)

// within returns the context of a function that works under the hold: that of ctx, which also
// ends with the hold. The function that it returns is to be called when that one has returned.
func (h *Hold) within(ctx context.Context) (context.Context, func()) {
	inside, cut := context.WithCancelCause(h.enclose(ctx))
	// Runs once, when the hold ends before the function has returned.
	stop := context.AfterFunc(h.Context(), func() { cut(context.Cause(h.Context())) })
	returned := make(chan struct{})
	if h.of().c.FailStop != nil {
		// Owned by the hold; ends when the function has returned, or soon after the hold; Close waits for it.
		h.of().c.Calls.Run(func() { h.oversee(cut, returned) })
	}
	return inside, func() {
		close(returned)
		stop()
		cut(nil)
	}
}

// oversee tells a guarded function to stop, by cut, when its hold is about to end or has ended. It
// calls FailStop if the hold is lost and the function has not returned in the time that it has for
// that: before the loss if that is foreseen, otherwise after it.
func (h *Hold) oversee(cut context.CancelCauseFunc, returned <-chan struct{}) {
	grace := h.of().nodes[0].Sess.Lease.Term() / failStopShare
	h.untilExpiring(grace)
	if h.Context().Err() != nil {
		cut(context.Cause(h.Context())) // it has ended already, for this reason
	} else {
		cut(errExpiring)
	}
	told := time.Now()
	select {
	case <-returned:
		return
	case <-h.Context().Done():
	}
	why := context.Cause(h.Context())
	if !errors.Is(why, ErrLost) {
		return
	}
	timer := time.NewTimer(grace - time.Since(told))
	defer timer.Stop()
	select {
	case <-returned:
	case <-timer.C:
		if !session.IsClosed(returned) {
			// The program's: it may close the client, and Close would wait for it.
			go h.of().c.FailStop(fmt.Errorf("zklock: %s: the guarded function has not returned: %w", node.Printable(h.of().path), why))
		}
	}
}

// Do runs fn, and unlocks when fn returns or panics. It is for every kind of hold, and makes
// Options.FailStop apply to it:
//
//	hold, err := lock.TryLock(ctx)
//	if err != nil {
//		return err
//	}
//	return hold.Do(ctx, work)
//
// The context of fn is derived from ctx, and so has its deadline. It also ends with the hold;
// context.Cause then wraps ErrLost, ErrReleased or ErrClosed. If the hold or ctx has ended
// already, Do does not call fn.
//
// Do returns the errors of fn and Unlock. If the lock was lost while fn ran, or fn has failed
// after FailStop made it stop, the error wraps ErrLost. Do waits for the release even if ctx
// has ended, but no longer than the session timeout.
func (h *Hold) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	t := h.run(ctx, fn)
	if t.failed != nil && t.ended == errExpiring {
		return errors.Join(t.failed, t.ended, t.left)
	}
	return errors.Join(t.failed, t.left)
}

// A term is how a function has worked under a hold.
type term struct {
	failed error // the function's error
	ended  error // why its context ended before it returned; nil if it did not
	left   error // the error of the hold or of its release
}

// run is Do.
func (h *Hold) run(ctx context.Context, fn func(ctx context.Context) error) (t term) {
	inside, stop := h.within(ctx)
	defer stop()
	if err := h.unlessOver("do"); err != nil {
		return term{ended: err, left: err}
	}
	defer func() { t.left = h.Unlock(context.WithoutCancel(ctx)) }()
	if ctx.Err() != nil {
		err := outcome.Beside(ctx, outcome.CauseOf(ctx, ctx.Err()))
		return term{failed: h.of().failure("do", err), ended: err}
	}
	err := fn(inside)
	return term{failed: err, ended: h.endOf(inside)}
}

// endOf returns why the context of a function under the hold has ended, nil if it has not.
func (h *Hold) endOf(inside context.Context) error {
	why, cause := context.Cause(h.Context()), context.Cause(inside)
	switch {
	case cause == nil: // or it is about to end
		return why
	case cause == why, cause == errExpiring:
		return cause
	}
	return outcome.Beside(inside, outcome.CauseOf(inside, cause))
}
