// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"slices"
	"time"
)

// Evidence says what the reply to a request proves.
type Evidence int

const (
	// OfServer is a reply of one server. The server has noted a touch of the session.
	OfServer Evidence = iota
	// OfLeader is the reply to a sync. The sync has passed through the queue of a leader, which
	// may have been deposed.
	OfLeader
	// OfQuorum is a reply that a quorum has agreed on.
	OfQuorum
)

// replies records how long replies take.
type replies struct {
	slow   time.Duration // how long the slowest reply of the last timeout took, counted from when its request was due
	slowAt time.Time     // when it arrived
	usual  [OfQuorum + 1]usual

	// The fields below also consider replies under the sessions before.
	first   time.Time // when the first reply arrived; zero before
	fastest [OfQuorum + 1]fastest
}

// usual is how long replies with one kind of evidence usually take.
type usual struct {
	d      time.Duration
	at     time.Time // when the last one arrived
	longer bool      // the last one took longer than those before it usually did; false for the first one
}

// fastest is how long the fastest reply with one kind of evidence took, in the current period and in the one before.
type fastest struct {
	now, before time.Duration
	since       time.Time // when the current period began; zero before the first reply
}

// A fast reply begins to be forgotten after lookback timeouts. A queue at the servers can last for minutes after an outage, and clients
// that mistake it for a slow network do not let it end.
const lookback = 12

// took records a reply that took d and arrived at the time now.
func (r *replies) took(d time.Duration, of Evidence, now time.Time, timeout time.Duration) {
	if r.first.IsZero() {
		r.first = now
	}
	r.waited(d, now, timeout)
	r.usual[of].note(d, now, timeout)
	r.fastest[of].note(d, now, lookback*timeout)
}

// waited records that a reply arrived d after its request was due. The longest time counts for one timeout.
func (r *replies) waited(d time.Duration, now time.Time, timeout time.Duration) {
	if d >= r.slow || now.Sub(r.slowAt) > timeout {
		r.slow, r.slowAt = d, now
	}
}

// distance returns how long replies take at least. That is what a network adds to every reply: of the fastest replies of the last twelve
// to twenty-four timeouts, one for each kind of evidence, it is the slowest. What a server's queue adds differs from reply to reply, and
// is not counted: if clients sent more heartbeats because of a queue, the queue would grow. A queue that delays every reply of a kind for
// longer than that is counted all the same.
func (r *replies) distance(now time.Time, timeout time.Duration) (d time.Duration) {
	for _, f := range r.fastest {
		if now.Sub(f.since) <= 2*lookback*timeout {
			d = max(d, min(f.now, f.before))
		}
	}
	return d
}

// usually returns how long the replies of a heartbeat usually take on average: a touch, two syncs and a transaction.
func (r *replies) usually(now time.Time, timeout time.Duration) (d time.Duration) {
	for of, count := range [OfQuorum + 1]time.Duration{OfServer: 1, OfLeader: 2, OfQuorum: 1} {
		if u := r.usual[of]; now.Sub(u.at) <= timeout {
			d += count * u.d / 4
		}
	}
	return d
}

// queued returns how long replies usually wait at the servers, or zero if they do not. A network whose replies take up to twice as long as
// the fastest, and a two hundredth of the timeout more, has no queue.
func (r *replies) queued(now time.Time, timeout time.Duration) (d time.Duration) {
	for of, u := range r.usual {
		if f := r.fastest[of]; now.Sub(u.at) <= timeout {
			d = max(d, u.d-2*min(f.now, f.before)-timeout/200)
		}
	}
	return d
}

// grow reports whether the newest sync's or the newest transaction's reply took longer than such replies usually did before, as in a leader's
// queue that becomes longer. The first reply of a kind shows no growth.
func (r *replies) grow(now time.Time, timeout time.Duration) bool {
	return slices.ContainsFunc(r.usual[OfLeader:], func(u usual) bool { return u.longer && now.Sub(u.at) <= timeout })
}

// Distance returns how long replies take at least: see distance.
func (l *Lease) Distance() time.Duration {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replies.distance(now.Mono, l.timeout)
}

// Follow makes the lease begin with the distance that was measured under the session before. It must be called before Created.
func (l *Lease) Follow(former *Lease) {
	former.mu.Lock()
	first, fastest := former.replies.first, former.replies.fastest
	former.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replies.first, l.replies.fastest, l.follows = first, fastest, true
}

// note records a reply that took d.
func (u *usual) note(d time.Duration, now time.Time, timeout time.Duration) {
	if now.Sub(u.at) > timeout {
		u.d = d
	}
	u.longer = d > u.d
	u.d += (d - u.d) / 4
	u.at = now
}

// note records a reply that took d.
func (f *fastest) note(d time.Duration, now time.Time, period time.Duration) {
	switch age := now.Sub(f.since); {
	case age > 2*period: // the first reply, or the first after a long time
		*f = fastest{d, d, now}
	case age > period:
		*f = fastest{d, f.now, now}
	}
	f.now = min(f.now, d)
}
