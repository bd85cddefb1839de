package zktest

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// sessions are the sessions of an ensemble, and the leader's expirer of them. It
// takes the sessions whose bucket has come and closes one after the other,
// Options.ExpiryGap apart.
type sessions struct {
	opts     *Options
	clock    *clock
	byID     map[int64]*session
	created  int64         // how many there have been
	queue    expiryQueue   // contains every session at its wakeAt
	bucket   []*session    // taken from queue: to be closed, one after the other
	stops    int           // while there is one, none of the bucket is closed
	closeAt  time.Duration // when the next of the bucket is
	closings []*session    // closed, as soon as there is a quorum
}

func newSessions(opts *Options, k *clock) *sessions {
	return &sessions{opts: opts, clock: k, byID: make(map[int64]*session)}
}

// clear forgets all sessions.
func (s *sessions) clear() {
	s.stopExpiring()
	clear(s.byID)
}

func (s *sessions) stopExpiring() {
	s.queue, s.bucket, s.closings, s.closeAt = nil, nil, nil, 0
}

func (s *sessions) get(id int64) *session { return s.byID[id] }

// all returns the sessions in the order of their ids.
func (s *sessions) all() []*session {
	return slices.SortedFunc(maps.Values(s.byID), func(a, b *session) int { return cmp.Compare(a.id, b.id) })
}

// expiryOf is ZooKeeper's bucket: up to one tick after the timeout, never early.
func (s *sessions) expiryOf(sess *session) time.Duration {
	tick := s.opts.TickTime
	return ((sess.touched+sess.timeout)/tick + 1) * tick
}

// create makes a session of a member's client. Nobody knows of it yet: see add.
func (s *sessions) create(req *connectCall, client string, member int, rng *rand.Rand) *session {
	s.created++
	sess := &session{
		id:      int64(member+1)<<56 | (s.clock.base.UnixMilli()<<24>>8+s.created)&(1<<56-1),
		passwd:  make([]byte, 16),
		created: s.opts.negotiate(member, req.timeout),
		client:  client,
		owner:   member,
	}
	for i := range sess.passwd {
		sess.passwd[i] = byte(rng.Uint32())
	}
	return sess
}

// add starts the expiry clock of a new session.
func (s *sessions) add(sess *session, now time.Duration) {
	s.byID[sess.id] = sess
	s.renew(sess, sess.created, now)
}

// load puts a session back that was saved. It expires when a leader says so: see startOver.
func (s *sessions) load(saved SavedSession) {
	s.byID[saved.ID] = &session{
		id: saved.ID, passwd: slices.Clone(saved.Passwd), created: saved.Timeout, timeout: saved.Timeout, client: "restored",
	}
}

// end takes a session out whose end is being committed.
func (s *sessions) end(sess *session) {
	sess.ended = true
	delete(s.byID, sess.id)
}

// renew gives a session a full timeout from now on.
func (s *sessions) renew(sess *session, timeout, now time.Duration) {
	sess.touch(timeout, now)
	s.lookAt(sess, s.expiryOf(sess))
}

// lookAt makes the expirer look at a session at the given moment.
func (s *sessions) lookAt(sess *session, at time.Duration) {
	sess.wakeAt = at
	s.queue.put(sess)
	s.clock.arm(at)
}

// reattach returns the session that a connect request asks for, which is renewed
// and belongs to the member from then on; nil if there is none or it is refused.
func (s *sessions) reattach(req *connectCall, member int, now time.Duration) (*session, time.Duration) {
	sess := s.byID[req.session]
	if sess == nil || sess.over() || !sess.validFor(req) {
		return nil, 0
	}
	timeout := s.opts.negotiate(member, req.timeout)
	sess.owner = member
	s.renew(sess, timeout, now)
	return sess, timeout
}

// startOver is what a new leader does: every session gets a full timeout again,
// or one from the moment at which the leader itself last heard of it.
func (s *sessions) startOver(heard map[int64]sign, now time.Duration) {
	s.stopExpiring()
	for _, sess := range s.byID {
		sess.closing = false
		s.renew(sess, sess.created, now)
		if last, ok := heard[sess.id]; ok {
			sess.touched = last.at
			s.lookAt(sess, s.expiryOf(sess))
		}
	}
}

// doom makes a session expire now.
func (s *sessions) doom(id int64, now time.Duration) {
	if sess := s.byID[id]; sess != nil {
		sess.doomed = true
		s.lookAt(sess, now)
	}
}

// expire takes the sessions whose time is up into the bucket, and closes those
// of the bucket whose turn has come. One that is touched before its turn is
// closed all the same.
func (s *sessions) expire(now time.Duration) {
	for item, ok := s.queue.takeDue(now); ok; item, ok = s.queue.takeDue(now) {
		s.examine(item, now)
	}
	s.closeAt = max(s.closeAt, now)
	if s.stops > 0 {
		return
	}
	for len(s.bucket) > 0 && s.closeAt <= now {
		s.bucket[0].closing = true
		s.closings = append(s.closings, s.bucket[0])
		s.bucket = s.bucket[1:]
		s.closeAt += s.opts.ExpiryGap
	}
	if len(s.bucket) > 0 {
		s.clock.arm(s.closeAt)
	}
}

// examine decides about a session that the expirer was to look at by now.
func (s *sessions) examine(item expiryItem, now time.Duration) {
	sess := item.sess
	switch {
	case sess.ended || item.at != sess.wakeAt:
	case !sess.doomed && s.expiryOf(sess) > now:
		s.lookAt(sess, s.expiryOf(sess))
	default:
		s.bucket = append(s.bucket, sess)
	}
}

// nextClosed returns the next session whose end is to be committed, nil if there is none.
func (s *sessions) nextClosed() *session {
	for len(s.closings) > 0 {
		sess := s.closings[0]
		s.closings = s.closings[1:]
		if !sess.ended {
			return sess
		}
	}
	return nil
}

// copied returns what a former leader goes on knowing: sessions that nothing
// changes any more but itself.
func (s *sessions) copied() *sessions {
	c := newSessions(s.opts, s.clock)
	for id, sess := range s.byID {
		known := *sess
		c.byID[id] = &known
	}
	return c
}
