// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"fmt"
	"time"
)

// ExpireSession expires a session now, or as soon as the leader has a quorum, as
// if its timeout had passed: its ephemeral nodes are deleted and its connection is
// closed.
func (s *Server) ExpireSession(id int64) {
	s.alter(func(now time.Duration) { s.ens.sessions.doom(id, now) })
}

// stopExpirer is lab.StopExpirer.
func (s *Server) stopExpirer() (resume func()) {
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

// DropConnections closes every connection of every member. The sessions continue.
func (s *Server) DropConnections() {
	s.alter(func(time.Duration) { s.ens.peers.dropClients() })
}

// FastForward advances the server's clock by d at once: expired TTL nodes and empty
// containers are deleted, and sessions without a connected client expire. Connected
// clients count as active during that time. They do not notice it: their own timers
// are unaffected. In a testing/synctest bubble, sleeping does the same for both
// sides.
func (s *Server) FastForward(d time.Duration) {
	s.alter(func(now time.Duration) {
		s.clock.skip(d)
		s.ens.peers.hearAll(now + d)
	})
	s.alter(s.ens.proposer.reap)
	poke(s.clock.wake) // the next alarm may be due now
}

// limitUpload is lab.LimitUpload.
func (s *Server) limitUpload(clientName string, bytesPerSecond int) {
	s.network.limitUpload(clientName, bytesPerSecond)
}

// Partition silently blocks all traffic in both directions between a client (by its
// DialFrom name) and the servers: no connection is closed, data that is sent waits
// for HealClient, and dials time out.
func (s *Server) Partition(clientName string) { s.gates.shutClient(clientName) }

// HealClient ends a partition. Data that was sent in the meantime arrives, as with
// TCP.
func (s *Server) HealClient(clientName string) { s.gates.openClient(clientName) }

// Restart restarts all running members. Connections and watches are lost. Data, zxid
// and sessions are kept, and each session gets a full timeout again.
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

// replace starts over with an empty ensemble, or with one restored from a snapshot.
func (s *Server) replace(snap *Snapshot) {
	s.alter(func(now time.Duration) {
		s.thawAll(now)
		s.ens.peers.dropClients()
		s.ens.reset(snap, now)
	})
}

// Wipe replaces the ensemble with a new, empty one at the same addresses: no data,
// no sessions, zxid 0. Clients that have seen data of the old ensemble are refused
// for as long as they remember its zxid.
func (s *Server) Wipe() { s.replace(nil) }

// ElectLeader makes member i the leader, as an election would: all clients are
// disconnected, a new epoch begins, and every session gets a full timeout again.
// The member must be running and in contact with the others. A previous leader that
// is cut off does not notice the election: for SyncLimit ticks it keeps answering
// reads and pings, and accepts reconnecting clients of its sessions without
// consulting the other members.
func (s *Server) ElectLeader(i int) {
	s.alter(func(now time.Duration) {
		r := s.members[i].r
		if !s.ens.peers.mayVote(r) || s.ens.peers.candidate() == nil {
			panic(fmt.Sprintf("zktest: member %d cannot be elected: it is stopped, frozen, cut off or an observer", i))
		}
		s.ens.replaceLeader(r, now)
	})
}

// setChildCounter is lab.SetChildCounter.
func (s *Server) setChildCounter(path string, creates int32) {
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

// Dump returns a snapshot of the leader's state.
func (s *Server) Dump() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ens.snapshot()
}

// Restore replaces the ensemble with one restored from a snapshot, at the same
// addresses. It has the snapshot's nodes, sessions and zxid; an ensemble of several
// members starts an epoch after the snapshot's. Clients that have seen a higher zxid
// are refused without a reply. Other clients get their session back if the snapshot
// contains it.
func (s *Server) Restore(snap Snapshot) { s.replace(&snap) }
