package zktest

import (
	"bytes"
	"container/heap"
	"time"
)

func (q expiryQueue) Len() int { return len(q) }

func (q expiryQueue) Less(i, j int) bool { return q[i].at < q[j].at }

func (q expiryQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *expiryQueue) Push(x any) { *q = append(*q, x.(expiryItem)) }

func (q *expiryQueue) Pop() any {
	last := len(*q) - 1
	item := (*q)[last]
	(*q)[last] = expiryItem{}
	*q = (*q)[:last]
	return item
}

// negotiate clamps the timeout that a client asks for.
func (s *Server) negotiate(ms int32) time.Duration {
	asked := time.Duration(ms) * time.Millisecond
	return min(max(asked, s.opts.MinSessionTimeout), s.opts.MaxSessionTimeout)
}

// expiryOf is ZooKeeper's bucket: up to one tick after the timeout, never early.
func (s *Server) expiryOf(sess *session) time.Duration {
	tick := s.opts.TickTime
	return ((sess.touched+sess.timeout)/tick + 1) * tick
}

// touch notes that the leader has heard of a session. One whose end is on its
// way has nothing of it.
func (sess *session) touch(timeout, now time.Duration) {
	if !sess.ended && !sess.closing {
		sess.timeout, sess.touched = timeout, now
	}
}

// validFor reports whether a connect request knows the session's password.
func (sess *session) validFor(req *connectCall) bool { return bytes.Equal(sess.passwd, req.passwd) }

// hear notes on a Keeper's replica that a session lives.
func (m *Member) hear(id int64, now time.Duration) {
	if m.heard == nil {
		m.heard = make(map[int64]time.Duration)
	}
	m.heard[id] = now
	if sess := m.s.sessions[id]; m == m.s.leader && sess != nil {
		sess.touch(sess.timeout, now)
	}
}

// addSession starts the expiry clock of a new session. The caller holds mu.
func (s *Server) addSession(sess *session, now time.Duration) {
	s.sessions[sess.id] = sess
	s.renew(sess, sess.created, now)
}

// renew gives a session a full timeout from now on.
func (s *Server) renew(sess *session, timeout, now time.Duration) {
	sess.touch(timeout, now)
	s.watchExpiry(sess)
}

func (s *Server) watchExpiry(sess *session) {
	sess.wakeAt = s.expiryOf(sess)
	heap.Push(&s.expirer.queue, expiryItem{sess.wakeAt, sess})
	s.arm(sess.wakeAt)
}

// reattach validates a session for a connection that wants to go on with it.
func (s *Server) reattach(e *entry, now time.Duration) *session {
	sess := s.sessions[e.connect.session]
	if sess == nil || sess.ended || sess.closing || !sess.validFor(e.connect) {
		return nil
	}
	e.timeout = s.negotiate(e.connect.timeout)
	sess.owner = e.c.member
	s.renew(sess, e.timeout, now)
	return sess
}

// newSession makes a session that no member knows of yet.
func (s *Server) newSession(c *conn, req connectCall) *session {
	s.sessionSeq++
	sess := &session{
		id:      int64(c.member.id+1)<<56 | (s.started.UnixMilli()<<24>>8+s.sessionSeq)&(1<<56-1),
		passwd:  make([]byte, 16),
		created: s.negotiate(req.timeout),
		client:  c.client,
		owner:   c.member,
	}
	for i := range sess.passwd {
		sess.passwd[i] = byte(s.rng.Uint32())
	}
	return sess
}
