package zktest

import "time"

// reachable reports whether other members can talk to it.
func (m *Member) reachable() bool { return !m.stopped && !m.cut && !m.frozen }

func (s *Server) quorum() int { return len(s.members)/2 + 1 }

// inTouch reports whether a member and its leader can talk to each other.
func (s *Server) inTouch(m *Member) bool {
	if s.leader != nil && m == s.leader {
		return m.serving && !m.stopped && !m.frozen
	}
	return s.hears(m) && s.heard(m)
}

// canCommit reports whether the leader has a quorum to commit with.
func (s *Server) canCommit() bool {
	return s.leader != nil && s.inTouch(s.leader) && s.followers() >= s.quorum()
}

// followers counts the members in touch with the leader, itself included.
func (s *Server) followers() int {
	count := 0
	for _, m := range s.members {
		if s.inTouch(m) {
			count++
		}
	}
	return count
}

// hears reports whether what the leader sends reaches the member.
func (s *Server) hears(m *Member) bool {
	return s.follows(m) && m.reachable() && !m.deaf && !s.leader.stopped && !s.leader.cut
}

// heard reports whether what the member sends reaches the leader.
func (s *Server) heard(m *Member) bool {
	return s.follows(m) && m.reachable() && !m.mute && s.leader.reachable()
}

// follows reports whether the member believes in the present leader and is not it.
func (s *Server) follows(m *Member) bool {
	return s.leader != nil && m != s.leader && m.serving && m.epoch == s.epoch
}

// openLinks opens and closes the streams after a change of what reaches what.
func (s *Server) openLinks(now time.Duration) {
	for _, m := range s.members {
		m.link.down.setClosed(!s.hears(m), now)
		m.link.up.setClosed(!s.heard(m), now)
	}
}

// hearAll notes that the clients of all connections were heard.
func (s *Server) hearAll(now time.Duration) {
	for _, m := range s.members {
		for c := range m.conns {
			if c.sess != nil && s.inTouch(m) {
				c.sess.touch(c.timeout, now)
			}
		}
	}
}

// truth is the replica that counts: the leader's, or while there is none, the
// one that has seen most. The caller holds mu.
func (s *Server) truth() *tree {
	if s.leader != nil {
		return s.leader.tree
	}
	best := s.members[0]
	for _, m := range s.members {
		if m.tree.zxid > best.tree.zxid {
			best = m
		}
	}
	return best.tree
}

func (s *Server) allMembers() []*Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members
}
