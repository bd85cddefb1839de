package zktest

import "time"

// electionTime is how long members without a leader take to agree on one.
const electionTime = 200 * time.Millisecond

// reconcile brings the ensemble in line with which members reach each other. It runs
// after every change of that and at every deadline that comes of it. The
// caller holds mu.
func (s *Server) reconcile(now time.Duration) {
	s.checkContacts(now)
	s.checkLeader(now)
	if s.leader == nil {
		s.elect(now)
	}
	if s.leader != nil {
		s.joinAll()
	}
	s.openLinks(now)
	s.pump(now)
	for _, m := range s.members {
		m.deliver(now)
	}
	s.expireDue(now)
	s.proposeOutstanding()
}

func (s *Server) syncLimit() time.Duration { return time.Duration(s.opts.SyncLimit) * s.opts.TickTime }

// checkContacts notes which followers lost or regained their leader, and shuts
// those that have been without for syncLimit ticks.
func (s *Server) checkContacts(now time.Duration) {
	for _, m := range s.members {
		if m == s.leader || !m.serving {
			continue
		}
		switch {
		case s.inTouch(m):
			s.regained(m)
		case m.lostAt == never:
			m.lostAt = now
			s.arm(now + s.syncLimit())
		case now >= m.lostAt+s.syncLimit():
			s.note("member gave up its leader", "member", m.id)
			m.shut()
		case !s.follows(m) && m.reachable() && !m.deaf && (s.leader == nil || s.leader.reachable()):
			// Back in time, but what it followed is history: it must start over.
			m.shut()
		default:
			s.arm(m.lostAt + s.syncLimit())
		}
	}
}

// regained ends a loss of contact that was short enough: what was on the
// streams arrives now, and what the leader had committed meanwhile is logged.
func (s *Server) regained(m *Member) {
	if m.lostAt == never {
		return
	}
	m.lostAt = never
	m.logged = max(m.logged, m.link.newest())
}

// checkLeader deposes a leader that is dead, or that has had no quorum for
// syncLimit ticks.
func (s *Server) checkLeader(now time.Duration) {
	switch l := s.leader; {
	case l == nil:
	case l.stopped:
		s.depose()
	case len(s.members) == 1:
		// a server alone needs nobody's vote, however long it was frozen
	case s.canCommit():
		s.aloneSince = never
	case s.aloneSince == never:
		s.aloneSince = now
		s.arm(now + s.syncLimit())
	case now >= s.aloneSince+s.syncLimit():
		s.depose()
	default:
		s.arm(s.aloneSince + s.syncLimit())
	}
}

// depose ends a leadership. The followers that are linked to the leader notice
// at once; the others by their own deadline.
func (s *Server) depose() {
	old := s.leader
	s.dismissFollowers()
	old.shut()
	s.leader, s.aloneSince, s.outstanding = nil, never, nil
}

func (s *Server) dismissFollowers() {
	s.note("leader deposed", "member", s.leader.id)
	for _, m := range s.members {
		if s.follows(m) && m.reachable() && !m.deaf {
			m.shut()
		}
	}
}

// usurp ends the leadership of a member that is cut off and does not know: for
// as long as any other that has lost its leader it goes on serving its clients.
func (s *Server) usurp() {
	s.dismissFollowers()
	s.leader.former = s.usurped()
	s.leader, s.aloneSince, s.outstanding = nil, never, nil
}

// shut takes a member out of service: its clients are dropped, and what they
// had asked for and was not committed is lost. A frozen one drops them when it
// is thawed.
func (m *Member) shut() {
	m.serving, m.lostAt, m.syncs, m.former = false, never, nil, nil
	if !m.frozen {
		m.dropConns()
	}
	// What is in its log is not lost with its memory.
	committed, coming := m.backlog, m.link.inLog(m.logged)
	m.backlog = nil
	m.link.reset()
	for _, d := range committed {
		m.apply(d.t, false)
	}
	for _, t := range coming {
		m.apply(t, false)
	}
}

// elect lets a quorum of members that can talk to each other choose a leader,
// which takes them a moment.
func (s *Server) elect(now time.Duration) {
	best := s.candidate()
	switch {
	case best == nil:
		s.electAt = never
	case len(s.members) == 1:
		s.lead(best, now)
	case s.electAt == never:
		s.electAt = now + electionTime
		s.arm(s.electAt)
	case now >= s.electAt:
		s.lead(best, now)
	default:
		s.arm(s.electAt)
	}
}

// candidate is the member that a quorum would elect: the one that has seen
// most, and of those the last. There is none without a quorum.
func (s *Server) candidate() *Member {
	var best *Member
	count := 0
	for _, m := range s.members {
		if len(s.members) > 1 && (!m.reachable() || m.deaf || m.mute) || m.stopped {
			continue
		}
		count++
		if best == nil || m.logged >= best.logged {
			best = m
		}
	}
	if count < s.quorum() {
		return nil
	}
	return best
}

// lead makes a member the leader of a new epoch. Every session gets a full
// timeout again, through whichever member it writes.
func (s *Server) lead(m *Member, now time.Duration) {
	s.leader, s.leaderSince, s.reapedAt = m, now, now
	s.electAt, s.aloneSince = never, never
	s.epoch++
	if len(s.members) > 1 {
		s.zxid = s.epoch << 32
	}
	m.serving, m.lostAt, m.epoch, m.logged, m.tree.zxid = true, never, s.epoch, s.zxid, s.zxid
	m.link.reset()
	s.pingAt = now + s.opts.TickTime/2
	s.expirer, s.outstanding = expirer{}, nil
	for _, sess := range s.sessions {
		sess.closing = false
		s.renew(sess, sess.created, now)
		if at, ok := m.heard[sess.id]; ok {
			sess.touched = at
			s.watchExpiry(sess)
		}
	}
	s.note("leader elected", "member", m.id, "epoch", s.epoch)
}

// joinAll gives each member that can reach the leader the leader's data. What
// it had of its own is gone, if the leader does not have it.
func (s *Server) joinAll() {
	for _, m := range s.members {
		if m.serving || !m.reachable() || m.deaf || m.mute || !s.leader.reachable() {
			continue
		}
		m.link.reset()
		m.tree = s.leader.tree.clone()
		m.serving, m.lostAt, m.epoch, m.logged, m.backlog = true, never, s.epoch, m.tree.zxid, nil
	}
	if s.canCommit() {
		s.aloneSince = never
	}
}
