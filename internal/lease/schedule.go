// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A Due is a request to send. Next returns it, and the caller passes it to Done when the request has ended.
type Due struct {
	Step Step

	of     *Run
	begins bool    // whether it is the first request of another heartbeat
	touch  Instant // for a transaction or an additional sync: the touch to prove, or to be heard
	beats  []*beat // the heartbeats it is a step of: at most one that it is sent for, then the riders
	had    int     // number of steps completed when the request was sent, of the heartbeat that it is sent for
	riders int     // the number of riders: heartbeats for which it also counts as a touch
}

// Next returns the request to send now. If its Step is Nothing, Next also returns the time until a request will be due if no reply
// arrives before. Transactions are due only if prove is true.
func (l *Lease) Next(prove bool) (Due, time.Duration) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run == nil {
		return Due{}, l.timeout
	}
	l.run.forget(now)
	l.run.sender.keep(prove, now.Mono.Add(l.pause()))
	d, at := l.run.due(now, prove)
	if d.Step != Nothing {
		l.run.send(&d, now)
	}
	return d, at.Sub(now.Mono)
}

// Done records that a request has ended, with or without a reply, and reports whether it achieved what it was sent for. If not, a
// request of that kind is due again after a pause.
func (l *Lease) Done(d Due) bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := d.of
	k := &r.sender.kinds[d.Step]
	k.pending--
	if d.Step == Quorum {
		l.wasAsked() // also without a reply that a quorum has agreed on
	}
	for _, b := range d.beats {
		b.pending--
	}
	switch {
	case len(d.beats) > d.riders && d.beats[0].steps == d.had:
	case d.Step == Quorum && d.touch.Mono.After(l.proven.Mono):
		r.sender.asked = Instant{}
	case d.Step == Sync && d.touch.Mono.After(r.heard.Mono):
		r.sender.tried = Instant{}
	default:
		k.failed = 0
		return true
	}
	k.again = now.Mono.Add(r.again(k.failed, now))
	k.failed++
	return false
}

// again returns the time after which a request may be sent that has failed that many times before. While no node is kept, it doubles
// up to a period of heartbeats: an idle client must not add to the load of a server that throttles.
func (r *Run) again(failed int, now Instant) time.Duration {
	pause := r.l.pause()
	if r.sender.proves {
		return pause
	}
	return min(pause<<min(failed, 10), max(r.l.period(now.Mono), pause))
}

// due returns the request that is due, or the time at which the next one will be. It changes nothing. It and the functions below must
// be called with mu held.
func (r *Run) due(now Instant, prove bool) (Due, time.Time) {
	next := candidate{sender: &r.sender, now: now.Mono, at: now.Mono.Add(r.l.timeout)}
	if prove {
		r.proof(&next, now)
	}
	r.hearing(&next, now)
	r.steps(&next)
	r.another(&next)
	return next.Due, next.at
}

// A candidate is the request to send now, or, if its Step is Nothing, the time at which the next one is due.
type candidate struct {
	Due
	sender  *sender
	now, at time.Time
}

// offer proposes d, which is due at the time at. It is ignored if an earlier offer is due now. After a failure, requests of the same
// kind wait for a pause, and are sent one at a time until one has succeeded.
func (c *candidate) offer(d Due, at time.Time) {
	k := c.sender.kinds[d.Step]
	if k.failed > 0 && k.again.After(at) {
		at = k.again
	}
	switch {
	case c.Step != Nothing || k.failed > 0 && k.pending > 0:
	case !at.After(c.now):
		c.Due = d
	case at.Before(c.at):
		c.at = at
	}
}

// proof offers a transaction as soon as it would extend the proof.
func (r *Run) proof(next *candidate, now Instant) {
	touch, at, ok := r.ready(now)
	if ok && touch.Mono.After(r.sender.asked.Mono) {
		next.offer(Due{Step: Quorum, of: r, touch: touch}, at)
	}
}

// hearing offers an additional sync for the newest touch that is upstream. The sync is due if no run has begun, or if the run would
// soon have a gap, unless a transaction is under way whose reply will show the same.
func (r *Run) hearing(next *candidate, now Instant) {
	touch, ok := r.upstream(now.Mono)
	if ok && touch.Mono.After(r.heard.Mono) && touch.Mono.After(r.sender.tried.Mono) && touch.Mono.After(r.sender.asked.Mono) {
		left := r.l.leftOf(r.heard, now) - r.l.timeout/16 - 2*r.l.replies.slow
		next.offer(Due{Step: Sync, of: r, touch: touch}, now.Mono.Add(left))
	}
}

// steps offers the next steps of the heartbeats in progress.
func (r *Run) steps(next *candidate) {
	for _, b := range r.beats {
		d := Due{Step: Sync, of: r, beats: []*beat{b}, had: b.steps}
		if b.steps < touched {
			d.Step = Touch
		}
		if b.wants() > 0 {
			next.offer(d, b.from)
		}
	}
}

// wants returns how many more requests can be sent for the heartbeat now. The two touches are sent together, each sync alone.
func (b *beat) wants() int {
	switch {
	case b.steps < touched:
		return touched - b.steps - b.pending
	case b.steps < upstream:
		return 1 - b.pending
	}
	return 0
}

// another offers to begin another heartbeat. If a sync is due now and it is not too early for a heartbeat, that sync is also its
// second touch, which saves a read.
func (r *Run) another(next *candidate) {
	d, period := Due{Step: Touch, of: r, begins: true}, r.l.period(next.now)
	if next.Step == Sync && next.sender.kinds[Touch].failed == 0 && !next.now.Before(r.sender.begun.Add(period*3/4)) {
		next.Due = d
		return
	}
	next.offer(d, r.sender.begun.Add(period))
}

// send records that d is being sent. d also counts as a touch for each heartbeat that needs one.
func (r *Run) send(d *Due, now Instant) {
	s := &r.sender
	s.kinds[d.Step].pending++
	switch {
	case d.begins:
		s.begun = now.Mono
		if s.spreads {
			s.begun, s.spreads = r.atRandom(now), false
		}
		d.beats = []*beat{{sent: now, from: now.Mono}}
		r.beats = append(r.beats, d.beats[0])
	case d.Step == Quorum:
		s.asked, s.askedAt = d.touch, now.Mono
	case len(d.beats) == 0:
		s.tried = d.touch
	}
	own := len(d.beats)
	for _, b := range r.beats {
		if b.steps < touched && b.wants() > 0 && !slices.Contains(d.beats, b) {
			d.beats = append(d.beats, b)
		}
	}
	d.riders = len(d.beats) - own
	for _, b := range d.beats {
		b.pending++
	}
}

// atRandom returns a time at most a period before t. If a heartbeat had begun then, the next one begins at most a period after t. Clients
// that connect together, after an outage, send their heartbeats at different times from then on.
func (r *Run) atRandom(t Instant) time.Time { return t.Mono.Add(-rand.N(r.l.period(t.Mono))) }

// period returns the time between the beginnings of two heartbeats. When a transaction is answered, the heartbeat that it proves
// began at most a period, a lag, a pause and four replies earlier: the heartbeat takes three replies, and the fourth is the
// transaction's. The promise is that 0.4 of the timeout remain then, after 0.05 for the clocks; 0.002 more is for late timers.
//
// If replies usually wait at the servers, the period is longer, by up to a quarter, as long as locks can be granted: less remains, and
// the queue ends.
func (l *Lease) period(now time.Time) time.Duration {
	p := min(max(l.room(l.network(now)), l.timeout/12), l.timeout/3)
	return max(p, min(p+8*max(0, l.replies.queued(now, l.timeout)-l.timeout/200), l.timeout/3, l.longest(l.replies.usually(now, l.timeout))))
}

// longest returns the longest period with which a proof leaves enough for a grant if each reply takes that long.
func (l *Lease) longest(reply time.Duration) time.Duration {
	return l.timeout*93/100 - l.lag() - l.pause() - 4*reply - l.timeout/6
}

// IsAmple reports whether as much of the lease remains as a hold always has on a healthy network, or
// else as much as is possible now.
func (l *Lease) IsAmple() bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.leftOf(l.proven, now)
	if left <= l.timeout/8 {
		return false
	}
	if l.run == nil {
		return true
	}
	wait, more := l.run.untilMore(now)
	return !more || left-wait >= l.timeout*2/5
}

// untilMore returns the expected time until a transaction that was sent, or is sent now, extends the proof. It reports false if no
// transaction would. It must be called with mu held.
func (r *Run) untilMore(now Instant) (time.Duration, bool) {
	touch, at, ok := r.ready(now)
	if !touch.Mono.After(r.sender.asked.Mono) {
		at = r.sender.askedAt
	}
	return max(0, at.Add(r.l.replies.slow).Sub(now.Mono)), ok
}

// Patience returns how long a server may leave every request unanswered before the client tries another server. If a recent reply
// took long, another server is probably as slow, and each change of servers loses the pending requests.
func (l *Lease) Patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.patience()
}

// patience is Patience, called with mu held.
func (l *Lease) patience() time.Duration { return max(l.timeout/5, 2*l.replies.slow) }

// Leave records that the client leaves a server that did not answer within Patience. The next server gets more time.
func (l *Lease) Leave() {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replies.waited(l.patience(), now.Mono, l.timeout)
}

// CanProve reports whether the timeout is long enough to prove the session at all with that tick.
func (l *Lease) CanProve(tick Tick) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lagWith(tick)+l.pause() <= l.timeout*3/4
}

// Replies returns a text for errors that says how long replies take and, if that is too long for a grant, how long they may take.
func (l *Lease) Replies() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := fmt.Sprintf("replies take %v", l.replies.slow.Round(time.Millisecond))
	if most := l.slowest(); l.replies.slow >= most {
		s += fmt.Sprintf(", and must take less than %v", most.Round(time.Millisecond))
	}
	return s
}

// slowest returns the time that replies must not reach: if every reply takes that long, no proof arrives in time to grant a hold. It
// must be called with mu held.
func (l *Lease) slowest() time.Duration { return (l.timeout*825/1000 - l.lag() - l.pause()) / 4 }
