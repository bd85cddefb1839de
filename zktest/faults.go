package zktest

import (
	"container/heap"
	"fmt"
	"time"
)

// ExpireSession ends a session now, or as soon as the leader has a quorum, as
// if its timeout had passed: its ephemerals go, its connection is closed.
func (s *Server) ExpireSession(id int64) {
	s.alter(func(now time.Duration) {
		if sess := s.sessions[id]; sess != nil {
			sess.doomed, sess.wakeAt = true, now
			heap.Push(&s.expirer.queue, expiryItem{now, sess})
		}
	})
}

// DropConnections closes every connection of every member. Sessions live on.
func (s *Server) DropConnections() {
	s.alter(func(time.Duration) {
		for _, m := range s.members {
			m.dropConns()
		}
	})
}

// FastForward lets d pass for the server at once: nodes with a TTL and empty
// containers go, and sessions expire whose clients are away. The clients that
// are connected count as heard of all the while; they know nothing of it, and
// their own timers go on as before. In a testing/synctest bubble a sleep does
// the same for both sides.
func (s *Server) FastForward(d time.Duration) {
	s.alter(func(now time.Duration) {
		s.skipped.Add(int64(d))
		s.hearAll(now + d)
	})
	s.alter(s.reap)
	poke(s.wake) // the next alarm is nearer now
}

// Partition loses everything between a client (by its DialFrom name) and the
// servers, both ways and silently: no connection is closed, what is sent waits
// for HealClient, dials time out.
func (s *Server) Partition(clientName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.partitions[clientName] == nil {
		s.partitions[clientName] = make(chan struct{})
		s.gates.Add(1)
	}
}

// HealClient ends a partition. What was on the way arrives, as TCP would have it.
func (s *Server) HealClient(clientName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gate := s.partitions[clientName]; gate != nil {
		delete(s.partitions, clientName)
		s.gates.Add(-1)
		close(gate)
	}
}

// Restart restarts all members that run: connections and watches are gone; data,
// zxid and sessions stay, and each session gets a full timeout again.
func (s *Server) Restart() {
	s.alter(func(now time.Duration) {
		for _, m := range s.members {
			m.thaw(now)
			m.shut()
		}
		s.leader, s.aloneSince, s.electAt = nil, never, never
		if best := s.candidate(); best != nil {
			s.lead(best, now)
		}
	})
}

// Wipe replaces the ensemble by a new, empty one at the same addresses: no
// data, no sessions, zxid 0. Clients that have seen the old one's data are
// turned away for as long as they remember its zxid.
func (s *Server) Wipe() {
	s.alter(func(now time.Duration) {
		for _, m := range s.members {
			m.thaw(now)
			m.dropConns()
		}
		s.reset(now, nil)
	})
}

// ElectLeader moves the leadership, as an election would: all clients are
// dropped, a new epoch begins, and every session gets a full timeout again. The
// member must run and be in touch with the others. A leader that is cut off does
// not hear of it: for SyncLimit ticks it goes on answering reads and pings, and
// takes its sessions back when their clients come again, without asking anybody.
func (s *Server) ElectLeader(i int) {
	s.alter(func(now time.Duration) {
		m := s.members[i]
		if !m.reachable() || s.candidate() == nil {
			panic(fmt.Sprintf("zktest: member %d cannot be elected: it is stopped, frozen or cut off", i))
		}
		switch {
		case s.leader == nil:
		case s.leader.cut && s.leader != m:
			s.usurp()
		default:
			s.depose()
		}
		if best := s.candidate(); m.logged < best.logged {
			m.tree, m.logged = best.tree.clone(), best.logged // it hears of what it missed before it leads
		}
		s.lead(m, now)
	})
}

// CutOff cuts the member off from the other members. It goes on answering its
// own clients from what it has, pings too, for SyncLimit ticks; writes get no
// answer. Then it drops its clients and takes no more.
func (m *Member) CutOff() { m.s.alter(func(time.Duration) { m.cut = true }) }

// Rejoin ends CutOff.
func (m *Member) Rejoin() { m.s.alter(func(time.Duration) { m.cut = false }) }

// Lag makes a follower apply each commit d late; 0 catches up at once. A leader
// does not lag.
func (m *Member) Lag(d time.Duration) {
	m.s.alter(func(now time.Duration) {
		m.lag = d
		if d > 0 {
			return
		}
		for i := range m.backlog {
			m.backlog[i].due = now
		}
	})
}

// Freeze stops the member as SIGSTOP does: it accepts connections and bytes,
// and does nothing with them. Its peers lose touch with it.
func (m *Member) Freeze() {
	m.s.alter(func(time.Duration) {
		if !m.frozen {
			m.frozen, m.thawed = true, make(chan struct{})
			m.s.gates.Add(1)
		}
	})
}

// Thaw ends Freeze.
func (m *Member) Thaw() { m.s.alter(m.thaw) }

// Stop kills the member: its connections are dropped, dials are refused. What
// it had committed is kept.
func (m *Member) Stop() {
	m.s.alter(func(now time.Duration) {
		m.thaw(now)
		m.stopped = true
		m.dropConns()
		if m != m.s.leader { // a leader is deposed, with its followers
			m.shut()
		}
	})
	m.s.syncListener(m)
}

// Start ends Stop.
func (m *Member) Start() {
	m.s.alter(func(time.Duration) { m.stopped = false })
	m.s.syncListener(m)
}

// Refuse makes the member refuse new connections, or take them again. Those it
// has stay.
func (m *Member) Refuse(refuse bool) {
	m.s.alter(func(time.Duration) { m.refusing = refuse })
	m.s.syncListener(m)
}

// SetChildCounter sets a node's internal count of created children, which is
// the next sequence number below it. It does so without a transaction, on the
// leader and on all members that are not behind: those learn it from the next
// create. A missing node panics: the test has forgotten to create it.
func (s *Server) SetChildCounter(path string, creates int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leader == nil || s.leader.tree.get(path) == nil {
		panic(fmt.Sprintf("zktest: no node %q to set the child counter of", path))
	}
	for _, m := range s.members {
		// Creates that are still to be applied would count as older than the counter.
		if n := m.tree.get(path); n != nil && (m == s.leader || len(m.backlog) == 0) {
			n.creates = creates
		}
	}
}
