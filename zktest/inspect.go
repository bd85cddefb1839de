package zktest

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Session is a live session as the leader knows it.
type Session struct {
	ID      int64
	Timeout time.Duration
	Expires time.Time // when it ends if the leader hears no more of it
	Client  string    // the name of DialFrom, or the address
	Member  int       // where it is connected; -1 if nowhere
}

// Tree returns every node by its path, but for the root and /zookeeper.
func (s *Server) Tree() map[string]Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ens.peers.truth().public()
}

// Node returns one node.
func (s *Server) Node(path string) (Node, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.ens.peers.truth().get(path)
	if n == nil {
		return Node{}, false
	}
	return n.public(), true
}

// Shows reports whether no client of the member reads any more what was there before a transaction. A member that
// serves nobody begins again with what its leader has.
func (m *Member) Shows(zxid int64) bool {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.r.tree.zxid >= zxid || !m.r.serving && !m.r.frozen
}

// Children returns the names below a node, sorted; none for a missing one.
func (s *Server) Children(path string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.ens.peers.truth().get(path)
	if n == nil {
		return nil
	}
	return slices.Sorted(slices.Values(n.children.names))
}

// Ephemerals returns the paths that end with a session, sorted.
func (s *Server) Ephemerals(id int64) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ens.peers.truth().ephemeralsOf(id, "")
}

// Sessions returns the live sessions by their ids' order.
func (s *Server) Sessions() []Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []Session{}
	for _, sess := range s.ens.listSessions() {
		list = append(list, Session{
			ID: sess.id, Timeout: sess.timeout, Client: sess.client,
			Expires: s.clock.date(s.ens.sessions.expiryOf(sess)), Member: s.ens.peers.whereIs(sess),
		})
	}
	return list
}

// Watches counts the watches on each path, of all members' connections. A data
// and a child watch of one connection on one path are two.
func (s *Server) Watches() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[string]int)
	for _, m := range s.members {
		m.r.watches.addTo(counts)
	}
	return counts
}

// WatchCount is the sum of Watches.
func (s *Server) WatchCount() int {
	total := 0
	for _, n := range s.Watches() {
		total += n
	}
	return total
}

// Requests counts what came in since the start or ResetCounts, by type: all
// that reached the server, whatever became of it.
func (s *Server) Requests() map[Op]int { return s.traffic.counts() }

// RequestCount is the sum of Requests without the pings.
func (s *Server) RequestCount() int {
	total := 0
	for op, n := range s.Requests() {
		if op != OpPing {
			total += n
		}
	}
	return total
}

// ResetCounts sets the counts of Requests and Bytes back to zero.
func (s *Server) ResetCounts() { s.traffic.reset() }

// Bytes counts what went over all connections, frame lengths included.
func (s *Server) Bytes() (in, out int64) { return s.traffic.in.Load(), s.traffic.out.Load() }

// Zxid is the last transaction id that was given out.
func (s *Server) Zxid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ens.proposer.zxid
}

// WaitNode waits until there is a node at path and returns it.
func (s *Server) WaitNode(ctx context.Context, path string) (Node, error) {
	var found Node
	err := s.await(ctx, "node "+path, func() bool {
		n := s.ens.peers.truth().get(path)
		if n != nil {
			found = n.public()
		}
		return n != nil
	})
	return found, err
}

// WaitGone waits until there is no node at path.
func (s *Server) WaitGone(ctx context.Context, path string) error {
	return s.await(ctx, "the end of node "+path, func() bool { return s.ens.peers.truth().get(path) == nil })
}

// WaitWatches waits until there are n watches or more on path, counted as
// Watches does.
func (s *Server) WaitWatches(ctx context.Context, path string, n int) error {
	return s.await(ctx, fmt.Sprintf("%d watches on %s", n, path), func() bool {
		count := 0
		for _, m := range s.members {
			count += m.r.watches.on(path)
		}
		return count >= n
	})
}

// Intercept shows every request to fn before it is processed, in the goroutine
// of its connection and with no lock held. Every interceptor sees every
// request; the first verdict that is not Pass counts. The request belongs to fn
// only during the call.
func (s *Server) Intercept(fn func(*Request) Verdict) (remove func()) { return s.interceptors.add(fn) }

// Next carries out a verdict on the next n requests of the given types, of any
// type but pings if none is given. A multi counts if one of its steps does. left
// returns how many are still to come; with 0 the server is as before.
//
//	srv.Next(1, zktest.LoseReply, zktest.OpCreate)                  // done, and never answered
//	srv.Next(3, zktest.Answer(zktest.CodeNoAuth), zktest.OpSetData) // refused
//	srv.Next(2, zktest.Delay(time.Second))                          // late, whatever it is
func (s *Server) Next(n int, v Verdict, ops ...Op) (left func() int) {
	return s.interceptors.next(n, v, ops)
}

// OnTxn calls fn for each transaction at the moment the leader applies it, in
// the order of their zxids. fn runs under the server's lock: it must be quick
// and must not call the server.
func (s *Server) OnTxn(fn func(Txn)) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hook := s.ens.hooks.add(fn)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ens.hooks.remove(hook)
	}
}
