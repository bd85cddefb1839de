package zktest

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"time"
)

// conn is a client's connection to one member. Three goroutines serve it: read
// takes bytes in, process works on them in order, write sends.
type conn struct {
	s        *Server
	r        *replica
	pipe     *pipe
	remote   string // address of the peer, made up for a pipe
	log      *slog.Logger
	attached chan struct{} // closed when the connect request was answered

	// Guarded by Server.mu.
	closed  bool
	sess    *session
	timeout time.Duration // negotiated for this connection
	auth    credentials
	pending []*entry // requests that are not answered yet, in order
	stats   connInfo
}

// serveConn begins to serve a connection. The caller holds mu and knows that the
// server is not closed.
func serveConn(s *Server, r *replica, nc net.Conn, client, remote string) {
	c := &conn{
		s: s, r: r, pipe: newPipe(nc, client, r.id), remote: remote,
		attached: make(chan struct{}), auth: newCredentials(&s.opts, remote),
		log:   s.log.With("member", r.id, "client", client, "remote", remote),
		stats: connInfo{remote: remote, established: s.clock.wall()},
	}
	p := c.pipe
	p.clock, p.gates, p.network, p.traffic, p.done, p.isWord = s.clock, s.gates, s.network, s.traffic, s.done, isWord
	r.admit(c)
	s.live[c] = struct{}{}
	s.wg.Add(3)
	// The three belong to the connection: closing it (at the latest
	// Server.Close does) ends them, and Server.Close waits for them.
	go c.read()
	go c.process()
	go c.write()
}

func (c *conn) read() {
	defer c.s.wg.Done()
	err := c.pipe.read()
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, net.ErrClosed) {
		c.log.Warn("bad input", "error", err)
	}
}

// process works on the packets in the order they came.
func (c *conn) process() {
	defer c.s.wg.Done()
	var batch []packet
	for ok := true; ok; {
		clear(batch)
		if batch, ok = c.pipe.next(batch); !ok {
			return
		}
		for _, pkt := range batch {
			if !c.pipe.mayHandle(pkt) || !c.handle(pkt) {
				return
			}
		}
		if cap(batch) > 1024 {
			batch = nil
		}
	}
}

func (c *conn) write() {
	defer c.s.wg.Done()
	defer c.s.forget(c)
	c.pipe.write(func() { c.s.drop(c) })
}

// close ends the connection once what is in its outbox was sent. The session
// lives on.
func (c *conn) close() {
	if c.closed {
		return
	}
	c.closed, c.pending = true, nil
	c.r.dismiss(c)
	c.pipe.end()
}

// abort ends the connection as a killed process does: nothing more is sent.
func (c *conn) abort() {
	c.pipe.cut()
	c.close()
	c.pipe.cut()
}

// hangUp closes the socket.
func (c *conn) hangUp() { _ = c.pipe.net.Close() }

func (c *conn) session() (*session, time.Duration) { return c.sess, c.timeout }

func (c *conn) sessionID() int64 {
	if c.sess == nil {
		return 0
	}
	return c.sess.id
}

func (c *conn) info() connInfo {
	info := c.stats
	info.queued = len(c.pending)
	return info
}

// resetCounts is for the four-letter word crst.
func (c *conn) resetCounts() { c.stats.received, c.stats.sent = 0, 0 }

// by is on whose behalf the connection's requests are carried out.
func (c *conn) by() requester {
	return requester{session: c.sess, ids: c.auth.ids, name: c.pipe.client, member: c.r.id}
}

// handle works on one packet; false means the connection is over.
func (c *conn) handle(p packet) bool {
	switch {
	case p.end:
		c.s.drop(c)
		return false
	case p.word != "":
		c.answerWord(p.word)
		return false
	}
	select {
	case <-c.attached:
		return c.handleRequest(p.frame)
	default:
		return c.handleConnect(p.frame)
	}
}

func (c *conn) handleConnect(frame []byte) bool {
	req, err := decodeConnect(frame)
	if err != nil {
		c.log.Warn("bad connect request", "error", err)
		c.s.drop(c)
		return false
	}
	if !c.isServed() {
		return false
	}
	r := &call{op: OpCreateSession}
	f, ok := c.judge(r, func() int64 { return req.session })
	if !ok {
		return false
	}
	c.connect(&entry{c: c, call: r, connect: &req, fate: f, remote: true})
	// What comes behind the connect request is read when there is a session.
	select {
	case <-c.attached:
		return true
	case <-c.pipe.dead:
		return false
	}
}

// isServed reports whether the member serves anybody. If it does not, it hangs up: «ZooKeeperServer
// not running».
func (c *conn) isServed() bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.r.serving {
		c.close()
	}
	return c.r.serving
}

func (c *conn) handleRequest(frame []byte) bool {
	r, err := decodeCall(frame)
	if err != nil {
		c.log.Warn("bad request header", "error", err)
		c.s.drop(c)
		return false
	}
	if r.bad {
		c.log.Warn("bad request body", "op", r.op)
	}
	r.settleModes(c.s.opts.Flavor == ZooKeeper39)
	f, ok := c.judge(r, c.currentSession)
	if !ok {
		return false
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.closed {
		c.serve(r, f)
	}
	return !c.closed
}

func (c *conn) currentSession() int64 {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.sessionID()
}

// judge asks the interceptors and carries out what comes before processing.
// False means the request is not to be processed.
func (c *conn) judge(r *call, session func() int64) (fate, bool) {
	v := c.s.interceptors.judge(func() *Request {
		shown := r.show()
		shown.Session, shown.Client, shown.Member = session(), c.pipe.client, c.r.id
		return shown
	})
	switch v.kind {
	case dropBefore:
		c.s.drop(c)
		return fate{}, false
	case hold:
		select {
		case <-v.release:
		case <-c.pipe.dead:
			return fate{}, false
		}
	case delay:
		return fate{}, c.pipe.until(c.s.clock.now() + v.delay)
	}
	return v.fate(), true
}

// connect begins to answer a connect request.
func (c *conn) connect(e *entry) {
	s := c.s
	s.traffic.count(OpCreateSession)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.closed:
	case !c.r.serving:
		c.close()
	case e.fate.answer:
		e.decided = true
		c.pending = append(c.pending, e)
		c.drain()
	case e.connect.lastZxid > c.r.tree.zxid:
		// The client has seen more than this server has: it must look for another.
		s.ens.journal.note("refused a client from the future", "client", c.pipe.client, "zxid", hex(e.connect.lastZxid))
		c.close()
	default:
		if e.connect.session != 0 {
			c.r.closeSession(e.connect.session)
		}
		e.by = c.by()
		c.pending = append(c.pending, e)
		s.ens.router.submit(e)
	}
}

// serve begins to answer a request. The caller holds mu and has checked that
// the connection is open.
func (c *conn) serve(r *call, f fate) {
	c.s.traffic.count(r.op)
	c.stats.note(r)
	c.r.received++
	if c.s.opts.closesOn(r) {
		c.close()
		return
	}
	switch {
	case r.op == OpAuth || r.op == OpSASL:
	case c.auth.lacksSASL():
		f = fate{answer: true, code: CodeRequiresSASL, drop: true}
	case !c.s.ens.router.touch(c.r, c, r.op, c.s.clock.now()):
		return
	}
	e := &entry{c: c, by: c.by(), call: r, fate: f}
	switch {
	case f.answer:
		e.decide(0, f.code)
	case c.s.opts.notServed(r):
		e.decide(0, CodeUnimplemented)
	case c.s.opts.needsLeader(r):
		e.remote = true
	}
	if len(c.pending) == 0 && !e.remote {
		c.answer(e)
		return
	}
	c.pending = append(c.pending, e)
	c.pipe.setWaiting(len(c.pending))
	if e.remote {
		c.s.ens.router.submit(e)
	}
}

// drain sends what can be answered by now, in order; false means the first
// of what is left still waits.
func (c *conn) drain() bool {
	for len(c.pending) > 0 {
		e := c.pending[0]
		if e.remote && !e.ready(c.r.tree.zxid) {
			return false
		}
		c.pending[0] = nil
		if c.pending = c.pending[1:]; len(c.pending) == 0 {
			c.pending = nil
		}
		c.answer(e)
		c.pipe.setWaiting(len(c.pending))
	}
	return true
}

// answer sends the reply of an entry, as far as its fate allows.
func (c *conn) answer(e *entry) {
	enc := &c.s.scratch
	enc.buf = enc.buf[:0]
	start := enc.beginFrame()
	over := c.encode(enc, e)
	enc.endFrame(start)
	switch {
	case e.fate.lose, c.closed, e.moved():
		c.close()
		return
	case !e.fate.mute:
		c.send(enc.buf)
	}
	if e.connect != nil && e.sess != nil {
		c.attach(e.sess, e.timeout)
	}
	if over || e.fate.drop {
		c.close()
	}
}

// send sends a packet.
func (c *conn) send(data []byte) {
	c.stats.sent++
	c.r.sent++
	c.pipe.enqueue(data)
}

// attach makes the session the connection's own.
func (c *conn) attach(sess *session, timeout time.Duration) {
	c.sess, c.timeout = sess, timeout
	c.r.attach(sess.id, c)
	close(c.attached)
}

// encode writes the reply's body and reports whether the connection ends with it.
func (c *conn) encode(enc *encoder, e *entry) bool {
	switch {
	case e.connect != nil:
		enc.connectReply(e)
		return e.sess == nil
	case e.mixedUp && e.call.op != e.txn.op:
		enc.mixedUpReply(e.call, e.txn)
		return e.call.op == OpCloseSession
	case e.txn != nil:
		enc.txnReply(e.call, e.txn)
		if e.call.op == OpSync && e.txn.code == CodeOK {
			enc.string(e.call.path)
		}
		return e.call.op == OpCloseSession
	case e.decided:
		enc.replyHeader(e.call.xid, c.r.tree.zxid, e.code)
		if e.call.op == OpSync && e.code == CodeOK {
			enc.string(e.call.path)
		}
		return false
	case e.call.bad:
		enc.replyHeader(e.call.xid, c.r.tree.zxid, CodeMarshalling)
		return false
	}
	return c.encodeLocal(enc, e.call)
}

// encodeLocal answers what a member serves by itself.
func (c *conn) encodeLocal(e *encoder, r *call) (over bool) {
	zxid := c.r.tree.zxid
	switch {
	case c.sess.owner != c.r.id && c.r == c.s.ens.peers.leader && r.op != OpPing:
		c.close()
		return true
	case r.op == OpAuth:
		code := c.auth.authenticate(r)
		e.replyHeader(r.xid, 0, code)
		return code != CodeOK
	case r.op == OpPing:
		e.replyHeader(xidPing, zxid, CodeOK)
		return false
	case r.op == OpSASL:
		return c.encodeSASL(e, r)
	case !r.op.known():
		e.replyHeader(r.xid, zxid, CodeUnimplemented)
		return true
	}
	a := reader{r: c.r, who: c, auth: &c.auth, session: c.sess.id}
	e.replyWithCode(r.xid, zxid, func() int32 { return a.encode(e, r) })
	return false
}

// encodeSASL answers a step of SASL. A token that is null closes the connection,
// as ZooKeeper has it.
func (c *conn) encodeSASL(e *encoder, r *call) (over bool) {
	if r.data == nil {
		c.close()
		return true
	}
	answer, code := c.auth.sasl(r.data, c.s.ens.rng)
	e.replyHeader(r.xid, 0, code)
	e.buffer(answer)
	return code != CodeOK
}

// notify sends a watch event, if the connection may read what it is about.
func (c *conn) notify(ev watchEvent) {
	if c.closed || !allowed(ev.acl, PermRead, c.auth.ids) {
		return
	}
	zxid := int64(-1)
	if c.s.opts.Flavor == ZooKeeper39 {
		zxid = ev.zxid
	}
	var e encoder
	start := e.beginFrame()
	e.replyHeader(xidNotification, zxid, CodeOK)
	e.watchEvent(ev)
	e.endFrame(start)
	c.send(e.buf)
}

// answerWord answers a four-letter word and ends the connection.
func (c *conn) answerWord(word string) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	w := wordReport{opts: &c.s.opts, ens: c.s.ens, r: c.r, address: c.s.network.address(c.r.id)}
	c.pipe.enqueue([]byte(w.answer(word)))
	c.close()
}
