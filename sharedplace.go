package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/lease"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/observe"
)

// A sharedPlace is a place in a queue that was granted to a process. Its goroutines hold there:
// one after the other, or, if the recipe is shared, also at the same time. The fields up to runs
// are set once. The others are guarded by the mutex of the localQueue that has got the place.
//
// In a fenced cohort one goroutine holds in a place. The next one gets another node, in one
// transaction, and so a token and a guard of its own. In an unfenced cohort goroutines follow one
// another without a request, as long as nothing happens to the place and no other process wants it.
type sharedPlace struct {
	place  *queue.Grant
	of     *holding           // of the place; the contexts of local holds end with its own
	ended  func(h *localHold) // called when a hold was given up
	moved  <-chan struct{}    // closed when the connection is another than when the place was granted
	since  time.Time          // when it was granted
	before int64              // the last waiter that had certainly asked before anybody behind our node
	runs   run                // of the process, which this place belongs to

	holds     []*localHold       // those that last; one at most unless the recipe is shared
	idleSince time.Time          // when it was noticed that none lasts; zero before
	fresh     lease.Instant      // until when the lease is fresh, as far as was known when we last asked
	ready     bool               // another hold may begin on this node: whatever could forbid it is watched
	closed    bool               // no other hold may begin; never reset
	heard     bool               // the place was asked for, and we know it
	apart     bool               // the queue is done with it: the last hold that ends gives it up
	watching  time.Time          // when we began to watch the directory; zero if we do not
	others    *session.NodeWatch // the watch on the directory's children; nil until it stands
	quota     quota
}

// A quota says which waiters may still begin in a place that others want.
type quota struct {
	wanted bool
	last   int64     // the number of the last of them
	left   int       // at most so many
	until  time.Time // before which they must begin
}

const (
	mostBefore = 100 // holds that begin although others wait
	timeBefore = 100 * time.Millisecond
)

// A run is a time in which a process uses a lock. After it, the process lets go of the lock for a
// moment.
type run struct {
	since  time.Time
	length time.Duration
}

// pauseOfReaders is how long readers do not begin after a run, so that the place gets empty if
// all of them are short. After it another run begins.
const pauseOfReaders = 20 * time.Millisecond

// begin lets a goroutine hold that has called with ctx.
func (p *sharedPlace) begin(ctx context.Context, now lease.Instant) *Hold {
	h := &localHold{hold: Hold{from: p.of}, in: p, stay: p.of.ctx, values: ctx, at: len(p.holds), since: now.Mono}
	h.hold.life, h.hold.local = h, h
	p.holds, p.idleSince = append(p.holds, h), time.Time{}
	p.quota.left--
	return &h.hold
}

// end takes a hold from those that last, if it is one of them.
func (p *sharedPlace) end(h *localHold) {
	last := len(p.holds) - 1
	if h.at > last || p.holds[h.at] != h {
		return
	}
	p.holds[h.at] = p.holds[last]
	p.holds[h.at].at = h.at
	p.holds[last] = nil
	p.holds = p.holds[:last]
}

// node returns our node.
func (p *sharedPlace) node() *session.OwnNode { return p.of.nodes[0] }

// isShared reports whether several may hold at a time.
func (p *sharedPlace) isShared() bool { return p.place.Shared() }

// hasRoom reports whether another may hold beside those that do.
func (p *sharedPlace) hasRoom() bool { return len(p.holds) == 0 || p.isShared() }

// takes reports whether the waiter of that number may begin in a place that was just granted, and may be lost already: one
// that had asked before its node was created, or the first where nobody was in the way. Behind a place that had to wait others
// may stand who asked before the waiter.
func (p *sharedPlace) takes(number int64) bool {
	if !p.hasRoom() || p.of.ctx.Err() != nil {
		return false
	}
	return number <= p.before || !p.place.Waited && len(p.holds) == 0
}

// admits reports whether a waiter may begin, of which this is the number. asked is the number of the
// last waiter.
func (p *sharedPlace) admits(number, asked int64, now lease.Instant) bool {
	if !p.hasRoom() || p.closed || !p.ready {
		return false
	}
	p.update(asked, now)
	if p.closed || !p.ready || p.isPausing(now) {
		return false
	}
	p.closed = !p.isCertain(now) || p.quota.wanted && !p.quota.covers(number, now)
	return !p.closed
}

func (q quota) covers(number int64, now lease.Instant) bool {
	return number <= q.last && q.left > 0 && now.Mono.Before(q.until)
}

// update finds out whether the place is wanted by others, or closed.
func (p *sharedPlace) update(asked int64, now lease.Instant) {
	p.checkOthers(asked, now)
	p.heard = p.of.asked.Heard.IsSet()
	p.closed = p.closed || p.heard || !p.isShared() && p.runs.isOver(now) ||
		!p.ready && !p.watching.IsZero() && now.Mono.Sub(p.watching) >= p.patience()
}

// isPausing reports whether readers do not begin, because a run is over.
func (p *sharedPlace) isPausing(now lease.Instant) bool { return p.isShared() && p.runs.pause(now) > 0 }

// isOver reports whether the run is over.
func (r run) isOver(now lease.Instant) bool { return now.Mono.Sub(r.since) >= r.length }

// pause returns how long the pause still takes, if runs and pauses alternate; zero during a run.
func (r run) pause(now lease.Instant) time.Duration {
	period := r.length + pauseOfReaders
	if left := period - now.Mono.Sub(r.since)%period; left <= pauseOfReaders {
		return left
	}
	return 0
}

// checkOthers finds out whether anything has happened in the directory. Then others want the place,
// and only waiters that have asked by now may still begin. Others may only have come to read, or
// have gone: a place of readers has to list the directory again before another one begins.
func (p *sharedPlace) checkOthers(asked int64, now lease.Instant) {
	if p.others == nil || p.quota.wanted {
		return
	}
	switch quiet, _ := p.others.IsQuiet(); {
	case quiet:
	case p.isShared():
		p.others, p.ready, p.watching = nil, false, time.Time{}
	default:
		p.want(asked, now)
	}
}

// want notes that others want the place. Only the waiters up to the last one may still begin.
func (p *sharedPlace) want(last int64, now lease.Instant) {
	if !p.quota.wanted {
		p.quota = quota{true, last, mostBefore, now.Mono.Add(timeBefore)}
	}
}

// isCertain reports whether the place is certainly still ours: the lease is fresh, and the watch
// on our node has not fired and stands on the connection that we have.
func (p *sharedPlace) isCertain(now lease.Instant) bool {
	if p.of.c.Link.Carried() != p.node().Sess || session.IsClosed(p.moved) {
		return false
	}
	return p.place.Stands() && p.of.ctx.Err() == nil && p.isFresh(now)
}

// isFresh reports whether the lease is fresh. On one connection it only gets longer.
func (p *sharedPlace) isFresh(now lease.Instant) bool {
	if now.Before(p.fresh) {
		return true
	}
	p.fresh = p.node().Sess.Lease.FreshUntil()
	return now.Before(p.fresh)
}

// patience bounds how long the place waits for its watch on the directory. The watch that others of
// the client have set may be one whose event was withheld: see watches.compareDue.
func (p *sharedPlace) patience() time.Duration { return p.node().Sess.Lease.Term() / 8 }

// see takes the watch on the directory, nil if there is none, and whether others wanted the place then.
func (p *sharedPlace) see(w *session.NodeWatch, wanted bool, now lease.Instant) {
	switch {
	case w == nil:
		p.closed = true
		return
	case wanted:
		p.want(p.before, now)
	default:
		p.quota = quota{}
	}
	p.others, p.ready = w, p.of.unfenced
}

// fired returns a channel that is closed when others want the place, as far as that is not known.
func (p *sharedPlace) fired() <-chan struct{} {
	if p.others == nil || p.quota.wanted {
		return nil
	}
	return p.others.Fired.Done()
}

// revoked returns a channel that is closed when the place is asked for, as far as that is not known.
func (p *sharedPlace) revoked() <-chan struct{} {
	if p.heard {
		return nil
	}
	return p.of.asked.Heard.Done()
}

// tell tells the observer how a local hold that began at since has ended.
func (p *sharedPlace) tell(kind observe.Kind, since time.Time, why error) {
	if p.of.c.To == nil && kind != observe.Lost {
		return
	}
	ev := p.of.event(kind, why)
	ev.Elapsed = time.Since(since)
	p.of.c.Observe(ev)
}

// leaveNode ends the place's holding, in which nobody holds, and leaves the node alone: another
// node's creation deletes it. It reports false if the holding has been lost.
func (p *sharedPlace) leaveNode() bool {
	if _, err := p.of.drop(); err != nil {
		return false
	}
	p.of.among.remove(p.of)
	p.of.released.Set()
	p.place.Retire()
	return true
}

// giveUp begins to delete the node, and reports false if the place has been lost.
func (p *sharedPlace) giveUp() bool {
	if _, err := p.of.drop(); err != nil {
		return false
	}
	p.of.settle()
	return true
}

func (p *sharedPlace) String() string {
	return fmt.Sprintf("%s: holds=%d ready=%t closed=%t apart=%t wanted=%t", p.node().Name, len(p.holds), p.ready, p.closed, p.apart, p.quota.wanted)
}

// localHold is the hold of a goroutine in a shared place, and its context. That ends with the
// place's or when the goroutine gives the hold up, and has the values of values. It is made when
// somebody first looks at it: it would be most of what a hold costs that nobody asks for its context.
type localHold struct {
	hold   Hold
	in     *sharedPlace
	stay   context.Context // the place's, which has no values
	values context.Context // the one that the goroutine has called with
	since  time.Time       // when it has begun
	at     int             // its index among the holds of the place, which changes as they do

	mu     sync.Mutex
	inside context.Context         // guarded by mu: nil until somebody looks
	cancel context.CancelCauseFunc // guarded by mu: of inside
	gone   bool                    // guarded by mu: it was given up, before anything else ended it and before somebody looked
}

// context returns what the hold's context is derived from.
func (h *localHold) context() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.inside != nil:
	case h.gone:
		h.inside = session.Over
	default:
		h.inside, h.cancel = context.WithCancelCause(h.stay)
	}
	return h.inside
}

func (h *localHold) Deadline() (time.Time, bool) { return h.stay.Deadline() }

func (h *localHold) Done() <-chan struct{} { return h.context().Done() }

func (h *localHold) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.inside != nil:
		return h.inside.Err()
	case h.gone:
		return context.Canceled
	}
	return h.stay.Err()
}

func (h *localHold) Value(key any) any {
	if key == (chainKey{}) {
		return &chain{&h.hold, chainOf(h.values)}
	}
	if v := h.context().Value(key); v != nil { // package context looks for the cause there
		return v
	}
	return h.values.Value(key)
}

// giveUp ends the hold. If it has ended before, giveUp returns why.
func (h *localHold) giveUp() error {
	if cancel := h.markGone(); cancel != nil {
		cancel(ErrReleased)
	}
	if h.stay.Err() != nil { // else nothing else can have ended it
		if why := context.Cause(h); !errors.Is(why, ErrReleased) {
			return why
		}
	}
	h.in.ended(h)
	return nil
}

// markGone notes that the hold was given up. If it returns a function, that ends the context.
func (h *localHold) markGone() context.CancelCauseFunc {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = h.inside == nil && h.stay.Err() == nil
	return h.cancel
}

// endKind returns the kind of the event of a hold that has ended for the reason why.
func endKind(why error) observe.Kind {
	if errors.Is(why, ErrLost) {
		return observe.Lost
	}
	return observe.Ended
}
