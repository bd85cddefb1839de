package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
)

// drawCohort returns how the workers of a process take mutexes in a plan with cohorts; nil for each by itself.
func drawCohort(r *rand.Rand) *zklock.CohortOptions {
	if r.IntN(5) == 0 {
		return nil
	}
	return &zklock.CohortOptions{Unfenced: r.IntN(2) == 0, Keep: pick(r, -1, 0, time.Second)}
}

// suitsCohort reports whether a lock is one that the workers of a process take together. They take some as readers, and
// beside those that take it by themselves.
func suitsCohort(l Lock, r *rand.Rand) bool {
	return l.Recipe == history.Mutex || l.Recipe == history.RW && r.IntN(2) == 0
}

// takeCohort takes a lock a few times, soon after one another, together with the other workers of the process.
func takeCohort(p *process, l Lock, r *rand.Rand) {
	for range 1 + r.IntN(5) {
		p.takeAsGuest(l, r)
		if !p.rest(around(r, 2*p.f.plan.Latency)) {
			return
		}
	}
}

// takeAsGuest acquires, holds for a while and releases.
func (p *process) takeAsGuest(l Lock, r *rand.Rand) {
	ctx, cancel := p.patience(r)
	defer cancel()
	k := p.client.Cohort(l.Path, p.cohort)
	reads, lock, try := l.Recipe == history.RW && r.IntN(3) > 0, k.Lock, false
	switch {
	case reads:
		lock = k.RLock
	case r.IntN(8) == 0:
		lock, try = k.TryLock, true
	}
	op, since := p.begin(history.Op{Recipe: l.Recipe, Path: l.Path, Cohort: true, Shared: reads}), p.f.rec.Now()
	defer p.done(op)
	hold, err := lock(ctx)
	if err != nil {
		p.told.fails(l.Path, err)
	}
	switch {
	case try && errors.Is(err, zklock.ErrLocked):
		op.Finished(history.Refused, err)
		return
	case try && errors.Is(err, zklock.ErrNotConnected):
		op.Finished(history.Failed, err)
		return
	case err != nil:
		op.Finished(history.Failed, err)
		p.judgeError(ctx, err, since, l)
		return
	}
	p.grants(op, l.Path, hold.Node(), hold.Token())
	p.welcome(l, hold, reads, op)
	defer p.watch(hold, op)()
	p.useAsGuest(l, hold, reads, r)
	op.Ended()
	since = p.f.rec.Now()
	err = hold.Unlock(p.alive)
	op.Left(err) // its process may keep the place
	p.judgeRelease(p.alive, hold, err, since, l.Path, op)
}

// welcome is P1 inside the process: the hold of the worker before that held alone has ended. What is granted on one node
// is one claim towards others. A fenced cohort shares no node, but with those that read.
func (p *process) welcome(l Lock, hold *zklock.Hold, reads bool, op *history.Handle) {
	p.mu.Lock()
	last, first := p.guests[l.Path], p.firsts[hold.Node()]
	if !reads {
		p.guests[l.Path] = hold
	}
	if first == 0 {
		p.firsts[hold.Node()] = op.ID()
	}
	p.mu.Unlock()
	if last != nil && last.Context().Err() == nil && hold.Context().Err() == nil {
		p.f.report("P1", l.Path, p.name+": two goroutines of the process hold at the same time")
	}
	if first == 0 {
		return
	}
	op.Follows(first)
	if !reads && !p.cohort.Unfenced {
		p.f.report("P3", l.Path, p.name+": two goroutines of a fenced cohort hold on one node")
	}
}

// useAsGuest spends the time of a hold: mostly a short one, so that many follow one another before others want the lock.
func (p *process) useAsGuest(l Lock, hold *zklock.Hold, reads bool, r *rand.Rand) {
	if !reads && !p.cohort.Unfenced && r.IntN(3) == 0 {
		p.use(r, history.Op{Recipe: l.Recipe, Path: l.Path}, hold)
		return
	}
	d := around(r, 3*p.f.plan.Latency)
	if r.IntN(6) == 0 {
		d = around(r, p.f.plan.Hold)
	}
	inside, cancel := context.WithTimeout(hold.Context(), d)
	defer cancel()
	select {
	case <-inside.Done():
	case <-p.alive.Done():
	}
}
