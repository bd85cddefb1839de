// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"time"
)

// conn is a client's connection to one member. Three goroutines serve it: read
// receives packets, process handles them in order, and write sends replies.
type conn struct {
	s        *Server
	r        *replica
	pipe     *pipe
	remote   string // address of the peer; invented for a connection without a socket
	log      *slog.Logger
	attached chan struct{} // closed when the connection has a session
	arrived  time.Duration // when the packet that process handles had arrived; used by process

	// Guarded by Server.mu.
	closed  bool
	sess    *session
	timeout time.Duration // negotiated for this connection
	auth    credentials
	pending []*entry // unanswered requests, in order
	stats   connInfo
}

// serveConn starts serving a connection. The caller must hold mu, and the server
// must not be closed.
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
	// Owned by the connection; end when it is closed, at the latest by
	// Server.Close, which waits for them.
	go c.read()
	go c.process()
	go c.write()
}

func (c *conn) read() {
	defer c.s.wg.Done()
	err := c.pipe.read()
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, net.ErrClosed) {
		c.log.Warn("bad input", "err", err)
	}
}

// process handles the packets in the order they arrived.
func (c *conn) process() {
	defer c.s.wg.Done()
	var batch []packet
	for ok := true; ok; {
		clear(batch)
		batch, ok = c.pipe.next(batch)
		if !ok {
			return
		}
		for _, pkt := range batch {
			c.arrived = pkt.due
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

// close ends the connection once its outbox has been sent. The session continues.
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

// by returns the requester of the connection's requests.
func (c *conn) by() requester {
	return requester{session: c.sess, ids: c.auth.ids, name: c.pipe.client, member: c.r.id}
}

// handle handles one packet. It returns false if the connection is over.
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
		c.log.Warn("bad connect request", "err", err)
		c.s.drop(c)
		return false
	}
	if !c.isServed(&req) {
		return false
	}
	r := &call{op: OpCreateSession}
	f, ok := c.judge(r, func() int64 { return req.session })
	if !ok {
		return false
	}
	c.connect(&entry{c: c, call: r, connect: &req, fate: f, remote: true})
	// Packets after the connect request are handled once there is a session.
	select {
	case <-c.attached:
		return true
	case <-c.pipe.dead:
		return false
	}
}

// isServed reports whether the member serves clients. If it does not, isServed closes the connection, like a ZooKeeper
// server that logs "ZooKeeperServer not running", or like a Keeper without a leader.
func (c *conn) isServed(req *connectCall) bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.r.serving {
		c.turnAway(req)
	}
	return c.r.serving
}

// turnAway closes the connection of a client that the member does not serve. A Keeper says first that
// it has no leader. The caller must hold Server.mu.
func (c *conn) turnAway(req *connectCall) {
	if c.s.opts.Flavor == Keeper {
		enc := &c.s.scratch
		enc.buf = enc.buf[:0]
		start := enc.beginFrame()
		enc.noLeaderReply(c.s.opts.negotiate(c.r.id, req.timeout))
		enc.endFrame(start)
		c.send(enc.buf)
	}
	c.close()
}

func (c *conn) handleRequest(frame []byte) bool {
	r, err := decodeCall(frame)
	if err != nil {
		c.log.Warn("bad request header", "err", err)
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

// judge consults the interceptors and executes the part of their verdict that precedes
// processing. It returns false if the request must not be processed.
func (c *conn) judge(r *call, session func() int64) (fate, bool) {
	v := c.s.interceptors.judge(func() *Request {
		shown := r.show()
		shown.Session, shown.Client, shown.Member = session(), c.pipe.client, c.r.id
		shown.waited = c.s.clock.now() - c.arrived
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

// connect starts handling a connect request.
func (c *conn) connect(e *entry) {
	s := c.s
	s.traffic.count(OpCreateSession)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.closed:
	case !c.r.serving:
		c.turnAway(e.connect)
	case e.fate.answer:
		e.decided = true
		c.pending = append(c.pending, e)
		c.drain()
	case e.connect.lastZxid > c.r.tree.zxid:
		// The client has seen a later state than this server has, so it must use another server.
		s.ens.journal.note("refused a client that has seen a later zxid", "client", c.pipe.client, "zxid", hex(e.connect.lastZxid))
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

// serve starts handling a request. The caller must hold mu, and the connection must
// be open.
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

// drain answers the pending requests, in order, up to the first that must still wait.
// It returns false if there is such a request.
func (c *conn) drain() bool {
	for len(c.pending) > 0 {
		e := c.pending[0]
		if e.remote && !e.ready(c.r.tree.zxid) {
			return false
		}
		c.pending[0] = nil
		c.pending = c.pending[1:]
		if len(c.pending) == 0 {
			c.pending = nil
		}
		c.answer(e)
		c.pipe.setWaiting(len(c.pending))
	}
	return true
}

// answer sends the reply to an entry, subject to its fate.
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

// attach assigns the session to the connection.
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

// encodeLocal writes the reply to a request that a member answers by itself. It reports whether the connection ends with it.
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

// encodeSASL writes the reply to a SASL step. A null token closes the connection, as
// in ZooKeeper.
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

// notify sends a watch event if the connection has permission to read the node.
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
