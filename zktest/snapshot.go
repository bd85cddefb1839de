package zktest

import (
	"slices"
	"time"
)

// Snapshot is what an ensemble knew at one moment. Its fields can be stored and
// edited, as JSON too.
type Snapshot struct {
	Zxid     int64
	Nodes    map[string]Node // all but the root and /zookeeper
	Sessions []SavedSession
}

// SavedSession is a session in a Snapshot.
type SavedSession struct {
	ID      int64
	Timeout time.Duration
	Passwd  []byte
}

// Dump returns what the leader knows.
func (s *Server) Dump() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.truth()
	snap := Snapshot{Zxid: t.zxid, Nodes: t.public()}
	for _, sess := range s.sessions {
		snap.Sessions = append(snap.Sessions, SavedSession{sess.id, sess.created, slices.Clone(sess.passwd)})
	}
	slices.SortFunc(snap.Sessions, func(a, b SavedSession) int { return int(min(1, max(-1, a.ID-b.ID))) })
	return snap
}

// Restore replaces the ensemble by one that was restored from a snapshot, at the
// same addresses: it has the snapshot's nodes, sessions and zxid, and in an
// ensemble of several an epoch after the snapshot's. Clients that have seen a
// higher zxid are turned away without an answer. Those that have not get their
// session back, if the snapshot has it.
func (s *Server) Restore(snap Snapshot) {
	s.alter(func(now time.Duration) {
		for _, m := range s.members {
			m.thaw(now)
			m.dropConns()
		}
		s.reset(now, func() { s.load(&snap) })
	})
}

// load makes the snapshot the state of every member.
func (s *Server) load(snap *Snapshot) {
	s.epoch, s.zxid = snap.Zxid>>32, snap.Zxid
	for _, m := range s.members {
		m.tree.load(snap.Nodes)
		m.tree.zxid, m.logged = snap.Zxid, snap.Zxid
	}
	for _, saved := range snap.Sessions {
		s.sessions[saved.ID] = &session{
			id: saved.ID, passwd: slices.Clone(saved.Passwd), created: saved.Timeout, timeout: saved.Timeout,
			client: "restored", owner: s.members[0],
		}
	}
}
