package zktest

import (
	"container/heap"
	"slices"
	"time"
)

// expireDue is the leader's expirer. It takes the sessions whose bucket has come
// and closes one after the other, Options.ExpiryGap apart. One that is touched
// before its turn comes is closed all the same. The caller holds mu.
func (s *Server) expireDue(now time.Duration) {
	if s.leader == nil || s.leader.frozen || s.leader.stopped {
		return
	}
	s.pump(now)
	for len(s.expirer.queue) > 0 && s.expirer.queue[0].at <= now {
		item := heap.Pop(&s.expirer.queue).(expiryItem)
		sess := item.sess
		switch {
		case sess.ended || item.at != sess.wakeAt:
		case !sess.doomed && s.expiryOf(sess) > now:
			s.watchExpiry(sess)
		default:
			s.expirer.bucket = append(s.expirer.bucket, sess)
		}
	}
	s.closeBucket(now)
}

// closeBucket closes the sessions of the bucket whose turn has come, as soon as
// the leader has a quorum for it.
func (s *Server) closeBucket(now time.Duration) {
	s.expirer.closeAt = max(s.expirer.closeAt, now)
	for len(s.expirer.bucket) > 0 && s.expirer.closeAt <= now {
		s.expirer.bucket[0].closing = true
		s.expirer.closings = append(s.expirer.closings, s.expirer.bucket[0])
		s.expirer.bucket = s.expirer.bucket[1:]
		s.expirer.closeAt += s.opts.ExpiryGap
	}
	if len(s.expirer.bucket) > 0 {
		s.arm(s.expirer.closeAt)
	}
	for len(s.expirer.closings) > 0 && s.canCommit() {
		sess := s.expirer.closings[0]
		s.expirer.closings = s.expirer.closings[1:]
		if !sess.ended {
			s.note("session expired", "session", hex(sess.id), "client", sess.client)
			s.endSession(sess, nil)
		}
	}
}

// awake is what a leader does that was frozen: the sessions whose time is up end
// before it has heard what their servers would say, and its overdue PINGs go
// out a moment later.
func (s *Server) awake(now time.Duration) {
	if s.pingAt <= now {
		s.pingAt = now + 1 + time.Duration(s.touchRng.Float64()*float64(s.opts.LatePing))
	}
	s.expireDue(now)
}

// reap deletes the containers that were used and are empty, and the TTL nodes
// that are empty and old. The caller holds mu.
func (s *Server) reap(now time.Duration) {
	if !s.canCommit() || len(s.leader.tree.reapable) == 0 || now < s.nextReap() {
		return
	}
	s.reapedAt = now
	for _, path := range s.leader.tree.overdue(s.wall()) {
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
