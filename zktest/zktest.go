package zktest

import (
	"maps"
	"slices"
)

// TB is the part of testing.TB that Run needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// Run starts a server that listens on loopback and ends with the test.
func Run(t TB, opts ...Options) *Server {
	t.Helper()
	s := Start(t, opts...)
	if err := s.Listen("127.0.0.1:0"); err != nil {
		t.Fatalf("zktest: %v", err)
	}
	return s
}

// Start is Run without any real socket: clients connect through Dial. Inside a
// testing/synctest bubble, where a real socket would stop the clock, this is
// the one to use.
func Start(t TB, opts ...Options) *Server {
	t.Helper()
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	s, err := New(o)
	if err != nil {
		t.Fatalf("zktest: %v", err)
		return nil
	}
	t.Cleanup(s.Close)
	return s
}

// New makes a running server without sockets. Close must end it.
func New(opts Options) (*Server, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	return start(opts), nil
}

// Close ends the server: its connections, sockets and goroutines. It returns
// when all of them are gone. More calls do nothing.
func (s *Server) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	conns := slices.Collect(maps.Keys(s.live))
	for _, c := range conns {
		c.abort()
	}
	s.mu.Unlock()
	if first {
		close(s.done)
	}
	for _, c := range conns {
		c.hangUp()
	}
	s.listenMu.Lock()
	for _, m := range s.members {
		m.closeListener()
	}
	s.listenMu.Unlock()
	s.wg.Wait()
}

// Addr is the first member's address.
func (s *Server) Addr() string { return s.Member(0).Addr() }

// Addrs are the addresses of all members: of their sockets, or where there are
// none, ones that Dial knows.
func (s *Server) Addrs() []string {
	var list []string
	for _, m := range s.members {
		list = append(list, m.Addr())
	}
	return list
}

// Member returns one server of the ensemble, from 0 on.
func (s *Server) Member(i int) *Member { return s.members[i] }

// Leader returns the leading member, nil while there is none.
func (s *Server) Leader() *Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ens.peers.leader == nil {
		return nil
	}
	return s.members[s.ens.peers.leader.id]
}
