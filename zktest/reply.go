package zktest

import "time"

// drain returns what can be answered by now, in order; false means the first
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
		c.waiting.Store(int32(len(c.pending)))
		poke(c.room)
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
		c.attach(e.sess, e.timeout)
	}
	if over || e.fate.drop {
		c.close()
	}
}

// moved reports whether the session goes on elsewhere: such a client gets no answer,
// only the end of the connection.
func (e *entry) moved() bool {
	if e.txn != nil {
		return e.txn.code == CodeSessionMoved
	}
	return e.code == CodeSessionMoved && !e.fate.answer
}

// encode writes the reply's body and reports whether the connection ends with it.
func (c *conn) encode(enc *encoder, e *entry) bool {
	switch {
	case e.connect != nil:
		enc.connectReply(e)
		return e.sess == nil
	case e.txn != nil:
		enc.txnReply(e.call, e.txn)
		if e.call.op == OpSync && e.txn.code == CodeOK {
			enc.string(e.call.path)
		}
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
func (c *conn) attach(sess *session, timeout time.Duration) {
	c.sess, c.timeout = sess, timeout
	c.member.bySession[sess.id] = c
	close(c.attached)
}

func (e *encoder) connectReply(en *entry) {
	passwd := make([]byte, 16)
	e.int32(0) // protocol version
	if en.sess != nil {
		e.int32(int32(en.timeout / time.Millisecond))
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
