// SPDX-License-Identifier: Apache-2.0

package zktest

import "time"

// membership holds the members of the ensemble and its leader, and determines which
// members can reach each other.
type membership struct {
	members []*replica
	leader  *replica // nil if there is none
	epoch   int64    // epoch of the current or last leader
	longest *replica // the last leader, if it has logged proposals that no quorum has; nil once there is another leader
}

// quorum returns how many members have to agree: a majority of those with a vote.
func (m *membership) quorum() int {
	voters := 0
	for _, r := range m.members {
		if !r.observer {
			voters++
		}
	}
	return voters/2 + 1
}

// running returns the number of members with a vote that are not stopped.
func (m *membership) running() int {
	count := 0
	for _, r := range m.members {
		if !r.observer && !r.stopped {
			count++
		}
	}
	return count
}

// alone reports whether there is only one member, which needs no votes.
func (m *membership) alone() bool { return len(m.members) == 1 }

// follows reports whether the member follows the current leader.
func (m *membership) follows(r *replica) bool {
	return m.leader != nil && r != m.leader && r.serving && r.epoch == m.epoch
}

// reachedByLeader reports whether messages from the leader reach the member.
func (m *membership) reachedByLeader(r *replica) bool {
	return m.follows(r) && r.reachable() && !r.deaf && !m.leader.stopped && !m.leader.cut
}

// reachesLeader reports whether messages from the member reach the leader.
func (m *membership) reachesLeader(r *replica) bool {
	return m.follows(r) && r.reachable() && !r.mute && m.leader.reachable()
}

// inTouch reports whether a member and its leader can reach each other.
func (m *membership) inTouch(r *replica) bool {
	if m.leader != nil && r == m.leader {
		return r.serving && !r.stopped && !r.frozen
	}
	return m.reachedByLeader(r) && m.reachesLeader(r)
}

// votes returns the number of members with a vote that are in contact with the leader, including the leader.
func (m *membership) votes() int {
	return m.count(func(r *replica) bool { return !r.observer })
}

// learners returns the number of members in contact with the leader, not including the leader.
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

// missesNews reports whether a member that had lost contact is reachable again, but the
// leader that it followed is no longer the leader.
func (m *membership) missesNews(r *replica) bool {
	return !m.follows(r) && r.reachable() && !r.deaf && (m.leader == nil || m.leader.reachable())
}

// mayJoin reports whether a member out of service can reach the leader.
func (m *membership) mayJoin(r *replica) bool {
	return !r.serving && r.reachable() && !r.deaf && !r.mute && m.leader.reachable()
}

// candidate returns the member that a quorum would elect: the one with the longest log.
// Among equals it is longest, if it is one of them, and otherwise the last one. candidate
// returns nil without a quorum.
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

// truth returns the authoritative tree: the leader's or, if there is no leader, the one
// with the highest zxid.
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

// whereIs returns the member to which a session is connected, or -1 if there is none.
// It prefers the member that owns the session to one with a stale connection.
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

// openLinks opens and closes the streams according to which members can reach each other.
func (m *membership) openLinks(now time.Duration) {
	for _, r := range m.members {
		r.link.down.setClosed(!m.reachedByLeader(r), now)
		r.link.up.setClosed(!m.reachesLeader(r), now)
	}
}

// hearAll touches the sessions of all members' clients that are in contact with the leader.
func (m *membership) hearAll(now time.Duration) {
	for _, r := range m.members {
		if m.inTouch(r) {
			r.hearAll(now)
		}
	}
}

// dropClients closes every connection of every member.
func (m *membership) dropClients() {
	for _, r := range m.members {
		r.dropClients()
	}
}

// mode returns the mode that a member reports.
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
