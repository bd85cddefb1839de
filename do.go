// SPDX-License-Identifier: Apache-2.0

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

// Expiring returns a channel that is closed as soon as Remaining is at most margin, or when the hold
// ends. It warns you before a loss. The channel stays closed, even if later replies to heartbeats
// extend the hold. A later call looks again. Calls with the same margin share a goroutine.
//
// With a margin of a quarter of the session timeout or less, the channel stays open while the
// servers answer. With a fifth or less, it also stays open when one server fails and the others
// continue.
func (h *Hold) Expiring(margin time.Duration) <-chan struct{} {
	g, key := h.holding(), expiryKey{h.known(), margin}
	soon, begun := g.expiryOf(key)
	if begun {
		return soon.Done()
	}
	stop := h.OnEnd(func(error) { soon.Set() })
	end := func() {
		soon.Set()
		stop()
		g.forgetExpiry(key)
	}
	// Owned by the hold; ends with it, at the latest by Close, which waits.
	if !g.engine.Requests.Calls.Run(func() {
		h.untilExpiring(margin)
		end()
	}) {
		end()
	}
	return soon.Done()
}

// An expiryKey identifies the calls of Hold.Expiring that share a goroutine: a loop may make one in each round.
type expiryKey struct {
	hold   *Hold
	margin time.Duration
}

// expiryOf returns the latch of a call of Hold.Expiring, and whether an earlier call has begun to watch for it.
func (ho *holding) expiryOf(key expiryKey) (soon *session.Latch, begun bool) {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	soon, begun = ho.expiring[key]
	if begun {
		return soon, true
	}
	if ho.expiring == nil {
		ho.expiring = map[expiryKey]*session.Latch{}
	}
	soon = new(session.Latch)
	ho.expiring[key] = soon
	return soon, false
}

// forgetExpiry makes the next call watch again.
func (ho *holding) forgetExpiry(key expiryKey) {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	delete(ho.expiring, key)
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
		timer.Reset(min(left, h.holding().nodes[0].Sess.Lease.Glance()))
	}
}

// failStopShare is the divisor of the session timeout that gives the time in which a guarded
// function must stop before Options.FailStop is called.
const failStopShare = 8

// errExpiring is the cause with which a guarded function's context ends before the hold's, if
// Options.FailStop is set.
var errExpiring = fmt.Errorf("%w: the session is about to expire", ErrLost)

// within returns the context for a function that runs under the hold: it derives from ctx and also
// ends with the hold. Call the returned function when the guarded function has returned.
func (h *Hold) within(ctx context.Context) (context.Context, func()) {
	g := h.holding()
	// Canceling inside calls methods of its parent. With outer between them, these are not methods
	// of the caller's own context type, which could block the end of the hold.
	outer, end := context.WithCancel(h.enclose(ctx))
	inside, cut := context.WithCancelCause(outer)
	stop := h.OnEnd(cut)
	returned := make(chan struct{})
	if g.engine.FailStop != nil {
		// Owned by the hold; ends when the function has returned, or soon after the hold; Close waits for it.
		g.engine.Requests.Calls.Run(func() { h.oversee(cut, returned) })
	}
	return inside, func() {
		close(returned)
		stop()
		end()
	}
}

// oversee stops a guarded function, by calling cut, when its hold is about to end or has ended. It
// calls FailStop if the hold is lost and the function has not returned within its grace period.
// That period is before the loss if the loss was foreseen, otherwise after it.
func (h *Hold) oversee(cut context.CancelCauseFunc, returned <-chan struct{}) {
	g := h.holding()
	grace := g.nodes[0].Sess.Lease.Term() / failStopShare
	h.untilExpiring(grace)
	if h.Context().Err() == nil { // otherwise the end of the hold cuts it, with its reason
		cut(errExpiring)
	}
	endedAt := time.Now()
	select {
	case <-returned:
		return
	case <-h.Context().Done():
	}
	why := context.Cause(h.Context())
	if !errors.Is(why, ErrLost) {
		return
	}
	timer := time.NewTimer(grace - time.Since(endedAt))
	defer timer.Stop()
	select {
	case <-returned:
	case <-timer.C:
		if !session.IsClosed(returned) {
			// Owned by the program; ends when FailStop returns; Close does not wait for it, because FailStop may call Close.
			go g.engine.FailStop(fmt.Errorf("zklock: %s: the guarded function has not returned: %w", node.Printable(g.path), why))
		}
	}
}

// Do acquires l, which can be any lock, runs fn, and unlocks when fn returns or panics:
//
//	err := zklock.Do(ctx, client.RWMutex("/tables/7").Reader(), read)
//	err := zklock.Do(ctx, client.Semaphore("/slots", 10).Permits(2), work)
//
// The context of fn ends with ctx and with the hold. If l was not acquired, Do does not call fn, and
// the error wraps ErrNotAcquired. See Hold.Do for all other errors. To limit the wait for the lock
// alone, acquire it with a separate context:
//
//	hold, err := lock.Lock(waitCtx)
//	if err != nil {
//		return err
//	}
//	return hold.Do(ctx, fn)
func Do(ctx context.Context, l Locker, fn func(ctx context.Context) error) error {
	if l == nil {
		return outcome.NotAcquired(fmt.Errorf("zklock: do: %w: nil lock", ErrInvalid))
	}
	hold, err := l.Lock(ctx)
	if err != nil {
		return outcome.NotAcquired(err) // a type of the caller's may not say so
	}
	return hold.Do(ctx, fn)
}

// Do runs fn, and unlocks when fn returns or panics. It works with every kind of hold, and
// Options.FailStop applies to it:
//
//	hold, err := lock.TryLock(ctx)
//	if err != nil {
//		return err
//	}
//	return hold.Do(ctx, work)
//
// The context of fn is derived from ctx, and so has its deadline. It also ends with the hold;
// context.Cause then wraps ErrLost, ErrReleased or ErrClosed. If the hold or ctx has already ended,
// Do does not call fn, and the error wraps ErrNotAcquired. An error that wraps ErrNotAcquired always
// means that fn was not called, even if fn acquires other locks.
//
// Do returns the error of fn. If the lock was lost while fn ran, or if fn failed after it was stopped
// because of FailStop, the error wraps ErrLost as well. If fn then returns the error of its context,
// Do leaves that out unless ctx has ended too: otherwise a lost lock would look like the caller's own
// cancellation.
//
// Do waits for the release even if ctx has ended, but no longer than the session timeout. The work was
// done under the lock then, so Do does not return that the outcome of the release is unknown: the
// client logs that, and the release continues. ErrUncertain therefore is an error of fn. If the
// servers refuse the release, Do returns their error.
func (h *Hold) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	t := h.run(ctx, fn)
	err := t.err()
	if !t.called {
		return outcome.NotAcquired(err)
	}
	return err
}

// A term is the outcome of a function that ran under a hold.
type term struct {
	called  bool  // whether the function was called; it is not if its context had ended before
	failed  error // the function's error, unless it says only that the function was stopped
	stopped bool  // by a loss: the function returned the error of its context
	ended   error // why its context ended before it returned, or nil if it did not end
	left    error // why the hold had ended before it was unlocked, or why the lock cannot be released
}

// err returns the error of Do.
func (t term) err() error {
	switch {
	case t.stopped && errors.Is(t.left, ErrLost):
		return t.left
	case t.stopped || t.failed != nil && t.ended == errExpiring:
		return errors.Join(t.failed, t.ended, t.left)
	}
	return join(t.failed, t.left) // the function's own error as it is: a Do around this one compares it
}

// run is Do, but returns a term. It unlocks in every case: after a loss, a hold of several locks keeps
// those that are not lost until it is unlocked.
func (h *Hold) run(ctx context.Context, fn func(ctx context.Context) error) (t term) {
	inside, stop := h.within(ctx)
	defer stop()
	defer func() { t.left = h.leave() }()
	if why := h.over(); why != nil {
		return term{ended: why}
	}
	if ctx.Err() != nil {
		why := outcome.Beside(ctx, outcome.CauseOf(ctx, ctx.Err()))
		return term{failed: h.holding().failure("do", why), ended: why}
	}
	t.called = true
	err := outcome.Ran(fn(inside))
	t.failed, t.ended = err, h.endOf(inside)
	if err != nil && err == inside.Err() && ctx.Err() == nil && errors.Is(t.ended, ErrLost) {
		t.failed, t.stopped = nil, true
	}
	return t
}

// leave unlocks after the function has returned. It returns why the hold had already ended, or the
// servers' refusal of the release. If the outcome of the release is unknown, it logs that.
func (h *Hold) leave() error {
	last, err := h.release()
	g := h.holding()
	if last {
		released := g.awaitRelease(context.Background())
		switch {
		case outcome.IsRefusal(released):
			err = join(err, released)
		case errors.Is(released, ErrUncertain):
			g.engine.Requests.Log.Warn("zklock: lock not released yet", "path", g.path, "node", g.nodes[0].Name, "err", released)
		}
	}
	if err != nil {
		awaitReason(context.Background(), err)
		return g.failure("do", err)
	}
	return nil
}

// endOf returns why the context of a function under the hold has ended, or nil if it has not. It
// looks at that context first, as causeOf does.
func (h *Hold) endOf(inside context.Context) error {
	cause := context.Cause(inside)
	why := context.Cause(h.Context())
	switch {
	case cause == nil: // why is not nil if inside is just about to end
		return why
	case cause == why, cause == errExpiring:
		return cause
	}
	return outcome.Beside(inside, outcome.CauseOf(inside, cause))
}
