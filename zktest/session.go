// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"bytes"
	"slices"
	"time"
)

// session is the leader's record of a session.
type session struct {
	id      int64
	passwd  []byte
	created time.Duration // the timeout it was created with; a new leader uses it
	timeout time.Duration // the timeout of the last touch
	client  string
	owner   int  // the member whose connections may write for it
	ended   bool // its end is committed
	closing bool // the expirer is closing it; the end waits for the quorum
	doomed  bool // ExpireSession was called: it ends as soon as the leader can commit

	touched time.Duration // when the leader last received a touch
	wakeAt  time.Duration // when the expirer examines it next
	taken   time.Duration // when the expirer put it into the bucket
}

// sign is a sign of life of a session on a Keeper.
type sign struct {
	at   time.Duration
	zxid int64 // zxid of the last transaction committed for the session
}

// touch records that a session is active. If the session has ended or is closing,
// touch has no effect and returns false.
func (sess *session) touch(timeout, now time.Duration) bool {
	if sess.over() {
		return false
	}
	sess.timeout, sess.touched = timeout, now
	return true
}

// over reports whether the session has ended or is closing.
func (sess *session) over() bool { return sess.ended || sess.closing }

// validFor reports whether a connect request has the session's password.
func (sess *session) validFor(req *connectCall) bool { return bytes.Equal(sess.passwd, req.passwd) }

// saved returns the session in the form that a snapshot stores.
func (sess *session) saved() SavedSession {
	return SavedSession{sess.id, sess.created, slices.Clone(sess.passwd)}
}
