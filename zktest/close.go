package zktest

import "time"

// close ends the connection once what is in its outbox was sent. The session
// lives on. The caller holds mu.
func (c *conn) close() {
	if c.closed {
		return
	}
	c.closed, c.pending = true, nil
	delete(c.member.conns, c)
	c.member.watches.dropConn(c)
	c.s.stir()
	if c.sess != nil && c.member.bySession[c.sess.id] == c {
		delete(c.member.bySession, c.sess.id)
	}
	close(c.dead)
	// A write that is under way now may take its last second as well.
	_ = c.net.SetWriteDeadline(time.Now().Add(linger))
}

// abort ends the connection as a killed process does: nothing more is sent.
func (c *conn) abort() {
	c.out.takeAll()
	c.close()
	_ = c.net.SetWriteDeadline(time.Now())
}

// drop closes a connection from one of its own goroutines.
func (s *Server) drop(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.close()
}

// forget notes that a connection's socket is closed.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, c)
}

func (m *Member) dropConns() {
	for c := range m.conns {
		c.abort()
	}
}
