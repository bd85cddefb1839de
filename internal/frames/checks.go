// SPDX-License-Identifier: Apache-2.0

package frames

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Reply is a frame from a server, other than the reply to a connection request.
type Reply struct {
	Xid  int32
	Zxid int64
	Code int32
	Body []byte // the part after the header
}

// ParseReply parses the header of a reply. It does not check the body.
func ParseReply(frame []byte) (Reply, error) {
	if len(frame) < replyHeader {
		return Reply{}, ErrMalformed
	}
	return Reply{
		Xid:  int32(binary.BigEndian.Uint32(frame)),
		Zxid: int64(binary.BigEndian.Uint64(frame[4:])),
		Code: int32(binary.BigEndian.Uint32(frame[12:])),
		Body: frame[replyHeader:],
	}, nil
}

// Renumber replaces the number of a reply.
func Renumber(frame []byte, xid int32) { binary.BigEndian.PutUint32(frame, uint32(xid)) }

// versionRejected is the protocol version in a connection reply of a ClickHouse Keeper that has no
// leader. The other fields look like those of a session.
const versionRejected = 42

// ErrNoLeader is the error of a connection request to a server that has no leader.
var ErrNoLeader = errors.New("server has no leader")

// ParseGreeting parses the reply to a connection request.
func ParseGreeting(body []byte) (session int64, timeout time.Duration, err error) {
	if err := CheckGreeting(body); err != nil {
		return 0, 0, err
	}
	if binary.BigEndian.Uint32(body) == versionRejected {
		return 0, 0, ErrNoLeader
	}
	timeout = time.Duration(int32(binary.BigEndian.Uint32(body[4:]))) * time.Millisecond
	return int64(binary.BigEndian.Uint64(body[8:])), timeout, nil
}

// GreetingHead is how many bytes of the reply to a connection request GreetingBegins needs.
const GreetingHead = 20

// GreetingBegins reports whether data is the beginning of a reply to a connection request, with its length,
// that has the given session.
func GreetingBegins(data []byte, session int64) bool {
	return len(data) >= GreetingHead && binary.BigEndian.Uint32(data[4:]) != versionRejected && int64(binary.BigEndian.Uint64(data[12:])) == session
}

// ParseToken parses the body of a successful reply to a SASL request: the server's token, or nil if
// it has none.
func ParseToken(body []byte) ([]byte, error) {
	p := payload{rest: body}
	size := p.int()
	token := p.rest
	p.skip(max(0, size))
	switch {
	case p.bad || len(p.rest) > 0:
		return nil, fmt.Errorf("%w: reply to operation %d", ErrMalformed, OpSASL)
	case size < 0:
		return nil, nil
	}
	return token, nil
}

// A payload is read from front to back. Once something is missing, it stays bad.
type payload struct {
	rest []byte
	bad  bool
}

func (p *payload) skip(n int) {
	if n < 0 || n > len(p.rest) {
		p.bad, p.rest = true, nil
		return
	}
	p.rest = p.rest[n:]
}

func (p *payload) int() int {
	if len(p.rest) < 4 {
		p.bad, p.rest = true, nil
		return 0
	}
	n := int32(binary.BigEndian.Uint32(p.rest))
	p.skip(4)
	return int(n)
}

func (p *payload) text() { p.skip(p.int()) }

// buffer skips bytes, or nothing if their length is -1.
func (p *payload) buffer() { p.skip(max(0, p.int())) }

// count reads the length of a list. Servers never send a null list, whose length is -1: the client
// library would read it as 4294967295.
func (p *payload) count() int {
	n := p.int()
	p.bad = p.bad || n < 0
	return n
}

func (p *payload) names() {
	for n := p.count(); n > 0 && !p.bad; n-- {
		p.text()
	}
}

func (p *payload) stat() { p.skip(statSize) }

// CheckGreeting returns ErrMalformed if body is not the reply to a connection request.
func CheckGreeting(body []byte) error {
	p := payload{rest: body}
	p.skip(4)
	timeout := p.int()
	p.skip(8)
	password := p.int()
	p.skip(password)
	if p.bad || password > maxPassword || timeout < 0 || timeout == 0 && binary.BigEndian.Uint64(body[8:]) != 0 {
		return fmt.Errorf("%w: reply to connection request", ErrMalformed)
	}
	return nil
}

// An EventKind says what has happened to a watched node.
type EventKind int32

const (
	NodeDeleted     EventKind = 2
	DataChanged     EventKind = 3
	ChildrenChanged EventKind = 4
)

// Event is an event of a watched node.
type Event struct {
	Kind EventKind
	Path string
}

// ParseEvent parses the body of an event, or returns ErrMalformed.
func ParseEvent(body []byte) (Event, error) {
	p := payload{rest: body}
	kind := p.int()
	p.int()
	n := p.int()
	text := p.rest
	p.skip(n)
	if p.bad {
		return Event{}, fmt.Errorf("%w: event", ErrMalformed)
	}
	return Event{EventKind(kind), string(text[:n])}, nil
}

// CheckReply returns ErrMalformed if body is not the body of a successful reply to the operation.
// It accepts all replies to operations that it does not know.
func CheckReply(op int32, body []byte) error {
	p := payload{rest: body}
	switch op {
	case OpCreate, OpCreateContainer, OpCreateTTL, OpSync:
		p.text()
	case OpCreate2:
		p.text()
		p.stat()
	case OpExists, OpSetData, OpSetACL:
		p.stat()
	case OpGetData:
		p.buffer()
		p.stat()
	case OpGetChildren:
		p.names()
	case OpGetChildren2:
		p.names()
		p.stat()
	case OpGetACL:
		for n := p.count(); n > 0 && !p.bad; n-- {
			p.int()
			p.text()
			p.text()
		}
		p.stat()
	case OpMulti:
		p.results()
	}
	if p.bad {
		return fmt.Errorf("%w: reply to operation %d", ErrMalformed, op)
	}
	return nil
}

// CountNames returns the number of names in a successful reply to the operation, or zero if such a
// reply contains none.
func CountNames(op int32, body []byte) int {
	if op != OpGetChildren && op != OpGetChildren2 {
		return 0
	}
	p := payload{rest: body}
	return p.count()
}

// results skips the results of a transaction's operations, up to the end marker. It reports whether
// one of them says that the session is over.
func (p *payload) results() (expired bool) {
	for !p.bad {
		op := int32(p.int())
		end := len(p.rest) > 0 && p.rest[0] != 0
		p.skip(1)
		p.int()
		switch {
		case end || p.bad:
			return expired
		case op == OpError:
			expired = p.int() == CodeExpired || expired
		case op == OpCreate, op == OpCreateContainer, op == OpCreateTTL:
			p.text()
		case op == OpCreate2:
			p.text()
			p.stat()
		case op == OpSetData:
			p.stat()
		case op == OpCheck, op == OpDelete:
		default:
			p.bad = true
		}
	}
	return expired
}

// CodeWithin returns CodeExpired for a transaction that was refused because its session is over: that
// code is in one of the results, while the reply's own code is OK. Usually it is in the first one, but
// a session can end while its transaction is checked. It returns CodeOK for every other reply.
func CodeWithin(op int32, body []byte) int32 {
	p := payload{rest: body}
	if op == OpMulti && p.results() {
		return CodeExpired
	}
	return CodeOK
}
