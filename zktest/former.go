// SPDX-License-Identifier: Apache-2.0

package zktest

import "time"

// former is the state of a leader that was cut off when another one was elected and
// has not noticed yet. It answers syncs and re-attaches clients to the sessions it
// knew, without consulting the other members.
type former struct {
	sessions *sessions // copies, which do not reflect what happens to the sessions elsewhere
}

// takeBack re-attaches a connect request to its session, unless the session has
// expired by the former leader's own clock.
func (f *former) takeBack(e *entry, now time.Duration) {
	e.decided = true
	known := f.living(e.connect.session, now)
	if known == nil || !known.validFor(e.connect) {
		return
	}
	e.sess, e.timeout = known, f.sessions.opts.negotiate(e.by.member, e.connect.timeout)
	known.touch(e.timeout, now)
}

// touch touches a session. It returns false if the session had already expired by
// the former leader's own clock.
func (f *former) touch(id int64, timeout, now time.Duration) bool {
	known := f.living(id, now)
	return known != nil && known.touch(timeout, now)
}

// living returns the session if it has not expired by the former leader's own clock, and otherwise nil.
func (f *former) living(id int64, now time.Duration) *session {
	known := f.sessions.get(id)
	if known == nil || known.over() || f.sessions.expiryOf(known) <= now {
		return nil
	}
	return known
}
