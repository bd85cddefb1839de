// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// Dialing says how a link makes connections.
type Dialing struct {
	// Dial connects to a server. It is called by several goroutines.
	Dial zk.Dialer
	// Encrypt encrypts a connection to the listed server. If it is nil, connections stay as they are.
	Encrypt func(ctx context.Context, server string, plain net.Conn) (net.Conn, error)
	// Resolve returns the addresses of a host, each of which is then a separate server. If it is nil, Dial resolves names.
	Resolve func(ctx context.Context, host string) ([]string, error)
	// IsOpaque means that Dial may do more than connect, and may need more time than the client library's limit of a second.
	IsOpaque bool
	// Failed is called when a server could not be connected, and must not wait. It may be nil.
	Failed func(server string, err error)
	// Timeout is the session timeout that the client library requests, or zero if it is not known.
	Timeout time.Duration
}

// Dialer returns a dialer for the client library, so that the link sees the traffic of each connection. A connection can lead to
// another server if the one that was dialed takes long, and its server can change until the first reply: see race.
func (l *Link) Dialer(d Dialing) zk.Dialer {
	l.dialing = d
	return func(network, server string, timeout time.Duration) (net.Conn, error) {
		if err := l.pause(); err != nil {
			return nil, err
		}
		r := newRace(l, network, timeout)
		r.isNew = l.servers.see(server)
		first, err := r.connected(server)
		if err != nil {
			r.stop()
			l.RecordError(err)
			return nil, err
		}
		return l.adopt(r, first)
	}
}

// IsTaken reports whether the client library's connection carries a session, so that a dial must be that of another connection: the
// client library dials only after its connection has ended. IsTaken then waits for a second. The client library waits for as long
// between two rounds of servers, if its provider reports the end of a round.
func (l *Link) IsTaken() bool {
	if l.Carried() == nil {
		return false
	}
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.closing:
	}
	return true
}

// left returns how much of the lease remains.
func (l *Link) left() time.Duration {
	s := l.Latest()
	if s == nil || s.IsOver() {
		return 0
	}
	return s.Lease.Remaining()
}

// distance returns the shortest time in which replies arrive: see lease.Lease.Distance.
func (l *Link) distance() time.Duration {
	if s := l.Latest(); s != nil {
		return s.Lease.Distance()
	}
	return 0
}

// term returns the session timeout, or the requested timeout if there was no session yet.
func (l *Link) term() time.Duration {
	if s := l.Latest(); s != nil {
		return s.Lease.Term()
	}
	return cmp.Or(l.dialing.Timeout, 10*time.Second)
}

// pause spaces out dials that lead to no session: the client library does so only if it cannot
// reach any server, and would otherwise dial as fast as servers refuse connections. While the lease
// runs, a pause takes at most a quarter of what remains, or 50 ms: there may be a leader again by then.
func (l *Link) pause() error {
	if fails := l.dialed(); fails > 0 {
		d := min(10*time.Millisecond<<min(fails, 7), time.Second)
		if left := l.left(); left > 0 {
			d = min(d, max(left/4, 50*time.Millisecond))
		}
		timer := time.NewTimer(d/2 + rand.N(d/2))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.closing:
		}
	}
	if l.isClosed() {
		return errClosed
	}
	return nil
}

// dialed counts a dial. It returns how many consecutive dials before it led to no lasting
// connection.
func (l *Link) dialed() (fails int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fails = l.fails
	l.fails++
	return fails
}

// adopt makes a connection whose server is first, for now, the current one. It closes the previous one.
func (l *Link) adopt(r *race, first *attempt) (net.Conn, error) {
	px := newProxy(l, r, first.conn)
	old, ok := l.replace(px)
	if old != nil {
		old.hangUp()
	}
	if !ok {
		px.hangUp()
		return nil, errClosed
	}
	return px, nil
}

// replace makes conn, which carries no session yet, the current connection unless the link is
// closed. It returns the previous one, or nil if there was none.
func (l *Link) replace(conn *proxy) (old *proxy, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old = l.conn
	if l.closed {
		return old, false
	}
	l.conn = conn
	if l.carried.Load() != nil {
		l.carried.Store(nil)
		l.broadcast()
	}
	return old, true
}
