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

// begin notes an operation of the process.
func (p *process) begin(op history.Op) *history.Handle {
	op.Client = p.name
	h := p.f.rec.Begin(op)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[h] = struct{}{}
	return h
}

func (p *process) done(h *history.Handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, h)
}

// taking is one acquire: what is noted of it, and how it is done.
type taking struct {
	op   history.Op
	lock func(context.Context) (*zklock.Hold, error)
	try  bool // it does not wait
	// inside, if set, runs while the hold is used. What it returns, if anything, is the operation that the hold is from then on.
	inside func(h *zklock.Hold, op *history.Handle) *history.Handle
}

// take acquires, holds for a while, and releases; each in one of the ways that callers have.
func (p *process) take(r *rand.Rand, t taking) {
	ctx, cancel := p.patience(r)
	defer cancel()
	op, since := p.begin(t.op), p.f.rec.Now()
	defer p.done(op)
	hold, err := t.lock(ctx)
	if err != nil {
		p.told.fails(t.op.Path, err)
	}
	switch {
	case t.try && errors.Is(err, zklock.ErrLocked):
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
	p.grants(op, t.op.Path, hold.Node(), hold.Token())
	p.hold(r, t, hold, op)
}

// grants notes the grant of an operation, and what was heard of it.
func (p *process) grants(op *history.Handle, lock, node string, token int64) {
	op.Granted(node, token)
	p.told.holds(lock, node, token)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.granted[lock] = p.f.rec.Now()
}

// mayBeEvicted reports whether an acquire that was called then can have been evicted. A goroutine may have joined a place of its
// process whose end the client did not know yet: it learns of that when the one before it goes, but not after a grant.
func (p *process) mayBeEvicted(lock string, since time.Duration) bool {
	if p.cohort != nil {
		p.mu.Lock()
		since = min(since, p.granted[lock])
		p.mu.Unlock()
	}
	return p.f.hasEvicted(lock, since-p.f.plan.Limits().Notice)
}

// patience is a caller's context: one in four does not wait for ever.
func (p *process) patience(r *rand.Rand) (context.Context, context.CancelFunc) {
	if r.IntN(4) == 0 {
		return context.WithTimeout(p.alive, around(r, 2*p.f.plan.Hold))
	}
	return context.WithCancel(p.alive)
}

// judgeError is P8: an acquire that waits, called then, fails only when its caller or its client gave up, or when it says
// another number of permits than was stored.
func (p *process) judgeError(ctx context.Context, err error, since time.Duration, locks ...Lock) {
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
	if p.wasRefused(err, since) {
		return
	}
	if ctx.Err() == nil {
		p.f.report("P8", locks[0].Path, fmt.Sprintf("%s: acquire failed: %v", p.name, err))
	}
}

// hold uses a hold for a while and ends it.
func (p *process) hold(r *rand.Rand, t taking, hold *zklock.Hold, op *history.Handle) {
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
		cancel() // the release must go on
	}
	op.Ended()
	if errors.Is(context.Cause(hold.Context()), zklock.ErrReleased) {
		p.f.report("P2", t.op.Path, p.name+": a hold was released that nobody has unlocked")
	}
	node, token, since := hold.Node(), hold.Token(), p.f.rec.Now()
	err := hold.Unlock(ctx)
	p.judgeRelease(ctx, hold, err, since, t.op.Path, op)
	if err == nil {
		p.told.ends(t.op.Path, node, token)
	}
	op.Freed(err)
}

// judgeRelease is P8 for a release, called then: it fails only if the hold was lost, its caller gave up, the servers did not
// answer, or refused it.
func (p *process) judgeRelease(ctx context.Context, hold *zklock.Hold, err error, since time.Duration, path string, ops ...*history.Handle) {
	lost := errors.Is(context.Cause(hold.Context()), zklock.ErrLost)
	switch {
	case errors.Is(err, zklock.ErrLost) != lost:
		p.f.report("P8", path, fmt.Sprintf("%s: unlock said %v of a hold that has ended because %v", p.name, err, context.Cause(hold.Context())))
	case err == nil, lost, ctx.Err() != nil, p.wasRefused(err, since):
	case errors.Is(err, zklock.ErrUncertain):
		for _, op := range ops {
			op.Unsettled()
		}
	default:
		p.f.report("P8", path, fmt.Sprintf("%s: unlock failed: %v", p.name, err))
	}
}

// watch notes the end of a hold when its context tells, and that it is asked to let go, until the returned function is called.
func (p *process) watch(hold *zklock.Hold, op *history.Handle) (stop func()) {
	if p.f.gauge != nil {
		p.f.gauge.sample(p, hold)
	}
	over := make(chan struct{})
	if p.f.plan.Hostile.Looks {
		// Owned by the fleet, which waits for it; ends with the hold, or with its caller's interest.
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

// heed notes that the holder is asked to let go.
func (p *process) heed(hold *zklock.Hold, op *history.Handle, over <-chan struct{}) {
	select {
	case <-hold.Revoked():
		op.WasAsked()
	case <-hold.Context().Done():
	case <-over:
	case <-p.alive.Done():
	}
	op.Heeded()
}

// use spends the time of a hold: waiting for its end, or looking away and asking Check afterwards, or writing.
func (p *process) use(r *rand.Rand, op history.Op, hold *zklock.Hold) {
	d := around(r, p.f.plan.Hold)
	switch r.IntN(4) {
	case 0: // a holder that does not look, and asks before it goes on
		if !p.rest(d) {
			return
		}
		err := hold.Check()
		if lost := hold.Context().Err() != nil; (err == nil) == lost {
			p.f.report("P2", op.Path, fmt.Sprintf("%s: check says %v, the context %v", p.name, err, hold.Context().Err()))
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
	select { // without a network the work gets on no better than we do
	case <-p.reachable():
	case <-hold.Context().Done():
	case <-p.alive.Done():
	}
}
