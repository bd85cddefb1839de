// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
)

// drawCohort draws the options for a process's Cohort in a plan with cohorts, or returns nil if its workers do not use one.
func drawCohort(r *rand.Rand) *zklock.CohortOptions {
	if r.IntN(5) == 0 {
		return nil
	}
	return &zklock.CohortOptions{Keep: pick(r, -1, 0, time.Second)}
}

// suitsCohort reports whether to use a Cohort for this acquire of a lock. At an RWMutex, only some writers use one.
func suitsCohort(l Lock, r *rand.Rand) bool {
	return l.Recipe == history.Mutex || l.Recipe == history.RW && r.IntN(2) == 0
}

// takeCohort uses a lock a few times, with short pauses, through the process's Cohort.
func takeCohort(p *user, l Lock, r *rand.Rand) {
	for range 1 + r.IntN(5) {
		p.takeAsGuest(l, r)
		if !p.rest(around(r, 2*p.f.plan.Latency)) {
			return
		}
	}
}

// takeAsGuest acquires, holds for a while and releases.
func (p *user) takeAsGuest(l Lock, r *rand.Rand) {
	ctx, cancel := p.patience(r)
	defer cancel()
	k := p.client.Cohort(p.local(l.Path), p.cohort)
	lock, try := k.Lock, false
	switch p.kind(r.IntN(8), 0, never) {
	case 0:
		lock, try = k.TryLock, true
	case never:
		p.doWith(l, history.Op{Recipe: l.Recipe, Path: l.Path, Cohort: true}, k.Do, r)
		return
	}
	op, since := p.begin(history.Op{Recipe: l.Recipe, Path: l.Path, Cohort: true}), p.f.rec.Now()
	defer p.done(op)
	hold, err := sparedHold(func() (*zklock.Hold, error) { return lock(ctx) })
	if err != nil {
		p.eventCheck.fails(l.Path, err)
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
	if p.isLate(hold, op) {
		return
	}
	p.grants(op, l.Path, hold.Node(), hold.Token())
	p.welcome(l, hold)
	p.follows(history.Op{Recipe: l.Recipe, Path: l.Path}, hold)
	defer p.watch(hold, op)()
	p.useAsGuest(l, hold, r)
	op.Ended()
	since = p.f.rec.Now()
	err = hold.Unlock(p.alive)
	op.Left(err) // not Freed: the process may keep the node
	p.judgeRelease(p.alive, hold, err, since, l.Path, op)
}

// welcome checks P1 within the process: the previous worker's hold has ended. It also checks P3: each hold has its own node.
func (p *user) welcome(l Lock, hold *zklock.Hold) {
	p.mu.Lock()
	last := p.guests[l.Path]
	p.guests[l.Path] = hold
	p.mu.Unlock()
	if last == nil {
		return
	}
	if last.Context().Err() == nil && hold.Context().Err() == nil {
		p.f.report("P1", l.Path, p.name+": two goroutines of the process hold at the same time")
	}
	if last.Node() == hold.Node() {
		p.f.report("P3", l.Path, p.name+": two goroutines of a cohort hold on one node")
	}
}

// useAsGuest spends the time of a hold. Most holds are short, so that many of them follow one another before another process
// requests the lock.
func (p *user) useAsGuest(l Lock, hold *zklock.Hold, r *rand.Rand) {
	if r.IntN(3) == 0 {
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
