package zktest

import (
	"slices"
	"time"
)

// Node is a node of the leader's tree.
type Node struct {
	Stat
	Data      []byte
	ACL       []ACL
	Container bool
	TTL       time.Duration // 0 for a node without one
}

func (n *znode) public() Node {
	return Node{
		Stat: n.shown(), Data: slices.Clone(n.data), ACL: slices.Clone(n.acl),
		Container: n.kind == container, TTL: n.ttl,
	}
}

// Session is a live session as the leader knows it.
type Session struct {
	ID      int64
	Timeout time.Duration
	Expires time.Time // when it ends if the leader hears no more of it
	Client  string    // the name of DialFrom, or the address
	Member  int       // where it is connected; -1 if nowhere
}

// truth is the replica that counts: the leader's, or while there is none, the
// one that has seen most. The caller holds mu.
func (s *Server) truth() *tree {
	if s.leader != nil {
		return s.leader.tree
	}
	best := s.members[0]
	for _, m := range s.members {
		if m.tree.zxid > best.tree.zxid {
			best = m
		}
	}
	return best.tree
}

// Tree answers every node by its path, but for the root and /zookeeper.
func (s *Server) Tree() map[string]Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes := make(map[string]Node)
	for path, n := range s.truth().nodes {
		if !isSystem(path) {
			nodes[path] = n.public()
		}
	}
	return nodes
}

// Node answers one node.
func (s *Server) Node(path string) (Node, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.truth().get(path)
	if n == nil {
		return Node{}, false
	}
	return n.public(), true
}

// Children answers the names below a node, sorted; none for a missing one.
func (s *Server) Children(path string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.truth().get(path)
	if n == nil {
		return nil
	}
	return slices.Sorted(slices.Values(n.children.names))
}

// Ephemerals answers the paths that end with a session, sorted.
func (s *Server) Ephemerals(id int64) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.truth().ephemeralsOf(id, "")
}

// Sessions answers the live sessions by their ids' order.
func (s *Server) Sessions() []Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Session, 0, len(s.sessions))
	for _, sess := range s.sessions {
		sess.settle(s.now())
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
