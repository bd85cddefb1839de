package zklock

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

var errSessionOver = errors.New("session is over")

// session is one ZooKeeper session as this client sees it: an epoch. What was
// obtained under it dies with it and is never revived by a reconnect.
type session struct {
	id      int64
	lease   *lease
	watches watchTable

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
	now  func() instant
	tick time.Duration
	bare func() int64 // asks an unhooked connection for its session id; nil with a hook

	mu        sync.Mutex // guards what follows
	handshake time.Duration
	conn      *tap
	session   *session // the newest; nil before the first; may be over
	up        bool     // a connection carries session now
	fails     int      // dials in a row that led to no session
	trouble   error    // the last one, for error texts
	closed    bool
	changed   chan struct{} // closed and replaced whenever session, up or closed change
	closing   chan struct{} // closed when closed becomes true
}

func newLink() *link {
	return &link{
		now:       clockFrom(nil),
		handshake: 3 * time.Second,
		changed:   make(chan struct{}),
		closing:   make(chan struct{}),
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

// carries says whether s is still the client's session, connected or not.
func (l *link) carries(s *session) bool {
	if l.bare != nil && l.bare() != s.id {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session == s && !s.isOver()
}

func (l *link) lastTrouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trouble
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
	l.up, l.fails = true, 0
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
	t := &tap{Conn: conn, link: l, waiting: map[int32]sentRequest{}, shaking: true}
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

// tap is a connection that reads along. It never changes what passes.
type tap struct {
	net.Conn
	link *link

	out, in frames
	asked   instant // when the connection request was sent

	mu      sync.Mutex            // guards what follows: the library sends and receives in two goroutines
	shaking bool                  // the connection request has not been answered
	session *session              // the one it carries, nil before the answer
	rearmed chan struct{}         // closed when the library has re-sent its watches; nil: it has none
	early   bool                  // a reply has come in that must wait for that
	waiting map[int32]sentRequest // by xid
	pings   []instant             // their send times: all pings have one xid, and come back in order
}

type sentRequest struct {
	sent instant
	op   int32
}

// Write never fails: a broken connection shows in Read, where the client library
// survives it. A failed write while it re-sends credentials stops it for ever, and
// elsewhere reaches callers as an error that says nothing about the outcome.
func (t *tap) Write(p []byte) (int, error) {
	t.out.feed(p, 12, t.request)
	if _, err := t.Conn.Write(p); err != nil {
		t.Conn.Close()
	}
	return len(p), nil
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.in.feed(p[:n], replyHead, t.reply)
	t.holdBack()
	if err != nil {
		t.gone(err)
	}
	return n, err
}

// rearmTime is how long a reply waits for the library to re-send its watches, if it has any.
const rearmTime = 20 * time.Millisecond

// holdBack keeps replies from the client library until it has re-sent its watches. It
// notes there the newest transaction it knows of, without synchronisation: a reply that
// came in between would make it ask only for what changed after that.
func (t *tap) holdBack() {
	t.mu.Lock()
	rearmed, early := t.rearmed, t.early
	t.mu.Unlock()
	if rearmed == nil || !early {
		return
	}
	timer := time.NewTimer(rearmTime)
	defer timer.Stop()
	select {
	case <-rearmed:
	case <-timer.C:
		t.rearm()
	case <-t.link.closing:
	}
}

// rearm lets replies pass.
func (t *tap) rearm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rearmed != nil {
		close(t.rearmed)
		t.rearmed = nil
	}
}

func (t *tap) Close() error {
	t.gone(nil)
	return t.Conn.Close()
}

// SetReadDeadline leaves the deadline of the handshake in place: the client library
// has none for the answer's body and a very long one for its length, so that one dead
// server would outlive the session while others wait.
func (t *tap) SetReadDeadline(d time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shaking {
		return nil
	}
	return t.Conn.SetReadDeadline(d)
}

func (t *tap) gone(err error) {
	l := t.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != t {
		return
	}
	if err != nil {
		l.trouble = err
	}
	if l.up {
		l.up = false
		l.broadcast()
	}
}

// Operations by their numbers on the wire, and what the tap does with them.
const (
	opError      = -1
	opPing       = 11
	opMulti      = 14
	opAuth       = 100
	opSetWatches = 101
	xidPing      = -2
	codeExpired  = -112
)

// isQuorumOp says whether a quorum must agree before the operation is answered.
func isQuorumOp(op int32) bool {
	switch op {
	case 1, 2, 5, 7, opMulti, 15, 19, 21: // create, delete, set, setACL, multi, create2, createContainer, createTTL
		return true
	}
	return false
}

// replyHead is how much of a reply is looked at: the length, xid, zxid and code, and of a transaction's results the first
// type, end mark and code.
const replyHead = 20 + 9

// codeOf is a reply's code. That of a transaction which was refused as a whole, because its session is over, stands
// with its first part: the reply's own says OK.
func codeOf(head []byte, op int32) int32 {
	code := int32(binary.BigEndian.Uint32(head[16:]))
	if op == opMulti && code == 0 && len(head) == replyHead && int32(binary.BigEndian.Uint32(head[20:])) == opError {
		if part := int32(binary.BigEndian.Uint32(head[25:])); part == codeExpired {
			return part
		}
	}
	return code
}

// isVerdict says whether an answer's code is what a quorum has agreed on, success or a refusal.
func isVerdict(code int32) bool {
	switch code {
	case 0, -101, -103, -108, -110, -111: // NoNode, BadVersion, NoChildrenForEphemerals, NodeExists, NotEmpty
		return true
	}
	return false
}

// request sees the head of each frame on its way to the server.
func (t *tap) request(head []byte) {
	now := t.link.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked.mono.IsZero() {
		t.asked = now
		return
	}
	if len(head) < 12 {
		return
	}
	xid, op := int32(binary.BigEndian.Uint32(head[4:])), int32(binary.BigEndian.Uint32(head[8:]))
	switch op {
	case opPing:
		t.pings = append(t.pings, now)
		return
	case opSetWatches:
		if t.rearmed != nil {
			close(t.rearmed)
			t.rearmed = nil
		}
	}
	t.waiting[xid] = sentRequest{now, op}
}

// reply sees the head of each frame on its way from the server.
func (t *tap) reply(head []byte) {
	if len(head) < 20 {
		return
	}
	t.mu.Lock()
	if t.shaking {
		t.shaking = false
		asked := t.asked
		t.mu.Unlock()
		t.welcome(head, asked)
		return
	}
	s, xid := t.session, int32(binary.BigEndian.Uint32(head[4:]))
	sent, ok := t.take(xid)
	code := codeOf(head, sent.op)
	// What answers a credential comes before everything else on a connection, as the credential did.
	t.early = t.early || xid != xidPing && sent.op != opAuth
	stuck := xid == xidPing && s != nil && t.stuck(s.lease.term())
	t.mu.Unlock()
	switch {
	case stuck:
		t.link.note(errors.New("the server answers pings but not what was asked before"))
		t.Conn.Close()
	case s == nil || !ok:
	case code == codeExpired:
		t.link.expire(s)
	default:
		s.lease.note(sent.sent, isQuorumOp(sent.op) && isVerdict(code))
	}
}

// take returns what was sent under xid. It must be called with mu held.
func (t *tap) take(xid int32) (sentRequest, bool) {
	if xid == xidPing && len(t.pings) > 0 {
		sent := t.pings[0]
		t.pings = t.pings[1:]
		return sentRequest{sent, opPing}, true
	}
	sent, ok := t.waiting[xid]
	delete(t.waiting, xid)
	return sent, ok
}

// stuck says whether a request has no answer although later pings have. Servers answer
// in order: it will never come, and the client library would wait for ever. It must be
// called with mu held.
func (t *tap) stuck(term time.Duration) bool {
	now := t.link.now()
	for _, r := range t.waiting {
		if now.mono.Sub(r.sent.mono) > term*2/3 {
			return true
		}
	}
	return false
}

// welcome takes the answer to the connection request.
func (t *tap) welcome(head []byte, asked instant) {
	timeout := time.Duration(int32(binary.BigEndian.Uint32(head[8:]))) * time.Millisecond
	id := int64(binary.BigEndian.Uint64(head[12:]))
	t.link.mu.Lock()
	current := t.link.conn == t
	t.link.mu.Unlock()
	if !current {
		return
	}
	s := t.link.establish(id, timeout, asked)
	t.mu.Lock()
	t.session = s
	t.mu.Unlock()
}

// frames cuts a stream of length-prefixed frames and shows the head of each.
type frames struct {
	head [replyHead]byte
	n    int // bytes of head so far
	skip int // bytes of the present frame still to come after its head
}

// feed takes the next bytes of the stream and calls each with the first want bytes of
// every frame (the length counts), or with all of a shorter one.
func (f *frames) feed(p []byte, want int, each func(head []byte)) {
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			f.skip -= n
			p = p[n:]
			continue
		}
		need := 4
		if f.n >= 4 {
			need = min(want, f.size())
		}
		n := copy(f.head[f.n:need], p)
		f.n += n
		p = p[n:]
		if f.n >= 4 && f.n >= min(want, f.size()) {
			head := f.head[:f.n]
			f.skip = f.size() - f.n
			f.n = 0
			each(head)
		}
	}
}

// size is the whole frame's, with its length; a negative length is left to the client library.
func (f *frames) size() int {
	return 4 + max(0, int(int32(binary.BigEndian.Uint32(f.head[:4]))))
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
