package zktest

import (
	"context"
	"fmt"
	"time"
)

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

// arm makes sure that the clock looks at the given moment. The caller holds mu.
func (s *Server) arm(at time.Duration) {
	if at < s.alarm {
		s.alarm = at
		poke(s.wake)
	}
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func hex(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

// now is the time since the server began, by the monotonic clock and FastForward.
func (s *Server) now() time.Duration { return time.Since(s.base) + time.Duration(s.skipped.Load()) }

// wall is the time of day for the server.
func (s *Server) wall() time.Time { return time.Now().Add(time.Duration(s.skipped.Load())) }

// latency draws one delay for a connection and returns when it is over, 0 for no
// delay.
func (s *Server) latency(c *conn) time.Duration {
	if s.opts.Latency == nil && s.opts.LatencyOf == nil {
		return 0
	}
	s.latencyMu.Lock()
	defer s.latencyMu.Unlock()
	var d time.Duration
	if s.opts.Latency != nil {
		d = s.opts.Latency(s.latencyRng)
	}
	if s.opts.LatencyOf != nil {
		d += s.opts.LatencyOf(s.latencyRng, c.client, c.member.id)
	}
	return s.now() + max(1, d)
}

// await waits until a condition holds, which it asks under mu after each change.
func (s *Server) await(ctx context.Context, what string, holds func() bool) error {
	for {
		s.mu.Lock()
		met := holds()
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("zktest: waiting for %s: %w", what, context.Cause(ctx))
		case <-s.done:
			return fmt.Errorf("zktest: waiting for %s: the server is closed", what)
		}
	}
}

// stir wakes those that await something. The caller holds mu.
func (s *Server) stir() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// pause waits and reports whether the server still runs.
func (s *Server) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.done:
		return false
	}
}
