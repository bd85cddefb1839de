package zktest

import (
	"strings"
	"time"
)

// client is a connection as the ensemble knows it. Its methods are called with
// Server.mu held.
type client interface {
	watcher
	// session returns the session, nil until there is one, with the timeout that
	// was negotiated for the connection.
	session() (*session, time.Duration)
	// drain sends what can be answered by now, in order. It reports whether
	// nothing is left.
	drain() bool
	// close ends the connection after its last answers, abort at once.
	close()
	abort()
	info() connInfo
	resetCounts()
}

// connInfo is what the four-letter words tell of a connection.
type connInfo struct {
	remote      string
	queued      int // requests that are not answered yet
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

// word is the last request's type as cons writes it: four capital letters.
func (c *connInfo) word() string {
	if c.received == 0 {
		return "SESS"
	}
	name := strings.ToUpper(c.lastOp.String())
	return name[:min(4, len(name))]
}

// requester is on whose behalf a request is carried out. The zero value is the
// server itself, without any identity.
type requester struct {
	session *session // nil for a connect request and for the server itself
	ids     []identity
	name    string // of the client
	member  int    // where the request came in
}

func (by requester) id() int64 {
	if by.session == nil {
		return 0
	}
	return by.session.id
}

// entry is a request whose answer is not out yet. A connection's entries are
// answered in the order they came.
type entry struct {
	c       client
	by      requester
	call    *call
	connect *connectCall // set for a connect request
	fate    fate
	remote  bool          // needs the leader: a write, a sync, a connect request
	txn     *txn          // what came of a write
	sess    *session      // connect: the session; nil if it was refused
	timeout time.Duration // connect: what was negotiated
	need    int64         // what this member must have applied before the answer
	decided bool          // the leader has spoken; need is set
	code    int32         // an answer without a transaction
	mixedUp bool          // its member took another request's commit for its own: txn is that one's
}

// ready reports whether a member that has applied transactions up to applied can answer.
func (e *entry) ready(applied int64) bool {
	if e.txn != nil {
		return applied >= e.txn.zxid
	}
	return e.decided && applied >= e.need
}

// isSettled reports whether a member that has applied transactions up to applied waits for nothing more.
func (e *entry) isSettled(applied int64) bool {
	return e.mixedUp || e.ready(applied)
}

// takes reports whether its member takes a commit for the answer: it compares the session and the request's number.
func (e *entry) takes(t *txn) bool {
	return e.connect == nil && t.origin != nil && t.origin.connect == nil &&
		e.by.id() == t.session && e.call.xid == t.origin.call.xid
}

// mixUp gives the request the outcome of another one of its session.
func (e *entry) mixUp(t *txn) { e.txn, e.decided, e.mixedUp = t, true, true }

// decide notes what the leader has to say, besides a transaction.
func (e *entry) decide(need int64, code int32) {
	e.decided, e.need, e.code = true, need, code
}

// moved reports whether the session goes on elsewhere: such a client gets no answer,
// only the end of the connection.
func (e *entry) moved() bool {
	if e.txn != nil {
		return e.txn.code == CodeSessionMoved
	}
	return e.code == CodeSessionMoved && !e.fate.answer
}

// reattaches reports whether a request asks for a session that it had before.
func (e *entry) reattaches() bool { return e.connect != nil && e.connect.session != 0 }

// syncs reports whether the request is a sync.
func (e *entry) syncs() bool { return e.connect == nil && e.call.op == OpSync }

// txn is a transaction on its way through the members.
type txn struct {
	zxid, ms int64
	op       Op
	session  int64
	changes  []change
	results  []result
	code     int32
	origin   *entry // the request that waits for it, if any
}

// result is what one step of a transaction answers.
type result struct {
	op   Op
	code int32
	path string
	stat Stat
}

// add notes a step that can be carried out.
func (t *txn) add(op Op, ch change) {
	t.changes = append(t.changes, ch)
	t.results = append(t.results, result{op: op, path: ch.path})
}

// fail turns the transaction of a single write into one that changes nothing.
func (t *txn) fail(r *call, code int32) {
	t.code, t.results = code, []result{{op: r.op, code: code, path: r.path}}
}

// refuse turns a multi into one that changes nothing: the steps before the bad
// one answer 0, it answers its code, those after it an inconsistency.
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

// setStat notes the node that the i-th step has left.
func (t *txn) setStat(i int, n *znode) {
	if n != nil && i < len(t.results) {
		t.results[i].stat = n.shown()
	}
}

// show returns the transaction as OnTxn shows it.
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
