// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// sessions holds the sessions of an ensemble, and the leader's expirer. The expirer
// collects the sessions whose bucket is due, and closes one after the other at an
// interval of lab.Options.ExpiryGap.
type sessions struct {
	opts     *Options
	clock    *clock
	tick     time.Duration // the leader's
	behind   time.Duration // how long the leaders' clocks have stood still
	byID     map[int64]*session
	created  int64         // number of sessions created so far
	queue    expiryQueue   // contains every session at its wakeAt
	bucket   []*session    // expired sessions, taken from queue, to be closed one after the other
	stops    int           // while positive, no session of bucket is closed
	closeAt  time.Duration // when to close the next session of bucket
	closings []*session    // sessions being closed, whose ends wait for a quorum
}

func newSessions(opts *Options, k *clock) *sessions {
	return &sessions{opts: opts, clock: k, tick: opts.ticks[0], byID: make(map[int64]*session)}
}

// clear removes all sessions.
func (s *sessions) clear() {
	s.stopExpiring()
	clear(s.byID)
}

func (s *sessions) stopExpiring() {
	s.queue, s.bucket, s.closings, s.closeAt = nil, nil, nil, 0
}

func (s *sessions) get(id int64) *session { return s.byID[id] }

// all returns the sessions, ordered by ID.
func (s *sessions) all() []*session {
	return slices.SortedFunc(maps.Values(s.byID), func(a, b *session) int { return cmp.Compare(a.id, b.id) })
}

// expiryOf returns when a session expires: at the end of ZooKeeper's bucket, up to one
// tick of the leader after the timeout and never early.
func (s *sessions) expiryOf(sess *session) time.Duration {
	return ((sess.touched-s.behind+sess.timeout)/s.tick+1)*s.tick + s.behind
}

// standStill moves everything that the leader's clock determines by d, the time for which the clock has stood still.
func (s *sessions) standStill(d time.Duration) {
	s.behind += d
	for _, sess := range s.byID {
		sess.touched += d
		sess.wakeAt += d
		sess.taken += d
	}
	for i := range s.queue {
		s.queue[i].at += d
	}
	s.closeAt += d
}

// create creates a session for a member's client. It is not registered yet: see add.
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

// add registers a new session and starts its timeout.
func (s *sessions) add(sess *session, now time.Duration) {
	s.byID[sess.id] = sess
	s.renew(sess, sess.created, now)
}

// load restores a saved session. Its timeout starts when there is a leader: see startOver.
func (s *sessions) load(saved SavedSession) {
	s.byID[saved.ID] = &session{
		id: saved.ID, passwd: slices.Clone(saved.Passwd), created: saved.Timeout, timeout: saved.Timeout, client: "restored",
	}
}

// end removes a session whose end is being committed.
func (s *sessions) end(sess *session) {
	sess.ended = true
	delete(s.byID, sess.id)
}

// renew gives a session a full timeout from now on.
func (s *sessions) renew(sess *session, timeout, now time.Duration) {
	sess.touch(timeout, now)
	s.lookAt(sess, s.expiryOf(sess))
}

// lookAt schedules the expirer to examine a session.
func (s *sessions) lookAt(sess *session, at time.Duration) {
	sess.wakeAt = at
	s.queue.put(sess)
	s.clock.arm(at)
}

// reattach renews the session that a connect request asks for, assigns it to the
// member and returns it. It returns nil if there is no such session or the password is
// wrong.
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

// startOver renews the sessions for a new leader: each gets a full timeout, from now on
// or from the last sign of life in heard.
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

// expire moves the sessions that have expired into the bucket, and closes those of the
// bucket whose turn has come. A session that is touched before its turn is closed
// nevertheless.
func (s *sessions) expire(now time.Duration) {
	for item, ok := s.queue.takeDue(now); ok; item, ok = s.queue.takeDue(now) {
		s.examine(item, now)
	}
	s.closeAt = max(s.closeAt, now)
	if s.stops > 0 {
		return
	}
	for len(s.bucket) > 0 && s.turn() <= now {
		s.bucket[0].closing = true
		s.closings = append(s.closings, s.bucket[0])
		s.bucket = s.bucket[1:]
		s.closeAt += s.opts.lab.ExpiryGap
	}
	if len(s.bucket) > 0 {
		s.clock.arm(s.turn())
	}
}

// turn returns when the first session of the bucket is closed.
func (s *sessions) turn() time.Duration {
	if longest := s.opts.lab.ExpiryTogether; longest > 0 {
		return min(s.closeAt, s.bucket[0].taken+longest)
	}
	return s.closeAt
}

// examine handles a session that the expirer was scheduled to examine.
func (s *sessions) examine(item expiryItem, now time.Duration) {
	sess := item.sess
	switch {
	case sess.ended || item.at != sess.wakeAt:
	case !sess.doomed && s.expiryOf(sess) > now:
		s.lookAt(sess, s.expiryOf(sess))
	default:
		sess.taken = now
		s.bucket = append(s.bucket, sess)
	}
}

// nextClosed returns the next session whose end is to be committed, or nil if there is none.
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

// copied returns copies of the sessions for a former leader, which only that leader
// changes.
func (s *sessions) copied() *sessions {
	c := newSessions(s.opts, s.clock)
	c.tick, c.behind = s.tick, s.behind
	for id, sess := range s.byID {
		known := *sess
		c.byID[id] = &known
	}
	return c
}
