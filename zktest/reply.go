// SPDX-License-Identifier: Apache-2.0

package zktest

import "time"

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

// noLeaderReply is a Keeper's reply to a connect request if it has no leader: a protocol version of
// its own, and the session -1.
func (e *encoder) noLeaderReply(timeout time.Duration) {
	e.int32(42)
	e.int32(int32(timeout / time.Millisecond))
	e.int64(-1)
	e.buffer(make([]byte, 16))
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

// mixedUpReply answers a request with the outcome of a request of another type. If the reply needs data that the outcome does
// not have, the reply is a marshalling error, as from a server that fails to build it.
func (e *encoder) mixedUpReply(r *call, t *txn) {
	needsMore := r.op != OpDelete && r.op != OpSync && r.op != OpCloseSession
	switch {
	case t.code != CodeOK:
		e.replyHeader(r.xid, t.zxid, t.code)
	case needsMore:
		e.replyHeader(r.xid, t.zxid, CodeMarshalling)
	default:
		e.replyHeader(r.xid, t.zxid, CodeOK)
		if r.op == OpSync {
			e.string(r.path)
		}
	}
}

// replyOp returns the type of a step's result in a multi's reply. A result with a path
// and a stat is a create2 there.
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

// replyWithCode writes a reply whose body is written by fn. If fn returns an error
// code, the reply has that code and no body.
func (e *encoder) replyWithCode(xid int32, zxid int64, fn func() int32) {
	head := len(e.buf)
	e.replyHeader(xid, zxid, CodeOK)
	if code := fn(); code != CodeOK {
		e.buf = e.buf[:head]
		e.replyHeader(xid, zxid, code)
	}
}

func (e *encoder) watchEvent(ev watchEvent) {
	e.int32(ev.kind)
	e.int32(3) // state: connected
	e.string(ev.path)
}
