package zktest

import (
	"bytes"
	"slices"
	"time"
)

// session is the leader's knowledge of one session.
type session struct {
	id      int64
	passwd  []byte
	created time.Duration // the timeout it was created with, which a new leader gives it
	timeout time.Duration // the one it was last touched with
	client  string
	owner   int  // the member whose connections may write for it
	ended   bool // its end is committed
	closing bool // the expirer has come to it: its end waits for the quorum
	doomed  bool // ExpireSession: ends as soon as the leader can commit

	touched time.Duration // when the leader last heard of it
	wakeAt  time.Duration // when the expiry queue looks at it next
}

// sign is a sign of life of a session on a Keeper.
type sign struct {
	at   time.Duration
	zxid int64 // of what was last committed for the session
}

// touch notes that the leader has heard of a session. One whose end is on its
// way gains nothing from it, and touch returns false.
func (sess *session) touch(timeout, now time.Duration) bool {
	if sess.over() {
		return false
	}
	sess.timeout, sess.touched = timeout, now
	return true
}

// over reports whether the session has ended or is about to.
func (sess *session) over() bool { return sess.ended || sess.closing }

// validFor reports whether a connect request knows the session's password.
func (sess *session) validFor(req *connectCall) bool { return bytes.Equal(sess.passwd, req.passwd) }

// saved returns what a snapshot keeps of the session.
func (sess *session) saved() SavedSession {
	return SavedSession{sess.id, sess.created, slices.Clone(sess.passwd)}
}
