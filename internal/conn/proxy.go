// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"context"
	"errors"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
)

// proxy is a connection that the client library and this library share. The client library creates
// sessions and keeps them alive; this library sends everything else (Link.Send). The proxy numbers
// every request, and passes each reply to its requester. It also changes the traffic in three places:
//
//   - A connection request for a session that is over requests a new session. Other connection requests
//     contain the newest transaction that our replies have shown.
//   - A login, and the credentials that a server has accepted on an earlier connection, precede
//     everything else.
//   - The client library gets no events until it has set a watch.
//
// Invariants: while handshaking, session and run are nil and pending is empty. Afterwards session and run
// are set once, together: both are nil if the server granted no session. Once ended, pending is its zero
// value, and every request that was in it is answered with an error.
type proxy struct {
	net.Conn // the first server, for the methods that the client library does not call

	server *serverConn // changes once at most, before the first reply: with mu held, and by the reading goroutine
	race   *race
	link   *Link
	in     *frames.Reader
	room   window // for requests other than heartbeats

	reading reading   // of the goroutine that reads
	writeBy time.Time // see SetWriteDeadline; used only by the goroutine of the client library that writes

	mu          sync.Mutex    // guards the fields below: several goroutines send, another one receives
	ended       bool          // the connection has ended: nothing is sent, and pending stays empty
	hungUp      bool          // see hangUp
	handshaking bool          // the connection request has not been answered
	requested   lease.Instant // when the connection request was sent; zero before
	hears       bool          // the client library has set a watch: pass it the events
	session     *Session      // the session that the connection carries; nil if the server granted none
	run         *lease.Run    // what this connection proves about the session; nil if there is none
	pending     pending
}

// reading is the state of the goroutine that reads from the server. The client library sends the
// connection request on that goroutine as well.
type reading struct {
	isFound  bool          // the race is over
	begin    []byte        // the unread part of the beginning of the first reply; empty before the race is over
	patience time.Duration // the time limit of the rest of the handshake after the beginning of the first reply: a third of the session timeout
	until    time.Time     // the end of patience; set once the race is over
	login    *Login        // the login with which the connection started, or nil if there was none
	accepted bool          // the server has replied to a request
	replies  bool          // the current frame, of which a part was read, is not an event
	bound    time.Duration // the maximum silence of the server for the client library; zero means no limit
}

func newProxy(l *Link, r *race, on *serverConn) *proxy {
	px := &proxy{Conn: on, server: on, race: r, link: l, pending: newPending(), handshaking: true}
	px.room.pace = &l.pace
	px.in = frames.NewReader(incoming{proxy: px})
	return px
}

// Write sends one request of the client library, which writes each request in one call. It never
// fails: Read reports a broken connection, which the client library handles there. If a write failed
// while the library sends its credentials again, the library would stop forever; elsewhere
// callers would get the error, which does not show the outcome.
func (px *proxy) Write(p []byte) (int, error) {
	now := px.link.Now()
	if px.isFirst(now) {
		return px.requestSession(p)
	}
	if r, ok := frames.Parse(p); ok && r.Op() == frames.OpClose {
		px.link.closes(px) // holds must end first: the request frees every lock at once
	}
	px.pass(p, now)
	return len(p), nil
}

// requestSession sends the connection request.
func (px *proxy) requestSession(p []byte) (int, error) {
	timeout, _ := frames.TimeoutOf(p)
	px.reading.patience = max(timeout/3, time.Second)
	px.race.requests(px.link.connectRequest(p), timeout)
	return len(p), nil
}

// find waits until a server has replied to the connection request. That server becomes the connection's server.
func (px *proxy) find() error {
	first, err := px.race.answered()
	if err != nil {
		return err
	}
	px.mu.Lock()
	defer px.mu.Unlock()
	if px.hungUp || !first.keep() {
		return net.ErrClosed
	}
	px.server, px.requested = first.conn, first.sent
	rd := &px.reading
	rd.isFound, rd.begin, rd.until = true, first.data, time.Now().Add(rd.patience)
	px.server.SetReadDeadline(rd.until)
	return nil
}

// hangUp closes the connection to the server, and ends the race.
func (px *proxy) hangUp() error {
	px.mu.Lock()
	px.hungUp = true
	server := px.server
	px.mu.Unlock()
	px.race.stop()
	return server.Close()
}

// isFirst reports whether the data to be sent now is the connection request.
func (px *proxy) isFirst(now lease.Instant) bool {
	px.mu.Lock()
	defer px.mu.Unlock()
	first := px.requested.Mono.IsZero()
	if first {
		px.requested = now
	}
	return first
}

// pass sends a request of the client library. It waits for room until the library's deadline for
// writing: its requests go out one after another, and wait there as they would for a slow
// connection.
func (px *proxy) pass(p []byte, now lease.Instant) {
	r, ok := frames.Parse(p)
	isPing := ok && r.Op() == frames.OpPing
	if ok && !isPing {
		px.reserve(len(r))
	}
	defer px.server.out.flush()
	px.mu.Lock()
	defer px.mu.Unlock()
	switch {
	case px.ended:
		return
	case !ok:
	case isPing:
		px.pending.addPing(now)
	default:
		px.hears = px.hears || r.Watches()
		px.enter(Outgoing{Request: r}, len(r))
	}
	px.server.out.put(r)
}

// reserve reserves room for a request of the client library, and waits until its deadline for writing for enough of the lease.
func (px *proxy) reserve(size int) {
	px.room.reserveUntil(px.writeBy, size)
	px.mu.Lock()
	s := px.session
	px.mu.Unlock()
	if s == nil {
		return
	}
	ctx, cancel := context.Background(), func() {}
	if !px.writeBy.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, px.writeBy)
	}
	defer cancel()
	_ = px.link.awaitLease(ctx, s, px, size) // it is sent in any case
}

// sendBeats sends requests of heartbeats, which take up no room. It returns false if the connection has
// ended; then nothing was sent.
func (px *proxy) sendBeats(requests []Outgoing) bool {
	return px.queue(requests, px.server.out.putBeat, func(frames.Request) int { return 0 })
}

// send is like sendBeats for requests of ours for which room was reserved.
func (px *proxy) send(requests []Outgoing) bool {
	return px.queue(requests, px.server.out.put, func(r frames.Request) int { return len(r) })
}

// queue queues requests with put before any of them is written.
func (px *proxy) queue(requests []Outgoing, put func([]byte), room func(frames.Request) int) bool {
	defer px.server.out.flush()
	px.mu.Lock()
	defer px.mu.Unlock()
	if px.ended {
		return false
	}
	for _, q := range requests {
		px.enter(q, room(q.Request))
		put(q.Request)
	}
	return true
}

// enter numbers a request and records it, its send time and the room that it takes up. It must be
// called with mu held.
func (px *proxy) enter(q Outgoing, room int) {
	number := px.link.number()
	r := q.Request
	sent := sentRequest{sent: px.link.Now(), op: r.Op(), by: q.By, xid: r.Xid(), room: room, again: q.again}
	if q.By != nil || sent.op == frames.OpAuth {
		sent.request = r
	}
	px.pending.add(number, sent)
	r.Number(number)
}

// Read returns bytes of frames that were checked and are not replies to our requests.
func (px *proxy) Read(p []byte) (int, error) {
	for px.in.IsEmpty() {
		if err := px.receive(); err != nil {
			px.gone(err)
			return 0, err
		}
	}
	return px.in.Copy(p), nil
}

// incoming reads from the server. A long listing takes time: a server that is still sending one is
// not silent. Events do not count as replies.
type incoming struct{ proxy *proxy }

func (i incoming) Read(p []byte) (int, error) {
	rd := &i.proxy.reading
	if !rd.isFound {
		if err := i.proxy.find(); err != nil {
			return 0, err
		}
	}
	if len(rd.begin) > 0 {
		n := copy(p, rd.begin)
		rd.begin = rd.begin[n:]
		return n, nil
	}
	if rd.bound > 0 {
		i.proxy.server.SetReadDeadline(time.Now().Add(rd.bound))
	}
	n, err := i.proxy.server.Read(p)
	if n > 0 && rd.replies {
		i.proxy.hear()
	}
	return n, err
}

// hear records that bytes of a reply have arrived.
func (px *proxy) hear() {
	px.mu.Lock()
	defer px.mu.Unlock()
	px.pending.heard = time.Now()
}

// receive reads the next frame and checks it.
func (px *proxy) receive() error {
	px.mu.Lock()
	handshaking := px.handshaking
	px.mu.Unlock()
	frame, cut, err := px.next(handshaking)
	switch {
	case err != nil:
	case handshaking:
		err = px.welcome(frame)
	default:
		err = px.reply(frame, cut)
	}
	if err != nil {
		px.in.Drop()
	}
	return err
}

// next reads the next frame. If it is a reply to a request of ours and too long, next returns only its
// header, and true: others depend on the connection.
func (px *proxy) next(handshaking bool) (frame []byte, cut bool, err error) {
	px.reading.replies = false
	xid, size, err := px.in.Begin()
	if err != nil {
		return nil, false, err
	}
	px.reading.replies = handshaking || xid != frames.XidEvent
	if px.reading.replies {
		px.hear()
	}
	limit, ours := frames.MaxGreeting, false
	if !handshaking {
		limit, ours = px.limitOf(xid)
	}
	if ours && size > limit {
		frame, err = px.in.NextHeader()
		return frame, true, err
	}
	frame, err = px.in.Next(limit)
	return frame, false, err
}

// limitOf returns the maximum length of a frame with that number, and whether the frame replies to a
// request of ours. Replies to reads of the program may have any length.
func (px *proxy) limitOf(xid int32) (limit int, ours bool) {
	px.mu.Lock()
	defer px.mu.Unlock()
	sr, ok := px.pending.requests[xid]
	if !ok || sr.by != nil {
		return frames.MaxFrame, ok
	}
	switch sr.op {
	case frames.OpGetChildren, frames.OpGetChildren2, frames.OpGetData:
		return math.MaxInt32, false
	}
	return frames.MaxFrame, false
}

// Close ends the connection.
func (px *proxy) Close() error {
	px.gone(nil)
	return px.hangUp()
}

// SetReadDeadline does nothing during the handshake, which has its own deadline. The client library
// sets a very long deadline for the length of the reply and none for its body, so the session could
// expire while the library waits for a dead server. Later, everything that the server sends extends
// the deadline, including replies that the library never reads.
func (px *proxy) SetReadDeadline(d time.Time) error {
	px.mu.Lock()
	handshaking := px.handshaking
	px.mu.Unlock()
	if handshaking {
		return nil
	}
	px.reading.bound = 0
	if !d.IsZero() {
		px.reading.bound = time.Until(d)
	}
	return px.server.SetReadDeadline(d)
}

// SetWriteDeadline limits how long Write waits for room. Nothing else waits for writes: a server that
// does not read is abandoned because it does not reply.
func (px *proxy) SetWriteDeadline(d time.Time) error {
	px.writeBy = d
	return nil
}

// gone records that the connection has ended and notifies the requesters whose replies are
// outstanding. The link learns of it before any sender can: a sender that finds the connection ended
// gets the next one from the link.
func (px *proxy) gone(err error) {
	px.mu.Lock()
	if px.ended {
		px.mu.Unlock()
		return
	}
	px.link.lost(px, err, px.handshaking && !px.requested.Mono.IsZero())
	unanswered := px.pending.requests
	px.ended, px.pending = true, pending{}
	px.mu.Unlock()
	px.room.close()
	for _, xid := range slices.Sorted(maps.Keys(unanswered)) {
		if by := unanswered[xid].by; by != nil {
			by.Answered(frames.Reply{}, zk.ErrConnectionClosed)
		}
	}
}

// reply handles a frame from the server before it is passed on. cut means that the frame was too long
// and that only its header is there. An error ends the connection.
func (px *proxy) reply(frame []byte, cut bool) error {
	r, err := frames.ParseReply(frame)
	if err != nil {
		return err
	}
	if r.Xid == frames.XidEvent {
		event, err := frames.ParseEvent(r.Body)
		if err != nil {
			return err
		}
		s, hears := px.happened()
		px.link.listeners.notify(s, event)
		if !hears {
			px.in.Drop()
		}
		return nil
	}
	sr, s, stuck, ok := px.answered(r.Xid)
	switch {
	case !ok:
		return frames.ErrMalformed // no request has this number
	case stuck:
		return errors.New("server answers pings but not earlier requests")
	}
	if !cut {
		err = sr.checkBody(r)
	}
	if err == nil {
		err = px.check(s, sr, r)
	}
	switch {
	case sr.by != nil:
		px.in.Drop()
		if err != nil || r.Code != frames.CodeThrottled || !px.sendAgain(s, sr) {
			sr.tell(r, cut || sr.isTooLong(r), err)
		}
	case sr.op != frames.OpPing:
		frames.Renumber(frame, sr.xid)
	}
	return err
}

// maxAgain limits how often a request is sent again to a server that has too many requests.
const maxAgain = 5

// sendAgain sends a request of ours again that a server has not executed, on the connection that then
// carries s, after a pause that is longer each time. It returns false if it was sent often enough.
func (px *proxy) sendAgain(s *Session, sr sentRequest) bool {
	if s == nil || sr.again == maxAgain {
		return false
	}
	q := Outgoing{sr.request, sr.by, sr.again + 1}
	// Owned by the session; ends when the request is sent, at the latest with the session.
	time.AfterFunc(10*time.Millisecond<<sr.again, func() {
		send := px.link.Send
		if sr.room == 0 {
			send = px.link.SendBeat
		}
		if err := send(context.Background(), s, q); err != nil {
			q.By.Answered(frames.Reply{}, err)
		}
	})
	return true
}

// check examines a reply and uses it as evidence. An error ends the connection.
func (px *proxy) check(s *Session, sr sentRequest, r frames.Reply) error {
	if r.Code == frames.CodeRequiresSASL {
		px.link.deny(px.reading.login, errRefused)
		return errRefused
	}
	switch {
	case sr.op == frames.OpAuth && r.Code != frames.CodeOK:
		px.link.deny(px.reading.login, errCredential(r.Code))
	case sr.op == frames.OpAuth:
		px.link.login.accept(sr.request)
	case !px.reading.accepted:
		px.reading.accepted = true
		px.link.login.serve()
	}
	if r.Code == frames.CodeOK {
		r.Code = frames.CodeWithin(sr.op, r.Body)
	}
	if s == nil {
		return nil
	}
	if sr.op != frames.OpPing {
		s.Saw(r.Zxid)
	}
	return px.judge(s, sr, r)
}

// happened returns the session that the connection carries, and whether the client library should
// get the event that has arrived.
func (px *proxy) happened() (s *Session, hears bool) {
	px.mu.Lock()
	defer px.mu.Unlock()
	return px.session, px.hears
}

// answered returns the request to which the reply with that number belongs, and the session that
// the connection carries. stuck reports whether another request will never be answered.
func (px *proxy) answered(xid int32) (sr sentRequest, s *Session, stuck, ok bool) {
	px.mu.Lock()
	defer px.mu.Unlock()
	sr, ok = px.pending.take(xid)
	px.room.answered(sr.room)
	stuck = ok && xid == frames.XidPing && px.session != nil && px.pending.isStuck(sr.sent, px.link.Now(), px.session.Lease.Term())
	return sr, px.session, stuck, ok
}

// judge uses the reply to a request as evidence for s, or ends s.
func (px *proxy) judge(s *Session, sr sentRequest, r frames.Reply) error {
	if r.Code == frames.CodeExpired {
		px.link.expire(s)
		return ErrSessionOver // some servers leave the connection open, and nobody would request another session
	}
	s.replied()
	of, ok := evidenceOf(sr.op, r.Code)
	if !ok {
		return nil
	}
	if of == lease.OfQuorum {
		s.wrote(r.Zxid)
	}
	if sr.late {
		px.run.WitnessDelayed(sr.sent, of)
	} else {
		px.run.Witness(sr.sent, of)
	}
	return nil
}

// unanswered returns the time since which nothing has arrived although a request is outstanding. While a large request is on its way,
// a server on a slow link has nothing to reply to: the returned time is then at least that of excused.
func (px *proxy) unanswered() (since time.Time, ok bool) {
	px.mu.Lock()
	defer px.mu.Unlock()
	since, ok = px.pending.silentSince()
	return later(since, px.excused()), ok
}

// excused returns a time before which silence does not count while a large request is on its way: the server is abandoned when a fifth
// of the session timeout and a little more remain of the lease. It must be called with mu held.
func (px *proxy) excused() time.Time {
	if px.pending.large == 0 || px.session == nil {
		return time.Time{}
	}
	l := px.session.Lease
	spare := l.Remaining() - l.Term()*22/100
	if spare <= 0 {
		return time.Time{}
	}
	return time.Now().Add(spare - l.Patience())
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// welcome handles the reply to the connection request.
func (px *proxy) welcome(frame []byte) error {
	id, timeout, err := frames.ParseGreeting(frame)
	if err != nil {
		return err
	}
	px.mu.Lock()
	px.handshaking = false
	px.mu.Unlock()
	if id != 0 {
		if err := px.logIn(); err != nil {
			return err
		}
	}
	s, run, err := px.link.welcome(px, id, timeout, px.requested)
	px.mu.Lock()
	px.session, px.run = s, run
	if s != nil {
		px.room.setSlice(s.Lease.Term() / 20)
	}
	px.mu.Unlock()
	if s == nil && err == nil {
		px.hangUp() // the session has expired: the client library reads this reply, but does not close the connection
	}
	return err
}

// logIn logs in and presents credentials while the client library waits for the reply to its
// connection request, which is the current frame, and sends nothing.
func (px *proxy) logIn() error {
	login, credentials := px.link.login.starts()
	px.reading.login = login
	greeting := px.in.Keep()
	if login != nil {
		err := logIn(px.link.closing, px.server, px.in, px.reading.until, *login)
		switch {
		case errors.Is(err, zk.ErrAuthFailed):
			px.link.deny(login, err)
			return err
		case err != nil:
			return err
		}
		px.link.login.admit(login)
	}
	refused, err := present(px.server, px.in, credentials)
	if refused {
		px.link.deny(login, err)
	}
	if err != nil {
		return err
	}
	px.in.Restore(greeting)
	return nil
}
