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
	known := f.living(e.connect.session, now)
	if known == nil || !known.validFor(e.connect) {
		return
	}
	e.sess, e.timeout = known, f.sessions.opts.negotiate(e.by.member, e.connect.timeout)
	known.touch(e.timeout, now)
}

// touch notes that a session was heard of. False means that its time was up
// before, by the former leader's own clock.
func (f *former) touch(id int64, timeout, now time.Duration) bool {
	known := f.living(id, now)
	return known != nil && known.touch(timeout, now)
}

// living returns the session that by the former leader's own clock is not over, nil if there is none.
func (f *former) living(id int64, now time.Duration) *session {
	known := f.sessions.get(id)
	if known == nil || known.over() || f.sessions.expiryOf(known) <= now {
		return nil
	}
	return known
}
