package zktest

import (
	"fmt"
	"time"
)

// alter carries out a change of the members or of what they reach, and its consequences.
func (s *Server) alter(fn func(now time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	now := s.now()
	s.pump(now)
	fn(now)
	s.reconcile(now)
	s.armNext(now)
}

// reset begins anew, with an empty ensemble or with what load puts into it. The
// caller holds mu and has dropped all connections.
func (s *Server) reset(now time.Duration, load func()) {
	for _, m := range s.members {
		m.tree, m.watches = newTree(s.opts.WrapCounter), newWatches()
		m.serving, m.lostAt, m.logged, m.backlog, m.syncs, m.former = false, never, 0, nil, nil, nil
		m.link.reset()
	}
	s.sessions, s.expirer, s.outstanding = make(map[int64]*session), expirer{}, nil
	s.leader, s.electAt, s.aloneSince = nil, never, never
	s.epoch, s.zxid = 0, 0
	if load != nil {
		load()
	}
	if first := s.members[0]; first.reachable() && s.candidate() != nil {
		s.lead(first, now)
	}
}

func newMember(s *Server, id int) *Member {
	// An IP literal, so that the client's host provider needs no name service.
	addr := fmt.Sprintf("127.0.0.%d:2181", id+1)
	return &Member{
		s: s, id: id, address: addr, virtual: addr,
		conns: make(map[*conn]struct{}), bySession: make(map[int64]*conn),
	}
}

// runDue does what is due and returns when to look again.
func (s *Server) runDue() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, false
	}
	now := s.now()
	if now >= s.alarm {
		s.alarm = never
		s.reconcile(now)
		s.reap(now)
		s.armNext(now)
	}
	return s.alarm, true
}

// armNext sets the alarm for what reconcile does not arm by itself.
func (s *Server) armNext(now time.Duration) {
	if len(s.expirer.queue) > 0 && s.leader != nil && !s.leader.frozen {
		s.arm(s.expirer.queue[0].at)
	}
	if s.canCommit() && len(s.leader.tree.reapable) > 0 {
		s.arm(s.nextReap())
	}
}

// clock runs whatever is due at a certain moment: expiries, late commits,
// deadlines of members that lost touch, elections, the reaper. It sleeps until
// the next of them, however far that is: an idle server costs nothing.
func (s *Server) clock() {
	defer s.wg.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.writeNotes()
		next, ok := s.runDue()
		if !ok {
			return
		}
		timer.Reset(min(next-s.now(), 1000*time.Hour))
		select {
		case <-timer.C:
		case <-s.wake:
		case <-s.done:
			return
		}
	}
}

func (m *Member) thaw(now time.Duration) {
	if !m.frozen {
		return
	}
	if !m.serving {
		m.dropConns() // its leadership or its leader is long gone
	}
	m.frozen = false
	m.s.gates.Add(-1)
	close(m.thawed)
	if m == m.s.leader {
		m.s.awake(now)
	}
}
