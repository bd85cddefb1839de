package zktest

import (
	"bytes"
	"container/heap"
	"time"
)

// never is a moment that does not come. Moments are counted from Server.base.
const never = time.Duration(1<<63 - 1)

// session is the leader's knowledge of one session.
type session struct {
	id      int64
	passwd  []byte
	timeout time.Duration
	client  string
	owner   *Member // whose connections may write for it
	ended   bool
	doomed  bool // ExpireSession: ends as soon as the leader can commit

	touched time.Duration // when the leader last heard of it
	// A follower's clients touch their sessions only through the follower's
	// next answer to the leader's ping: at pendingAt, or when the link is back
	// (never, for now) if it was cut before that.
	pendingAt time.Duration
	pendingBy *Member
	wakeAt    time.Duration // when the expiry queue looks at it next
}

// expiryQueue orders sessions by the moment to look at them. Touches do not
// move a session in it: it is looked at, found alive and pushed again.
type expiryQueue []expiryItem

type expiryItem struct {
	at   time.Duration
	sess *session
}

func (q expiryQueue) Len() int           { return len(q) }
func (q expiryQueue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q expiryQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *expiryQueue) Push(x any)        { *q = append(*q, x.(expiryItem)) }
func (q *expiryQueue) Pop() any {
	last := len(*q) - 1
	item := (*q)[last]
	(*q)[last] = expiryItem{}
	*q = (*q)[:last]
	return item
}

// negotiate clamps what a client asks for to 2..20 ticks.
func (s *Server) negotiate(ms int32) time.Duration {
	asked := time.Duration(ms) * time.Millisecond
	return min(max(asked, 2*s.opts.TickTime), 20*s.opts.TickTime)
}

// expiryOf is ZooKeeper's bucket: up to one tick after the timeout, never early.
func (s *Server) expiryOf(sess *session) time.Duration {
	tick := s.opts.TickTime
	return ((sess.touched+sess.timeout)/tick + 1) * tick
}

// settle counts a touch that the leader has received by now.
func (sess *session) settle(now time.Duration) {
	if sess.pendingBy == nil || sess.pendingAt > now {
		return
	}
	sess.touched = max(sess.touched, sess.pendingAt)
	sess.pendingBy = nil
}

// touch notes that a client was heard on c. The caller holds mu.
func (s *Server) touch(c *conn, now time.Duration) {
	sess := c.sess
	if sess == nil || sess.ended || c.member.subjects != nil {
		return
	}
	sess.settle(now)
	switch {
	case c.member == s.leader:
		sess.touched = now
	case sess.pendingBy != nil && sess.pendingBy == c.member:
		// already waits for the same ping answer
	case s.inTouch(c.member):
		sess.pendingAt, sess.pendingBy = s.nextPing(now), c.member
	default:
		sess.pendingAt, sess.pendingBy = never, c.member
	}
}

// nextPing is when the followers answer the leader's next ping: every half tick.
func (s *Server) nextPing(now time.Duration) time.Duration {
	half := s.opts.TickTime / 2
	return s.leaderSince + ((now-s.leaderSince)/half+1)*half
}

// addSession starts the expiry clock of a new session. The caller holds mu.
func (s *Server) addSession(sess *session, now time.Duration) {
	s.sessions[sess.id] = sess
	s.renew(sess, now)
}

// renew gives a session a full timeout from now on.
func (s *Server) renew(sess *session, now time.Duration) {
	sess.touched, sess.pendingBy = now, nil
	s.watchExpiry(sess)
}

func (s *Server) watchExpiry(sess *session) {
	sess.wakeAt = s.expiryOf(sess)
	heap.Push(&s.expiries, expiryItem{sess.wakeAt, sess})
	s.arm(sess.wakeAt)
}

// expireDue ends the sessions whose bucket has come. Only a leader that can
// commit may. The caller holds mu.
func (s *Server) expireDue(now time.Duration) {
	for s.canCommit() && len(s.expiries) > 0 && s.expiries[0].at <= now {
		item := heap.Pop(&s.expiries).(expiryItem)
		sess := item.sess
		if sess.ended || item.at != sess.wakeAt {
			continue
		}
		sess.settle(now)
		if !sess.doomed && s.expiryOf(sess) > now {
			s.watchExpiry(sess)
			continue
		}
		s.note("session expired", "session", hex(sess.id), "client", sess.client)
		s.endSession(sess, nil)
	}
}

// reattach validates a session for a connection that wants to go on with it.
func (s *Server) reattach(c *conn, req connectCall, now time.Duration) *session {
	sess := s.sessions[req.session]
	if sess == nil || sess.ended || !bytes.Equal(sess.passwd, req.passwd) {
		return nil
	}
	sess.timeout = s.negotiate(req.timeout)
	sess.owner = c.member
	s.renew(sess, now)
	return sess
}

// takeBack is reattach on a leader that does not know of its successor: it asks nobody.
func (m *Member) takeBack(req connectCall) *session {
	sess := m.subjects[req.session]
	if sess == nil || !bytes.Equal(sess.passwd, req.passwd) {
		return nil
	}
	return sess
}

// newSession makes a session that no member knows of yet.
func (s *Server) newSession(c *conn, req connectCall) *session {
	s.sessionSeq++
	sess := &session{
		id:      int64(c.member.id+1)<<56 | (s.started.UnixMilli()<<24>>8+s.sessionSeq)&(1<<56-1),
		passwd:  make([]byte, 16),
		timeout: s.negotiate(req.timeout),
		client:  c.client,
		owner:   c.member,
	}
	for i := range sess.passwd {
		sess.passwd[i] = byte(s.rng.Uint32())
	}
	return sess
}
