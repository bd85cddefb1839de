// SPDX-License-Identifier: Apache-2.0

// Package conn observes the traffic between the client library and its servers: which session a
// connection carries, and what the replies prove about that session's lease.
//
// It does not depend on locks. The packages above it send their requests through it, on the same
// connection as the client library, and ask it whether a reply is valid.
package conn

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/internal/lease"
)

// Link knows which session the client library's connection carries. It learns this from the traffic
// between the library and the server. The library reports some of it late (its event channel drops
// events), and some not at all (that a session was replaced by another). It also hides the
// negotiated timeout and the time when a request was sent. The reply to a connection request passes
// through Link before any request of that session can be sent. So a request that began and ended
// under one session was executed in that session.
//
// All methods may be called from several goroutines.
type Link struct {
	clock     atomic.Pointer[func() lease.Instant]
	login     loginState
	listeners listeners
	lastXid   atomic.Int32 // the number of the last request, on any connection
	dialing   Dialing      // set before the first dial
	servers   known
	pace      pace
	dials     chan struct{} // has an element for each dial that runs

	whenCarried []func() // see WhenCarried; set before the first dial

	mu       sync.Mutex      // guards the fields below
	ticks    []time.Duration // what each client has set: see AddTick
	counts   lease.Tick      // the longest that a client has had since the newest connection began to carry the session
	conn     *proxy          // the newest; nil before the first
	session  *Session        // the newest; nil before the first; may be over
	since    time.Time       // when a connection began to carry it
	fails    int             // consecutive dials that led to no lasting connection
	refusals int             // consecutive connection requests on which a server hung up
	probe    bool            // the last one requested another session to learn whether servers serve anyone
	serves   bool            // they have created that session, and have not taken ours since
	lastErr  error           // for error texts
	closed   bool
	changed  chan struct{} // closed and replaced whenever session, carried or closed changes
	closing  chan struct{} // closed when closed becomes true

	carried atomic.Pointer[Session] // session while a connection carries it, otherwise nil; changed with mu held
}

// NewLink returns the link of a connection that has yet to be made.
func NewLink() *Link {
	l := &Link{
		changed: make(chan struct{}),
		closing: make(chan struct{}),
		dials:   make(chan struct{}, maxDials),
	}
	now := lease.Clock(nil)
	l.clock.Store(&now)
	return l
}

// Now returns the current time on the link's clocks.
func (l *Link) Now() lease.Instant { return (*l.clock.Load())() }

// SetClock sets the clocks.
func (l *Link) SetClock(now func() lease.Instant) { l.clock.Store(&now) }

// CanProve reports whether the session could still be proven with another client that has set the servers' largest tickTime, or zero.
func (l *Link) CanProve(set time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session == nil || l.session.Lease.CanProve(l.counts.With(lease.TickOf(set)))
}

// AddTick adds a client that has set the servers' largest tickTime, or zero. The longest of the link's clients counts, until
// RemoveTick and the next connection. If it became shorter at once, a client with a long one that comes and goes would make the
// heartbeats start again each time, and no proof might be complete before the next time.
func (l *Link) AddTick(set time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ticks = append(l.ticks, set)
	l.counts = l.counts.With(lease.TickOf(set))
	if l.session != nil {
		l.session.Lease.SetTick(l.counts)
	}
}

// RemoveTick undoes AddTick.
func (l *Link) RemoveTick(set time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.ticks, set)
	l.ticks = slices.Delete(l.ticks, i, i+1)
}

func longest(ticks []time.Duration) (tick lease.Tick) {
	for _, set := range ticks {
		tick = tick.With(lease.TickOf(set))
	}
	return tick
}

// WhenCarried calls fn, which must not wait, whenever a connection has begun to carry a session. It must be called before the first
// dial.
func (l *Link) WhenCarried(fn func()) { l.whenCarried = append(l.whenCarried, fn) }

// number returns the next request's number. Numbers continue from one connection to the next: a
// follower that has yet to execute requests that another server took from the same session can tell
// its requests apart only by their numbers.
func (l *Link) number() int32 {
	for {
		last := l.lastXid.Load()
		next := max(last+1, 1) // after the largest number it restarts at 1
		if l.lastXid.CompareAndSwap(last, next) {
			return next
		}
	}
}

// broadcast must be called with mu held.
func (l *Link) broadcast() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// LastError returns the last error, or nil if there was none. Its text is escaped for use in error
// texts: an untrusted certificate can contain any name.
func (l *Link) LastError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lastErr == nil {
		return nil
	}
	return shownError{l.lastErr}
}

// RecordError records an error for LastError.
func (l *Link) RecordError(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastErr = err
}

// endSession must be called with mu held.
func (l *Link) endSession(expired bool) {
	if l.session != nil && !l.session.IsOver() {
		l.session.end(expired)
	}
}

// Close ends the session and refuses all further connections: otherwise a closed zk.Conn would
// reconnect and send what is still queued.
func (l *Link) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		l.carried.Store(nil)
		l.endSession(false)
		close(l.closing)
		l.broadcast()
	}
	conn := l.conn
	l.mu.Unlock()
	if conn != nil {
		conn.hangUp()
	}
}

func (l *Link) isClosed() bool { return isClosed(l.closing) }
