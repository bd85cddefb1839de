// Package lease computes until when ZooKeeper's servers cannot have ended a session.
//
// It judges the requests of one session by when they were sent, when they were answered and
// what their answers prove. It knows nothing of connections or locks, and it sends nothing.
package lease

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// maxDrift bounds by how much the rates of two clocks may differ. Promise P2 rests on
// it. Real clocks stay within a hundredth of it; the rest covers timers that fire late.
const maxDrift = 0.05

// Evidence is what the answer to a request proves.
type Evidence int

const (
	// OfServer is an answer of one server: it has noted a touch of the session.
	OfServer Evidence = iota
	// OfLeader is the answer to a sync: it has passed through the queue of a leader, which
	// may have been deposed.
	OfLeader
	// OfQuorum is an answer on which a quorum has agreed.
	OfQuorum
)

// Lease computes until when the servers cannot have ended a session. All methods may be
// called from several goroutines.
//
// A proof answers two questions. The first is whether the leader that our server follows has
// counted our touches without a gap: a Run answers it from reads and syncs. The second is
// whether that leader is the leader: one quorum transaction answers it, sent when it matters.
//
// docs/design.md has the whole argument, and what it assumes.
type Lease struct {
	now func() Instant

	mu      sync.Mutex    // guards what follows, and all of the run
	tick    time.Duration // the servers' tick as it was given; zero: unknown
	timeout time.Duration // the smallest that was ever negotiated: expiry can move backwards
	run     *Run          // of the newest connection; nil before the first
	proven  Instant       // the newest touch from which the session lives for a whole timeout
	slow    time.Duration // how long the slowest reply of the last timeout took, from when it was due
	slowAt  time.Time
}

// New returns the lease of a session of which nothing is proven yet. A tick of zero means
// that the servers' tick is not known.
func New(now func() Instant, timeout, tick time.Duration) *Lease {
	return &Lease{now: now, timeout: timeout, tick: tick}
}

// SetTick sets the servers' tick. Heartbeats that waited for another one prove nothing.
func (l *Lease) SetTick(tick time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick = tick
	if l.run != nil {
		l.run.beats = nil
	}
}

// Tick returns the servers' tick as it was set, zero if it is not known.
func (l *Lease) Tick() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tick
}

// TickAssumed says, for error texts, which tickTime is too long for the lease.
func (l *Lease) TickAssumed() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tick == 0 {
		return fmt.Sprintf("a server may have a tickTime above half the session timeout (%v), which needs Options.TickTime", l.timeout/2)
	}
	return fmt.Sprintf("a server may have a tickTime above Options.TickTime (%v)", l.tick)
}

// Created returns the run of the connection whose connection request, sent at that moment, made
// the session. A quorum has agreed on that.
func (l *Lease) Created(sent Instant) *Run {
	got := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prove(sent)
	l.run = &Run{l: l, heard: sent, since: got}
	return l.run
}

// TakenBack returns the run of a connection whose server took the session back on a connection
// request that was sent at that moment. What is known of earlier connections stays proven, and
// nothing that was half proven counts.
func (l *Lease) TakenBack(sent Instant, timeout time.Duration) *Run {
	got := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timeout = min(l.timeout, timeout)
	l.run = &Run{l: l, beats: []*beat{{sent: sent, steps: upstream, from: got.Mono}}}
	return l.run
}

// prove must be called with mu held.
func (l *Lease) prove(touch Instant) {
	if touch.Mono.After(l.proven.Mono) {
		l.proven = touch
	}
}

// Remaining returns for how long from now the session is certainly alive. It is zero or
// negative when that is not certain even now.
func (l *Lease) Remaining() time.Duration {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leftOf(l.proven, now)
}

// leftOf returns how much is left of a timeout that was counted from a touch. It must be called
// with mu held.
func (l *Lease) leftOf(touch, now Instant) time.Duration {
	if touch.Mono.IsZero() {
		return 0
	}
	return time.Duration(float64(l.timeout)*(1-maxDrift)) - now.Since(touch)
}

// Fresh reports whether the session is certain to live for long enough to hand out a hold.
func (l *Lease) Fresh() bool { return l.Remaining() > l.Term()/8 }

// Term returns the session's timeout, the smallest that was ever negotiated.
func (l *Lease) Term() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeout
}

// Glance returns for how long a timer may be trusted that is to fire when the lease runs out: it stands still while
// the machine sleeps.
func (l *Lease) Glance() time.Duration { return max(l.Term()/20, time.Millisecond) }

// String returns what is known, for logs and failed tests.
func (l *Lease) String() string {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := fmt.Sprintf("lease=%v of %v", l.leftOf(l.proven, now).Round(time.Millisecond), l.timeout)
	if l.run == nil {
		return s
	}
	return s + " " + l.run.describe(now)
}

// A Run is what is known by one connection: whether the leader that its server follows has
// counted our touches of the session, one after the other and each before the one before it
// ran out.
//
// A server that follows a leader notes that it has heard of a session (a touch). It tells the leader only when it
// answers one of the leader's pings, which come every half tick. The leader counts a session's time from there.
// A heartbeat brings a touch as far as our server's stream to the leader: see beat. A request that is sent after that is behind the
// touch on that stream. So when such a sync or transaction is answered, the touch was heard: the leader has counted it.
//
// A quorum transaction proves the newest touch that was on the stream when it was sent. It does so only if the leader
// cannot have taken the session, to end it, before the first touch of the run: because that one was heard before the
// last proof ran out, or so long before the transaction was sent that the leader would have refused it.
//
// A run never reaches across connections: a leader that was deposed and does not know it takes
// sessions back and answers syncs.
type Run struct {
	l *Lease // whose mutex guards all that follows

	beats []*beat // those that can still prove something
	heard Instant // the newest touch that was heard
	since Instant // when the first touch of the run was known to be heard

	sender sender
}

// A beat is a heartbeat. It brings a touch of the session as far as our server's stream to its leader, by four answers:
//
//  1. and 2. Two touches. The older counts: a follower can lose one that it notes
//     while it is answering a ping, but not two in a row.
//  3. A sync, sent half a tick later: the leader's ping was due by then, and comes before
//     the sync's answer in the stream to the follower, which answers pings in line.
//  4. A second sync, sent a moment after the first was answered: after a pause of the leader
//     a sync can overtake the overdue ping.
//
// An answer counts if it fits, whatever its request was for.
type beat struct {
	sent    Instant   // when the older touch was sent; before that is answered, when the heartbeat began
	steps   int       // how many of the four answers have come
	from    time.Time // a request counts for the next step if it was sent then or later
	pending int       // the sender's: requests for the next steps that are not answered
}

// The steps of a beat after which something else is waited for.
const (
	touched  = 2 // both touches were answered
	upstream = 4 // all were answered: the touch is on the server's stream to its leader
)

// take takes an answer to a request that was sent at the time sent, if that is the next step.
func (b *beat) take(sent, got Instant, of Evidence, l *Lease) {
	if sent.Mono.Before(b.from) || b.steps == upstream || b.steps >= touched && of != OfLeader {
		return
	}
	l.waited(got.Mono.Sub(b.from), got.Mono)
	b.steps++
	switch b.steps {
	case 1:
		b.sent, b.from = sent, sent.Mono
	case touched:
		b.from = got.Mono.Add(l.lag())
	case 3:
		b.from = got.Mono.Add(l.pause())
	case upstream:
		b.from = got.Mono
	}
}

// Witness takes an operation that was answered on this connection just now, when it was sent, and
// what its answer proves.
func (r *Run) Witness(sent Instant, of Evidence) {
	l := r.l
	got := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run != r {
		return // another connection has the session
	}
	r.forget(got)
	if of != OfServer {
		r.hear(sent, got)
	}
	if of == OfQuorum {
		r.conclude(sent)
	}
	for _, b := range r.beats {
		b.take(sent, got, of, l)
	}
	l.waited(got.Mono.Sub(sent.Mono), got.Mono)
}

// waited takes for how long an answer was waited for. The longest counts for one timeout. It must be called with mu held.
func (l *Lease) waited(d time.Duration, now time.Time) {
	if d >= l.slow || now.Sub(l.slowAt) > l.timeout {
		l.slow, l.slowAt = d, now
	}
}

// forget drops heartbeats whose touches have run out. It, and what follows, must be called with mu held.
func (r *Run) forget(now Instant) {
	r.beats = slices.DeleteFunc(r.beats, func(b *beat) bool { return r.l.leftOf(b.sent, now) <= 0 })
}

// upstream returns the newest touch that was upstream at the time t.
func (r *Run) upstream(t time.Time) (touch Instant, ok bool) {
	for _, b := range r.beats {
		if b.steps == upstream && !b.from.After(t) && b.sent.Mono.After(touch.Mono) {
			touch, ok = b.sent, true
		}
	}
	return touch, ok
}

// hear takes a sync or a transaction that was sent at the time sent.
func (r *Run) hear(sent, got Instant) {
	touch, ok := r.upstream(sent.Mono)
	if !ok || !touch.Mono.After(r.heard.Mono) {
		return
	}
	if r.l.leftOf(r.heard, got) <= 0 {
		r.since = got // the first, or the first after a gap
	}
	r.heard = touch
}

// conclude takes a quorum transaction that was sent at the time sent. The touch that it proves was heard, at the latest with its
// own answer.
func (r *Run) conclude(sent Instant) {
	touch, ok := r.upstream(sent.Mono)
	if ok && (r.joins() || !r.settled().After(sent.Mono)) {
		r.l.prove(touch)
	}
}

// joins reports whether the run began before the last proof ran out.
func (r *Run) joins() bool { return r.l.leftOf(r.l.proven, r.since) > 0 }

// settled returns from when on a transaction is refused if the leader had taken the session, to end
// it, before the run.
func (r *Run) settled() time.Time { return r.since.Mono.Add(r.l.settling()) }

// ready returns the touch that a quorum transaction would prove, and from when on it can be sent
// for that. It reports false if there is none, or none that is newer than the last proof.
func (r *Run) ready(now Instant) (touch Instant, at time.Time, ok bool) {
	r.forget(now)
	touch, ok = r.upstream(now.Mono)
	switch {
	case !ok || !touch.Mono.After(r.l.proven.Mono):
		return touch, at, false
	case r.l.leftOf(r.heard, now) <= 0: // its answer would begin a run
		return touch, now.Mono, r.l.leftOf(r.l.proven, now) > 0
	case r.joins():
		return touch, now.Mono, true
	}
	return touch, r.settled(), true
}

func (r *Run) describe(now Instant) string {
	if r.heard.Mono.IsZero() {
		return "nothing heard"
	}
	return fmt.Sprintf("heard=%v ago, since %v", now.Since(r.heard).Round(time.Millisecond), now.Since(r.since).Round(time.Millisecond))
}

// halfTick returns how often the leader pings its followers, at least. Servers grant no
// session shorter than two ticks unless they are told to; then the tick must be given.
// It, and the times below, must be asked for with mu held.
func (l *Lease) halfTick() time.Duration {
	if l.tick > 0 {
		return l.tick / 2
	}
	return l.timeout / 4
}

// lag returns after which time a ping of the leader was due for certain.
func (l *Lease) lag() time.Duration {
	return time.Duration(float64(l.halfTick())*(1+maxDrift)) + min(40*time.Millisecond, l.timeout/40)
}

// pause returns within which time a leader that handles requests has sent its overdue pings as well.
func (l *Lease) pause() time.Duration { return min(100*time.Millisecond, l.timeout/20) }

// settling returns within which time a leader that has taken the sessions that are due to end has
// marked each of them, so that it refuses their transactions.
func (l *Lease) settling() time.Duration { return max(l.halfTick(), min(time.Second, l.timeout/4)) }
