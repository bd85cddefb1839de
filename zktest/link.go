// SPDX-License-Identifier: Apache-2.0

package zktest

import "time"

// link is a follower's connection to its leader: two streams, and the data that the
// follower keeps for the upward stream.
type link struct {
	down stream[downFrame] // leader to follower
	up   stream[upFrame]   // follower to leader

	// touched is the touch table: the sessions of the follower's clients that were
	// active since it replied to the leader's last PING, with their timeouts.
	touched map[*session]time.Duration
	// lostTouch contains the sessions whose last touch was lost (lab.Options.LoseTouches).
	lostTouch map[*session]bool

	// asked contains, by session, the last unanswered request to re-attach to it.
	asked map[int64]*entry

	// requests are the clients' writes and syncs that are held back from the
	// stream while holds is not zero.
	requests []*entry
	holds    int
}

// downFrame is a message from the leader: a commit, a reply (to a sync or to a
// re-attach), or, if both fields are nil, a PING.
type downFrame struct {
	txn    *txn
	answer *entry
}

// upFrame is a message from a follower: a request, or the reply to a PING.
type upFrame struct {
	request *entry
	touched map[*session]time.Duration
}

// isPing reports whether the frame is a PING, whose only effect is the reply. It needs
// no alarm: it is processed before its effect could be observed.
func (f downFrame) isPing() bool { return f.txn == nil && f.answer == nil }

// reset makes the link a new connection with the same delays.
func (l *link) reset() {
	down, up, holds := l.down.delay, l.up.delay, l.holds
	*l = link{holds: holds}
	l.down.delay, l.up.delay = down, up
}

// slow sets the delays of both directions.
func (l *link) slow(down, up, now time.Duration) {
	l.down.setDelay(down, now)
	l.up.setDelay(up, now)
}

// touch adds a session to the touch table, unless losing reports that this touch is
// lost. Two consecutive touches of a session are never both lost.
func (l *link) touch(sess *session, timeout time.Duration, losing func() bool) {
	if !l.lostTouch[sess] && losing() {
		if l.lostTouch == nil {
			l.lostTouch = make(map[*session]bool)
		}
		l.lostTouch[sess] = true
		return
	}
	delete(l.lostTouch, sess)
	if l.touched == nil {
		l.touched = make(map[*session]time.Duration)
	}
	l.touched[sess] = timeout
}

// ask records a request to re-attach to a session.
func (l *link) ask(e *entry) {
	if l.asked == nil {
		l.asked = make(map[int64]*entry)
	}
	l.asked[e.connect.session] = e
}

// ends returns the request that a reply completes, or nil if there is none. A
// follower matches the reply to a re-attach only by session, so the last request for
// the session gets it, even if it is the reply to an earlier one.
func (l *link) ends(answer *entry, negotiate func(ms int32) time.Duration) *entry {
	if answer.connect == nil {
		return answer
	}
	last := l.asked[answer.connect.session]
	delete(l.asked, answer.connect.session)
	if last != nil && last != answer {
		last.sess, last.timeout = answer.sess, negotiate(last.connect.timeout)
	}
	return last
}

// answerPing sends the touch table to the leader if it is not empty.
func (l *link) answerPing(now time.Duration) {
	if len(l.touched) > 0 {
		l.up.send(upFrame{touched: l.touched}, now)
		l.touched = nil
	}
}

// wantsPing reports whether a PING must be sent: it would not arrive at once, or the
// touch table is not empty.
func (l *link) wantsPing() bool { return !l.down.idle() || len(l.touched) > 0 }

// hold holds back the requests of clients. Each call needs a call of unhold.
func (l *link) hold() { l.holds++ }

// unhold ends a hold. If it was the last one, unhold returns the requests to send.
func (l *link) unhold() []*entry {
	l.holds--
	if l.holds > 0 {
		return nil
	}
	waiting := l.requests
	l.requests = nil
	return waiting
}

// keep holds a request back if there is a hold, and reports whether it did. A
// re-attach does not wait.
func (l *link) keep(e *entry, takesBack bool) bool {
	if l.holds == 0 || takesBack {
		return false
	}
	l.requests = append(l.requests, e)
	return true
}

// inLog returns the transactions on the stream that the follower has logged, up to zxid.
func (l *link) inLog(zxid int64) []*txn {
	var list []*txn
	for _, f := range l.down.frames {
		if t := f.frame.txn; t != nil && t.zxid <= zxid {
			list = append(list, t)
		}
	}
	return list
}

// newest returns the zxid of the last transaction on the stream, or 0 if there is none.
func (l *link) newest() int64 {
	for i := len(l.down.frames) - 1; i >= 0; i-- {
		if t := l.down.frames[i].frame.txn; t != nil {
			return t.zxid
		}
	}
	return 0
}

// deadline returns when the first frame arrives that is neither a PING nor a reply to one.
func (l *link) deadline() time.Duration {
	down := l.down.first(func(f downFrame) bool { return !f.isPing() })
	up := l.up.first(func(f upFrame) bool { return f.request != nil })
	return min(down, up)
}
