package zktest

import "time"

// Request is a request as an interceptor sees it, before it is processed.
type Request struct {
	Op      Op
	Xid     int32
	Path    string
	Paths   []string // of the steps of a multi
	Ops     []Op     // of the steps of a multi
	Data    []byte
	Flags   int32 // of a create
	Version int32
	Watch   bool
	Session int64 // 0 for a connect request without one
	Client  string
	Member  int
}

// Verdict is what an interceptor wants done with a request.
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
	// Pass lets the request go its way.
	Pass = Verdict{}
	// LoseReply applies the request and closes the connection instead of answering.
	LoseReply = Verdict{kind: loseReply}
	// DropBefore closes the connection without applying the request.
	DropBefore = Verdict{kind: dropBefore}
	// DropAfter applies and answers the request, and then closes the connection.
	DropAfter = Verdict{kind: dropAfter}
	// DropReply applies the request and never answers it; the connection stays.
	DropReply = Verdict{kind: dropReply}
)

// Answer replies with an error code without applying the request. A connect
// request is answered as one for an expired session, whatever the code.
func Answer(code int32) Verdict { return Verdict{kind: answerCode, code: code} }

// Hold keeps the request, and what that connection sends after it, until
// release is closed; then the request is applied, unless the server has closed
// the connection meanwhile.
func Hold(release <-chan struct{}) Verdict { return Verdict{kind: hold, release: release} }

// Delay is Hold for a time.
func Delay(d time.Duration) Verdict { return Verdict{kind: delay, delay: d} }

// fate is what the interceptors left of a request's normal course.
type fate struct {
	lose, mute, drop, answer bool
	code                     int32
}

// fate is what becomes of a request once it is processed.
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

// show returns the request as interceptors see it, but for where it came from.
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

// Txn is a transaction as OnTxn shows it. Failed writes are transactions too:
// they take a zxid and change nothing.
type Txn struct {
	Zxid    int64
	Time    time.Time
	Op      Op
	Session int64    // the one that asked; 0 for the server itself
	Path    string   // of a create: the name the node got
	Data    []byte   // of a create or setData
	Code    int32    // of a multi: the first step's that failed
	Owner   int64    // of a create: the ephemeral owner
	Deleted []string // of a closeSession: the ephemerals that ended with it
	Steps   []Txn    // of a multi
}
