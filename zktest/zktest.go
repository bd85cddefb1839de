// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"maps"
	"slices"
)

// TB is the part of testing.TB that Run and Start need.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// Run starts a server that listens on loopback. The server is closed when the test ends.
func Run(t TB, opts ...Options) *Server {
	t.Helper()
	s := Start(t, opts...)
	if err := s.Listen("127.0.0.1:0"); err != nil {
		t.Fatalf("zktest: %v", err)
	}
	return s
}

// Start is like Run, but opens no socket: clients connect through Dial. Use it
// inside a testing/synctest bubble, where a real socket would stop the clock.
//
// At the end of the test, Start logs each client that is still connected. In a bubble, such a client is
// a deadlock that ends the test binary.
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
	t.Cleanup(func() {
		for _, open := range s.Sessions() {
			if open.Member >= 0 {
				t.Logf("zktest: the client of DialFrom(%q) is open at the end of the test: close it", open.Client)
			}
		}
		s.Close()
	})
	return s
}

// New starts a server without sockets. The caller must call Close.
func New(opts Options) (*Server, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	return start(opts), nil
}

// Close closes the server's connections and sockets and waits until its goroutines
// have ended. Further calls do nothing.
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

// Addr returns the first member's address.
func (s *Server) Addr() string { return s.Member(0).Addr() }

// Addrs returns the addresses of all members. A member without a socket has an
// address that only Dial knows.
func (s *Server) Addrs() []string {
	var list []string
	for _, m := range s.members {
		list = append(list, m.Addr())
	}
	return list
}

// Member returns the i-th server of the ensemble, counting from 0.
func (s *Server) Member(i int) *Member { return s.members[i] }

// Leader returns the leader, or nil if there is none.
func (s *Server) Leader() *Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ens.peers.leader == nil {
		return nil
	}
	return s.members[s.ens.peers.leader.id]
}
