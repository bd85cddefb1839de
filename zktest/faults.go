package zktest

import (
	"fmt"
	"time"
)

// ExpireSession ends a session now, or as soon as the leader has a quorum, as
// if its timeout had passed: its ephemerals go, its connection is closed.
func (s *Server) ExpireSession(id int64) {
	s.alter(func(now time.Duration) { s.ens.sessions.doom(id, now) })
}

// StopExpirer stops the leader's expirer, until resume is called, between taking
// the sessions whose time is up and closing them. What it has taken is served and
// given back to clients that come again, and is closed all the same. A new leader
// has taken none.
func (s *Server) StopExpirer() (resume func()) {
	s.alter(func(time.Duration) { s.ens.sessions.stops++ })
	resumed := false
	return func() {
		s.alter(func(time.Duration) {
			if !resumed {
				resumed = true
				s.ens.sessions.stops--
			}
		})
	}
}

// DropConnections closes every connection of every member. Sessions live on.
func (s *Server) DropConnections() {
	s.alter(func(time.Duration) { s.ens.peers.dropClients() })
}

// FastForward lets d pass for the server at once: nodes with a TTL and empty
// containers go, and sessions expire whose clients are away. The clients that
// are connected count as heard of all the while; they know nothing of it, and
// their own timers go on as before. In a testing/synctest bubble a sleep does
// the same for both sides.
func (s *Server) FastForward(d time.Duration) {
	s.alter(func(now time.Duration) {
		s.clock.skip(d)
		s.ens.peers.hearAll(now + d)
	})
	s.alter(s.ens.proposer.reap)
	poke(s.clock.wake) // the next alarm is nearer now
}

// Partition loses everything between a client (by its DialFrom name) and the
// servers, both ways and silently: no connection is closed, what is sent waits
// for HealClient, dials time out.
func (s *Server) Partition(clientName string) { s.gates.shutClient(clientName) }

// HealClient ends a partition. What was on the way arrives, as TCP would have it.
func (s *Server) HealClient(clientName string) { s.gates.openClient(clientName) }

// Restart restarts all members that run: connections and watches are gone; data,
// zxid and sessions stay, and each session gets a full timeout again.
func (s *Server) Restart() {
	s.alter(func(now time.Duration) {
		s.thawAll(now)
		s.ens.restart(now)
	})
}

func (s *Server) thawAll(now time.Duration) {
	for _, m := range s.members {
		s.thaw(m.r, now)
	}
}

// replace begins anew with an empty ensemble, or one restored from a snapshot.
func (s *Server) replace(snap *Snapshot) {
	s.alter(func(now time.Duration) {
		s.thawAll(now)
		s.ens.peers.dropClients()
		s.ens.reset(snap, now)
	})
}

// Wipe replaces the ensemble by a new, empty one at the same addresses: no
// data, no sessions, zxid 0. Clients that have seen the old one's data are
// turned away for as long as they remember its zxid.
func (s *Server) Wipe() { s.replace(nil) }

// ElectLeader moves the leadership, as an election would: all clients are
// dropped, a new epoch begins, and every session gets a full timeout again. The
// member must run and be in touch with the others. A leader that is cut off does
// not hear of it: for SyncLimit ticks it goes on answering reads and pings, and
// takes its sessions back when their clients come again, without asking anybody.
func (s *Server) ElectLeader(i int) {
	s.alter(func(now time.Duration) {
		r := s.members[i].r
		if !s.ens.peers.mayVote(r) || s.ens.peers.candidate() == nil {
			panic(fmt.Sprintf("zktest: member %d cannot be elected: it is stopped, frozen, cut off or an observer", i))
		}
		s.ens.replaceLeader(r, now)
	})
}

// SetChildCounter sets a node's internal count of created children, which is
// the next sequence number below it. It does so without a transaction, on the
// leader and on all members that are not behind: those learn it from the next
// create. A missing node panics: the test has forgotten to create it.
func (s *Server) SetChildCounter(path string, creates int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.ens.peers.leader
	if l == nil || l.latest().get(path) == nil {
		panic(fmt.Sprintf("zktest: no node %q to set the child counter of", path))
	}
	for _, m := range s.members {
		m.r.setCounter(path, creates, l.latest().zxid)
	}
}

// Dump returns what the leader knows.
func (s *Server) Dump() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ens.snapshot()
}

// Restore replaces the ensemble by one that was restored from a snapshot, at the
// same addresses: it has the snapshot's nodes, sessions and zxid, and in an
// ensemble of several an epoch after the snapshot's. Clients that have seen a
// higher zxid are turned away without an answer. Those that have not get their
// session back, if the snapshot has it.
func (s *Server) Restore(snap Snapshot) { s.replace(&snap) }
