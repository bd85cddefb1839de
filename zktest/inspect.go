// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Session describes a live session, according to the leader.
type Session struct {
	ID      int64
	Timeout time.Duration
	Expires time.Time // when the session expires if the leader receives no further touches
	Client  string    // the client's DialFrom name, or its address
	Member  int       // the member that the client is connected to; -1 if it is not connected
}

// Tree returns all nodes by path, except the root and /zookeeper.
func (s *Server) Tree() map[string]Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ens.peers.truth().public()
}

// Node returns the node at path. ok is false if there is none.
func (s *Server) Node(path string) (Node, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.ens.peers.truth().get(path)
	if n == nil {
		return Node{}, false
	}
	return n.public(), true
}

// shows is lab.Shows.
func (m *Member) shows(zxid int64) bool {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.r.tree.zxid >= zxid || !m.r.serving && !m.r.frozen
}

// Children returns the sorted names of a node's children. It returns nil if the
// node does not exist.
func (s *Server) Children(path string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.ens.peers.truth().get(path)
	if n == nil {
		return nil
	}
	return slices.Sorted(slices.Values(n.children.names))
}

// Ephemerals returns the sorted paths of a session's ephemeral nodes.
func (s *Server) Ephemerals(id int64) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ens.peers.truth().ephemeralsOf(id, "")
}

// Sessions returns the live sessions, ordered by ID.
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

// Watches returns the number of watches on each path, for the connections of all
// members. A data watch and a child watch of one connection on the same path count
// as two.
func (s *Server) Watches() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[string]int)
	for _, m := range s.members {
		m.r.watches.addTo(counts)
	}
	return counts
}

// WatchCount returns the sum of Watches.
func (s *Server) WatchCount() int {
	total := 0
	for _, n := range s.Watches() {
		total += n
	}
	return total
}

// Requests returns the number of requests by type since the start or the last
// ResetCounts. It counts all requests that reached the server, whatever their
// outcome.
func (s *Server) Requests() map[Op]int { return s.traffic.counts() }

// RequestCount returns the sum of Requests, without pings.
func (s *Server) RequestCount() int {
	total := 0
	for op, n := range s.Requests() {
		if op != OpPing {
			total += n
		}
	}
	return total
}

// ResetCounts resets the counts of Requests and Bytes to zero.
func (s *Server) ResetCounts() { s.traffic.reset() }

// Bytes returns the number of bytes transferred over all connections, including
// frame lengths.
func (s *Server) Bytes() (in, out int64) { return s.traffic.in.Load(), s.traffic.out.Load() }

// Zxid returns the last zxid that the leader assigned.
func (s *Server) Zxid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ens.proposer.zxid
}

// WaitNode waits until there is a node at path, and returns it.
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

// WaitWatches waits until there are at least n watches on path, counted as in
// Watches.
func (s *Server) WaitWatches(ctx context.Context, path string, n int) error {
	return s.await(ctx, fmt.Sprintf("%d watches on %s", n, path), func() bool {
		count := 0
		for _, m := range s.members {
			count += m.r.watches.on(path)
		}
		return count >= n
	})
}

// Intercept calls fn for every request before it is processed, in the goroutine of
// its connection and without holding a lock. Every interceptor sees every request;
// the first verdict other than Pass counts. fn must not keep the request after it
// returns.
func (s *Server) Intercept(fn func(*Request) Verdict) (remove func()) { return s.interceptors.add(fn) }

// Next applies a verdict to the next n requests of the given types, or of any type
// except ping if none is given. A multi counts if one of its steps has one of the
// types. left returns how many requests are still to come; at 0, Next has no
// further effect.
//
//	srv.Next(1, zktest.LoseReply, zktest.OpCreate)                  // applied, connection lost
//	srv.Next(3, zktest.Answer(zktest.CodeNoAuth), zktest.OpSetData) // rejected
//	srv.Next(2, zktest.Delay(time.Second))                          // delayed, any type
func (s *Server) Next(n int, v Verdict, ops ...Op) (left func() int) {
	return s.interceptors.next(n, v, ops)
}

// OnTxn calls fn for each transaction when the leader commits it, in zxid order. fn
// runs with the server's lock held: it must be quick and must not call the server.
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
