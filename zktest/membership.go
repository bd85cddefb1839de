package zktest

import "time"

// membership is who belongs to the ensemble, who leads it, and which members
// can talk to each other.
type membership struct {
	members []*replica
	leader  *replica // nil while there is none
	epoch   int64    // of the leader, or of the last one
	longest *replica // the last leader, if it has logged what no quorum has; nil once there is another leader
}

// quorum is how many members have to agree: a majority of those with a vote.
func (m *membership) quorum() int {
	voters := 0
	for _, r := range m.members {
		if !r.observer {
			voters++
		}
	}
	return voters/2 + 1
}

// running counts the members with a vote that are not stopped.
func (m *membership) running() int {
	count := 0
	for _, r := range m.members {
		if !r.observer && !r.stopped {
			count++
		}
	}
	return count
}

// alone reports whether there is one member only. It needs nobody's vote.
func (m *membership) alone() bool { return len(m.members) == 1 }

// follows reports whether the member believes in the present leader and is not it.
func (m *membership) follows(r *replica) bool {
	return m.leader != nil && r != m.leader && r.serving && r.epoch == m.epoch
}

// hears reports whether what the leader sends reaches the member.
func (m *membership) hears(r *replica) bool {
	return m.follows(r) && r.reachable() && !r.deaf && !m.leader.stopped && !m.leader.cut
}

// heard reports whether what the member sends reaches the leader.
func (m *membership) heard(r *replica) bool {
	return m.follows(r) && r.reachable() && !r.mute && m.leader.reachable()
}

// inTouch reports whether a member and its leader can talk to each other.
func (m *membership) inTouch(r *replica) bool {
	if m.leader != nil && r == m.leader {
		return r.serving && !r.stopped && !r.frozen
	}
	return m.hears(r) && m.heard(r)
}

// votes counts the members with a vote that are in touch with the leader, itself included.
func (m *membership) votes() int {
	return m.count(func(r *replica) bool { return !r.observer })
}

// learners counts the members in touch with the leader, itself not included.
func (m *membership) learners() int {
	return m.count(func(r *replica) bool { return r != m.leader })
}

func (m *membership) count(of func(*replica) bool) int {
	count := 0
	for _, r := range m.members {
		if m.inTouch(r) && of(r) {
			count++
		}
	}
	return count
}

// canCommit reports whether the leader has a quorum to commit with.
func (m *membership) canCommit() bool {
	return m.leader != nil && m.inTouch(m.leader) && m.votes() >= m.quorum()
}

// leaderRuns reports whether there is a leader that is neither frozen nor stopped.
func (m *membership) leaderRuns() bool {
	return m.leader != nil && !m.leader.frozen && !m.leader.stopped
}

// missesNews reports whether a member that has lost its leader is back in time,
// but what it followed is history.
func (m *membership) missesNews(r *replica) bool {
	return !m.follows(r) && r.reachable() && !r.deaf && (m.leader == nil || m.leader.reachable())
}

// mayJoin reports whether a member out of service can reach the leader.
func (m *membership) mayJoin(r *replica) bool {
	return !r.serving && r.reachable() && !r.deaf && !r.mute && m.leader.reachable()
}

// candidate is the member that a quorum would elect: the one that has logged
// most, and of those the last. There is none without a quorum.
func (m *membership) candidate() *replica {
	var best *replica
	count := 0
	for _, r := range m.members {
		if !m.mayVote(r) {
			continue
		}
		count++
		if best == nil || r.logged > best.logged || r.logged == best.logged && best != m.longest {
			best = r
		}
	}
	if count < m.quorum() {
		return nil
	}
	return best
}

// mayVote reports whether a member can take part in an election.
func (m *membership) mayVote(r *replica) bool {
	if m.alone() {
		return !r.stopped
	}
	return !r.observer && r.reachable() && !r.deaf && !r.mute
}

// truth is the replica that counts: the leader's, or while there is none, the
// one that has seen most.
func (m *membership) truth() *tree {
	if m.leader != nil {
		return m.leader.latest()
	}
	best := m.members[0]
	for _, r := range m.members {
		if r.tree.zxid > best.tree.zxid {
			best = r
		}
	}
	return best.tree
}

// whereIs is the member at which a session has a connection, -1 for none. It
// prefers the one that owns the session to one with a stale connection.
func (m *membership) whereIs(sess *session) int {
	if m.members[sess.owner].attached[sess.id] != nil {
		return sess.owner
	}
	for _, r := range m.members {
		if r.attached[sess.id] != nil {
			return r.id
		}
	}
	return -1
}

// openLinks opens and closes the streams after a change of what reaches what.
func (m *membership) openLinks(now time.Duration) {
	for _, r := range m.members {
		r.link.down.setClosed(!m.hears(r), now)
		r.link.up.setClosed(!m.heard(r), now)
	}
}

// hearAll notes that the clients of all members in touch with the leader were heard.
func (m *membership) hearAll(now time.Duration) {
	for _, r := range m.members {
		if m.inTouch(r) {
			r.hearAll(now)
		}
	}
}

// dropClients ends every connection of every member.
func (m *membership) dropClients() {
	for _, r := range m.members {
		r.dropClients()
	}
}

// mode is what a member calls itself.
func (m *membership) mode(r *replica) string {
	switch {
	case m.alone():
		return "standalone"
	case r == m.leader:
		return "leader"
	case r.observer:
		return "observer"
	}
	return "follower"
}
