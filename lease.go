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

// since is how long ago b was, by the clock that says longer.
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

// lease tells until when the server cannot have given up a session.
//
// Evidence comes from the quorum only: a follower that lost its leader goes on
// answering pings and reads. What it had answered reaches the leader with its answer
// to the leader's pings, every tick/2, on the stream on which writes are forwarded.
// So when a write sent at q is acknowledged, everything answered by q - tick/2 has
// renewed the session at the leader, which counts from a moment after its sending.
//
// That takes a leader that does ping. One that stood still, or could not reach its
// followers, for nearly a session timeout is first handed the writes that piled up, then
// asks the followers who is alive: in between it can end sessions whose writes it has just
// answered. Such a write was slow; it and what is sent before the next ping is due proves
// nothing.
type lease struct {
	now func() instant
	lag time.Duration // how long a follower may keep a renewal to itself: tick/2, at most timeout/4

	mu       sync.Mutex    // guards what follows
	timeout  time.Duration // as negotiated
	answered []stamp       // candidates for proven, oldest first, thinned
	claimed  instant       // when the session was last taken back, until a quorum confirms it
	proven   instant       // when the newest operation was sent that the leader is known to have seen
	acked    instant       // when the newest quorum operation was answered
	doubt    time.Time     // what was sent before this proves nothing: the leader may just have come back
}

// stamp is one answered operation.
type stamp struct{ sent, got instant }

func newLease(now func() instant, timeout, tick time.Duration) *lease {
	l := &lease{now: now, timeout: timeout, lag: timeout / 4}
	if tick > 0 {
		l.lag = min(tick/2, l.lag)
	}
	return l
}

// begun notes that the session was made on a connection request sent then: a quorum has agreed on that.
func (l *lease) begun(sent instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prove(sent)
	l.acked = l.now()
}

// attached notes that a server took the session back on a connection request sent then.
// It asked its leader, which renewed the session at once; but was that still the leader?
// One that has lost its followers takes sessions back by itself. The first quorum
// operation on the connection tells.
func (l *lease) attached(sent instant, timeout time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timeout, l.claimed = timeout, sent
}

// note takes an answered operation; quorum says that a quorum has answered it.
func (l *lease) note(sent instant, quorum bool) {
	got := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if quorum {
		l.acked = got
		if got.mono.Sub(sent.mono) > l.timeout/4 {
			l.doubt = got.mono.Add(l.lag)
		}
		l.proveBy(sent)
	}
	l.remember(stamp{sent, got})
}

// proveBy draws the conclusion from a quorum operation sent then. It must be called with mu held.
func (l *lease) proveBy(sent instant) {
	if !l.claimed.mono.IsZero() && sent.mono.After(l.claimed.mono) { // else it is of the connection before
		l.prove(l.claimed)
		l.claimed = instant{}
	}
	if sent.mono.Before(l.doubt) {
		return
	}
	known := 0
	for _, s := range l.answered {
		// By the monotonic clock: of the two it is the one that shows no less than what passed at the server.
		if sent.mono.Sub(s.got.mono) < l.lag {
			break
		}
		l.prove(s.sent)
		known++
	}
	l.answered = l.answered[known:]
}

// prove must be called with mu held.
func (l *lease) prove(sent instant) {
	if l.proven.mono.IsZero() || sent.mono.After(l.proven.mono) {
		l.proven = sent
	}
}

// remember keeps s unless it is so close to the last one that it would hardly tell
// more: a busy client answers to thousands of operations between two heartbeats.
// It must be called with mu held.
func (l *lease) remember(s stamp) {
	if n := len(l.answered); n > 0 && s.got.mono.Sub(l.answered[n-1].got.mono) < l.lag/32 {
		return
	}
	for len(l.answered) > 0 && s.got.mono.Sub(l.answered[0].got.mono) > l.timeout {
		l.answered = l.answered[1:]
	}
	l.answered = append(l.answered, s)
}

// remaining is how long the session is certainly alive from now on; not positive when nothing is certain.
func (l *lease) remaining() time.Duration {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proven.mono.IsZero() {
		return 0
	}
	valid := time.Duration(float64(l.timeout) * (1 - maxDrift))
	return valid - now.since(l.proven)
}

// fresh says whether the session is certain for long enough to hand out a hold.
func (l *lease) fresh() bool { return l.remaining() > l.term()/8 }

// untilBeat is how long the next heartbeat can wait: a quarter of the timeout after
// the last quorum operation, which by then is old enough to be proven by the next.
func (l *lease) untilBeat() time.Duration {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeout/4 - now.since(l.acked)
}

func (l *lease) term() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeout
}
