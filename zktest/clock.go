package zktest

import "time"

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

// note logs a line soon: the clock writes it, when no lock is held. The caller
// holds mu.
func (s *Server) note(msg string, args ...any) {
	s.notes = append(s.notes, func() { s.log.Info(msg, args...) })
	poke(s.wake)
}

func (s *Server) writeNotes() {
	s.mu.Lock()
	notes := s.notes
	s.notes = nil
	s.mu.Unlock()
	for _, write := range notes {
		write()
	}
}

// runDue does what is due and answers when to look again.
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

// arm makes sure that the clock looks at the given moment. The caller holds mu.
func (s *Server) arm(at time.Duration) {
	if at < s.alarm {
		s.alarm = at
		poke(s.wake)
	}
}

// armNext sets the alarm for what reconcile does not arm by itself.
func (s *Server) armNext(now time.Duration) {
	if s.canCommit() && len(s.expiries) > 0 {
		s.arm(s.expiries[0].at)
	}
	if s.canCommit() && len(s.leader.tree.reapable) > 0 {
		s.arm(s.nextReap())
	}
}
