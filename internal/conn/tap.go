package conn

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/digestmd5"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
)

// tap is a connection on which two speak: the client library, and this library beside it. The client library makes
// sessions, keeps them and presents credentials; ours asks for all else (Link.Send). The tap gives every request its number, and each
// answer to the one who has asked. Beside the numbers it changes what passes in three places only: a connection request
// for a session that is over asks for a new one instead, others say what our answers have shown as well; a login comes before all
// else; and events do not pass as long as the client library has set no watch.
type tap struct {
	*line
	link *Link
	in   *frames.Reader

	accepted bool          // the server has answered a request; of the reading goroutine alone, like what follows
	answers  bool          // the present frame, which has begun, is no event
	bound    time.Duration // how long the client library lets the server say nothing; zero: as long as it likes

	mu      sync.Mutex // guards what follows: several goroutines send, another receives
	ended   bool
	shaking bool          // the connection request has not been answered
	asked   lease.Instant // when the connection request was sent
	open    bool          // the client library has presented its credentials: others may send
	hears   bool          // the client library has set a watch: events are for it, too
	session *Session      // the one it carries, nil before the answer
	run     *lease.Run    // what this connection tells of it
	waiting map[int32]sentRequest
	most    int             // of those that waited at once since the map was made
	pings   []lease.Instant // their send times: all pings have one number, and come back in order
	heard   time.Time       // when the last bytes of answers have come
}

// sentRequest is a request without an answer.
type sentRequest struct {
	sent lease.Instant
	op   int32
	by   Asker // nil for the client library
	xid  int32 // the number that the client library has given it
}

func newTap(l *Link, on *line) *tap {
	t := &tap{line: on, link: l, waiting: map[int32]sentRequest{}, shaking: true}
	t.in = frames.NewReader(incoming{t})
	on.unanswered, on.send = t.unanswered, t.send
	return t
}

// Write sends one request of the client library, which writes each in one piece. It never fails: a
// broken connection shows in Read, where the client library survives it. If a write failed
// while the library re-sends credentials, it would stop for ever; elsewhere the error would
// reach callers and tell nothing about the outcome.
func (t *tap) Write(p []byte) (int, error) {
	now := t.link.Now()
	if t.isFirst(now) {
		t.line.Write(t.link.greeting(p))
		return len(p), nil
	}
	if r, ok := frames.Parse(p); ok && r.Op() == frames.OpClose {
		t.link.closes(t.line) // before the server can know: it frees every lock at once
	}
	if t.pass(p, now) {
		t.link.opened(t.line)
	}
	return len(p), nil
}

// isFirst reports whether what is sent now is the connection request.
func (t *tap) isFirst(now lease.Instant) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.asked.Mono.IsZero()
	if first {
		t.asked = now
	}
	return first
}

// pass sends a request of the client library. It reports whether that was the first that is no credential: those
// come before all else, and until then nobody else may send.
func (t *tap) pass(p []byte, now lease.Instant) (opened bool) {
	r, ok := frames.Parse(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended:
		return false
	case !ok:
	case r.Op() == frames.OpPing:
		t.pings = append(t.pings, now)
	default:
		t.hears = t.hears || r.Watches()
		t.enter(r, nil)
	}
	t.out.put(r)
	opened = ok && r.Op() != frames.OpAuth && !t.open
	t.open = t.open || opened
	return opened
}

// send sends a request of ours. It reports false if that is not possible, and nothing was sent.
func (t *tap) send(r frames.Request, by Asker) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || !t.open {
		return false
	}
	t.enter(r, by)
	t.out.put(r)
	return true
}

// enter gives a request its number, and remembers it and when it was sent. It must be called with mu held.
func (t *tap) enter(r frames.Request, by Asker) {
	number := t.link.number()
	t.waiting[number] = sentRequest{t.link.Now(), r.Op(), by, r.Xid()}
	t.most = max(t.most, len(t.waiting))
	r.Number(number)
}

// Read reads bytes of frames that were checked, and are not answers to us.
func (t *tap) Read(p []byte) (int, error) {
	for t.in.IsEmpty() {
		if err := t.receive(); err != nil {
			t.gone(err)
			return 0, err
		}
	}
	return t.in.Copy(p), nil
}

// incoming is what the server sends. A long listing takes its time: a server that sends one is not silent. Events are no
// answers.
type incoming struct{ *tap }

func (i incoming) Read(p []byte) (int, error) {
	if i.bound > 0 {
		i.line.SetReadDeadline(time.Now().Add(i.bound))
	}
	n, err := i.line.Read(p)
	if n > 0 && i.answers {
		i.hear()
	}
	return n, err
}

// hear notes that bytes of an answer have come.
func (t *tap) hear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard = time.Now()
}

// receive reads the next frame and checks it.
func (t *tap) receive() error {
	t.mu.Lock()
	shaking, limit := t.shaking, frames.MaxFrame
	t.mu.Unlock()
	if shaking {
		limit = frames.MaxGreeting
	}
	frame, err := t.next(limit, shaking)
	switch {
	case err != nil:
	case shaking:
		err = t.welcome(frame)
	default:
		err = t.reply(frame)
	}
	if err != nil {
		t.in.Drop()
	}
	return err
}

// next reads the next frame.
func (t *tap) next(limit int, shaking bool) ([]byte, error) {
	t.answers = false
	xid, err := t.in.Begin(limit)
	if err != nil {
		return nil, err
	}
	if t.answers = shaking || xid != frames.XidEvent; t.answers {
		t.hear()
	}
	return t.in.Next(limit)
}

// Close ends the connection.
func (t *tap) Close() error {
	t.gone(nil)
	return t.line.Close()
}

// SetReadDeadline does nothing during the handshake, which keeps its own deadline: the client library sets none for
// the answer's body and a very long one for its length. So one dead server would outlast the session while other
// servers could take it. Later the time begins anew with all that the server sends, most of which the library never reads.
func (t *tap) SetReadDeadline(d time.Time) error {
	t.mu.Lock()
	shaking := t.shaking
	t.mu.Unlock()
	if shaking {
		return nil
	}
	t.bound = 0
	if !d.IsZero() {
		t.bound = time.Until(d)
	}
	return t.line.SetReadDeadline(d)
}

// SetWriteDeadline does nothing: nobody waits until something is written, and a server that does not read is left
// because it does not answer.
func (t *tap) SetWriteDeadline(time.Time) error { return nil }

// gone notes that the connection has ended, and tells those who wait for an answer.
func (t *tap) gone(err error) {
	t.mu.Lock()
	was := t.ended
	t.ended = true
	refused, waiting := t.shaking && !t.asked.Mono.IsZero(), t.waiting
	t.waiting = nil
	t.mu.Unlock()
	if was {
		return
	}
	t.link.lost(t.line, err, refused)
	for _, xid := range slices.Sorted(maps.Keys(waiting)) {
		if by := waiting[xid].by; by != nil {
			by.Answered(frames.Reply{}, zk.ErrConnectionClosed)
		}
	}
}

// reply takes a frame on its way from the server. An error ends the connection.
func (t *tap) reply(frame []byte) error {
	r, err := frames.ParseReply(frame)
	if err != nil {
		return err
	}
	if r.Xid == frames.XidEvent {
		event, err := frames.ParseEvent(r.Body)
		if err != nil {
			return err
		}
		s, hears := t.happened()
		t.link.tell(s, event)
		if !hears {
			t.in.Drop()
		}
		return nil
	}
	asked, s, stuck, ok := t.answered(r.Xid)
	switch {
	case !ok:
		return frames.ErrMalformed // no request has this number
	case stuck:
		return errors.New("the server answers pings but not what was asked before")
	}
	err = t.check(s, asked, r)
	switch {
	case asked.by != nil:
		t.in.Drop()
		asked.tell(r, err)
	case asked.op != frames.OpPing:
		frames.Renumber(frame, asked.xid)
	}
	return err
}

// tell gives the one who has asked the answer. One that ends the connection is none.
func (asked *sentRequest) tell(r frames.Reply, err error) {
	switch {
	case err != nil:
		asked.by.Answered(frames.Reply{}, zk.ErrConnectionClosed)
	case r.Code != frames.CodeOK:
		asked.by.Answered(frames.Reply{}, frames.ErrorOf(r.Code))
	default:
		asked.by.Answered(r, nil)
	}
}

// check takes a reply as evidence. An error ends the connection.
func (t *tap) check(s *Session, asked sentRequest, r frames.Reply) error {
	if r.Code == frames.CodeRequiresSASL {
		t.link.deny(errRefused)
		return errRefused
	}
	switch {
	case asked.op == frames.OpAuth && r.Code != frames.CodeOK:
		t.link.deny(fmt.Errorf("the server refuses a credential: %w", frames.ErrorOf(r.Code)))
	case asked.op != frames.OpAuth && !t.accepted:
		t.accepted = true
		t.link.gate.serve()
	}
	if r.Code == frames.CodeOK {
		if err := frames.CheckReply(asked.op, r.Body); err != nil {
			return err
		}
		r.Code = frames.CodeWithin(asked.op, r.Body)
	}
	if s == nil {
		return nil
	}
	if asked.op != frames.OpPing {
		s.saw(r.Zxid)
	}
	return t.judge(s, asked, r)
}

// happened notes that an event has come. It returns the session that the connection carries, and whether the client library
// hears of it.
func (t *tap) happened() (s *Session, hears bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session, t.hears
}

// answered returns the request that a reply with that number answers, and the session that
// the connection carries. stuck reports whether another request will never be answered.
func (t *tap) answered(xid int32) (asked sentRequest, s *Session, stuck, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	asked, ok = t.take(xid)
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
		return sentRequest{sent: sent, op: frames.OpPing}, true
	}
	sent, ok := t.waiting[xid]
	delete(t.waiting, xid)
	if len(t.waiting) == 0 && t.most > 64 {
		t.waiting, t.most = map[int32]sentRequest{}, 0 // a map keeps the room of a crowd for ever
	}
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
	err := logIn(t.line, t.in, login)
	switch {
	case errors.Is(err, zk.ErrAuthFailed):
		t.link.deny(err)
		return err
	case err != nil:
		return err
	}
	t.link.gate.admit()
	t.in.Restore(greeting)
	return nil
}
