package zktest

import (
	"slices"
	"time"
)

// begin takes the next zxid. A write takes it before its checks, so that a
// failed one uses it up as well. The caller holds mu; there is a leader.
func (s *Server) begin(op Op, session int64, origin *entry) *txn {
	s.zxid++
	return &txn{zxid: s.zxid, ms: s.wall().UnixMilli(), op: op, session: session, origin: origin}
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

// execute checks a single write against the leader's tree and commits it or its failure.
func (s *Server) execute(r *call, session int64, ids []identity, origin *entry) *txn {
	t := s.begin(r.op, session, origin)
	if r.bad {
		return s.fail(t, CodeMarshalling)
	}
	v := view{t: s.leader.tree, sasl: len(s.opts.SASL) > 0}
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
	v := view{t: s.leader.tree, pending: make(map[string]record), sasl: len(s.opts.SASL) > 0}
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
	now := s.now()
	s.pump(now) // what the leader sent before this
	for _, m := range s.members {
		s.replicate(m, t, now)
	}
	s.pump(now)
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
	switch {
	case e.txn != nil: // its commit tells the member
		e.need, e.decided = e.txn.zxid, true
		c.drain()
	case c.member == s.leader:
		e.decided = true
		c.member.awaitCommits(c)
	default:
		now := s.now()
		c.member.link.down.send(downFrame{answer: e}, now)
		s.pump(now)
	}
}

func (s *Server) proposeConnect(e *entry) {
	now := s.now()
	req := *e.connect
	switch {
	case !s.isReattach(e):
		sess := s.newSession(e.c, req)
		s.addSession(sess, now)
		e.sess, e.timeout = sess, sess.created
		e.txn = s.begin(OpCreateSession, sess.id, e)
		e.need = e.txn.zxid
		s.commit(e.txn)
	default:
		e.sess = s.reattach(e, now)
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
	case sess.ended || sess.closing:
		code = CodeSessionExpired
	case sess.owner != c.member:
		code = CodeSessionMoved
	}
	switch {
	case r.op == OpSync && !s.opts.orders(OpSync):
		e.code, e.need = code, s.leader.tree.zxid
	case code == CodeOK && r.bad && r.op.creates() && s.opts.Flavor == ZooKeeper39:
		e.code, e.need = CodeMarshalling, s.leader.tree.zxid
	case code != CodeOK && r.op == OpMulti && !r.bad:
		s.refuseMulti(r, sess.id, e, code)
	case code != CodeOK:
		s.fail(s.begin(r.op, sess.id, e), code)
	case r.op == OpPing || r.op == OpSync: // a Keeper commits them
		s.fail(s.begin(r.op, sess.id, e), CodeOK)
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

// isReattach reports whether a request asks for a session that there is.
func (s *Server) isReattach(e *entry) bool {
	return e.connect != nil && e.connect.session != 0 && !s.opts.forgets()
}

// arrive takes a request in at the leader. Taking a session back and a sync need
// no quorum, but a sync waits for what was proposed before it.
func (s *Server) arrive(e *entry) {
	isSync := e.connect == nil && e.call.op == OpSync && !s.opts.orders(OpSync)
	if s.canCommit() || s.isReattach(e) || isSync && len(s.outstanding) == 0 {
		s.propose(e)
		return
	}
	s.outstanding = append(s.outstanding, e)
}

// proposeOutstanding commits what waited for a quorum, in the order it came.
func (s *Server) proposeOutstanding() {
	if !s.canCommit() {
		return
	}
	waiting := s.outstanding
	s.outstanding = nil
	for _, e := range waiting {
		s.propose(e)
	}
}

// pump carries what is due on the streams to its ends, in the order of the
// moments it arrives at. PINGs and their answers have no alarm of their own:
// they are made up for here, before anything that they could have changed.
// The caller holds mu.
func (s *Server) pump(now time.Duration) {
	if s.pumping {
		return // the loop below goes on with what came of it
	}
	s.pumping = true
	for s.carryOne(now) {
	}
	s.pumping = false
	s.armLinks()
}

// carryOne carries the frame that is due first, or sends the PINGs that are.
func (s *Server) carryOne(now time.Duration) bool {
	first, at, upwards := (*Member)(nil), never, false
	for _, m := range s.members {
		if due := m.link.down.next(); due < at {
			first, at, upwards = m, due, false
		}
		if due := m.link.up.next(); due < at {
			first, at, upwards = m, due, true
		}
	}
	ping := s.nextPing()
	switch {
	case min(ping, at) > now:
		return false
	case ping < at:
		s.sendPings(ping, now)
	case upwards:
		s.receive(first.link.up.take(), at)
	default:
		first.receive(first.link.down.take(), at)
	}
	return true
}

// nextPing is when the leader sends its next PINGs: every half tick, if it runs.
func (s *Server) nextPing() time.Duration {
	if s.leader == nil || s.leader.frozen || s.leader.stopped {
		return never
	}
	return s.pingAt
}

// sendPings puts a PING on each stream. If none would have any effect before
// now, it skips those that are due until then.
func (s *Server) sendPings(at, now time.Duration) {
	half := s.opts.TickTime / 2
	s.pingAt = at + half
	busy := false
	for _, m := range s.members {
		if !s.follows(m) || m.link.down.idle() && len(m.link.touched) == 0 {
			continue
		}
		m.link.down.send(downFrame{}, at)
		busy = true
	}
	if !busy {
		s.pingAt += (now - at) / half * half
	}
}

// receive is the leader's end of a stream from a follower.
func (s *Server) receive(f upFrame, now time.Duration) {
	if f.request != nil {
		s.arrive(f.request)
		return
	}
	for sess, timeout := range f.touched {
		sess.touch(timeout, now)
	}
}

// armLinks sets the alarm for the frames that must be carried on time.
func (s *Server) armLinks() {
	for _, m := range s.members {
		s.arm(m.link.deadline())
	}
}

// deadline is when the first frame that is no PING and no answer to one arrives.
func (l *link) deadline() time.Duration {
	at := never
	if !l.down.closed {
		for _, f := range l.down.frames {
			if !f.frame.isPing() {
				at = f.due
				break
			}
		}
	}
	if !l.up.closed {
		for _, f := range l.up.frames {
			if f.frame.request != nil {
				at = min(at, f.due)
				break
			}
		}
	}
	return at
}
