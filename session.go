package zklock

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/plain"
)

var errSessionOver = errors.New("session is over")

// session is one ZooKeeper session as this client sees it: an epoch. What was
// obtained under it dies with it and is never revived by a reconnect.
type session struct {
	id      int64
	lease   *lease
	watches watchTable

	newest  atomic.Int64  // the largest zxid that has come with the answer to a write
	over    chan struct{} // closed when the session is over for us
	expired bool          // guarded by over being closed: the server said so, all its nodes are gone

	mu    sync.Mutex
	again chan struct{} // guarded by mu; closed and replaced at every re-attach
}

func newSession(id int64, l *lease) *session {
	return &session{
		id:      id,
		lease:   l,
		watches: watchTable{live: map[string]*nodeWatch{}},
		over:    make(chan struct{}),
		again:   make(chan struct{}),
	}
}

// end must be called once, by the link that owns the session.
func (s *session) end(expired bool) {
	s.expired = expired
	close(s.over)
}

func (s *session) isOver() bool { return isClosed(s.over) }

// wrote notes the zxid that has come with the answer to a write.
func (s *session) wrote(zxid int64) {
	for {
		newest := s.newest.Load()
		if zxid <= newest || s.newest.CompareAndSwap(newest, zxid) {
			return
		}
	}
}

// epoch returns the epoch of the leader that has answered the newest write; zero if none is known.
func (s *session) epoch() int32 { return int32(s.newest.Load() >> 32) }

// untilProven waits until the heartbeats have proven that the session lives.
func (s *session) untilProven(ctx context.Context) error {
	var p pace
	for !s.lease.isProven() {
		if err := p.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// reattached returns a channel that is closed at the next re-attach.
func (s *session) reattached() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.again
}

func (s *session) announceReattach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.again)
	s.again = make(chan struct{})
}

// link knows which session the client library's connection carries. It learns it from
// the wire, between the library and the server, because the library tells it late (its
// event channel drops), not at all (a session replaced by another), or hides it (the
// negotiated timeout, when a request was sent). A connection reply passes here before
// any request of that session can be sent, so a request that began and ended under one
// session was carried out by it.
type link struct {
	clock atomic.Pointer[func() instant]
	bare  func() int64 // asks an unhooked connection for its session id; nil with a hook

	mu        sync.Mutex // guards what follows
	tick      time.Duration
	handshake time.Duration
	conn      *tap
	session   *session  // the newest; nil before the first; may be over
	up        bool      // a connection carries session now
	since     time.Time // when it began to
	fails     int       // dials in a row that led to no connection that lasted
	refusals  int       // connection requests in a row that a server hung up on
	unarmed   int       // connections in a row that ended instead of taking watches
	trouble   error     // the last one, for error texts
	closed    bool
	changed   chan struct{} // closed and replaced whenever session, up or closed change
	closing   chan struct{} // closed when closed becomes true
}

func newLink() *link {
	l := &link{
		handshake: 3 * time.Second,
		changed:   make(chan struct{}),
		closing:   make(chan struct{}),
	}
	now := clockFrom(nil)
	l.clock.Store(&now)
	return l
}

func (l *link) now() instant { return (*l.clock.Load())() }

// setUp gives the link, which may carry a session already, what a client knows.
func (l *link) setUp(now func() instant, tick time.Duration) {
	l.clock.Store(&now)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick = tick
	if l.session != nil {
		l.session.lease.setTick(tick)
	}
}

// broadcast must be called with mu held.
func (l *link) broadcast() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// attached waits until the connection carries a session and returns it.
func (l *link) attached(ctx context.Context) (*session, error) {
	for {
		s, changed := l.state()
		if s != nil {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// state returns the session that the connection carries, nil for none, and what tells of a change.
func (l *link) state() (*session, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up {
		return l.session, l.changed
	}
	return nil, l.changed
}

// awaitLoss waits until the connection that carried s is lost, or ctx ends: then it is
// false. changed and again are what state and reattached had returned before.
func (l *link) awaitLoss(ctx context.Context, s *session, changed, again <-chan struct{}) bool {
	for {
		select {
		case <-changed:
		case <-again:
			return true
		case <-ctx.Done():
			return false
		}
		var now *session
		if now, changed = l.state(); now != s {
			return true
		}
	}
}

// latest returns the newest session, which may be over; nil before the first.
func (l *link) latest() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// carries reports whether s is still the client's session, connected or not.
func (l *link) carries(s *session) bool {
	if l.bare != nil && l.bare() != s.id {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session == s && !s.isOver()
}

// lastTrouble is for error texts: what servers and dialers say of it is escaped. A
// certificate that nobody trusts can have any name.
func (l *link) lastTrouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trouble == nil {
		return nil
	}
	return shownError{l.trouble}
}

// shownError is an error whose text can be printed.
type shownError struct{ error }

func (e shownError) Error() string { return plain.Short(e.error.Error(), 1000) }
func (e shownError) Unwrap() error { return e.error }

// welcome takes the answer to t's connection request.
func (l *link) welcome(t *tap, id int64, timeout time.Duration) (*session, error) {
	l.mu.Lock()
	current := l.conn == t
	given := id != 0 && l.session != nil && l.session.id == id && l.session.isOver()
	l.refusals = 0
	l.mu.Unlock()
	switch {
	case !current:
		return nil, net.ErrClosed
	case given: // a session that we have given up: the next request asks for another
		return nil, errSessionOver
	}
	return l.establish(id, timeout, t.asked), nil
}

// manyRefusals is after how many connection requests without an answer another session is asked for.
const manyRefusals = 6

// greeting returns what to send for the connection request p. It asks for a new session
// where the present one is over, and now and then where its lease has run out and servers
// hang up on its requests, each of which says which transaction it has seen last: so do
// servers that serve nobody for the moment, and those that were restored from a backup,
// which would go on to do so for ever.
func (l *link) greeting(p []byte) []byte {
	id, ok := sessionOf(p)
	if !ok || id == 0 {
		return p
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	over := l.session != nil && l.session.id == id && l.session.isOver()
	lapsed := l.session == nil || l.session.lease.remaining() <= 0
	if over || lapsed && l.refusals >= manyRefusals && l.refusals%2 == 1 {
		return newSessionRequest(p)
	}
	return p
}

// steady is how long a connection must have lasted for the next dial to need no pause.
const steady = time.Second

// lost notes the end of a connection: before a server has answered its request, or before it has taken its watches.
func (l *link) lost(t *tap, why error, refused, unarmed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != t {
		return
	}
	if why != nil {
		l.trouble = why
	}
	if refused {
		l.refusals++
	}
	if unarmed {
		l.unarmed++
	}
	if l.up {
		l.up = false
		if time.Since(l.since) >= steady {
			l.fails = 0
		}
		l.broadcast()
	}
}

// isDeaf reports whether servers hang up on lists of watches: some know no such request.
func (l *link) isDeaf() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unarmed >= 2
}

// armed notes that a server has taken a list of watches.
func (l *link) armed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unarmed < 2 {
		l.unarmed = 0
	}
}

// establish takes the answer to a connection request sent then. Zero is no session: it has expired.
func (l *link) establish(id int64, timeout time.Duration, sent instant) *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	same := l.session != nil && l.session.id == id && !l.session.isOver()
	if !same {
		// Another id without an expiry is the end of the session as well: some
		// servers do not restore sessions, and the client library does not compare.
		l.endSession(id == 0)
	}
	if id == 0 {
		l.up = false
		l.broadcast()
		return nil
	}
	if !same {
		l.session = newSession(id, newLease(l.now, timeout, l.tick))
	}
	switch seen := !sent.mono.IsZero(); {
	case seen && same:
		l.session.lease.attached(sent, timeout)
	case seen:
		l.session.lease.begun(sent)
	}
	l.up, l.since = true, time.Now()
	l.broadcast()
	if same {
		l.session.announceReattach()
	}
	return l.session
}

// expire ends s, which a server has called expired.
func (l *link) expire(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == s && !s.isOver() {
		l.endSession(true)
		l.up = false
		l.broadcast()
	}
}

// moveOn ends a connection on which the lease of s, which has run out, is not proven any
// more: where answers are slow, or the session is hardly longer than the servers' tick, the
// steps take too long to begin again. To take the session back on another connection is a
// touch that is proven soonest.
func (l *link) moveOn(s *session) {
	l.mu.Lock()
	conn := l.conn
	stale := conn != nil && l.up && l.session == s && time.Since(l.since) > max(steady, s.lease.term())
	l.mu.Unlock()
	if stale && s.lease.remaining() <= 0 {
		conn.Conn.Close()
	}
}

// endSession must be called with mu held.
func (l *link) endSession(expired bool) {
	if l.session != nil && !l.session.isOver() {
		l.session.end(expired)
	}
}

func (l *link) disconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up {
		l.up = false
		l.broadcast()
	}
}

func (l *link) note(trouble error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = trouble
}

// close ends the session and refuses every further connection: a closed zk.Conn would
// otherwise come back and send what was still queued.
func (l *link) close() {
	l.mu.Lock()
	if !l.closed {
		l.closed, l.up = true, false
		l.endSession(false)
		close(l.closing)
		l.broadcast()
	}
	conn := l.conn
	l.mu.Unlock()
	if conn != nil {
		conn.Conn.Close()
	}
}

func (l *link) isClosed() bool { return isClosed(l.closing) }

// dialer wraps dial for the client library.
func (l *link) dialer(dial zk.Dialer) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		if err := l.pause(); err != nil {
			return nil, err
		}
		conn, err := dial(network, address, timeout)
		if err != nil {
			l.note(err)
			return nil, err
		}
		return l.adopt(conn)
	}
}

// pause spaces out the dials that lead to no session: the client library does so only
// where no server can be reached, and else would call as fast as servers refuse.
func (l *link) pause() error {
	l.mu.Lock()
	fails := l.fails
	l.fails++
	l.mu.Unlock()
	if fails > 0 {
		d := min(10*time.Millisecond<<min(fails, 7), time.Second)
		timer := time.NewTimer(d/2 + rand.N(d/2))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.closing:
		}
	}
	if l.isClosed() {
		return ErrClosed
	}
	return nil
}

// adopt makes conn the connection. Its predecessor is closed: after an expiry the client library leaves it open.
func (l *link) adopt(conn net.Conn) (net.Conn, error) {
	t := &tap{Conn: conn, link: l, in: newFrames(conn), waiting: map[int32]sentRequest{}, shaking: true}
	l.mu.Lock()
	old, closed, handshake := l.conn, l.closed, l.handshake
	if !closed {
		l.conn = t
	}
	l.mu.Unlock()
	if old != nil {
		old.Conn.Close()
		t.rearmed = make(chan struct{})
	}
	if closed {
		conn.Close()
		return nil, ErrClosed
	}
	conn.SetReadDeadline(time.Now().Add(handshake))
	return t, nil
}

// hosts lets a closed connection end: the client library looks whether it was closed
// only where its provider says that a round of servers is over.
type hosts struct {
	zk.HostProvider
	link *link
}

func (h hosts) Next() (string, bool) {
	server, again := h.HostProvider.Next()
	return server, again || h.link.isClosed()
}

// rotation goes through the servers by name, which the dialer resolves each time:
// addresses change, and TLS needs the name. It never ends a round: the client library
// would then wait a second, which a short session does not survive, and our dialer
// knows better when to wait.
type rotation struct {
	servers []string
	last    int
}

func (r *rotation) Init(servers []string) error {
	r.servers = slices.Clone(servers)
	rand.Shuffle(len(servers), func(i, j int) { r.servers[i], r.servers[j] = r.servers[j], r.servers[i] })
	return nil
}

func (r *rotation) Len() int   { return len(r.servers) }
func (r *rotation) Connected() {}

func (r *rotation) Next() (string, bool) {
	r.last = (r.last + 1) % len(r.servers)
	return r.servers[r.last], false
}
