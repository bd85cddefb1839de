package zktest

import (
	"fmt"
	"strings"
	"time"
)

// entry is a request whose answer is not out yet. A connection's entries are
// answered in the order they came.
type entry struct {
	c       *conn
	call    *call
	connect *connectCall // set for a connect request
	fate    fate
	remote  bool     // needs the leader: a write, a sync, a connect request
	txn     *txn     // what came of a write
	sess    *session // connect: the session; nil if it was refused
	need    int64    // what this member must have applied before the answer
	decided bool     // the leader has spoken; need is set
	code    int32    // an answer without a transaction
}

func errFrameLength(n int32) error {
	return fmt.Errorf("frame length %d is outside 0..%d", n, maxFrame)
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
		if e.sess = c.member.takeBack(*e.connect); e.sess != nil {
			e.decided = true
			break
		}
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
	s.touch(c, s.now())
	e := entry{c: c, call: r, fate: f}
	switch {
	case f.answer:
		e.decided, e.code = true, f.code
	case r.op == OpCreateContainer && s.opts.NoContainers:
		e.decided, e.code = true, CodeUnimplemented
	case r.op.writes() || r.op == OpSync && !r.bad:
		e.remote = true
	}
	if len(c.pending) == 0 && !e.remote {
		c.answer(&e)
		return
	}
	waiting := &e
	c.pending = append(c.pending, waiting)
	if e.remote {
		s.submit(waiting)
	}
}

// propose is the leader's part: it checks the session and orders the request.
func (s *Server) propose(e *entry) {
	c := e.c
	switch {
	case e.connect != nil:
		s.proposeConnect(e)
	case e.call.op == OpCloseSession:
		s.proposeClose(e)
	default:
		s.proposeRequest(e)
	}
	e.decided = true
	if e.txn != nil {
		e.need = e.txn.zxid
	}
	if !c.drain() && e.txn == nil {
		c.member.syncs = append(c.member.syncs, c)
	}
}

func (s *Server) proposeConnect(e *entry) {
	now := s.now()
	req := *e.connect
	switch {
	case req.session == 0, s.opts.ForgetSessions:
		sess := s.newSession(e.c, req)
		s.addSession(sess, now)
		e.sess = sess
		e.txn = s.begin(OpCreateSession, sess.id, e)
		e.need = e.txn.zxid
		s.commit(e.txn)
	default:
		e.sess = s.reattach(e.c, req, now)
	}
}

func (s *Server) proposeClose(e *entry) {
	sess := e.c.sess
	if sess.ended {
		s.fail(s.begin(OpCloseSession, sess.id, e), CodeOK)
		return
	}
	s.endSession(sess, e)
}

func (s *Server) proposeRequest(e *entry) {
	c, r := e.c, e.call
	sess := c.sess
	code := CodeOK
	switch {
	case sess.ended:
		code = CodeSessionExpired
	case sess.owner != c.member:
		code = CodeSessionMoved
	}
	switch {
	case r.op == OpSync:
		e.code, e.need = code, s.leader.tree.zxid
	case code != CodeOK && r.op == OpMulti && !r.bad:
		s.refuseMulti(r, sess.id, e, code)
	case code != CodeOK:
		s.fail(s.begin(r.op, sess.id, e), code)
	case r.op == OpReconfig:
		s.fail(s.begin(r.op, sess.id, e), CodeReconfigDisabled)
	case r.op == OpMulti:
		s.executeMulti(r, sess.id, c.ids, e)
	default:
		s.execute(r, sess.id, c.ids, e)
	}
}

func (s *Server) refuseMulti(r *call, session int64, e *entry, code int32) {
	t := s.begin(OpMulti, session, e)
	t.refuse(r.subs, 0, code)
	s.commit(t)
}

// drain answers what can be answered by now, in order; false means the first
// of what is left still waits. The caller holds mu.
func (c *conn) drain() bool {
	for len(c.pending) > 0 {
		e := c.pending[0]
		if e.remote && !e.ready() {
			return false
		}
		c.pending[0] = nil
		if c.pending = c.pending[1:]; len(c.pending) == 0 {
			c.pending = nil
		}
		c.answer(e)
	}
	return true
}

func (e *entry) ready() bool {
	if e.txn != nil {
		return e.c.member.tree.zxid >= e.txn.zxid
	}
	return e.decided && e.c.member.tree.zxid >= e.need
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
		c.stats.sent++
		c.member.sent++
		c.enqueue(enc.buf)
	}
	if e.connect != nil && e.sess != nil {
		c.attach(e.sess)
	}
	if over {
		c.close()
	}
}

// moved says that the session goes on elsewhere: such a client gets no answer,
// only the end of the connection.
func (e *entry) moved() bool {
	if e.txn != nil {
		return e.txn.code == CodeSessionMoved
	}
	return e.code == CodeSessionMoved && !e.fate.answer
}

// encode writes the reply's body and answers whether the connection ends with it.
func (c *conn) encode(enc *encoder, e *entry) bool {
	switch {
	case e.connect != nil:
		enc.connectReply(e)
		return e.sess == nil
	case e.txn != nil:
		enc.txnReply(e.call, e.txn)
		return e.call.op == OpCloseSession
	case e.decided:
		enc.replyHeader(e.call.xid, c.member.tree.zxid, e.code)
		if e.call.op == OpSync && e.code == CodeOK {
			enc.string(e.call.path)
		}
		return false
	case e.call.bad:
		enc.replyHeader(e.call.xid, c.member.tree.zxid, CodeMarshalling)
		return false
	}
	return c.encodeLocal(enc, e.call)
}

// attach makes the session the connection's own.
func (c *conn) attach(sess *session) {
	c.sess = sess
	c.member.bySession[sess.id] = c
	close(c.attached)
}

func (e *encoder) connectReply(en *entry) {
	passwd := make([]byte, 16)
	e.int32(0) // protocol version
	if en.sess != nil {
		e.int32(int32(en.sess.timeout / time.Millisecond))
		e.int64(en.sess.id)
		passwd = en.sess.passwd
	} else {
		e.int32(0)
		e.int64(0)
	}
	e.buffer(passwd)
	if en.connect.hasReadOnly {
		e.bool(false)
	}
}

func (e *encoder) txnReply(r *call, t *txn) {
	if r.op == OpMulti && t.code != CodeMarshalling && t.code != CodeSessionMoved || t.op == OpCloseSession {
		e.replyHeader(r.xid, t.zxid, CodeOK)
	} else {
		e.replyHeader(r.xid, t.zxid, t.code)
	}
	switch {
	case r.op == OpMulti && len(t.results) > 0 || r.op == OpMulti && t.code == CodeOK:
		for i := range t.results {
			res := &t.results[i]
			e.multiHeader(res.replyOp(), false, res.code)
			e.result(res)
		}
		e.multiHeader(-1, true, -1)
	case t.code == CodeOK && len(t.results) == 1:
		e.result(&t.results[0])
	}
}

// replyOp is the type a step's result has in a multi's reply: what has a stat
// besides the path is a create2 there.
func (res *result) replyOp() Op {
	if res.op == OpCreateContainer || res.op == OpCreateTTL {
		return OpCreate2
	}
	return res.op
}

func (e *encoder) result(res *result) {
	switch res.op {
	case OpCreate:
		e.string(res.path)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		e.string(res.path)
		e.stat(res.stat)
	case OpSetData, OpSetACL:
		e.stat(res.stat)
	case opError:
		e.int32(res.code)
	}
}

// encodeLocal answers what a member serves from its own replica.
func (c *conn) encodeLocal(e *encoder, r *call) (over bool) {
	m := c.member
	zxid := m.tree.zxid
	if c.sess.owner != m && m == m.s.leader && r.op != OpPing {
		c.close()
		return true
	}
	head := len(e.buf)
	switch r.op {
	case OpAuth:
		code := c.authenticate(r)
		e.replyHeader(r.xid, 0, code)
		return code != CodeOK
	case OpPing:
		e.replyHeader(xidPing, zxid, CodeOK)
		return false
	}
	if !r.op.known() {
		e.replyHeader(r.xid, zxid, CodeUnimplemented)
		return true
	}
	e.replyHeader(r.xid, zxid, CodeOK)
	body := len(e.buf)
	if code := c.encodeRead(e, r); code != CodeOK {
		e.buf = e.buf[:body]
		e.buf[head+12], e.buf[head+13], e.buf[head+14], e.buf[head+15] =
			byte(code>>24), byte(code>>16), byte(code>>8), byte(code)
	}
	return false
}

func (c *conn) encodeRead(e *encoder, r *call) int32 {
	if strings.IndexByte(r.path, 0) >= 0 {
		return CodeBadArguments
	}
	m := c.member
	switch r.op {
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2, OpGetACL, OpGetAllChildrenNumber:
		return c.encodeNode(e, r)
	case OpSetWatches, OpSetWatches2:
		m.watches.rearm(m.tree, c, r.relZxid, r.watches)
	case OpAddWatch:
		return c.addWatch(e, r)
	case OpCheckWatches, OpRemoveWatches:
		return c.removeWatches(r)
	case OpWhoAmI:
		c.encodeIDs(e)
	case OpGetEphemerals:
		e.strings(m.tree.ephemeralsOf(c.sess.id, r.path))
	case OpMultiRead:
		c.encodeMultiRead(e, r)
	default:
		return CodeUnimplemented
	}
	return CodeOK
}

func (c *conn) encodeNode(e *encoder, r *call) int32 {
	m := c.member
	n := m.tree.get(r.path)
	if n == nil {
		if r.op == OpExists && r.watch {
			m.watches.data.add(r.path, c, watchOnce)
		}
		return CodeNoNode
	}
	perms := PermRead
	if r.op == OpGetACL {
		perms |= PermAdmin
	}
	if r.op != OpExists && !allowed(n.acl, perms, c.ids) {
		return CodeNoAuth
	}
	switch r.op {
	case OpExists:
		e.stat(n.shown())
	case OpGetData:
		e.buffer(n.data)
		e.stat(n.shown())
	case OpGetChildren:
		e.strings(n.children.shuffled(m.s.rng))
	case OpGetChildren2:
		e.strings(n.children.shuffled(m.s.rng))
		e.stat(n.shown())
	case OpGetACL:
		e.acls(c.visibleACL(n))
		e.stat(n.shown())
	case OpGetAllChildrenNumber:
		e.int32(int32(m.tree.descendants(canonical(r.path))))
	}
	if r.watch {
		c.watch(r)
	}
	return CodeOK
}

// watch registers the one-shot watch that a read asked for.
func (c *conn) watch(r *call) {
	set := &c.member.watches.data
	if r.op == OpGetChildren || r.op == OpGetChildren2 {
		set = &c.member.watches.children
	}
	set.add(r.path, c, watchOnce)
}

func (c *conn) visibleACL(n *znode) []ACL {
	if allowed(n.acl, PermAdmin, c.ids) {
		return n.acl
	}
	return masked(n.acl)
}

func (c *conn) encodeMultiRead(e *encoder, r *call) {
	for i := range r.subs {
		sub := &r.subs[i]
		sub.watch = false
		start := len(e.buf)
		e.multiHeader(sub.op, false, CodeOK)
		if code := c.encodeRead(e, sub); code != CodeOK {
			e.buf = e.buf[:start]
			e.multiHeader(opError, false, code)
			e.int32(code)
		}
	}
	e.multiHeader(-1, true, -1)
}

// addWatch serves the persistent modes: 0 for one node and its children, 1 for
// all that is below it.
func (c *conn) addWatch(e *encoder, r *call) int32 {
	w := c.member.watches
	switch r.flags {
	case 0:
		w.data.add(r.path, c, watchPersistent)
		w.children.add(r.path, c, watchPersistent)
	case 1:
		w.data.add(r.path, c, watchRecursive)
	default:
		return CodeMarshalling
	}
	e.int32(CodeOK)
	return CodeOK
}

// removeWatches serves checkWatches as well, which only looks. Types: 1 child
// watches, 2 data watches, 3 any.
func (c *conn) removeWatches(r *call) int32 {
	const all = watchOnce | watchPersistent | watchRecursive
	w := c.member.watches
	if r.flags < 1 || r.flags > 3 {
		return CodeMarshalling
	}
	var found bool
	for i, set := range []*watchSet{&w.children, &w.data} {
		if r.flags != 3 && r.flags != int32(i+1) {
			continue
		}
		if r.op == OpCheckWatches {
			found = set.has(r.path, c) || found
		} else {
			found = set.drop(r.path, c, all) || found
		}
	}
	if !found {
		return CodeNoWatcher
	}
	return CodeOK
}

func (c *conn) encodeIDs(e *encoder) {
	e.int32(int32(len(c.ids)))
	for _, id := range c.ids {
		e.string(id.scheme)
		name := id.id
		if id.scheme == "digest" {
			name, _, _ = strings.Cut(name, ":")
		}
		e.string(name)
	}
}

// authenticate adds an identity to the connection. An unknown scheme ends it.
func (c *conn) authenticate(r *call) int32 {
	if r.scheme == "ip" {
		return CodeOK // proved by the address already
	}
	if r.scheme != "digest" {
		return CodeAuthFailed
	}
	id := identity{"digest", digestID(string(r.data))}
	for _, known := range c.ids {
		if known == id {
			return CodeOK
		}
	}
	c.ids = append(c.ids, id)
	return CodeOK
}

// notify sends a watch event.
func (c *conn) notify(event int32, path string) {
	if c.closed {
		return
	}
	var e encoder
	start := e.beginFrame()
	e.replyHeader(xidNotification, -1, CodeOK)
	e.int32(event)
	e.int32(3) // state: connected
	e.string(path)
	e.endFrame(start)
	c.stats.sent++
	c.member.sent++
	c.enqueue(e.buf)
}
