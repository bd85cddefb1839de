package zktest

import "time"

// former is what a leader goes on doing that was cut off when another was
// elected, until it notices: it answers syncs, and takes back the sessions that
// it knew, without asking anybody.
type former struct {
	sessions *sessions // copies: what happens to the sessions elsewhere is not known here
}

// takeBack gives a connect request the session that it asks for, unless by the
// former leader's own clock it is over.
func (f *former) takeBack(e *entry, now time.Duration) {
	e.decided = true
	known := f.sessions.get(e.connect.session)
	if known == nil || !known.validFor(e.connect) || f.sessions.expiryOf(known) <= now {
		return
	}
	e.sess, e.timeout = known, f.sessions.opts.negotiate(e.by.member, e.connect.timeout)
	known.touch(e.timeout, now)
}

// touch notes that a session was heard of.
func (f *former) touch(id int64, timeout, now time.Duration) {
	if known := f.sessions.get(id); known != nil {
		known.touch(timeout, now)
	}
}
