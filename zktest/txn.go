// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"strings"
	"time"
)

// client is the ensemble's view of a connection. Its methods are called with
// Server.mu held.
type client interface {
	watcher
	// session returns the session, or nil if there is none yet, and the timeout
	// negotiated for the connection.
	session() (*session, time.Duration)
	// drain answers pending requests as far as possible, in order. It reports whether
	// none is left.
	drain() bool
	// close ends the connection after its last replies, abort at once.
	close()
	abort()
	info() connInfo
	resetCounts()
}

// connInfo contains what the four-letter words report about a connection.
type connInfo struct {
	remote      string
	queued      int // number of unanswered requests
	established time.Time
	received    int64
	sent        int64
	lastOp      Op
	lastXid     int32
}

func (c *connInfo) note(r *call) {
	c.received++
	c.lastOp, c.lastXid = r.op, r.xid
}

// word returns the last request's type in the form that cons prints: four capital letters.
func (c *connInfo) word() string {
	if c.received == 0 {
		return "SESS"
	}
	name := strings.ToUpper(c.lastOp.String())
	return name[:min(4, len(name))]
}

// requester says on whose behalf a request is executed. The zero value is the server
// itself, without an identity.
type requester struct {
	session *session // nil for a connect request and for the server itself
	ids     []identity
	name    string // name of the client
	member  int    // the member that received the request
}

func (by requester) id() int64 {
	if by.session == nil {
		return 0
	}
	return by.session.id
}

// entry is an unanswered request. A connection's entries are answered in order of
// arrival.
type entry struct {
	c       client
	by      requester
	call    *call
	connect *connectCall // set for a connect request
	fate    fate
	remote  bool          // it needs the leader: a write, a sync or a connect request
	txn     *txn          // the transaction of a write
	sess    *session      // connect: the session; nil if it was refused
	timeout time.Duration // connect: the negotiated timeout
	need    int64         // the zxid that the member must have applied before the reply
	decided bool          // the leader has replied; need is set
	code    int32         // the error code of a reply without a transaction
	mixedUp bool          // the member matched it with another request's commit, to which txn belongs
}

// ready reports whether a member that has applied transactions up to applied can reply.
func (e *entry) ready(applied int64) bool {
	if e.txn != nil {
		return applied >= e.txn.zxid
	}
	return e.decided && applied >= e.need
}

// isSettled reports whether a member that has applied transactions up to applied no longer waits for a commit.
func (e *entry) isSettled(applied int64) bool {
	return e.mixedUp || e.ready(applied)
}

// takes reports whether the member matches a commit with this request. It compares only the session and the xid.
func (e *entry) takes(t *txn) bool {
	return e.connect == nil && t.origin != nil && t.origin.connect == nil &&
		e.by.id() == t.session && e.call.xid == t.origin.call.xid
}

// mixUp gives the request the outcome of another request of its session.
func (e *entry) mixUp(t *txn) { e.txn, e.decided, e.mixedUp = t, true, true }

// decide records a result without a transaction.
func (e *entry) decide(need int64, code int32) {
	e.decided, e.need, e.code = true, need, code
}

// moved reports whether the session has moved to another member. The client then gets no
// reply; the connection is closed.
func (e *entry) moved() bool {
	if e.txn != nil {
		return e.txn.code == CodeSessionMoved
	}
	return e.code == CodeSessionMoved && !e.fate.answer
}

// reattaches reports whether the request is a connect request that asks for an existing session.
func (e *entry) reattaches() bool { return e.connect != nil && e.connect.session != 0 }

// syncs reports whether the request is a sync.
func (e *entry) syncs() bool { return e.connect == nil && e.call.op == OpSync }

// txn is a transaction that the leader sends to the members.
type txn struct {
	zxid, ms int64
	op       Op
	session  int64
	changes  []change
	results  []result
	code     int32
	origin   *entry // the request that waits for it, or nil
}

// result is the result of one step of a transaction.
type result struct {
	op   Op
	code int32
	path string
	stat Stat
}

// add adds a successful step.
func (t *txn) add(op Op, ch change) {
	t.changes = append(t.changes, ch)
	t.results = append(t.results, result{op: op, path: ch.path})
}

// fail makes t the transaction of a single failed write, which changes nothing.
func (t *txn) fail(r *call, code int32) {
	t.code, t.results = code, []result{{op: r.op, code: code, path: r.path}}
}

// refuse makes t the transaction of a failed multi, which changes nothing. The result of
// the bad step is code, that of the steps before it is 0, and that of the steps after it
// is CodeRuntimeInconsistency.
func (t *txn) refuse(subs []call, bad int, code int32) {
	t.changes, t.results, t.code = nil, nil, code
	for i, sub := range subs {
		res := result{op: opError, path: sub.path}
		switch {
		case i == bad:
			res.code = code
		case i > bad:
			res.code = CodeRuntimeInconsistency
		}
		t.results = append(t.results, res)
	}
}

// setStat records the stat of the node that the i-th step created or changed.
func (t *txn) setStat(i int, n *znode) {
	if n != nil && i < len(t.results) {
		t.results[i].stat = n.fullStat()
	}
}

// show returns the Txn for OnTxn.
func (t *txn) show() Txn {
	shown := Txn{Zxid: t.zxid, Time: time.UnixMilli(t.ms), Op: t.op, Session: t.session, Code: t.code}
	switch {
	case t.op == OpCloseSession:
		for _, ch := range t.changes {
			shown.Deleted = append(shown.Deleted, ch.path)
		}
	case t.op == OpMulti:
		for i, res := range t.results {
			step := Txn{Zxid: t.zxid, Time: shown.Time, Op: res.op, Session: t.session}
			t.fill(&step, i)
			shown.Steps = append(shown.Steps, step)
		}
	case len(t.results) == 1:
		t.fill(&shown, 0)
	}
	return shown
}

func (t *txn) fill(shown *Txn, i int) {
	shown.Path, shown.Code = t.results[i].path, t.results[i].code
	if i < len(t.changes) {
		shown.Data, shown.Owner = t.changes[i].data, t.changes[i].owner
	}
}
