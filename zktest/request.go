package zktest

import (
	"fmt"
	"strings"
	"time"
)

// submit sends a request on its way to the leader.
func (s *Server) submit(e *entry) {
	switch m := e.c.member; {
	case m.former != nil:
		m.former.submit(e, s)
	case m == s.leader:
		s.arrive(e)
	default:
		m.forward(e, s.now())
	}
}

// forward sends a request of a follower's client up to the leader. Taking a
// session back does not wait for what is held.
func (m *Member) forward(e *entry, now time.Duration) {
	if m.link.holds > 0 && !m.s.isReattach(e) {
		m.link.requests = append(m.link.requests, e)
		return
	}
	m.s.pump(now)
	m.link.up.send(upFrame{request: e}, now)
	m.s.pump(now)
}

// release sends what was held back, in the order it came.
func (m *Member) release(now time.Duration) {
	waiting := m.link.requests
	m.link.requests = nil
	for _, e := range waiting {
		m.forward(e, now)
	}
}

// touched puts a session into the member's touch table.
func (m *Member) touched(sess *session, timeout, now time.Duration) {
	m.s.pump(now) // PINGs that were answered before this do not have it
	l := &m.link
	if p := m.s.opts.LoseTouches; p > 0 && !l.lostTouch[sess] && m.s.touchRng.Float64() < p {
		if l.lostTouch == nil {
			l.lostTouch = make(map[*session]bool)
		}
		l.lostTouch[sess] = true
		return
	}
	delete(l.lostTouch, sess)
	if l.touched == nil {
		l.touched = make(map[*session]time.Duration)
	}
	l.touched[sess] = timeout
}

// touch notes that a client was heard on c: at once where its server leads,
// else in the server's touch table. The caller holds mu.
func (s *Server) touch(c *conn, op Op, now time.Duration) {
	switch m := c.member; {
	case c.sess == nil:
	case s.opts.Flavor == Keeper:
		if m == s.leader && !op.writes() && op != OpPing && op != OpSync {
			m.hear(c.sess.id, now)
		}
	case m.former != nil:
		if known := m.former.sessions[c.sess.id]; known != nil {
			known.touch(c.timeout, now)
		}
	case m == s.leader:
		c.sess.touch(c.timeout, now)
	default:
		m.touched(c.sess, c.timeout, now)
	}
}

// submit returns a request that would need the leader, as far as a former
// leader does so by itself.
func (f *former) submit(e *entry, s *Server) {
	now, m := s.now(), e.c.member
	switch {
	case s.isReattach(e):
		e.sess, e.decided = f.takeBack(e, s, now), true
	case e.connect == nil && e.call.op == OpSync && !s.opts.orders(OpSync) && !f.proposed:
		e.decided, e.need = true, m.tree.zxid
	default:
		f.proposed = true
		return
	}
	m.awaitCommits(e.c)
}

// takeBack returns the session that a connect request asks for, nil if by the
// former leader's own clock it is over.
func (f *former) takeBack(e *entry, s *Server, now time.Duration) *session {
	known := f.sessions[e.connect.session]
	if known == nil || !known.validFor(e.connect) || s.expiryOf(known) <= now {
		return nil
	}
	e.timeout = s.negotiate(e.connect.timeout)
	known.touch(e.timeout, now)
	return known
}

// judge asks the interceptors and carries out what comes before processing.
// False means the request is not to be processed.
func (c *conn) judge(r *call, adjust func(*Request)) (fate, bool) {
	list := c.s.interceptors.Load()
	if list == nil || len(*list) == 0 {
		return fate{}, true
	}
	shown := c.show(r)
	if adjust != nil {
		adjust(shown)
	}
	var v Verdict
	for _, in := range *list {
		if w := in.fn(shown); v.kind == pass {
			v = w
		}
	}
	return c.carryOut(v)
}

func (c *conn) carryOut(v Verdict) (fate, bool) {
	switch v.kind {
	case dropBefore:
		c.s.drop(c)
		return fate{}, false
	case loseReply:
		return fate{lose: true}, true
	case dropReply:
		return fate{mute: true}, true
	case dropAfter:
		return fate{drop: true}, true
	case answerCode:
		return fate{answer: true, code: v.code}, true
	case hold:
		select {
		case <-v.release:
		case <-c.dead:
			return fate{}, false
		}
	case delay:
		return fate{}, c.until(c.s.now() + v.delay)
	}
	return fate{}, true
}

func (c *conn) show(r *call) *Request {
	shown := &Request{
		Op: r.op, Xid: r.xid, Path: r.path, Data: r.data, Flags: r.flags, Version: r.version, Watch: r.watch,
		Client: c.client, Member: c.member.id,
	}
	for i := range r.subs {
		shown.Ops = append(shown.Ops, r.subs[i].op)
		shown.Paths = append(shown.Paths, r.subs[i].path)
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.sess != nil {
		shown.Session = c.sess.id
	}
	return shown
}

// connect begins to answer a connect request. The caller holds mu.
func (c *conn) connect(e *entry) {
	s := c.s
	s.counts[OpCreateSession]++
	switch {
	case c.closed:
	case !c.member.serving:
		c.close()
	case e.fate.answer:
		e.decided = true
	case e.connect.lastZxid > c.member.tree.zxid:
		// The client has seen more than this server has: it must look for another.
		s.note("refused a client from the future", "client", c.client, "zxid", hex(e.connect.lastZxid))
		c.close()
	case e.connect.session != 0 && c.member.bySession[e.connect.session] != nil:
		c.member.bySession[e.connect.session].close()
		fallthrough
	default:
		c.pending = append(c.pending, e)
		s.submit(e)
		return
	}
	if e.decided {
		c.pending = append(c.pending, e)
		c.drain()
	}
}

// serve begins to answer a request. The caller holds mu and has checked that
// the connection is open.
func (c *conn) serve(r *call, f fate) {
	s := c.s
	s.counts[r.op]++
	c.stats.note(r)
	c.member.received++
	if s.opts.closesOn(r) {
		c.close()
		return
	}
	switch {
	case r.op == OpAuth || r.op == OpSASL:
	case s.opts.RequireSASL && !c.hasSASL():
		f = fate{answer: true, code: CodeRequiresSASL, drop: true}
	default:
		s.touch(c, r.op, s.now())
	}
	e := entry{c: c, call: r, fate: f}
	switch {
	case f.answer:
		e.decided, e.code = true, f.code
	case r.op == OpCreateContainer && s.opts.NoContainers, r.op == OpCreateTTL && s.opts.NoTTL:
		e.decided, e.code = true, CodeUnimplemented
	case s.opts.needsLeader(r):
		e.remote = true
	}
	if len(c.pending) == 0 && !e.remote {
		c.answer(&e)
		return
	}
	waiting := &e
	c.pending = append(c.pending, waiting)
	c.waiting.Store(int32(len(c.pending)))
	if e.remote {
		s.submit(waiting)
	}
}

// handle works on one packet; false means the connection is over.
func (c *conn) handle(p packet) bool {
	switch {
	case p.end:
		c.s.drop(c)
		return false
	case p.word != "":
		c.s.answerWord(c, p.word)
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
	r := &call{op: OpCreateSession}
	f, ok := c.judge(r, func(shown *Request) { shown.Session = req.session })
	if !ok {
		return false
	}
	c.s.mu.Lock()
	c.connect(&entry{c: c, call: r, connect: &req, fate: f, remote: true})
	c.s.mu.Unlock()
	// What comes behind the connect request is read when there is a session.
	select {
	case <-c.attached:
		return true
	case <-c.dead:
		return false
	}
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
	f, ok := c.judge(r, nil)
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

// answerWord answers a four-letter word and ends its connection.
func (s *Server) answerWord(c *conn, word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	if c.member.serving || word == "ruok" {
		words[word](s, c.member, &b)
	} else {
		b.WriteString("This ZooKeeper instance is not currently serving requests\n")
	}
	c.enqueue([]byte(b.String()))
	c.close()
}

func errFrameLength(n int32) error {
	return fmt.Errorf("frame length %d is outside 0..%d", n, maxFrame)
}
