package zktest

import (
	"slices"
	"time"
)

// Txn is a transaction as OnTxn shows it. Failed writes are transactions too:
// they take a zxid and change nothing.
type Txn struct {
	Zxid    int64
	Time    time.Time
	Op      Op
	Session int64    // who asked; 0 for the server itself
	Path    string   // of a create: the name the node got
	Data    []byte   // of a create or setData
	Code    int32    // of a multi: the first step's that failed
	Owner   int64    // of a create: the ephemeral owner
	Deleted []string // of a closeSession: the ephemerals that ended with it
	Steps   []Txn    // of a multi
}

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

// begin takes the next zxid. A write takes it before its checks, so that a
// failed one uses it up as well. The caller holds mu; there is a leader.
func (s *Server) begin(op Op, session int64, origin *entry) *txn {
	s.zxid++
	return &txn{zxid: s.zxid, ms: time.Now().UnixMilli(), op: op, session: session, origin: origin}
}

// execute checks a single write against the leader's tree and commits it or its failure.
func (s *Server) execute(r *call, session int64, ids []identity, origin *entry) *txn {
	t := s.begin(r.op, session, origin)
	if r.bad {
		return s.fail(t, CodeMarshalling)
	}
	v := view{t: s.leader.tree}
	ch, code := v.prepare(r, session, ids)
	if code != CodeOK {
		ch.path = r.path
		t.results = []result{{op: r.op, code: code, path: r.path}}
		return s.fail(t, code)
	}
	t.changes = []change{ch}
	t.results = []result{{op: r.op, path: ch.path}}
	s.commit(t)
	return t
}

// executeMulti commits all steps of a multi under one zxid, or none.
func (s *Server) executeMulti(r *call, session int64, ids []identity, origin *entry) *txn {
	t := s.begin(OpMulti, session, origin)
	if r.bad {
		return s.fail(t, CodeMarshalling)
	}
	v := view{t: s.leader.tree, pending: make(map[string]record)}
	for i := range r.subs {
		sub := &r.subs[i]
		ch, code := v.prepare(sub, session, ids)
		if code != CodeOK {
			t.refuse(r.subs, i, code)
			break
		}
		t.changes = append(t.changes, ch)
		t.results = append(t.results, result{op: sub.op, path: ch.path})
	}
	s.commit(t)
	return t
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

func (s *Server) fail(t *txn, code int32) *txn {
	t.code = code
	s.commit(t)
	return t
}

// endSession commits the end of a session: one transaction with all its ephemerals.
func (s *Server) endSession(sess *session, origin *entry) *txn {
	t := s.begin(OpCloseSession, sess.id, origin)
	own := make([]string, 0, len(s.leader.tree.ephemerals[sess.id]))
	for path := range s.leader.tree.ephemerals[sess.id] {
		own = append(own, path)
	}
	slices.Sort(own)
	for _, path := range own {
		t.changes = append(t.changes, change{kind: changeDelete, path: path})
	}
	sess.ended = true
	delete(s.sessions, sess.id)
	s.commit(t)
	return t
}

// commit applies a transaction on the leader and passes it on to the followers.
func (s *Server) commit(t *txn) {
	if t.origin != nil {
		t.origin.txn = t
	}
	s.tellHooks(t) // first: no client may see an effect that a hook has not
	s.leader.apply(t, true)
	for _, m := range s.members {
		if m != s.leader {
			s.replicate(m, t)
		}
	}
}

// apply makes a transaction visible on one member: the tree, the events, and
// then whatever replies waited for it. The leader's run fills in the results.
func (m *Member) apply(t *txn, fill bool) {
	for i := range t.changes {
		n := m.tree.apply(&t.changes[i], t.zxid, t.ms, m.watches)
		if fill && n != nil && i < len(t.results) {
			t.results[i].stat = n.shown()
		}
	}
	if fill && len(m.tree.reapable) > 0 {
		m.s.arm(m.s.nextReap())
	}
	m.tree.zxid = t.zxid
	if t.op == OpCloseSession {
		if c := m.bySession[t.session]; c != nil && (t.origin == nil || t.origin.c != c) {
			c.close()
		}
	}
	if t.origin != nil && t.origin.c.member == m {
		t.origin.c.drain()
	}
	m.releaseSyncs()
}

func (s *Server) tellHooks(t *txn) {
	if len(s.txnHooks) == 0 {
		return
	}
	shown := t.show()
	for _, h := range s.txnHooks {
		h.fn(shown)
	}
}

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
			step.fill(t, i)
			shown.Steps = append(shown.Steps, step)
		}
	case len(t.results) == 1:
		shown.fill(t, 0)
	}
	return shown
}

func (shown *Txn) fill(t *txn, i int) {
	shown.Path, shown.Code = t.results[i].path, t.results[i].code
	if i < len(t.changes) {
		shown.Data, shown.Owner = t.changes[i].data, t.changes[i].owner
	}
}
