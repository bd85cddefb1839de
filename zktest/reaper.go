package zktest

import (
	"slices"
	"time"
)

// nextReap is when the leader looks for containers and TTL nodes next: at a
// fixed interval from the start of its leadership.
func (s *Server) nextReap() time.Duration {
	every := s.opts.ContainerCheck
	return s.leaderSince + ((s.reapedAt-s.leaderSince)/every+1)*every
}

// reap deletes the containers that were used and are empty, and the TTL nodes
// that are empty and old. The caller holds mu.
func (s *Server) reap(now time.Duration) {
	if !s.canCommit() || len(s.leader.tree.reapable) == 0 || now < s.nextReap() {
		return
	}
	s.reapedAt = now
	for _, path := range s.leader.tree.overdue(time.Now()) {
		s.execute(&call{op: OpDeleteContainer, path: path, version: -1}, 0, nil, nil)
	}
}

// overdue lists what the reaper may take. A container that never had a child is left alone.
func (t *tree) overdue(now time.Time) []string {
	var list []string
	for path := range t.reapable {
		n := t.nodes[path]
		if n.children.len() > 0 {
			continue
		}
		if n.kind == container && n.creates > 0 ||
			n.kind == ttlNode && now.Sub(time.UnixMilli(n.stat.Mtime)) > n.ttl {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}
