package zktest

import "time"

// link is a follower's connection to its leader: two streams, and what the
// follower keeps for the way up.
type link struct {
	down stream[downFrame] // leader to follower
	up   stream[upFrame]   // follower to leader

	// touched is the touch table: the sessions of its clients that were heard
	// since the follower answered the leader's last PING, with their timeouts.
	touched map[*session]time.Duration
	// lostTouch has the sessions whose last touch was lost (Options.LoseTouches).
	lostTouch map[*session]bool

	// asked has the last request to take back each session that is not answered.
	asked map[int64]*entry

	// requests are its clients' writes and syncs that are not on the stream
	// yet, because holds keeps them back.
	requests []*entry
	holds    int
}

// downFrame is what a leader sends: a commit, an answer (to a sync, or to a
// session that is taken back), or if it is neither, a PING.
type downFrame struct {
	txn    *txn
	answer *entry
}

// upFrame is what a follower sends: a request, or the answer to a PING.
type upFrame struct {
	request *entry
	touched map[*session]time.Duration
}

// isPing reports whether the frame has no effect but the PING's answer. Nobody
// needs to be woken for one: it is looked at when its effect could be seen.
func (f downFrame) isPing() bool { return f.txn == nil && f.answer == nil }

// reset makes the link a new connection, as slow as the old one.
func (l *link) reset() {
	down, up, holds := l.down.delay, l.up.delay, l.holds
	*l = link{holds: holds}
	l.down.delay, l.up.delay = down, up
}

// slow sets the delays of both ways.
func (l *link) slow(down, up, now time.Duration) {
	l.down.setDelay(down, now)
	l.up.setDelay(up, now)
}

// touch puts a session into the touch table, unless this touch is lost; losing
// is asked at most every other time for one session.
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

// ask notes a request to take a session back.
func (l *link) ask(e *entry) {
	if l.asked == nil {
		l.asked = make(map[int64]*entry)
	}
	l.asked[e.connect.session] = e
}

// ends returns the request that an answer ends, nil for none. A follower knows of
// an answer to taking a session back only which session it is about: the last
// request gets it, though it may be the answer to an earlier one.
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

// answerPing sends the touch table up, if there is anything in it.
func (l *link) answerPing(now time.Duration) {
	if len(l.touched) > 0 {
		l.up.send(upFrame{touched: l.touched}, now)
		l.touched = nil
	}
}

// wantsPing reports whether a PING sent now would have any effect that is not
// carried out at once.
func (l *link) wantsPing() bool { return !l.down.idle() || len(l.touched) > 0 }

// hold keeps the requests of clients from the stream. Each hold needs its unhold.
func (l *link) hold() { l.holds++ }

// unhold ends a hold. It returns the requests to send, if it was the last one.
func (l *link) unhold() []*entry {
	if l.holds--; l.holds > 0 {
		return nil
	}
	waiting := l.requests
	l.requests = nil
	return waiting
}

// keep keeps a request if there is a hold, and reports whether it did. Taking a
// session back does not wait.
func (l *link) keep(e *entry, takesBack bool) bool {
	if l.holds == 0 || takesBack {
		return false
	}
	l.requests = append(l.requests, e)
	return true
}

// inLog lists the transactions on the stream that the follower has logged.
func (l *link) inLog(zxid int64) []*txn {
	var list []*txn
	for _, f := range l.down.frames {
		if t := f.frame.txn; t != nil && t.zxid <= zxid {
			list = append(list, t)
		}
	}
	return list
}

// newest is the zxid of the last transaction on the stream, 0 for none.
func (l *link) newest() int64 {
	for i := len(l.down.frames) - 1; i >= 0; i-- {
		if t := l.down.frames[i].frame.txn; t != nil {
			return t.zxid
		}
	}
	return 0
}

// deadline is when the first frame that is no PING and no answer to one arrives.
func (l *link) deadline() time.Duration {
	down := l.down.first(func(f downFrame) bool { return !f.isPing() })
	up := l.up.first(func(f upFrame) bool { return f.request != nil })
	return min(down, up)
}
