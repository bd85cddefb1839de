// Package conn sees what passes between the client library and its servers: which session a
// connection carries, and what the answers prove for that session's lease.
//
// It knows nothing of locks. Everything above it sends its requests here, beside those of the client library
// on one connection, and asks here whether an answer counts.
package conn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/internal/digestmd5"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
)

// Link knows which session the client library's connection carries. It learns that from the wire, between the library
// and the server. The library tells some of it late (its event channel drops events), and some not at all (when a
// session was replaced by another). It hides the negotiated timeout, and when a request was sent. The answer to a
// connection request passes here before any request of that session can be sent. So a request that began and ended
// under one session was carried out by that session.
//
// All methods may be called from several goroutines.
type Link struct {
	clock atomic.Pointer[func() lease.Instant]
	gate  gate
	told  atomic.Pointer[[]*listener] // changed with mu held: see Listen
	last  atomic.Int32                // the number of the last request, of any connection

	mu        sync.Mutex // guards what follows
	tick      time.Duration
	handshake time.Duration
	conn      *line
	open      bool      // requests may be sent on conn
	knocked   *line     // the connection that somebody has knocked on: see Ready
	session   *Session  // the newest; nil before the first; may be over
	since     time.Time // when a connection began to carry it
	fails     int       // dials in a row that led to no connection that lasted
	refusals  int       // connection requests in a row that a server hung up on
	probe     bool      // the last one asked for another session to learn whether servers serve anybody
	serves    bool      // they have given one out, and have not taken ours since
	trouble   error     // the last one, for error texts
	closed    bool
	changed   chan struct{} // closed and replaced whenever session, carried or closed change, and when open becomes true
	closing   chan struct{} // closed when closed becomes true

	carried atomic.Pointer[Session] // session while a connection carries it, else nil; changed with mu held
}

// NewLink returns the link of a connection that has yet to be made.
func NewLink() *Link {
	l := &Link{
		handshake: 3 * time.Second,
		changed:   make(chan struct{}),
		closing:   make(chan struct{}),
	}
	now := lease.Clock(nil)
	l.clock.Store(&now)
	return l
}

// Now returns the present moment by the link's clocks.
func (l *Link) Now() lease.Instant { return (*l.clock.Load())() }

type listener struct {
	fn func(s *Session, e frames.Event)
}

// Listen has fn told of each event of a watch until the function that it returns is called. Events come in their
// order, and before any answer that comes later. fn must not wait.
func (l *Link) Listen(fn func(s *Session, e frames.Event)) (stop func()) {
	who := &listener{fn}
	change := func(to func(who []*listener) []*listener) {
		l.mu.Lock()
		defer l.mu.Unlock()
		var all []*listener
		if told := l.told.Load(); told != nil {
			all = slices.Clone(*told)
		}
		all = to(all)
		l.told.Store(&all)
	}
	change(func(all []*listener) []*listener { return append(all, who) })
	return func() {
		change(func(all []*listener) []*listener {
			return slices.DeleteFunc(all, func(other *listener) bool { return other == who })
		})
	}
}

// tell tells the listeners of an event.
func (l *Link) tell(s *Session, e frames.Event) {
	told := l.told.Load()
	if told == nil || s == nil {
		return
	}
	for _, who := range *told {
		who.fn(s, e)
	}
}

// SetUp sets the clocks and the servers' tick. The link may carry a session already.
func (l *Link) SetUp(now func() lease.Instant, tick time.Duration) {
	l.clock.Store(&now)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick = tick
	if l.session != nil {
		l.session.Lease.SetTick(tick)
	}
}

// SetHandshake sets how long a server may take to answer a connection request.
func (l *Link) SetHandshake(most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handshake = most
}

// SetLogin has every connection begin with a proof of login, by SASL: nothing else is sent
// before the server has taken it. A connection that is there already ends, so that the next
// one begins so. If servers refuse that many logins before they have taken one, Attached
// returns the refusal.
func (l *Link) SetLogin(login digestmd5.Credential, refusals int) {
	l.gate.set(login, refusals)
	l.mu.Lock()
	conn := l.conn
	l.open = false
	if l.carried.Load() != nil {
		l.carried.Store(nil)
		l.broadcast()
	}
	l.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
}

// IsDenied reports whether the last server that was reached refused this client.
func (l *Link) IsDenied() bool { return l.gate.isShut() }

// deny notes that a server has refused a login, or a client without one.
func (l *Link) deny(why error) {
	l.gate.deny(why)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = why
	l.broadcast()
}

// number returns the next request's number. It goes on from one connection to the next: a follower that has yet to carry
// out what another took from the same session tells its requests apart by their numbers alone.
func (l *Link) number() int32 {
	for {
		last := l.last.Load()
		next := max(last+1, 1) // behind the largest the row begins again
		if l.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// broadcast must be called with mu held.
func (l *Link) broadcast() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Attached waits until the connection carries a session, and returns it. If ctx ends first,
// Attached returns its cause. It also returns why servers refuse the login (SetLogin).
func (l *Link) Attached(ctx context.Context) (*Session, error) {
	for {
		s, changed := l.State()
		if s != nil {
			return s, nil
		}
		if err := l.gate.verdict(); err != nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// State returns the session that the connection carries, nil for none, and a channel that is
// closed when that changes.
func (l *Link) State() (*Session, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.carried.Load(), l.changed
}

// Carried returns the session that the connection carries, nil for none.
func (l *Link) Carried() *Session { return l.carried.Load() }

// ErrNotSent is the error of a request that was not sent, because no connection was open for it.
var ErrNotSent = errors.New("not sent: no connection to a server")

// Send sends a request under s. Its answer counts if the link carries s when it comes. After an error nothing was
// sent.
func (l *Link) Send(s *Session, r frames.Request, by Asker) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.session != s || s.IsOver():
		return ErrSessionOver
	case !l.open || !l.conn.send(r, by):
		return ErrNotSent
	}
	return nil
}

// Ready waits until requests can be sent under s: the client library has to present its credentials first. It has when
// it sends something else. If it has not, Ready calls knock, once on each connection. Knock must not wait, and have the
// client library send a request.
func (l *Link) Ready(ctx context.Context, s *Session, knock func()) error {
	for {
		l.mu.Lock()
		ready, changed := l.open, l.changed
		unasked := !ready && l.carried.Load() == s && l.knocked != l.conn
		if unasked {
			l.knocked = l.conn
		}
		over := l.session != s || s.IsOver()
		l.mu.Unlock()
		switch {
		case over:
			return ErrSessionOver
		case ready:
			return nil
		case unasked:
			knock()
		}
		select {
		case <-changed:
		case <-s.Over():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// opened notes that requests can be sent on a connection.
func (l *Link) opened(conn *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == conn && l.carried.Load() != nil {
		l.open = true
		l.broadcast()
	}
}

// AwaitLoss waits until the connection that carried s is lost, and returns true. If ctx ends
// first, it returns false. State and Reattached have returned changed and again before.
func (l *Link) AwaitLoss(ctx context.Context, s *Session, changed, again <-chan struct{}) bool {
	for {
		select {
		case <-changed:
		case <-again:
			return true
		case <-ctx.Done():
			return false
		}
		var now *Session
		if now, changed = l.State(); now != s {
			return true
		}
	}
}

// Latest returns the newest session, which may be over, or nil before the first.
func (l *Link) Latest() *Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// Carries reports whether s is still the client's session, connected or not.
func (l *Link) Carries(s *Session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session == s && !s.IsOver()
}

// LastTrouble returns the last error of a dial or a connection, nil for none. Its text is
// escaped for error texts: a certificate that nobody trusts can have any name.
func (l *Link) LastTrouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trouble == nil {
		return nil
	}
	return shownError{l.trouble}
}

// welcome takes the answer to the connection request that was sent on conn at the moment asked.
func (l *Link) welcome(conn *line, id int64, timeout time.Duration, asked lease.Instant) (*Session, *lease.Run, error) {
	l.mu.Lock()
	current := l.conn == conn
	given := id != 0 && l.session != nil && l.session.ID == id && l.session.IsOver()
	l.refusals, l.serves = 0, current && l.probe && id != 0
	probed := l.serves
	if probed {
		l.fails = 0 // our session may not have long
	}
	l.mu.Unlock()
	switch {
	case !current:
		return nil, nil, net.ErrClosed
	case probed:
		return nil, nil, errProbe
	case given: // a session that we have given up: the next request asks for another
		return nil, nil, ErrSessionOver
	}
	s, run := l.establish(id, timeout, asked)
	return s, run, nil
}

// manyRefusals is the number of connection requests without an answer after which the link
// asks whether servers serve anybody.
const manyRefusals = 6

// errProbe ends a connection that has shown that servers give out sessions: the next request asks for ours again.
var errProbe = errors.New("servers serve again")

// greeting returns what to send for the connection request p. It asks for a new session
// where the present one is over. It also does so where the session's lease has
// run out and servers hang up on its requests, but not on others'. A server that serves nobody for the moment
// hangs up, and so does one that was restored from a backup, because each request says which
// transaction was seen last; that one would hang up for ever. So every second request asks for a session that is not
// kept, until servers give one out; if they hang up on ours again as often, it is given up. And it does so where the lease
// has run out and servers refuse the login: to ask for the session would keep it alive, and
// what it has in queues would stand there for as long as the login is refused.
func (l *Link) greeting(p []byte) []byte {
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
	anew := over || lapsed && (unknown && l.serves || l.gate.isShut())
	l.probe = !anew && lapsed && unknown && l.refusals%2 == 1
	if anew || l.probe {
		return frames.NewSessionRequest(p)
	}
	if l.session != nil && l.session.ID == id {
		return frames.SawRequest(p, l.session.seen.Load())
	}
	return p
}

// steady is how long a connection must have lasted for the next dial to need no pause.
const steady = time.Second

// lost notes the end of a connection. It was refused if the server had not answered its
// connection request.
func (l *Link) lost(conn *line, why error, refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != conn {
		return
	}
	if refused && errors.Is(why, io.EOF) {
		why = fmt.Errorf("the server has begun no session, as one does that has no quorum, or too many connections (maxClientCnxns): %w", why)
	}
	if why != nil {
		l.trouble = why
	}
	if refused {
		l.refusals++
	}
	l.open = false
	if l.carried.Load() != nil {
		l.carried.Store(nil)
		if time.Since(l.since) >= steady {
			l.fails = 0
		}
		l.broadcast()
	}
}

// establish takes the answer to a connection request that was sent at the moment sent. An id
// of zero means that the session has expired.
func (l *Link) establish(id int64, timeout time.Duration, sent lease.Instant) (*Session, *lease.Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	same := l.session != nil && l.session.ID == id && !l.session.IsOver()
	if !same {
		// Another id without an expiry is the end of the session as well: some
		// servers do not restore sessions, and the client library does not compare.
		l.endSession(id == 0)
	}
	if id == 0 {
		l.carried.Store(nil)
		l.broadcast()
		return nil, nil
	}
	if !same {
		l.session = newSession(id, lease.New(l.Now, timeout, l.tick))
	}
	var run *lease.Run
	if same {
		run = l.session.Lease.TakenBack(sent, timeout)
	} else {
		run = l.session.Lease.Created(sent)
	}
	l.carried.Store(l.session)
	l.since = time.Now()
	l.broadcast()
	if same {
		l.session.announceReattach()
	}
	return l.session, run
}

// expire ends s after a server has said that it has expired.
func (l *Link) expire(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == s && !s.IsOver() {
		l.endSession(true)
		l.carried.Store(nil)
		l.broadcast()
	}
}

// closes ends the session that conn carries, because the client library is about to ask for its end.
func (l *Link) closes(conn *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == conn && l.carried.Load() != nil {
		l.endSession(false)
		l.carried.Store(nil)
		l.broadcast()
	}
}

// Unanswered returns since when the server that carries s has answered nothing although something
// was asked of it. It reports false if nothing waits for an answer.
func (l *Link) Unanswered(s *Session) (since time.Time, ok bool) {
	l.mu.Lock()
	conn := l.conn
	carried := conn != nil && l.carried.Load() == s
	l.mu.Unlock()
	if !carried {
		return time.Time{}, false
	}
	return conn.unanswered()
}

// Abandon ends the connection that carries s, so that the client library turns to another server.
func (l *Link) Abandon(s *Session) {
	l.mu.Lock()
	conn := l.conn
	carried := conn != nil && l.carried.Load() == s
	l.mu.Unlock()
	if carried {
		conn.Close()
	}
}

// endSession must be called with mu held.
func (l *Link) endSession(expired bool) {
	if l.session != nil && !l.session.IsOver() {
		l.session.end(expired)
	}
}

// MetTrouble keeps an error for LastTrouble.
func (l *Link) MetTrouble(trouble error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = trouble
}

// Close ends the session and refuses every further connection: a closed zk.Conn would
// otherwise come back and send what was still queued.
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
		conn.Close()
	}
}

func (l *Link) isClosed() bool { return isClosed(l.closing) }

// dialled counts a dial, and returns how many before it, in a row, led to no connection that
// lasted.
func (l *Link) dialled() (fails int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fails = l.fails
	l.fails++
	return fails
}

// replace makes conn the connection unless the link is closed. It returns the one before, nil
// for none, and how long a server may take to answer a connection request.
func (l *Link) replace(conn *line) (old *line, handshake time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old = l.conn
	if !l.closed {
		l.conn, l.open = conn, false
	}
	return old, l.handshake, !l.closed
}
