// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Contact records when a server last sent something. An open connection is no sign of that: a server that is partitioned
// keeps its connections.
type Contact struct {
	mu    sync.Mutex
	last  time.Time     // guarded by mu, like the fields below: when a server last sent something, or the beginning
	open  int           // number of open connections
	lost  bool          // no connection was open since then
	limit time.Duration // how long a server that is well is silent at most; zero before it is known
	trip  time.Duration // how long the last server took to answer the first request on its connection; zero before it is known
}

func newContact() *Contact { return &Contact{last: time.Now()} }

// expect sets how long a server that is well is silent at most. A client whose session has this timeout hears from its server
// more often than twice in it.
func (c *Contact) expect(session time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = session / 2
}

// Session returns the timeout that expect was called with.
func (c *Contact) Session() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return 2 * c.limit
}

// shortOutage is how long there may be no connection before that counts: a client that changes its server has none for a
// moment.
const shortOutage = time.Second

// SilentSince returns when a server last sent something if that is too long ago, and otherwise the zero time.
func (c *Contact) SilentSince() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	silent := time.Since(c.last)
	if c.lost && silent > shortOutage || c.limit > 0 && silent > c.limit {
		return c.last
	}
	return time.Time{}
}

// LastAnswer returns when a server last sent something, or when zklock began to connect.
func (c *Contact) LastAnswer() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// RoundTrip returns how long the last server took to answer zklock's first request, or zero if none has.
func (c *Contact) RoundTrip() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trip
}

// watch wraps a connection whose reads it records.
func (c *Contact) watch(conn net.Conn) net.Conn {
	c.opened(1)
	return &watched{Conn: conn, contact: c, closed: sync.OnceFunc(func() { c.opened(-1) })}
}

func (c *Contact) opened(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += more
	c.lost = c.lost || c.open == 0
}

// replied records that a server has sent something. asked is when the first request was sent if this is the answer to it, and
// otherwise zero.
func (c *Contact) replied(asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.lost = time.Now(), false
	if !asked.IsZero() {
		c.trip = time.Since(asked)
	}
}

// watched is a connection that tells a contact what it reads.
type watched struct {
	net.Conn
	contact *Contact
	closed  func()
	asked   atomic.Pointer[time.Time] // when the first request was sent; the zero time once it was answered; nil before it
}

func (w *watched) Write(p []byte) (int, error) {
	now := time.Now()
	w.asked.CompareAndSwap(nil, &now)
	return w.Conn.Write(p)
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		var asked time.Time
		if first := w.asked.Swap(&time.Time{}); first != nil {
			asked = *first
		}
		w.contact.replied(asked)
	}
	return n, err
}

func (w *watched) Close() error {
	w.closed()
	return w.Conn.Close()
}
