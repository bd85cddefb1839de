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
	return s.truth().public()
}

// Node returns one node.
func (s *Server) Node(path string) (Node, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.truth().get(path)
	if n == nil {
		return Node{}, false
	}
	return n.public(), true
}

// Children returns the names below a node, sorted; none for a missing one.
func (s *Server) Children(path string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.truth().get(path)
	if n == nil {
		return nil
	}
	return slices.Sorted(slices.Values(n.children.names))
}

// Ephemerals returns the paths that end with a session, sorted.
func (s *Server) Ephemerals(id int64) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.truth().ephemeralsOf(id, "")
}

// Sessions returns the live sessions by their ids' order.
func (s *Server) Sessions() []Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Session, 0, len(s.sessions))
	s.pump(s.now())
	for _, sess := range s.sessions {
		list = append(list, Session{
			ID: sess.id, Timeout: sess.timeout, Client: sess.client,
			Expires: s.base.Add(s.expiryOf(sess)), Member: s.whereIs(sess),
		})
	}
	slices.SortFunc(list, func(a, b Session) int { return int(min(1, max(-1, a.ID-b.ID))) })
	return list
}

// whereIs prefers the member that owns the session to one with a stale connection.
func (s *Server) whereIs(sess *session) int {
	if sess.owner.bySession[sess.id] != nil {
		return sess.owner.id
	}
	for _, m := range s.members {
		if m.bySession[sess.id] != nil {
			return m.id
		}
	}
	return -1
}

// Watches counts the watches on each path, of all members' connections. A data
// and a child watch of one connection on one path are two.
func (s *Server) Watches() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[string]int)
	for _, m := range s.members {
		for _, set := range []*watchSet{&m.watches.data, &m.watches.children} {
			for path, conns := range set.byPath {
				counts[path] += len(conns)
			}
		}
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
func (s *Server) Requests() map[Op]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[Op]int, len(s.counts))
	for op, n := range s.counts {
		counts[op] = n
	}
	return counts
}

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
func (s *Server) ResetCounts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.counts)
	s.bytesIn.Store(0)
	s.bytesOut.Store(0)
}

// Bytes counts what went over all connections, frame lengths included.
func (s *Server) Bytes() (in, out int64) { return s.bytesIn.Load(), s.bytesOut.Load() }

// Zxid is the last transaction id that was given out.
func (s *Server) Zxid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.zxid
}

// WaitNode waits until there is a node at path and returns it.
func (s *Server) WaitNode(ctx context.Context, path string) (Node, error) {
	var found Node
	err := s.await(ctx, "node "+path, func() bool {
		n := s.truth().get(path)
		if n != nil {
			found = n.public()
		}
		return n != nil
	})
	return found, err
}

// WaitGone waits until there is no node at path.
func (s *Server) WaitGone(ctx context.Context, path string) error {
	return s.await(ctx, "the end of node "+path, func() bool { return s.truth().get(path) == nil })
}

// WaitWatches waits until there are n watches or more on path, counted as
// Watches does.
func (s *Server) WaitWatches(ctx context.Context, path string, n int) error {
	return s.await(ctx, fmt.Sprintf("%d watches on %s", n, path), func() bool {
		count := 0
		for _, m := range s.members {
			count += len(m.watches.data.byPath[path]) + len(m.watches.children.byPath[path])
		}
		return count >= n
	})
}
