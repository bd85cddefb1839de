// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A Request is a request to send. Next returns it, and the caller passes it to Done when the request has ended.
type Request struct {
	Step Step

	of    *Run
	aim   aim
	beats []*beat // the heartbeats for which it is pending: the one that it is a step of, and those for which it also counts as a touch
}

// Sighted is Run.Sighted for the connection on which the request was sent.
func (q Request) Sighted() { q.of.Sighted() }

// An aim is what a request is sent for.
type aim interface {
	// begin records that the request is sent.
	begin(r *Run, now Instant)
	// end reports whether the request, which has ended, achieved its aim. If not, another request can be sent for it.
	end(r *Run) bool
}

// The aims are the next step of a heartbeat, the proof of a touch, and, for an additional sync, a newer touch in Run.heard.
type (
	beatStep struct {
		beat *beat // a zero beat if the request begins it
		had  int   // number of steps completed before
	}
	proof   struct{ touch Instant }
	hearing struct{ touch Instant }
)

func (a beatStep) begin(r *Run, now Instant) {
	if !a.beat.from.IsZero() {
		return
	}
	*a.beat = beat{sent: now, from: now.Mono}
	r.beats = append(r.beats, a.beat)
	s := &r.sender
	s.begun = now.Mono
	if s.spreads {
		s.begun, s.spreads = r.atRandom(now), false
	}
}

func (a beatStep) end(*Run) bool { return a.beat.steps > a.had }

func (a proof) begin(r *Run, now Instant) { r.sender.proving, r.sender.provingAt = a.touch, now.Mono }

func (a proof) end(r *Run) bool {
	r.l.transactionEnded() // also without a reply that a quorum has agreed on
	if a.touch.Mono.After(r.l.proven.Mono) {
		r.sender.proving = Instant{}
		return false
	}
	return true
}

func (a hearing) begin(r *Run, _ Instant) { r.sender.hearing = a.touch }

func (a hearing) end(r *Run) bool {
	if a.touch.Mono.After(r.heard.Mono) {
		r.sender.hearing = Instant{}
		return false
	}
	return true
}

// Next returns the request to send now. If its Step is Nothing, Next also returns the time until a request will be due if no reply
// arrives before. Transactions are due only if prove is true.
func (l *Lease) Next(prove bool) (Request, time.Duration) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run == nil {
		return Request{}, l.timeout
	}
	l.run.forget(now)
	l.run.sender.keep(prove, now.Mono.Add(l.pause()))
	if !prove {
		l.run.sighted() // there is no node to find
	}
	req, at := l.run.due(now, prove)
	if req.Step != Nothing {
		l.run.send(&req, now)
	}
	return req, at.Sub(now.Mono)
}

// Done records that a request has ended, with or without a reply, and reports whether it achieved what it was sent for. If not, a
// request of that kind is due again after a pause.
func (l *Lease) Done(req Request) bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := req.of
	k := &r.sender.kinds[req.Step]
	k.pending--
	for _, b := range req.beats {
		b.pending--
	}
	if req.aim.end(r) {
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
func (r *Run) due(now Instant, prove bool) (Request, time.Time) {
	next := candidate{sender: &r.sender, now: now.Mono, at: now.Mono.Add(r.l.timeout)}
	if prove {
		r.proof(&next, now)
	}
	r.hearing(&next, now)
	r.steps(&next)
	r.another(&next)
	return next.Request, next.at
}

// A candidate is the request to send now, or, if its Step is Nothing, the time at which the next one is due.
type candidate struct {
	Request
	sender  *sender
	now, at time.Time
}

// offer proposes req, which is due at the time at. It is ignored if an earlier offer is due now. After a failure, requests of the same
// kind wait for a pause, and are sent one at a time until one has succeeded.
func (c *candidate) offer(req Request, at time.Time) {
	k := c.sender.kinds[req.Step]
	if k.failed > 0 && k.again.After(at) {
		at = k.again
	}
	switch {
	case c.Step != Nothing || k.failed > 0 && k.pending > 0:
	case !at.After(c.now):
		c.Request = req
	case at.Before(c.at):
		c.at = at
	}
}

// proof offers a transaction as soon as it would extend the proof.
func (r *Run) proof(next *candidate, now Instant) {
	touch, at, ok := r.ready(now)
	if ok && touch.Mono.After(r.sender.proving.Mono) {
		next.offer(Request{Step: Quorum, aim: proof{touch}}, at)
	}
}

// hearing offers an additional sync for the newest touch that is upstream. The sync is due if no run has begun, or if the run would
// soon have a gap, unless a transaction is under way whose reply will show the same.
func (r *Run) hearing(next *candidate, now Instant) {
	touch, ok := r.upstream(now.Mono)
	if ok && touch.Mono.After(r.heard.Mono) && touch.Mono.After(r.sender.hearing.Mono) && touch.Mono.After(r.sender.proving.Mono) {
		left := r.l.leftOf(r.heard, now) - r.l.timeout/16 - 2*r.l.replies.slow
		next.offer(Request{Step: Sync, aim: hearing{touch}}, now.Mono.Add(left))
	}
}

// steps offers the next steps of the heartbeats in progress.
func (r *Run) steps(next *candidate) {
	for _, b := range r.beats {
		if b.wants() > 0 {
			next.offer(b.request(), b.from)
		}
	}
}

// request returns a request for the next step of the heartbeat.
func (b *beat) request() Request {
	step := Sync
	if b.steps < touched {
		step = Touch
	}
	return Request{Step: step, aim: beatStep{b, b.steps}, beats: []*beat{b}}
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
	first, period := new(beat).request(), r.l.period(next.now)
	if next.Step == Sync && next.sender.kinds[Touch].failed == 0 && !next.now.Before(r.sender.begun.Add(period*3/4)) {
		next.Request = first
		return
	}
	next.offer(first, r.sender.begun.Add(period))
}

// send records that req is being sent. It also counts as a touch for each heartbeat that needs one.
func (r *Run) send(req *Request, now Instant) {
	req.of = r
	r.sender.kinds[req.Step].pending++
	req.aim.begin(r, now)
	for _, b := range r.beats {
		if b.steps < touched && b.wants() > 0 && !slices.Contains(req.beats, b) {
			req.beats = append(req.beats, b)
		}
	}
	for _, b := range req.beats {
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
// If replies usually wait at the servers, or vary as much, the period is longer, up to a third of the timeout, as long as locks can be
// granted: less remains, and the queue ends.
//
// If thousands of processes start at once, no reply comes at first that has not waited. But connecting to the current server was quick. So
// the fastest replies make the period shorter only as far as that time explains them, or as far as a grant needs it and replies as slow as
// usual permit one then. If even longest is too short for that, least is used after lookback timeouts: a queue of processes that start has
// ended then. One that lasts for longer is taken for a slow network.
func (l *Lease) period(now time.Time) time.Duration {
	distance, least := l.replies.distance(now, l.timeout), l.timeout/12
	p := min(max(l.room(min(distance, l.near())), least), l.timeout/3)
	most := l.longest(distance)
	if l.newest(distance) >= least && now.Sub(l.replies.first) > lookback*l.timeout {
		most = max(most, least)
	}
	if most >= least && l.newest(l.replies.usually(now, l.timeout)) >= most {
		p = min(p, most)
	}
	return max(p, min(p+8*l.replies.queued(now, l.timeout), l.timeout/3, l.longest(l.replies.usually(now, l.timeout))))
}

// near returns how long replies take because of the network, as far as connecting shows it: a round trip to the current server, and
// perhaps another one from there to its leader.
func (l *Lease) near() time.Duration { return 2*l.dialed + l.timeout/200 }

// longest returns the longest period with which a proof leaves enough for a grant if each reply takes that long.
func (l *Lease) longest(reply time.Duration) time.Duration { return l.newest(reply) - l.timeout/6 }

// IsAmple reports whether as much of the lease remains as a hold always has on a healthy network, or
// else as much as is possible now.
func (l *Lease) IsAmple() bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isFresh(now) {
		return false
	}
	if l.run == nil {
		return true
	}
	wait, more := l.run.untilMore(now)
	return !more || l.leftOf(l.proven, now)-wait >= l.timeout*2/5
}

// untilMore returns the expected time until a transaction that was sent, or is sent now, extends the proof. It reports false if no
// transaction would. It must be called with mu held.
func (r *Run) untilMore(now Instant) (time.Duration, bool) {
	touch, at, ok := r.ready(now)
	if !touch.Mono.After(r.sender.proving.Mono) {
		at = r.sender.provingAt
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
