// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
)

// begin records the call of an operation of the process.
func (p *process) begin(op history.Op) *history.Handle {
	op.Client = p.name
	h := p.f.rec.Begin(op)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[h] = struct{}{}
	p.calls.Store(int64(len(p.open)))
	return h
}

func (p *process) done(h *history.Handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, h)
	p.calls.Store(int64(len(p.open)))
}

// taking is one acquire: its record and the function to call.
type taking struct {
	op    history.Op
	lock  func(context.Context) (*zklock.Hold, error)
	try   bool            // lock does not wait
	under context.Context // if set, the hold under which the lock is acquired
	// inside, if set, is called during the hold. If it returns an operation, the hold continues as that operation.
	inside func(h *zklock.Hold, op *history.Handle) *history.Handle
}

// take acquires, holds for a while, and releases, in varying ways.
func (p *user) take(r *rand.Rand, t taking) {
	ctx, cancel := p.patience(r)
	defer cancel()
	if t.under != nil {
		stop := context.AfterFunc(t.under, cancel)
		defer stop()
	}
	op, since := p.begin(t.op), p.f.rec.Now()
	defer p.done(op)
	hold, err := sparedHold(func() (*zklock.Hold, error) { return t.lock(ctx) })
	if err != nil {
		p.eventCheck.fails(t.op.Path, err)
	}
	switch {
	case (t.try || t.op.Behind > 0) && errors.Is(err, zklock.ErrLocked):
		op.Finished(history.Refused, err)
		return
	case t.try && errors.Is(err, zklock.ErrNotConnected):
		op.Finished(history.Failed, err)
		return
	case err != nil:
		op.Finished(history.Failed, err)
		p.judgeError(ctx, err, since, Lock{Recipe: t.op.Recipe, Path: t.op.Path})
		return
	}
	if p.isLate(hold, op) {
		return
	}
	p.grants(op, t.op.Path, hold.Node(), hold.Token())
	p.follows(t.op, hold)
	p.hold(r, t, hold, op)
}

// grants records the grant of an operation.
func (p *user) grants(op *history.Handle, lock, node string, token int64) {
	op.Granted(node, token)
	p.eventCheck.holds(lock, node, token)
}

// mayBeEvicted reports whether an acquire that was called at since can have been evicted. No goroutine of a cohort gets the eviction of
// a place that entered the queue before its call.
func (p *user) mayBeEvicted(lock string, since time.Duration) bool {
	return p.f.hasEvicted(lock, since-p.f.plan.Limits().Notice)
}

// patience returns a caller's context. One in four has a deadline.
func (p *user) patience(r *rand.Rand) (context.Context, context.CancelFunc) {
	if r.IntN(4) == 0 {
		return context.WithTimeout(p.alive, around(r, 2*p.f.plan.Hold))
	}
	return context.WithCancel(p.alive)
}

// judgeError checks P8 for a waiting acquire that was called at since: it fails only if its context is done, if its number of
// permits differs from the stored one, or if the node of one of several locks was deleted.
func (p *user) judgeError(ctx context.Context, err error, since time.Duration, locks ...Lock) {
	if errors.Is(err, zklock.ErrMismatch) || errors.Is(err, zklock.ErrLimit) {
		for _, l := range locks {
			if l.Recipe == history.Semaphore && p.f.disagreed(l, since) {
				p.resize(l, p.f.permits(l))
				return
			}
		}
	}
	if errors.Is(err, zklock.ErrEvicted) && slices.ContainsFunc(locks, func(l Lock) bool { return p.mayBeEvicted(l.Path, since) }) {
		return
	}
	if p.closes(err) || p.f.plan.Mixed.LockDelay == some && errors.Is(err, zklock.ErrMismatch) {
		return
	}
	if errors.Is(err, errWatcher) || p.f.plan.Watcher == slow && errors.Is(err, zklock.ErrLost) {
		return
	}
	if len(locks) > 1 && errors.Is(err, zklock.ErrLost) && p.wasRobbed(since) {
		return // one of several locks was lost during the wait for the others
	}
	if p.wasRefused(err, since) {
		return
	}
	if ctx.Err() == nil {
		p.f.report("P8", locks[0].Path, fmt.Sprintf("%s: acquire failed: %v", p.name, err))
	}
}

// wasRobbed reports whether a third party has deleted a node of the process since then.
func (p *user) wasRobbed(since time.Duration) bool {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	for id, at := range p.f.robbed {
		if at >= since && p.f.sessions[id] == p.name {
			return true
		}
	}
	return false
}

// hold uses a hold for a while and ends it.
func (p *user) hold(r *rand.Rand, t taking, hold *zklock.Hold, op *history.Handle) {
	defer p.watch(hold, op)()
	if t.inside != nil {
		if then := t.inside(hold, op); then != nil {
			defer p.done(then)
			op = then
		}
	}
	p.use(r, t.op, hold)
	ctx, cancel := context.WithCancel(p.alive)
	defer cancel()
	if r.IntN(5) == 0 {
		cancel() // Unlock must release the lock nevertheless
	}
	op.Ended()
	if errors.Is(context.Cause(hold.Context()), zklock.ErrReleased) {
		p.f.report("P2", t.op.Path, p.name+": a hold was released without Unlock")
	}
	node, token, since := hold.Node(), hold.Token(), p.f.rec.Now()
	err := hold.Unlock(ctx)
	p.judgeRelease(ctx, hold, err, since, t.op.Path, op)
	if err == nil {
		p.eventCheck.ends(t.op.Path, node, token)
	}
	op.Freed(err)
}

// judgeRelease checks P8 for a release that was called at since: it fails only if the hold was lost, its context is done, the
// servers did not reply, or they refused it.
func (p *user) judgeRelease(ctx context.Context, hold *zklock.Hold, err error, since time.Duration, path string, ops ...*history.Handle) {
	lost := errors.Is(context.Cause(hold.Context()), zklock.ErrLost)
	switch {
	case errors.Is(err, zklock.ErrLost) != lost:
		p.f.report("P8", path, fmt.Sprintf("%s: unlock returned %v, but the hold ended because %v", p.name, err, context.Cause(hold.Context())))
	case err == nil, lost, ctx.Err() != nil, p.closes(err), p.wasRefused(err, since):
	case errors.Is(err, zklock.ErrUncertain):
		for _, op := range ops {
			op.Unsettled()
		}
	default:
		p.f.report("P8", path, fmt.Sprintf("%s: unlock failed: %v", p.name, err))
	}
}

// watch records the end of a hold's context, and a request to release the lock, until the returned function is called.
func (p *user) watch(hold *zklock.Hold, op *history.Handle) (stop func()) {
	if p.f.gauge != nil {
		p.f.gauge.sample(p.process, hold)
	}
	over := make(chan struct{})
	if p.f.plan.Hostile.Looks {
		// Owned by the fleet, which waits for it; ends with the hold, or when stop is called.
		p.f.wg.Go(func() { p.heed(hold, op, over) })
	}
	unwatch := context.AfterFunc(hold.Context(), func() {
		if errors.Is(context.Cause(hold.Context()), zklock.ErrLost) {
			p.f.gauge.countLoss()
			op.Lost()
		} else {
			op.Ended()
		}
	})
	return func() {
		unwatch()
		close(over)
	}
}

// heed records that the holder is asked to release.
func (p *user) heed(hold *zklock.Hold, op *history.Handle, over <-chan struct{}) {
	select {
	case <-hold.Revoked():
		op.WasAsked()
	case <-hold.Context().Done():
	case <-over:
	case <-p.alive.Done():
	}
	op.Heeded()
}

// use spends the time of a hold: it waits for its end, ignores the context and calls Check afterwards, or makes guarded writes.
func (p *user) use(r *rand.Rand, op history.Op, hold *zklock.Hold) {
	if p.f.plan.Way == wayNested && op.Path == p.f.plan.Locks[0].Path {
		p.nest(r, hold)
	}
	if p.f.plan.Bulk && p.shared == nil {
		p.writeUnder(hold)
	}
	d := around(r, p.f.plan.Hold)
	switch r.IntN(4) {
	case 0: // a holder that ignores its context and calls Check before it continues
		if !p.rest(d) {
			return
		}
		err := hold.Check()
		if lost := hold.Context().Err() != nil; (err == nil) == lost {
			p.f.report("P2", op.Path, fmt.Sprintf("%s: Check returns %v, but the context's error is %v", p.name, err, hold.Context().Err()))
		}
		return
	case 1:
		for range 4 {
			p.fence(op, hold)
			d -= d / 4
			if hold.Context().Err() != nil || !p.rest(d/3) {
				return
			}
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-hold.Context().Done():
	case <-p.alive.Done():
	}
	select { // a process that is cut off does not finish its work
	case <-p.reachable():
	case <-hold.Context().Done():
	case <-p.alive.Done():
	}
}
