// Package lease computes until when ZooKeeper's servers cannot have ended a session.
//
// It judges the requests of one session by when they were sent, when they were answered and
// what their answers prove. It knows nothing of connections or locks, and it sends nothing.
package lease

import (
	"fmt"
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
	rtt     time.Duration // how long requests take, the slower ones of late
	slow    time.Duration // the longest of the last timeout
	slowAt  time.Time
}

// New returns the lease of a session of which nothing is proven yet. A tick of zero means
// that the servers' tick is not known.
func New(now func() Instant, timeout, tick time.Duration) *Lease {
	return &Lease{now: now, timeout: timeout, tick: tick}
}

// SetTick sets the servers' tick.
func (l *Lease) SetTick(tick time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick = tick
}

// Tick returns the servers' tick as it was set, zero if it is not known.
func (l *Lease) Tick() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tick
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
// nothing that was half proven counts any more.
func (l *Lease) TakenBack(sent Instant, timeout time.Duration) *Run {
	got := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timeout = min(l.timeout, timeout)
	l.run = &Run{l: l}
	l.run.upstream.add(sent, got.Mono, 1)
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

// FreshUntil returns until when Fresh is certain to report true, as far as is known now.
func (l *Lease) FreshUntil() Instant {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Add(l.leftOf(l.proven, now) - l.timeout/8)
}

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
// answers one of the leader's pings, which come every half tick. The leader counts a session's time from there. So a
// touch goes through steps, each of which begins after the one before was answered:
//
//  1. Two touches, both answered. The older counts: a follower can lose one that it notes
//     while it is answering a ping, but not two in a row.
//  2. A sync, sent half a tick later: the leader's ping was due by then, and stands before
//     the sync's answer in the stream to the follower, which answers pings in line.
//  3. A second sync, sent a moment after the first was answered: after a pause of the leader
//     a sync can overtake the overdue ping. Now the touch is on the server's stream to the leader.
//  4. A sync or a transaction, sent after that. It is behind the touch on that stream, so when it
//     is answered the touch was heard: the leader has counted it.
//
// A quorum transaction proves the newest touch that was on the stream when it was sent. It does so only if the leader
// cannot have taken the session, to end it, before the first touch of the run: because that one was heard before the
// last proof ran out, or so long before the transaction was sent that the leader would have refused it.
//
// A run never reaches across connections: a leader that was deposed and does not know it takes
// sessions back and answers syncs.
type Run struct {
	l *Lease // whose mutex guards all that follows

	last     Instant // when the newest touch was sent
	pairs    claims  // step 1
	synced   claims  // step 2
	upstream claims  // step 3
	heard    Instant // step 4: the newest touch
	since    Instant // when the first touch of the run was known to be heard
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
	if of != OfServer {
		r.hear(sent, got)
	}
	switch of {
	case OfLeader:
		r.follow(sent, got)
	case OfQuorum:
		r.conclude(sent)
	}
	r.touch(sent, got)
	l.rtt = max(got.Mono.Sub(sent.Mono), l.rtt*7/8)
	l.waited(got.Mono.Sub(sent.Mono), got)
}

// waited takes for how long an answer was waited for. The longest counts for one timeout. It must be called with mu held.
func (l *Lease) waited(d time.Duration, now Instant) {
	if d >= l.slow || now.Mono.Sub(l.slowAt) > l.timeout {
		l.slow, l.slowAt = d, now.Mono
	}
}

// touch is step 1. It, and what follows, must be called with mu held.
func (r *Run) touch(sent, got Instant) {
	if sent.Mono.Before(r.last.Mono) {
		return
	}
	if !r.last.Mono.IsZero() {
		r.pairs.add(r.last, got.Mono, r.l.grain())
	}
	r.last = sent
}

// follow is steps 2 and 3: each sync is the first for some touches, the second for others.
func (r *Run) follow(sent, got Instant) {
	if touch, ok := r.synced.newest(sent.Mono.Add(-r.l.pause())); ok {
		r.upstream.add(touch, got.Mono, 1)
	}
	if touch, ok := r.pairs.newest(sent.Mono.Add(-r.l.lag())); ok {
		r.synced.add(touch, got.Mono, 1)
	}
}

// hear is step 4.
func (r *Run) hear(sent, got Instant) {
	touch, ok := r.upstream.newest(sent.Mono)
	if !ok || !touch.Mono.After(r.heard.Mono) {
		return
	}
	if r.l.leftOf(r.heard, got) <= 0 {
		r.since = got // the first, or the first after a gap
	}
	r.heard = touch
}

// conclude takes a quorum transaction that was sent at that moment. What it proves was heard, at the latest with its own answer.
func (r *Run) conclude(sent Instant) {
	touch, ok := r.upstream.newest(sent.Mono)
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
// for that. It reports false if there is none.
func (r *Run) ready(now Instant) (touch Instant, at time.Time, ok bool) {
	touch, ok = r.upstream.peek(now.Mono)
	switch {
	case !ok || r.l.leftOf(touch, now) <= 0:
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

// grain and the times below must be asked for with mu held.

func (l *Lease) grain() time.Duration { return l.timeout / grains }

// halfTick returns how often the leader pings its followers, at least. Servers grant no
// session shorter than two ticks unless they are told to; then the tick must be given.
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
