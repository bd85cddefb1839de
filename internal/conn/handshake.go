// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
)

// SetLogin makes every connection start with a SASL login: nothing else is sent before the server
// has accepted it. It closes an existing connection, so that the next one starts with the login,
// unless that connection has started with the same login. If servers refuse the given number of
// logins before they have accepted one, Attached returns the refusal. undo makes connections start
// with the former login again, or with none if there was none.
func (l *Link) SetLogin(login Login, refusals int) (undo func()) {
	if l.login.has(login) && l.Carried() != nil {
		return func() {}
	}
	former := l.login.set(&login, refusals)
	l.restart()
	return func() {
		l.login.set(former, 0)
		l.restart()
	}
}

// restart closes the connection, so that the next one starts with the login that was set.
func (l *Link) restart() {
	l.mu.Lock()
	conn := l.conn
	if l.carried.Load() != nil {
		l.carried.Store(nil)
		l.broadcast()
	}
	l.mu.Unlock()
	if conn != nil {
		conn.hangUp()
	}
}

// IsDenied reports whether the last server that was reached refused this client.
func (l *Link) IsDenied() bool { return l.login.isDenied() }

// deny records that a server has refused a connection that started with a login: see loginState.deny.
func (l *Link) deny(login *Login, why error) {
	if !l.login.deny(login, why) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastErr = why
	l.broadcast()
}

// manyRefusals is the number of unanswered connection requests after which the link checks whether
// servers serve anyone.
const manyRefusals = 6

// errProbe ends a connection that has shown that servers create sessions: the next connect
// request contains our session again.
var errProbe = errors.New("servers accept sessions again")

// connectRequest returns the request to send in place of the connection request p. It requests a new session in
// three cases:
//
//   - The current session is over.
//   - The session's lease has run out, and servers hang up on its requests but not on requests for
//     other sessions. A server hangs up if it currently serves nobody. After a restore from a
//     backup it would hang up forever, because each request contains the last transaction seen. So
//     after manyRefusals, every second request asks for a new session, which is not kept, until
//     servers create one. If they then hang up on our session as often again, the link requests a new
//     one.
//   - The lease has run out and servers refuse the login. A request for the session would keep it
//     alive, and its nodes would stay in their queues for as long as the login is refused.
func (l *Link) connectRequest(p []byte) []byte {
	id, ok := frames.SessionOf(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probe = false
	if !ok || id == 0 {
		return p
	}
	over := l.session != nil && l.session.ID == id && l.session.IsOver()
	lapsed := l.session == nil || l.session.Lease.Remaining() <= 0
	unknown := l.refusals >= manyRefusals
	newSession := over || lapsed && (unknown && l.serves || l.login.isDenied())
	l.probe = !newSession && lapsed && unknown && l.refusals%2 == 1
	if newSession || l.probe {
		return frames.NewSessionRequest(p)
	}
	if l.session != nil && l.session.ID == id {
		return frames.SawRequest(p, l.session.seen.Load())
	}
	return p
}

// welcome handles the reply to the connection request that was sent on conn at the time sent.
func (l *Link) welcome(conn *proxy, id int64, timeout time.Duration, sent lease.Instant) (*Session, *lease.Run, error) {
	l.mu.Lock()
	current := l.conn == conn
	given := id != 0 && l.session != nil && l.session.ID == id && l.session.IsOver()
	l.refusals, l.serves = 0, current && l.probe && id != 0
	probed := l.serves
	if probed {
		l.fails = 0 // our session may not have much time left
	}
	l.mu.Unlock()
	switch {
	case !current:
		return nil, nil, net.ErrClosed
	case probed:
		return nil, nil, errProbe
	case given: // we have given this session up: the next request asks for another one
		return nil, nil, ErrSessionOver
	}
	s, run := l.establish(id, timeout, conn.server.dialed, sent)
	if s != nil {
		for _, fn := range l.whenCarried {
			fn()
		}
	}
	return s, run, nil
}

// establish handles the reply to a connection request that was sent at the time sent, to a server that was dialed within dialed. An id of
// zero means that the session has expired.
func (l *Link) establish(id int64, timeout, dialed time.Duration, sent lease.Instant) (*Session, *lease.Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	same := l.session != nil && l.session.ID == id && !l.session.IsOver()
	if !same {
		// A different id also ends the session: some servers do not restore sessions, and the
		// client library does not compare ids.
		l.endSession(id == 0)
	}
	if id == 0 {
		l.carried.Store(nil)
		l.broadcast()
		return nil, nil
	}
	l.counts = longest(l.ticks)
	var run *lease.Run
	if same {
		l.session.Lease.SetTick(l.counts)
		run = l.session.Lease.TakenBack(sent, timeout, dialed)
	} else {
		former := l.session
		l.session = NewSession(id, lease.New(l.Now, timeout, l.counts))
		if former != nil {
			l.session.Lease.Follow(former.Lease)
		}
		run = l.session.Lease.Created(sent, dialed)
	}
	l.carried.Store(l.session)
	l.since = time.Now()
	l.broadcast()
	if same {
		l.session.Reattach()
	}
	return l.session, run
}

// expire ends s after a server has reported that it has expired.
func (l *Link) expire(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == s && !s.IsOver() {
		l.endSession(true)
		l.carried.Store(nil)
		l.broadcast()
	}
}

// closes ends the session that conn carries, because the client library is about to close it on the
// server.
func (l *Link) closes(conn *proxy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == conn && l.carried.Load() != nil {
		l.endSession(false)
		l.carried.Store(nil)
		l.broadcast()
	}
}

// steady is how long a connection must have lasted for the next dial to need no pause.
const steady = time.Second

// lost records the end of a connection. refused means that the server had not replied to its
// connection request.
func (l *Link) lost(conn *proxy, why error, refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != conn {
		return
	}
	if refused && errors.Is(why, io.EOF) {
		why = errNoSession(why)
	}
	if why != nil && why != errProbe { // which is no failure
		l.lastErr = why
	}
	if refused {
		l.refusals++
	}
	if s := l.carried.Load(); s != nil {
		s.disconnected()
		l.carried.Store(nil)
		if time.Since(l.since) >= steady {
			l.fails = 0
		}
		l.broadcast()
	}
}
