package zklock

import (
	"sync"
	"time"
)

// maxDrift bounds by how much the rates of two clocks may differ. Promise P2
// assumes it; real clocks stay within a hundredth of it, the rest covers jitter.
const maxDrift = 0.05

// instant is one moment on both clocks. The monotonic one stands still while a
// machine sleeps, the wall clock may be set: neither alone tells how old something is.
type instant struct{ mono, wall time.Time }

// since returns how long ago b was, by the clock that shows the longer time.
func (a instant) since(b instant) time.Duration {
	return max(a.mono.Sub(b.mono), a.wall.Sub(b.wall))
}

// clockFrom returns a source of instants; wall may be nil for the machine's own.
func clockFrom(wall func() time.Time) func() instant {
	return func() instant {
		now := time.Now()
		if wall == nil {
			return instant{mono: now, wall: now.Round(0)}
		}
		return instant{mono: now, wall: wall().Round(0)}
	}
}

// evidence is what an answer to a request proves.
type evidence int

const (
	ofServer evidence = iota // one server has answered: a touch of the session
	ofLeader                 // a sync: it passed through the queue of a leader, deposed or not
	ofQuorum                 // a quorum has agreed
)

// lease tells until when the servers cannot have ended a session.
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
type lease struct {
	now  func() instant
	tick time.Duration // the servers' tick as it was given; zero: unknown

	mu       sync.Mutex    // guards what follows
	timeout  time.Duration // the smallest that was ever negotiated: expiry can move backwards
	last     instant       // when the newest touch was sent
	single   claims        // touches that were answered
	pairs    claims        // step 1
	synced   claims        // step 2
	upstream claims        // step 3
	pending  claims        // step 4, answered when the last proof had run out
	claimed  instant       // when the session was last taken back, until a quorum confirms it
	proven   instant       // the newest touch that the leader is known to have counted
	rtt      time.Duration // how long requests take, the slower ones of late

	// A client that was idle for long has no proof, and nobody waits a second for a free
	// lock. Until coldUntil it may rely on less: that the leader's pings are on time.
	cold      instant // the newest touch that the leader has counted if they are
	coldUntil instant
}

// A claim is a touch, by the moment it was sent, that has come a step further by some moment.
type claim struct {
	sent instant
	by   time.Time
}

// claims are in the order of both their times.
type claims []claim

// maxClaims reach back further than a session timeout.
const maxClaims = 2 * grains

// grains is into how many parts a session timeout is divided: touches closer together are one.
const grains = 2048

// add appends a claim unless it would hardly tell more than the last one. A busy client
// gets thousands of answers between two heartbeats.
func (c *claims) add(sent instant, by time.Time, grain time.Duration) {
	if n := len(*c); n > 0 && sent.mono.Sub((*c)[n-1].sent.mono) < grain {
		return
	}
	if len(*c) == maxClaims {
		*c = (*c)[1:]
	}
	*c = append(*c, claim{sent, by})
}

// newest returns the newest touch that had come this far at t, and forgets those before it.
func (c *claims) newest(t time.Time) (instant, bool) {
	known := -1
	for i, cl := range *c {
		if cl.by.After(t) {
			break
		}
		known = i
	}
	if known < 0 {
		return instant{}, false
	}
	*c = (*c)[known:]
	return (*c)[0].sent, true
}

func newLease(now func() instant, timeout, tick time.Duration) *lease {
	return &lease{now: now, timeout: timeout, tick: tick}
}

// setTick tells the lease the servers' tick.
func (l *lease) setTick(tick time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick = tick
}

// begun notes that the session was made on a connection request sent then: a quorum has agreed on that.
func (l *lease) begun(sent instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prove(sent)
}

// attached notes that a server took the session back on a connection request sent then.
// It asked its leader, which renewed the session at once; but was that still the leader?
// One that has lost its followers takes sessions back by itself. The first quorum
// operation on the connection tells. Nothing that is half proven counts any more: the
// steps belong to one connection.
func (l *lease) attached(sent instant, timeout time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timeout = min(l.timeout, timeout)
	l.single, l.pairs, l.synced, l.upstream = nil, nil, nil, nil
	l.last, l.claimed = instant{}, sent
}

// note takes an operation that was answered just now, and what the answer proves.
func (l *lease) note(sent instant, of evidence) {
	got := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch of {
	case ofQuorum:
		l.conclude(sent, got)
	case ofLeader:
		l.follow(sent, got)
	}
	l.touch(sent, got)
	l.rtt = max(got.mono.Sub(sent.mono), l.rtt*7/8)
}

// touch is step 1. It must be called with mu held.
func (l *lease) touch(sent, got instant) {
	l.single.add(sent, got.mono, l.grain())
	if sent.mono.Before(l.last.mono) {
		return // of a connection before
	}
	if !l.last.mono.IsZero() {
		l.pairs.add(l.last, got.mono, l.grain())
	}
	l.last = sent
}

// follow is steps 2 and 3: each sync is the first for some touches, the second for others.
// It must be called with mu held.
func (l *lease) follow(sent, got instant) {
	if touch, ok := l.synced.newest(sent.mono.Add(-l.pause())); ok {
		l.upstream.add(touch, got.mono, 1)
	}
	if touch, ok := l.pairs.newest(sent.mono.Add(-l.lag())); ok {
		l.synced.add(touch, got.mono, 1)
	}
}

// conclude is step 4. It must be called with mu held.
func (l *lease) conclude(sent, got instant) {
	unbroken := l.leftOf(l.proven, got) > 0
	if touch, ok := l.pending.newest(sent.mono.Add(-l.settling())); ok {
		l.prove(touch)
		unbroken = unbroken || l.leftOf(l.proven, got) > 0
	}
	touch, ok := l.upstream.newest(sent.mono)
	if !l.claimed.mono.IsZero() && sent.mono.After(l.claimed.mono) { // else it is of the connection before
		l.guess(l.claimed, got)
		if !ok || l.claimed.mono.After(touch.mono) {
			touch, ok = l.claimed, true
		}
		l.claimed = instant{}
	}
	switch {
	case ok && unbroken:
		l.prove(touch)
		l.pending = nil
	case ok:
		l.pending.add(touch, got.mono, l.grain())
	}
	if touch, ok := l.single.newest(sent.mono.Add(-l.halfTick())); ok && got.mono.Sub(sent.mono) <= l.timeout/4 {
		l.guess(touch, got)
	}
}

// prove must be called with mu held.
func (l *lease) prove(sent instant) {
	if sent.mono.After(l.proven.mono) {
		l.proven = sent
	}
}

// guess notes a touch that counts for a cold client only. It must be called with mu held.
func (l *lease) guess(sent, got instant) {
	if !l.coldUntil.mono.IsZero() && got.since(l.coldUntil) < 0 && sent.mono.After(l.cold.mono) {
		l.cold = sent
	}
}

// grain and the times below must be asked for with mu held.

func (l *lease) grain() time.Duration { return l.timeout / grains }

// halfTick returns how often the leader pings its followers, at least. Servers grant no
// session shorter than two ticks unless they are told to; then the tick must be given.
func (l *lease) halfTick() time.Duration {
	if l.tick > 0 {
		return l.tick / 2
	}
	return l.timeout / 4
}

// lag returns after which time a ping of the leader was due for certain.
func (l *lease) lag() time.Duration {
	return time.Duration(float64(l.halfTick())*(1+maxDrift)) + min(40*time.Millisecond, l.timeout/40)
}

// pause returns within which time a leader that handles requests has sent its overdue pings as well.
func (l *lease) pause() time.Duration { return min(100*time.Millisecond, l.timeout/20) }

// settling returns after which time a leader that was about to end a session has ended it.
func (l *lease) settling() time.Duration { return max(l.halfTick(), min(time.Second, l.timeout/4)) }

// nextBeat returns when to send what proves a touch (see beat) after it was begun at last and its
// touches were answered at touched, so that a proof is never older than 0.55 of the timeout: that leaves 0.4 of it.
func (l *lease) nextBeat(last, touched time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	reach := l.lag() + l.rtt + time.Millisecond // from a beat's touches to the first beat that can prove them
	if due := touched.Add(l.lag() + time.Millisecond).Sub(last); due < reach+l.timeout/32 {
		reach = max(reach, due) // the touches took longer than usual
	}
	return last.Add(l.period(reach))
}

// period must be called with mu held.
func (l *lease) period(reach time.Duration) time.Duration {
	most := l.timeout*548/1000 - l.pause() - 4*l.rtt
	if reach <= l.timeout/4 {
		return max(reach, min(l.timeout/4, most/2))
	}
	if 2*reach <= most {
		return reach
	}
	reach += l.timeout / 256 // so that what varies from beat to beat does not cost one more
	if reach*3/2 <= most {
		return reach / 2
	}
	return reach / 3
}

// thin returns what has to remain when a heartbeat begins that is to prove another touch
// before less than 0.35 of the timeout remains.
func (l *lease) thin() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeout*355/1000 + l.pause() + 4*l.rtt
}

// betweenSyncs returns how long to wait after the answer to a first sync.
func (l *lease) betweenSyncs() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pause()
}

// canProve reports whether a session of this timeout can be kept proven at all.
func (l *lease) canProve() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lag()+l.pause() <= l.timeout*3/4
}

// begin tells the lease that the client, which was idle, is about to contend.
func (l *lease) begin() {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.lag() + l.pause() + l.settling() + l.timeout*36/100
	l.cold, l.coldUntil = instant{}, instant{mono: now.mono.Add(d), wall: now.wall.Add(d)}
}

// remaining returns how long the session is certainly alive from now on; not positive when nothing is certain.
func (l *lease) remaining() time.Duration {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left(now)
}

// left must be called with mu held.
func (l *lease) left(now instant) time.Duration {
	return max(l.leftOf(l.proven, now), min(l.leftOf(l.cold, now), -now.since(l.coldUntil)))
}

// leftOf returns what remains by a touch that the leader has counted. It must be called with mu held.
func (l *lease) leftOf(touch, now instant) time.Duration {
	if touch.mono.IsZero() {
		return 0
	}
	return time.Duration(float64(l.timeout)*(1-maxDrift)) - now.since(touch)
}

// fresh reports whether the session is certain for long enough to hand out a hold.
func (l *lease) fresh() bool { return l.remaining() > l.term()/8 }

// isProven reports whether the session is certain without the assumption that a cold client makes.
func (l *lease) isProven() bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leftOf(l.proven, now) > 0
}

func (l *lease) term() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeout
}
