// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/cohort"
	"github.com/zklock-go/zklock/internal/lease"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/observe"
)

// A sharedPlace is a place in a queue that was granted to a process. One of its goroutines holds
// there. The next one gets another node, in one transaction, and therefore its own token and guard.
type sharedPlace struct {
	// These fields are set once.
	grant     *queue.Grant
	holding   *holding           // the place's holding; the context of its hold ends with its context
	ended     func(h *localHold) // called when the hold was released
	lastAhead int64              // the number of the last waiter that certainly asked before any contender behind our node
	runs      run                // the process's run that this place belongs to

	// mu guards the fields below. It may be locked while localQueue.mu is held, but not the other
	// way round.
	mu sync.Mutex
	// hold is the goroutine's hold. It is nil before the first hold, after the hold has ended, and
	// after the place was lost. A place never has a second hold.
	hold *localHold
	// idleSince is when it was noticed that hold is nil. It is zero until then.
	idleSince time.Time
	// wanted is true if others want the place, or if it cannot be known whether they do. It is
	// never reset.
	wanted bool
	// watching is when we started to watch the directory. It is zero if we did not.
	watching time.Time
	// others is a view of the directory's children. It is nil until they are watched; watching is
	// set before it.
	others *session.View
}

// A run is a period in which a process uses a lock. After it, the process releases the lock
// briefly.
type run struct {
	since  time.Time
	length time.Duration
}

// isOver reports whether the run is over.
func (r run) isOver(now lease.Instant) bool { return now.Mono.Sub(r.since) >= r.length }

// begin starts a hold for a goroutine that called with ctx.
func (p *sharedPlace) begin(ctx context.Context, now lease.Instant) *Hold {
	h := p.holding.level(ctx)
	local := &localHold{hold: h, place: p, since: now.Mono}
	h.local = local
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold, p.idleSince = local, time.Time{}
	return h
}

// isHeld reports whether a goroutine holds in the place.
func (p *sharedPlace) isHeld() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hold != nil
}

// free records that no goroutine holds any more, and returns the hold that there was, or nil.
func (p *sharedPlace) free() *localHold {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hold
	p.hold = nil
	return h
}

// admits reports whether the waiter with the given number may begin in a place that was just granted
// and may already be lost. It may if it asked before the place's node was created, or if no
// contender was ahead. Behind a place that had to wait, there may be contenders that asked before
// the waiter.
func (p *sharedPlace) admits(number int64) bool {
	return !p.isHeld() && p.holding.ctx.Err() == nil && (number <= p.lastAhead || !p.grant.Waited)
}

// describe sets the fields of a situation that are about the place.
func (p *sharedPlace) describe(s *cohort.Situation, now lease.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checkOthers(now)
	if p.idleSince.IsZero() && p.hold == nil {
		p.idleSince = now.Mono
	}
	s.Place, s.Lost, s.Held = true, p.holding.ctx.Err() != nil, p.hold != nil
	s.Wanted, s.Waited, s.Watching = p.wanted, p.grant.Waited, !p.watching.IsZero()
	s.RunOver, s.Idle = p.runs.isOver(now), now.Mono.Sub(p.idleSince)
	if s.Watching && p.others == nil {
		s.Blind = p.blind(now)
	}
}

// checkOthers checks whether others want the place: it was revoked, the directory has changed, or
// the directory could not be watched in time. It must be called with mu held.
func (p *sharedPlace) checkOthers(now lease.Instant) {
	p.wanted = p.wanted || p.holding.revocation.Requested.IsSet()
	switch {
	case p.others != nil:
		p.others = p.others.Latest() // the watch is shared, and may have been set again
		p.wanted = p.wanted || !p.others.IsCurrent()
	case !p.watching.IsZero():
		p.wanted = p.wanted || p.blind(now) <= 0
	}
}

// blind returns how much longer the watch on the directory may take to be set: a server that lags
// behind does not show our node yet. It must be called with mu held.
func (p *sharedPlace) blind(now lease.Instant) time.Duration {
	return p.holding.nodes[0].Sess.Lease.Term()/8 - now.Mono.Sub(p.watching)
}

// watch records that we start to watch the directory.
func (p *sharedPlace) watch(now lease.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watching = now.Mono
}

// setOthers records the view of the directory, or that it is not watched if v is nil, and whether
// others wanted the place when the watch was set.
func (p *sharedPlace) setOthers(v *session.View, wanted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.others, p.wanted = v, p.wanted || wanted || v == nil
}

// events returns channels that are closed when the directory may have changed and when the place is
// revoked, or nil if it is already known that others want the place. changed is also nil until the
// directory is watched.
func (p *sharedPlace) events() (changed, revoked <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted {
		return nil, nil
	}
	if p.others != nil {
		changed = p.others.Newer()
	}
	return changed, p.holding.revocation.Requested.Done()
}

// report reports to the observer how a local hold that began at since has ended.
func (p *sharedPlace) report(kind observe.Kind, since time.Time, why error) {
	if p.holding.engine.Reporter.To == nil && kind != observe.Lost {
		return
	}
	ev := p.holding.event(kind, why)
	ev.Elapsed = time.Since(since)
	p.holding.engine.Reporter.Observe(ev)
}

// leaveNode ends the place's holding, in which no goroutine holds, but does not delete the node:
// the transaction that creates the next node deletes it. It returns false if the holding was lost.
func (p *sharedPlace) leaveNode() bool {
	if _, err := p.holding.end(ErrReleased); err != nil {
		return false
	}
	p.holding.set.remove(p.holding)
	p.holding.removed.Set()
	p.holding.released.Set()
	p.grant.Retire()
	return true
}

// giveUp starts to delete the node. It returns false if the place was lost.
func (p *sharedPlace) giveUp() bool {
	if _, err := p.holding.end(ErrReleased); err != nil {
		return false
	}
	p.holding.settle()
	return true
}

func (p *sharedPlace) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%s: held=%t wanted=%t", p.holding.nodes[0].Name, p.hold != nil, p.wanted)
}

// localHold is a goroutine's hold in a shared place.
type localHold struct {
	hold  *Hold
	place *sharedPlace
	since time.Time // when the hold began
}

// giveUp ends the hold. If it has already ended, giveUp returns the reason.
func (h *localHold) giveUp() error {
	h.hold.end(ErrReleased) // if it has already ended, its cause stays
	if why := context.Cause(h.hold.life); !errors.Is(why, ErrReleased) {
		return why
	}
	h.place.holding.endOnly()
	h.place.ended(h)
	return nil
}

// endKind returns the kind of event for a hold that ended for the reason why.
func endKind(why error) observe.Kind {
	if errors.Is(why, ErrLost) {
		return observe.Lost
	}
	return observe.Ended
}
