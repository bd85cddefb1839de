// Package lease computes until when ZooKeeper's servers cannot have ended a session.
//
// It judges the requests of one session by when they were sent, when they were answered and
// what their answers prove. It knows nothing of connections or locks, and it sends nothing.
package lease

import (
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
// A server that follows a leader notes that it has heard of a session (a touch), and tells
// the leader only when it answers one of the leader's pings, which come every half tick.
// The leader counts a session's time from there. So a touch is proven in steps, each of
// which begins after the one before was answered, all on one connection:
//
//  1. Two touches, both answered. The older counts: a follower can lose one that it notes
//     while it is answering a ping, but not two in a row.
//  2. A sync, sent half a tick later: the leader's ping was due by then, and stands before
//     the sync's answer in the stream to the follower, which answers pings in line.
//  3. A second sync, sent a moment after the first was answered: after a pause of the leader
//     a sync can overtake the overdue ping.
//  4. A quorum operation. It follows the follower's answer to the ping on its way to the
//     leader, and a quorum has agreed that this is the leader. It must be answered before
//     the last proof runs out, or be followed by another one: a leader that is about to end
//     the session still takes touches and writes of it.
//
// docs/design.md has the whole argument, and what it assumes.
type Lease struct {
	now  func() Instant
	tick time.Duration // the servers' tick as it was given; zero: unknown

	mu       sync.Mutex    // guards what follows
	timeout  time.Duration // the smallest that was ever negotiated: expiry can move backwards
	last     Instant       // when the newest touch was sent
	single   claims        // touches that were answered
	pairs    claims        // step 1
	synced   claims        // step 2
	upstream claims        // step 3
	pending  claims        // step 4, answered when the last proof had run out
	claimed  Instant       // when the session was last taken back, until a quorum confirms it
	proven   Instant       // the newest touch that the leader is known to have counted
	rtt      time.Duration // how long requests take, the slower ones of late

	// A client that was idle for long has no proof, and nobody waits a second for a free
	// lock. Until coldUntil it may rely on less: that the leader's pings are on time.
	cold      Instant // the newest touch that the leader has counted if they are
	coldUntil Instant
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

// Begun notes that the session was made by a connection request that was sent at that
// moment. A quorum has agreed on that.
func (l *Lease) Begun(sent Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prove(sent)
}

// Attached notes that a server took the session back on a connection request that was sent
// at that moment. The server asked its leader, which renewed the session at once. But a
// leader that has lost its followers does so too, so the request counts only when the first
// quorum operation on the connection is answered. What is half proven is dropped: the steps
// of a proof belong to one connection.
func (l *Lease) Attached(sent Instant, timeout time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timeout = min(l.timeout, timeout)
	l.single, l.pairs, l.synced, l.upstream = nil, nil, nil, nil
	l.last, l.claimed = Instant{}, sent
}

// Note takes an operation that was answered just now, when it was sent, and what its answer proves.
func (l *Lease) Note(sent Instant, of Evidence) {
	got := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch of {
	case OfQuorum:
		l.conclude(sent, got)
	case OfLeader:
		l.follow(sent, got)
	}
	l.touch(sent, got)
	l.rtt = max(got.Mono.Sub(sent.Mono), l.rtt*7/8)
}

// touch is step 1. It must be called with mu held.
func (l *Lease) touch(sent, got Instant) {
	l.single.add(sent, got.Mono, l.grain())
	if sent.Mono.Before(l.last.Mono) {
		return // of a connection before
	}
	if !l.last.Mono.IsZero() {
		l.pairs.add(l.last, got.Mono, l.grain())
	}
	l.last = sent
}

// follow is steps 2 and 3: each sync is the first for some touches, the second for others.
// It must be called with mu held.
func (l *Lease) follow(sent, got Instant) {
	if touch, ok := l.synced.newest(sent.Mono.Add(-l.pause())); ok {
		l.upstream.add(touch, got.Mono, 1)
	}
	if touch, ok := l.pairs.newest(sent.Mono.Add(-l.lag())); ok {
		l.synced.add(touch, got.Mono, 1)
	}
}

// conclude is step 4. It must be called with mu held.
func (l *Lease) conclude(sent, got Instant) {
	unbroken := l.leftOf(l.proven, got) > 0
	if touch, ok := l.pending.newest(sent.Mono.Add(-l.settling())); ok {
		l.prove(touch)
		unbroken = unbroken || l.leftOf(l.proven, got) > 0
	}
	touch, ok := l.upstream.newest(sent.Mono)
	if !l.claimed.Mono.IsZero() && sent.Mono.After(l.claimed.Mono) { // else it is of the connection before
		l.guess(l.claimed, got)
		if !ok || l.claimed.Mono.After(touch.Mono) {
			touch, ok = l.claimed, true
		}
		l.claimed = Instant{}
	}
	switch {
	case ok && unbroken:
		l.prove(touch)
		l.pending = nil
	case ok:
		l.pending.add(touch, got.Mono, l.grain())
	}
	if touch, ok := l.single.newest(sent.Mono.Add(-l.halfTick())); ok && got.Mono.Sub(sent.Mono) <= l.timeout/4 {
		l.guess(touch, got)
	}
}

// prove must be called with mu held.
func (l *Lease) prove(sent Instant) {
	if sent.Mono.After(l.proven.Mono) {
		l.proven = sent
	}
}

// guess notes a touch that counts for a cold client only. It must be called with mu held.
func (l *Lease) guess(sent, got Instant) {
	if !l.coldUntil.Mono.IsZero() && got.Since(l.coldUntil) < 0 && sent.Mono.After(l.cold.Mono) {
		l.cold = sent
	}
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

// settling returns after which time a leader that was about to end a session has ended it.
func (l *Lease) settling() time.Duration { return max(l.halfTick(), min(time.Second, l.timeout/4)) }

// Begin notes that the client, which was idle, is about to contend: for a while the lease
// may rely on the leader's pings being on time.
func (l *Lease) Begin() {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.lag() + l.pause() + l.settling() + l.timeout*36/100
	l.cold, l.coldUntil = Instant{}, now.Add(d)
}

// Remaining returns for how long from now the session is certainly alive. It is zero or
// negative when that is not certain even now.
func (l *Lease) Remaining() time.Duration {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left(now)
}

// left must be called with mu held.
func (l *Lease) left(now Instant) time.Duration {
	return max(l.leftOf(l.proven, now), min(l.leftOf(l.cold, now), -now.Since(l.coldUntil)))
}

// leftOf returns what remains by a touch that the leader has counted. It must be called with mu held.
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
	return now.Add(l.left(now) - l.timeout/8)
}

// IsProven reports whether the session is certain to live without the assumption that
// begins with Begin.
func (l *Lease) IsProven() bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leftOf(l.proven, now) > 0
}

// Term returns the session's timeout, the smallest that was ever negotiated.
func (l *Lease) Term() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeout
}
