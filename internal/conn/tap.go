package conn

import (
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/digestmd5"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
)

// tap is a connection that reads along. It changes what passes in three places only: a request
// for a session that is over asks for a new one instead; a server that hangs up on the
// client library's list of watches is not sent that list; and a login comes before all else.
type tap struct {
	*line
	link  *Link
	in    *frames.Reader
	until time.Time // how long the server may take for the handshake, the login included

	accepted bool // the server has answered a request; of the reading goroutine alone

	mu      sync.Mutex // guards what follows: the library sends and receives in two goroutines
	ended   bool
	shaking bool                  // the connection request has not been answered
	asked   lease.Instant         // when the connection request was sent
	session *Session              // the one it carries, nil before the answer
	run     *lease.Run            // what this connection tells of it
	rearmed chan struct{}         // closed when the library has re-sent its watches; nil: it has none
	early   bool                  // a reply has come in that must wait for that, or the end
	waiting map[int32]sentRequest // by xid
	pings   []lease.Instant       // their send times: all pings have one xid, and come back in order
	heard   time.Time             // when the last frame has come
}

type sentRequest struct {
	sent lease.Instant
	op   int32
}

func newTap(l *Link, on *line) *tap {
	t := &tap{line: on, link: l, in: frames.NewReader(on), waiting: map[int32]sentRequest{}, shaking: true}
	on.unanswered = t.unanswered
	return t
}

// Write sends one request: the client library writes each in one piece. It never fails: a
// broken connection shows in Read, where the client library survives it. If a write failed
// while the library re-sends credentials, it would stop for ever; elsewhere the error would
// reach callers and tell nothing about the outcome.
func (t *tap) Write(p []byte) (int, error) {
	if _, err := t.line.Write(t.request(p)); err != nil {
		t.line.Close()
	}
	return len(p), nil
}

// Read reads bytes of frames that were checked.
func (t *tap) Read(p []byte) (int, error) {
	if t.in.IsEmpty() {
		if err := t.receive(); err != nil {
			t.gone(err)
			t.holdBack()
			return 0, err
		}
	}
	return t.in.Copy(p), nil
}

// receive reads the next frame and checks it.
func (t *tap) receive() error {
	t.mu.Lock()
	shaking, limit := t.shaking, frames.MaxFrame
	t.mu.Unlock()
	if shaking {
		limit = frames.MaxGreeting
	}
	frame, err := t.in.Next(limit)
	switch {
	case err != nil:
	case shaking:
		err = t.welcome(frame)
	default:
		err = t.reply(frame)
	}
	if err != nil {
		t.in.Drop()
		return err
	}
	t.holdBack()
	return nil
}

// rearmTime is how long a reply waits for the library to re-send its watches, if it has any.
const rearmTime = 20 * time.Millisecond

// holdBack keeps replies from the client library until it has re-sent its watches. With
// these the library names the newest transaction that it has seen, which it reads without
// synchronisation: after a reply that came in between it would ask only for later changes.
// The end of a connection is kept back as well: the list of a connection that has ended
// would be sent on the next one, and taken for that one's.
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

// Close ends the connection.
func (t *tap) Close() error {
	t.gone(nil)
	return t.line.Close()
}

// SetReadDeadline does nothing during the handshake, which keeps its own deadline: the client library sets none for
// the answer's body and a very long one for its length. So one dead server would outlast the session while other
// servers could take it.
func (t *tap) SetReadDeadline(d time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shaking {
		return nil
	}
	return t.line.SetReadDeadline(d)
}

// gone notes that the connection has ended.
func (t *tap) gone(err error) {
	t.mu.Lock()
	was := t.ended
	t.ended, t.early = true, t.early || !t.shaking
	refused, unarmed := t.shaking && !t.asked.Mono.IsZero(), t.awaits(frames.OpSetWatches)
	t.mu.Unlock()
	if !was {
		t.link.lost(t.line, err, refused, unarmed)
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

// request takes a frame on its way to the server and returns what to send.
func (t *tap) request(p []byte) []byte {
	now := t.link.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked.Mono.IsZero() {
		t.asked = now
		return t.link.greeting(p)
	}
	xid, op, ok := frames.Request(p)
	if !ok {
		return p
	}
	if op == frames.OpPing {
		t.pings = append(t.pings, now)
		return p
	}
	t.waiting[xid] = sentRequest{now, op}
	if op == frames.OpSetWatches {
		t.rearmedNow()
		if t.link.isDeaf() {
			return frames.ExistsRoot(xid)
		}
	}
	return p
}

// reply takes a frame on its way from the server. An error ends the connection.
func (t *tap) reply(frame []byte) error {
	r, err := frames.ParseReply(frame)
	if err != nil {
		return err
	}
	if r.Xid == frames.XidEvent {
		path, err := frames.ParseEvent(r.Body)
		if err == nil {
			t.link.tell(t.happened(), path)
		}
		return err
	}
	asked, s, stuck, ok := t.answered(r.Xid)
	switch {
	case !ok:
		return frames.ErrMalformed // no request has this number
	case r.Code == frames.CodeRequiresSASL:
		t.link.deny(errRefused)
		return errRefused
	case !t.accepted:
		t.accepted = true
		t.link.gate.serve()
	}
	if r.Code == frames.CodeOK {
		if err := frames.CheckReply(asked.op, r.Body); err != nil {
			return err
		}
		r.Code = frames.CodeWithin(asked.op, r.Body)
	}
	if asked.op == frames.OpSetWatches {
		t.link.armed()
	}
	switch {
	case stuck:
		return errors.New("the server answers pings but not what was asked before")
	case s == nil:
		return nil
	}
	return t.judge(s, asked, r)
}

// happened notes that an event has come, and returns the session that the connection carries.
func (t *tap) happened() *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.early, t.heard = true, time.Now()
	return t.session
}

// answered returns the request that a reply with that number answers, and the session that
// the connection carries. stuck reports whether another request will never be answered.
func (t *tap) answered(xid int32) (asked sentRequest, s *Session, stuck, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	asked, ok = t.take(xid)
	t.heard = time.Now()
	// The answer to a credential comes before all others on a connection, as the credential did.
	t.early = t.early || xid != frames.XidPing && asked.op != frames.OpAuth
	stuck = xid == frames.XidPing && t.session != nil && t.stuck(t.session.Lease.Term())
	return asked, t.session, stuck, ok
}

// judge takes the answer to a request as evidence for s, or as the end of s.
func (t *tap) judge(s *Session, asked sentRequest, r frames.Reply) error {
	if r.Code == frames.CodeExpired {
		t.link.expire(s)
		return ErrSessionOver // some servers leave the connection open, and nobody would ask for another session
	}
	of, ok := evidenceOf(asked.op, r.Code)
	if !ok {
		return nil
	}
	if of == lease.OfQuorum {
		s.wrote(r.Zxid)
	}
	t.run.Witness(asked.sent, of)
	return nil
}

// take returns what was sent under xid. It must be called with mu held.
func (t *tap) take(xid int32) (sentRequest, bool) {
	if xid == frames.XidPing {
		if len(t.pings) == 0 {
			return sentRequest{}, false
		}
		sent := t.pings[0]
		t.pings = t.pings[1:]
		return sentRequest{sent, frames.OpPing}, true
	}
	sent, ok := t.waiting[xid]
	delete(t.waiting, xid)
	return sent, ok
}

// stuck reports whether a request has no answer although later pings have. Servers answer
// in order: it will never come, and the client library would wait for ever. It must be
// called with mu held.
func (t *tap) stuck(term time.Duration) bool {
	now := t.link.Now()
	for _, r := range t.waiting {
		if now.Mono.Sub(r.sent.Mono) > term*2/3 {
			return true
		}
	}
	return false
}

// unanswered returns since when nothing has come although something was asked.
func (t *tap) unanswered() (since time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pings) > 0 {
		since, ok = t.pings[0].Mono, true
	}
	for _, r := range t.waiting {
		if !ok || r.sent.Mono.Before(since) {
			since, ok = r.sent.Mono, true
		}
	}
	if ok && t.heard.After(since) {
		since = t.heard
	}
	return since, ok
}

// welcome takes the answer to the connection request.
func (t *tap) welcome(frame []byte) error {
	id, timeout, err := frames.ParseGreeting(frame)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.shaking = false
	t.mu.Unlock()
	if login := t.link.gate.key(); login != nil && id != 0 {
		if err := t.logIn(*login); err != nil {
			return err
		}
	}
	s, run, err := t.link.welcome(t.line, id, timeout, t.asked)
	t.mu.Lock()
	t.session, t.run = s, run
	t.mu.Unlock()
	return err
}

// logIn logs in, while the client library waits for the answer to its connection request,
// which is the present frame, and sends nothing.
func (t *tap) logIn(login digestmd5.Credential) error {
	greeting := t.in.Keep()
	t.line.SetWriteDeadline(t.until)
	err := logIn(t.line, t.in, login)
	switch {
	case errors.Is(err, zk.ErrAuthFailed):
		t.link.deny(err)
		return err
	case err != nil:
		return err
	}
	t.line.SetWriteDeadline(time.Time{})
	t.link.gate.admit()
	t.in.Restore(greeting)
	return nil
}
