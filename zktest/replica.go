package zktest

import "time"

// nextReap is when the leader looks for containers and TTL nodes next: at a
// fixed interval from the start of its leadership.
func (s *Server) nextReap() time.Duration {
	every := s.opts.ContainerCheck
	return s.leaderSince + ((s.reapedAt-s.leaderSince)/every+1)*every
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
	if m.s.opts.Flavor == Keeper && t.session != 0 {
		m.hear(t.session, m.s.now())
	}
	if t.op == OpCloseSession {
		delete(m.heard, t.session)
		if c := m.bySession[t.session]; c != nil && (t.origin == nil || t.origin.c != c) {
			c.close()
		}
	}
	if t.origin != nil && t.origin.c.member == m {
		t.origin.c.drain()
	}
	m.releaseSyncs()
	m.s.stir()
}

// take applies a commit that has arrived, or keeps it for as long as the member lags.
func (m *Member) take(t *txn, now time.Duration) {
	due := now + m.lag
	if n := len(m.backlog); n > 0 {
		due = max(due, m.backlog[n-1].due)
	}
	m.logged = max(m.logged, t.zxid)
	m.backlog = append(m.backlog, delivery{t, due})
	m.deliver(now)
}

// deliver applies what is due.
func (m *Member) deliver(now time.Duration) {
	for len(m.backlog) > 0 && !m.frozen {
		d := m.backlog[0]
		if d.due > now {
			m.s.arm(d.due)
			return
		}
		m.backlog = m.backlog[1:]
		m.apply(d.t, false)
	}
	if len(m.backlog) == 0 {
		m.backlog = nil
	}
}

// awaitCommits returns what can be answered on a connection by now; the rest
// waits for commits that other connections caused.
func (m *Member) awaitCommits(c *conn) {
	if !c.drain() {
		m.syncs = append(m.syncs, c)
	}
}

// releaseSyncs returns the connections that waited for a commit of another's.
func (m *Member) releaseSyncs() {
	if len(m.syncs) == 0 {
		return
	}
	waiting := m.syncs
	m.syncs = nil
	for _, c := range waiting {
		if !c.drain() {
			m.syncs = append(m.syncs, c)
		}
	}
}

// receive is the follower's end of the stream from the leader.
func (m *Member) receive(f downFrame, now time.Duration) {
	switch {
	case f.txn != nil:
		m.take(f.txn, now)
	case f.answer != nil:
		f.answer.decided = true
		m.awaitCommits(f.answer.c)
	case len(m.link.touched) > 0:
		m.link.up.send(upFrame{touched: m.link.touched}, now)
		m.link.touched = nil
	}
}

// replicate passes a committed transaction on to a follower. One that hears the
// leader has it in its log at once, however late the commit arrives.
func (s *Server) replicate(m *Member, t *txn, now time.Duration) {
	if !s.follows(m) {
		return // gets a copy of the whole tree when it joins
	}
	if s.hears(m) {
		m.logged = t.zxid
	}
	m.link.down.send(downFrame{txn: t}, now)
}
