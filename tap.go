package zklock

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// Operations by their numbers on the wire.
const (
	opError           = -1
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opGetACL          = 6
	opSetACL          = 7
	opGetChildren     = 8
	opSync            = 9
	opPing            = 11
	opGetChildren2    = 12
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opCreateContainer = 19
	opCreateTTL       = 21
	opAuth            = 100
	opSetWatches      = 101
	opSASL            = 102
)

const (
	xidEvent      = -1
	xidPing       = -2
	codeExpired   = -112
	codeThrottled = -127
)

// tap is a connection that reads along. What passes is changed in two places only: the
// request for a session that is over asks for a new one, and a server that hangs up on
// the client library's list of watches is not sent it.
type tap struct {
	net.Conn
	link *link
	in   *frames

	mu      sync.Mutex // guards what follows: the library sends and receives in two goroutines
	ended   bool
	shaking bool                  // the connection request has not been answered
	asked   instant               // when the connection request was sent
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

// Write takes one request: the client library writes each in one piece. It never fails: a
// broken connection shows in Read, where the client library survives it. A failed write
// while it re-sends credentials stops it for ever, and elsewhere reaches callers as an
// error that tells nothing about the outcome.
func (t *tap) Write(p []byte) (int, error) {
	if _, err := t.Conn.Write(t.request(p)); err != nil {
		t.Conn.Close()
	}
	return len(p), nil
}

// Read returns bytes of frames that were looked at.
func (t *tap) Read(p []byte) (int, error) {
	if len(t.in.rest) == 0 {
		if err := t.receive(); err != nil {
			t.gone(err)
			return 0, err
		}
	}
	n := copy(p, t.in.rest)
	t.in.rest = t.in.rest[n:]
	return n, nil
}

// receive takes the next frame.
func (t *tap) receive() error {
	t.mu.Lock()
	shaking, limit := t.shaking, maxFrame
	t.mu.Unlock()
	if shaking {
		limit = maxGreeting
	}
	frame, err := t.in.next(limit)
	switch {
	case err != nil:
	case shaking:
		err = t.welcome(frame)
	default:
		err = t.reply(frame)
	}
	if err != nil {
		t.in.rest = nil
		return err
	}
	t.holdBack()
	return nil
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
	t.rearmedNow()
}

// rearmedNow must be called with mu held.
func (t *tap) rearmedNow() {
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

// gone notes that the connection has ended.
func (t *tap) gone(err error) {
	t.mu.Lock()
	was := t.ended
	t.ended = true
	refused, unarmed := t.shaking && !t.asked.mono.IsZero(), t.awaits(opSetWatches)
	t.mu.Unlock()
	if !was {
		t.link.lost(t, err, refused, unarmed)
	}
}

// awaits reports whether an operation of that kind has no answer. It must be called with mu held.
func (t *tap) awaits(op int32) bool {
	for _, r := range t.waiting {
		if r.op == op {
			return true
		}
	}
	return false
}

// isVerdict reports whether an answer's code is what a quorum has agreed on, success or a refusal.
func isVerdict(code int32) bool {
	switch code {
	case 0, -101, -103, -108, -110, -111: // NoNode, BadVersion, NoChildrenForEphemerals, NodeExists, NotEmpty
		return true
	}
	return false
}

// evidenceOf returns what an answer with that code proves; false if nothing at all.
func evidenceOf(op, code int32) (evidence, bool) {
	switch op {
	case opAuth, opSASL:
		return 0, false // a server answers these by itself, and notes no touch
	case opSync:
		if code == 0 {
			return ofLeader, true
		}
	case opCreate, opDelete, opSetData, opSetACL, opMulti, opCreate2, opCreateContainer, opCreateTTL:
		if isVerdict(code) {
			return ofQuorum, true
		}
	}
	return ofServer, code != codeThrottled
}

// request takes a frame on its way to the server and returns what to send.
func (t *tap) request(p []byte) []byte {
	now := t.link.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked.mono.IsZero() {
		t.asked = now
		return t.link.greeting(p)
	}
	if len(p) < 12 {
		return p
	}
	xid, op := int32(binary.BigEndian.Uint32(p[4:])), int32(binary.BigEndian.Uint32(p[8:]))
	if op == opPing {
		t.pings = append(t.pings, now)
		return p
	}
	t.waiting[xid] = sentRequest{now, op}
	if op == opSetWatches {
		t.rearmedNow()
		if t.link.isDeaf() {
			return lookAtRoot(xid)
		}
	}
	return p
}

// lookAtRoot is a request for what every server has: exists "/".
func lookAtRoot(xid int32) []byte {
	p := make([]byte, 18)
	binary.BigEndian.PutUint32(p, 14)
	binary.BigEndian.PutUint32(p[4:], uint32(xid))
	binary.BigEndian.PutUint32(p[8:], opExists)
	binary.BigEndian.PutUint32(p[12:], 1)
	p[16] = '/'
	return p
}

// newSession returns a connection request, behind its length, without what it says of a
// session: that one is over, and an ensemble that was restored since refuses everybody
// who has seen a later transaction than it has.
func newSessionRequest(p []byte) []byte {
	p = slices.Clone(p)
	clear(p[8:16])  // the last transaction seen
	clear(p[20:28]) // the session
	clear(p[32:])   // its password
	return p
}

// sessionOf returns the session that a connection request asks for.
func sessionOf(p []byte) (id int64, ok bool) {
	if len(p) < 32 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(p[20:])), true
}

// reply takes a frame on its way from the server. An error ends the connection.
func (t *tap) reply(frame []byte) error {
	if len(frame) < 16 {
		return errMalformed
	}
	xid, code, body := int32(binary.BigEndian.Uint32(frame)), int32(binary.BigEndian.Uint32(frame[12:])), frame[16:]
	if xid == xidEvent {
		t.mu.Lock()
		t.early = true
		t.mu.Unlock()
		return checkEvent(body)
	}
	t.mu.Lock()
	s := t.session
	asked, ok := t.take(xid)
	// What answers a credential comes before everything else on a connection, as the credential did.
	t.early = t.early || xid != xidPing && asked.op != opAuth
	stuck := xid == xidPing && s != nil && t.stuck(s.lease.term())
	t.mu.Unlock()
	if !ok {
		return errMalformed // nobody has asked for it
	}
	if code == 0 {
		if err := checkReply(asked.op, body); err != nil {
			return err
		}
		code = codeWithin(asked.op, body)
	}
	if asked.op == opSetWatches {
		t.link.armed()
	}
	switch {
	case stuck:
		return errors.New("the server answers pings but not what was asked before")
	case s == nil:
	case code == codeExpired:
		t.link.expire(s)
		return errSessionOver // some servers leave the connection open, and nobody would ask for another session
	default:
		if of, ok := evidenceOf(asked.op, code); ok {
			if of == ofQuorum {
				s.wrote(int64(binary.BigEndian.Uint64(frame[4:])))
			}
			s.lease.note(asked.sent, of)
		}
	}
	return nil
}

// codeWithin returns the code of a transaction that was refused as a whole, because its
// session is over: it stands with the first part, and the reply's own is OK.
func codeWithin(op int32, body []byte) int32 {
	if op != opMulti || len(body) < 13 || int32(binary.BigEndian.Uint32(body)) != opError {
		return 0
	}
	if part := int32(binary.BigEndian.Uint32(body[9:])); part == codeExpired {
		return part
	}
	return 0
}

// take returns what was sent under xid. It must be called with mu held.
func (t *tap) take(xid int32) (sentRequest, bool) {
	if xid == xidPing {
		if len(t.pings) == 0 {
			return sentRequest{}, false
		}
		sent := t.pings[0]
		t.pings = t.pings[1:]
		return sentRequest{sent, opPing}, true
	}
	sent, ok := t.waiting[xid]
	delete(t.waiting, xid)
	return sent, ok
}

// stuck reports whether a request has no answer although later pings have. Servers answer
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
func (t *tap) welcome(frame []byte) error {
	if err := checkGreeting(frame); err != nil {
		return err
	}
	timeout := time.Duration(int32(binary.BigEndian.Uint32(frame[4:]))) * time.Millisecond
	id := int64(binary.BigEndian.Uint64(frame[8:]))
	t.mu.Lock()
	t.shaking = false
	t.mu.Unlock()
	s, err := t.link.welcome(t, id, timeout)
	t.mu.Lock()
	t.session = s
	t.mu.Unlock()
	return err
}
