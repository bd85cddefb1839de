// SPDX-License-Identifier: Apache-2.0

package zktest

import "time"

// Request describes a request to an interceptor, before it is processed.
type Request struct {
	Op      Op
	Xid     int32
	Path    string
	Paths   []string // the paths of a multi's steps
	Ops     []Op     // the types of a multi's steps
	Data    []byte
	Flags   int32 // of a create
	Version int32
	Watch   bool
	Session int64 // 0 for a connect request that asks for a new session
	Client  string
	Member  int

	waited time.Duration // since it arrived, for package lab
}

// A Verdict says what to do with a request.
type Verdict struct {
	kind    verdictKind
	code    int32
	release <-chan struct{}
	delay   time.Duration
}

type verdictKind uint8

const (
	pass verdictKind = iota
	loseReply
	dropBefore
	dropReply
	dropAfter
	answerCode
	hold
	delay
)

// The verdicts without parameters.
var (
	// Pass processes the request normally.
	Pass = Verdict{}
	// LoseReply applies the request and closes the connection instead of replying.
	LoseReply = Verdict{kind: loseReply}
	// DropBefore closes the connection without applying the request.
	DropBefore = Verdict{kind: dropBefore}
	// DropAfter applies the request, sends the reply, and then closes the connection.
	DropAfter = Verdict{kind: dropAfter}
	// DropReply applies the request but never sends a reply; the connection stays open.
	DropReply = Verdict{kind: dropReply}
)

// Answer replies with an error code without applying the request. The reply to a
// connect request says that the session has expired, whatever the code.
func Answer(code int32) Verdict { return Verdict{kind: answerCode, code: code} }

// Hold delays the request, and everything that the connection sends after it, until
// release is closed. The request is then applied, unless the server has closed the
// connection in the meantime.
func Hold(release <-chan struct{}) Verdict { return Verdict{kind: hold, release: release} }

// Delay is like Hold, but delays the request by d.
func Delay(d time.Duration) Verdict { return Verdict{kind: delay, delay: d} }

// fate says how the processing of a request differs from normal.
type fate struct {
	lose, mute, drop, answer bool
	code                     int32
}

// fate returns how a request with this verdict is processed.
func (v Verdict) fate() fate {
	switch v.kind {
	case loseReply:
		return fate{lose: true}
	case dropReply:
		return fate{mute: true}
	case dropAfter:
		return fate{drop: true}
	case answerCode:
		return fate{answer: true, code: v.code}
	}
	return fate{}
}

// show returns the Request for interceptors, without the fields about its origin.
func (c *call) show() *Request {
	shown := &Request{
		Op: c.op, Xid: c.xid, Path: c.path, Data: c.data, Flags: c.flags, Version: c.version, Watch: c.watch,
	}
	for i := range c.subs {
		shown.Ops = append(shown.Ops, c.subs[i].op)
		shown.Paths = append(shown.Paths, c.subs[i].path)
	}
	return shown
}

// Txn describes a transaction to OnTxn. Failed writes are transactions too: they
// take a zxid and change nothing.
type Txn struct {
	Zxid    int64
	Time    time.Time
	Op      Op
	Session int64    // the session that sent the request; 0 for the server itself
	Path    string   // for a create, the path of the created node
	Data    []byte   // for a create or setData
	Code    int32    // for a multi, the code of the first step that failed
	Owner   int64    // for a create, the ephemeral owner
	Deleted []string // for a closeSession, the ephemeral nodes that it deleted
	Steps   []Txn    // for a multi
}
