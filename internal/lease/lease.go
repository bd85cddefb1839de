// SPDX-License-Identifier: Apache-2.0

// Package lease computes until when ZooKeeper's servers cannot have ended a session.
//
// Its input is the requests of one session: when they were sent, when they were answered, and what
// their replies prove. It does not depend on connections or locks, and it sends nothing.
package lease

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// maxDrift is the largest difference between the rates of two clocks that promise P2 allows. Real
// clocks differ by less than a hundredth of it; the rest covers timers that fire late.
const maxDrift = 0.05

// Lease computes until when the servers cannot have ended a session. Its methods may be called
// from several goroutines.
//
// A proof answers two questions. The first is whether the leader that our server follows has
// counted our touches without a gap. A Run answers it from reads and syncs. The second is whether
// that server is still the leader. One quorum transaction answers it, and is sent only if needed.
//
// docs/maintainers/design.md has the whole argument and its assumptions.
type Lease struct {
	now func() Instant

	mu      sync.Mutex    // guards the fields below, and the run
	tick    Tick          // what the clients of the connection say about the servers' ticks
	timeout time.Duration // the smallest timeout ever negotiated: expiry can move backwards
	run     *Run          // the run of the newest connection, or nil before the first
	proven  Instant       // the newest touch after which the session certainly lives for a whole timeout
	under   time.Duration // the longest half tick with which proven is proven
	ended   chan struct{} // closed when a transaction has ended; nil while nobody waits for that
	replies replies
	dialed  time.Duration // how long connecting to the current server took
	began   time.Time     // when the session was created
	follows bool          // there was a session before: others have probably lost theirs at the same time
}

// A Tick is what clients say about the largest tickTime of any server. Several clients can share a
// session, and the longest counts. The zero Tick is that of a connection without clients.
type Tick struct {
	Largest time.Duration // the largest that a client has set, or zero if none has
	Assumed bool          // a client has set none, and so assumes at most half the timeout
}

// TickOf returns the Tick of a client. Zero means that the client has set none.
func TickOf(set time.Duration) Tick { return Tick{Largest: set, Assumed: set == 0} }

// With returns the Tick of the clients of both.
func (t Tick) With(other Tick) Tick {
	return Tick{Largest: max(t.Largest, other.Largest), Assumed: t.Assumed || other.Assumed}
}

// half returns the longest time between two pings of the leader to a follower: half the leader's tick.
// If a client assumes that the tick is at most half the timeout, so does half. The server that granted
// the timeout does not ensure this: it goes by its own tick.
func (t Tick) half(timeout time.Duration) time.Duration {
	if t.Assumed || t.Largest == 0 {
		return max(t.Largest/2, timeout/4)
	}
	return t.Largest / 2
}

// New returns the lease of a session for which nothing is proven yet.
func New(now func() Instant, timeout time.Duration, tick Tick) *Lease {
	return &Lease{now: now, timeout: timeout, tick: tick}
}

// SetTick sets the tick. If it is longer than before, heartbeats that assumed the shorter one prove
// nothing any more, and another one begins at once. The last proof remains valid for the holds of
// clients that have vouched for the shorter tick; IsProven says whether it is valid with the longer one.
func (l *Lease) SetTick(tick Tick) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.halfTick()
	l.tick = tick
	if l.run != nil && l.halfTick() > before {
		l.run.beats, l.run.heard, l.run.since, l.run.sender.begun = nil, Instant{}, Instant{}, time.Time{}
	}
}

// IsProven reports whether the last proof assumes no tick that is shorter than the current one.
func (l *Lease) IsProven() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.under >= l.halfTick()
}

// TickAssumed returns a text for errors that says which tickTime is too long for the lease.
func (l *Lease) TickAssumed() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.halfTick() > l.tick.Largest/2 {
		return fmt.Sprintf("a server's tickTime may be longer than half the session timeout (%v), so set Options.TickTime", l.timeout/2)
	}
	return fmt.Sprintf("a server's tickTime may be longer than Options.TickTime (%v)", l.tick.Largest)
}

// TransactionEnd returns a channel that is closed when any transaction ends. The proof may be newer then.
func (l *Lease) TransactionEnd() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.ended = make(chan struct{})
	}
	return l.ended
}

// transactionEnded closes the channel that TransactionEnd has returned. It must be called with mu held.
func (l *Lease) transactionEnded() {
	if l.ended != nil {
		close(l.ended)
		l.ended = nil
	}
}

// created is Lease.under as long as only its creation proves the session.
const created = time.Duration(math.MaxInt64)

// Created returns the run of the connection on which the session was created. sent is when the connection request was sent, and dialed is how
// long connecting to the server took. A quorum has agreed on the session.
func (l *Lease) Created(sent Instant, dialed time.Duration) *Run {
	got := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prove(sent, created)
	l.began, l.dialed = got.Mono, dialed
	l.run = &Run{l: l, heard: sent, since: got}
	l.run.sender.spreads = l.follows
	return l.run
}

// TakenBack returns the run of a connection on which a server has accepted the session again. sent is when the connection request was sent,
// and dialed is how long connecting to the server took. Proofs of earlier connections remain valid; heartbeats that were not complete no
// longer count.
func (l *Lease) TakenBack(sent Instant, timeout, dialed time.Duration) *Run {
	got := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timeout = min(l.timeout, timeout)
	l.dialed = dialed
	former := cmp.Or(l.run, new(Run))
	l.run = &Run{l: l, blind: former.blind || former.sender.proves, beats: []*beat{{sent: sent, steps: upstream, from: got.Mono}}}
	l.run.sender.begun, l.run.sender.proves = l.run.atRandom(sent), former.sender.proves
	return l.run
}

// Sighted records that a transaction on this connection has found the nodes that heartbeats check; of more than about a hundred, those whose
// turn it was. What transactions have shown meanwhile counts now.
func (r *Run) Sighted() {
	l := r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run == r {
		r.sighted()
	}
}

// sighted is Sighted, called with mu held.
func (r *Run) sighted() {
	if r.blind {
		r.blind = false
		r.l.prove(r.shown, r.under)
		r.l.transactionEnded()
	}
}

// prove records that a touch is proven if the leader's half tick is at most under, and if the touch is newer than the last one. It
// must be called with mu held.
func (l *Lease) prove(touch Instant, under time.Duration) {
	if touch.Mono.After(l.proven.Mono) {
		l.proven, l.under = touch, under
	}
}

// Remaining returns how long from now the session is guaranteed to live. It is zero or negative if
// the session may already have ended.
func (l *Lease) Remaining() time.Duration {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leftOf(l.proven, now)
}

// leftOf returns how much is left of a timeout that started at a touch. It must be called with mu
// held.
func (l *Lease) leftOf(touch, now Instant) time.Duration {
	if touch.Mono.IsZero() {
		return 0
	}
	return time.Duration(float64(l.timeout)*(1-maxDrift)) - now.Since(touch)
}

// Fresh reports whether the session certainly lives for long enough to grant a hold, and heartbeats can keep it.
func (l *Lease) Fresh() bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isFresh(now)
}

// isFresh is Fresh, called with mu held.
func (l *Lease) isFresh(now Instant) bool {
	return l.leftOf(l.proven, now) > l.timeout/8 && l.keepsUp(now.Mono)
}

// keepsUp reports whether heartbeats can keep a hold that is granted now. If replies wait at the servers, or vary as much, the next heartbeat
// must prove the session in time although its replies take as long as usual. After an outage, or if a fleet starts, all clients queue at
// the same time, and their first replies do not show yet how long the servers' queue becomes. So if replies wait for long in a session's
// first timeout, they must not become longer, and if the session replaces a lost one, a heartbeat must have proven it before. It must be
// called with mu held.
func (l *Lease) keepsUp(now time.Time) bool {
	queued := l.replies.queued(now, l.timeout)
	switch {
	case queued <= 0:
		return true
	case l.follows && l.under == created:
		return false
	case queued > l.timeout/20 && now.Sub(l.began) < l.timeout && l.replies.grow(now, l.timeout):
		return false
	}
	return l.newest(l.replies.usually(now, l.timeout)) >= l.period(now)
}

// Term returns the session's timeout: the smallest that was ever negotiated.
func (l *Lease) Term() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeout
}

// Glance returns how long a caller may rely on a timer that fires when the lease runs out. After that it must check the lease
// again, because timers do not run while the machine sleeps.
func (l *Lease) Glance() time.Duration { return max(l.Term()/20, time.Millisecond) }

// String describes the lease, for logs and failed tests.
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

// A Run records, for one connection, whether the leader that its server follows has counted our
// touches of the session, one after the other, and each before the previous one had run out.
//
// A server that follows a leader notes each request of a session (a touch). It reports the touches to the leader only when it
// answers one of the leader's pings, which come every half tick. From then on the leader counts the session's time.
// A heartbeat brings a touch to our server's stream to the leader: see beat. A request that is sent after that is behind the
// touch on that stream. So when such a sync or transaction is answered, the touch was heard: the leader has counted it.
//
// A quorum transaction proves the newest touch that was on the stream when it was sent, unless the leader may have selected the
// session for expiry before the first touch of the run. The leader cannot have done so if that touch was heard before the last
// proof ran out, or so long before the transaction was sent that the leader would have refused the transaction.
//
// A run never continues on another connection, because a leader that was deposed and does not know
// it accepts sessions and answers syncs.
type Run struct {
	l *Lease // its mutex guards the fields below

	beats []*beat // the heartbeats that can still prove something
	heard Instant // the newest touch that was heard
	since Instant // when it became known that the first touch of the run was heard

	// blind is true until a transaction on this connection has found the nodes that heartbeats check. Somebody may have deleted them while
	// the client had no connection, so until then no transaction extends a hold.
	blind bool
	shown Instant       // the newest touch that a transaction has shown while the run was blind
	under time.Duration // the longest half tick with which shown is proven

	sender sender
}

// A beat is a heartbeat. It gets a touch of the session onto the stream from our server to its leader. This takes four replies:
//
//  1. and 2. Two touches. The older one counts: a follower can lose a touch that it notes
//     while it is answering a ping, but not two in a row.
//  3. A sync, sent half a tick later. The leader's ping was due by then, and comes before
//     the reply to the sync in the stream to the follower, which answers pings in order.
//  4. A second sync, sent a moment after the first was answered: after a pause of the leader,
//     a sync can overtake the overdue ping.
//
// Any reply that can be the next step counts, regardless of what its request was sent for.
type beat struct {
	sent    Instant   // when the older touch was sent, or until its reply: when the heartbeat began
	steps   int       // how many of the four replies have arrived
	from    time.Time // a request counts for the next step if it was sent at this time or later
	pending int       // used by the sender: requests for the next steps without a reply
}

// The number of steps of a beat after each stage.
const (
	touched  = 2 // both touches were answered
	upstream = 4 // all requests were answered: the touch is on the server's stream to its leader
)

// take counts the reply to a request that was sent at the time sent, if it is the next step.
func (b *beat) take(sent, got Instant, of Evidence, l *Lease) {
	if sent.Mono.Before(b.from) || b.steps == upstream || b.steps >= touched && of != OfLeader {
		return
	}
	l.replies.waited(got.Mono.Sub(b.from), got.Mono, l.timeout)
	b.steps++
	switch b.steps {
	case 1:
		b.sent, b.from = sent, sent.Mono
	case touched:
		b.from = got.Mono.Add(l.lag() + l.standstill(got.Mono))
	case 3:
		b.from = got.Mono.Add(l.pause())
	case upstream:
		b.from = got.Mono
	}
}

// Witness records a request that was answered on this connection just now: when it was sent, and
// what its reply proves.
func (r *Run) Witness(sent Instant, of Evidence) { r.witness(sent, of, false) }

// WitnessDelayed is like Witness for a request that waited for a large one, or was large itself. How
// long its reply took shows neither how far away the servers are nor how busy.
func (r *Run) WitnessDelayed(sent Instant, of Evidence) { r.witness(sent, of, true) }

func (r *Run) witness(sent Instant, of Evidence, delayed bool) {
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
		l.transactionEnded()
	}
	for _, b := range r.beats {
		b.take(sent, got, of, l)
	}
	took := got.Mono.Sub(sent.Mono)
	if delayed {
		l.replies.waited(took, got.Mono, l.timeout)
		return
	}
	l.replies.took(took, of, got.Mono, l.timeout)
}

// forget removes heartbeats whose touches have run out. It and the methods below must be called with mu held.
func (r *Run) forget(now Instant) {
	r.beats = slices.DeleteFunc(r.beats, func(b *beat) bool { return r.l.leftOf(b.sent, now) <= 0 })
}

// upstream returns the newest touch that was upstream at the time t. ok is false if there was none.
func (r *Run) upstream(t time.Time) (touch Instant, ok bool) {
	for _, b := range r.beats {
		if b.steps == upstream && !b.from.After(t) && b.sent.Mono.After(touch.Mono) {
			touch, ok = b.sent, true
		}
	}
	return touch, ok
}

// hear records the reply to a sync or transaction that was sent at the time sent: the newest touch that was upstream then was heard.
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

// conclude records the reply to a quorum transaction that was sent at the time sent. The touch that it proves was heard, at the
// latest by its own reply.
func (r *Run) conclude(sent Instant) {
	touch, ok := r.upstream(sent.Mono)
	switch half := r.l.halfTick(); {
	case !ok:
	case !r.settled().After(sent.Mono):
		r.prove(touch, half)
	case r.joins():
		r.prove(touch, min(half, r.l.under))
	}
}

// prove is Lease.prove, once the run is not blind.
func (r *Run) prove(touch Instant, under time.Duration) {
	switch {
	case !r.blind:
		r.l.prove(touch, under)
	case touch.Mono.After(r.shown.Mono):
		r.shown, r.under = touch, under
	}
}

// joins reports whether the run began before the last proof ran out.
func (r *Run) joins() bool { return r.l.leftOf(r.l.proven, r.since) > 0 }

// settled returns the time from which the leader refuses a transaction if it had selected the session
// for expiry before the run.
func (r *Run) settled() time.Time { return r.since.Mono.Add(r.l.settling()) }

// ready returns the touch that a quorum transaction would prove, and the time from which it can be
// sent. ok is false if there is no such touch, or none that is newer than the last proof.
func (r *Run) ready(now Instant) (touch Instant, at time.Time, ok bool) {
	r.forget(now)
	touch, ok = r.upstream(now.Mono)
	switch {
	case !ok || !touch.Mono.After(r.l.proven.Mono):
		return touch, at, false
	case r.l.leftOf(r.heard, now) <= 0: // its reply would begin a run
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

// halfTick returns half the leader's tick, as far as the clients know it. It and the methods below must be called with mu held.
func (l *Lease) halfTick() time.Duration { return l.tick.half(l.timeout) }

// lag returns the time after which a ping of the leader certainly was due.
func (l *Lease) lag() time.Duration { return l.lagWith(l.tick) }

// lagWith is lag with another tick.
func (l *Lease) lagWith(t Tick) time.Duration {
	return time.Duration(float64(t.half(l.timeout))*(1+maxDrift)) + min(40*time.Millisecond, l.timeout/40)
}

// standstill returns the longest pause of the leader for which a lag allows. The leader's clock is paused as well, as in a virtual
// machine that is moved or snapshotted, so the next ping comes late, and is not overdue when the leader resumes. If the clients have set
// the tick, a lag is longer by this: by a second, as far as heartbeats a third of the timeout apart are enough even if every reply takes
// as long as the slowest. If a client has assumed a tick of half the timeout, the difference to the real tick allows for it.
func (l *Lease) standstill(now time.Time) time.Duration {
	if l.tick.Assumed || l.tick.Largest == 0 {
		return 0
	}
	return max(0, min(time.Second, l.room(max(l.replies.slow, l.replies.distance(now, l.timeout)))-l.timeout/3))
}

// room returns the longest period of heartbeats with which enough of the timeout remains if each reply takes that long: see period.
func (l *Lease) room(reply time.Duration) time.Duration {
	return l.timeout*548/1000 - l.lag() - l.pause() - 4*reply
}

// pause returns the time within which a leader that handles requests again has also sent its overdue pings.
func (l *Lease) pause() time.Duration { return min(100*time.Millisecond, l.timeout/20) }

// settling returns the time within which a leader has marked all sessions that it has selected for
// expiry together, so that it refuses their transactions.
func (l *Lease) settling() time.Duration { return max(l.halfTick(), min(time.Second, l.timeout/4)) }
