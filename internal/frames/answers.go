// SPDX-License-Identifier: Apache-2.0

package frames

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// An Answer is the content of a successful reply. It is read from front to back, after CheckReply
// has verified that it is complete. The values read stay valid.
type Answer struct {
	Zxid int64 // for a write: its transaction
	payload
}

// Answer returns the content of the reply.
func (r Reply) Answer() Answer { return Answer{r.Zxid, payload{rest: r.Body}} }

// Text reads a path or a name.
func (a *Answer) Text() string {
	n := a.int()
	text := a.rest[:n]
	a.skip(n)
	return string(text)
}

// Data reads a node's data, which may be nil.
func (a *Answer) Data() []byte {
	n := a.int()
	if n < 0 {
		return nil
	}
	data := append(make([]byte, 0, n), a.rest[:n]...)
	a.skip(n)
	return data
}

// Names reads the names of a node's children.
func (a *Answer) Names() []string {
	names := make([]string, a.int())
	for i := range names {
		names[i] = a.Text()
	}
	return names
}

// ACL reads an ACL.
func (a *Answer) ACL() []zk.ACL {
	acl := make([]zk.ACL, a.int())
	for i := range acl {
		acl[i] = zk.ACL{Perms: int32(a.int()), Scheme: a.Text(), ID: a.Text()}
	}
	return acl
}

// Stat reads a node's stat.
func (a *Answer) Stat() *zk.Stat {
	long := func(at int) int64 { return int64(binary.BigEndian.Uint64(a.rest[at:])) }
	word := func(at int) int32 { return int32(binary.BigEndian.Uint32(a.rest[at:])) }
	s := &zk.Stat{
		Czxid: long(0), Mzxid: long(8), Ctime: long(16), Mtime: long(24),
		Version: word(32), Cversion: word(36), Aversion: word(40),
		EphemeralOwner: long(44), DataLength: word(52), NumChildren: word(56), Pzxid: long(60),
	}
	a.skip(statSize)
	return s
}

// Results reads the results of a transaction's operations. err is the first refusal among them.
func (a *Answer) Results() (results []zk.MultiResponse, err error) {
	for {
		op := int32(a.int())
		end := a.rest[0] != 0
		a.skip(1)
		a.int()
		if end {
			return slices.Clip(results), err
		}
		var r zk.MultiResponse
		switch op {
		case OpError:
			r.Error = ErrorOf(int32(a.int()))
		case OpCreate, OpCreateContainer, OpCreateTTL:
			r.String = a.Text()
		case OpCreate2:
			r.String, r.Stat = a.Text(), a.Stat()
		case OpSetData:
			r.Stat = a.Stat()
		}
		if err == nil {
			err = r.Error
		}
		results = append(results, r)
	}
}

// PasswordOf returns the session's password in a reply to a connection request that ParseGreeting has
// accepted.
func PasswordOf(body []byte) []byte {
	a := Answer{payload: payload{rest: body[16:]}}
	return a.Data()
}

// errorsOf maps the codes that servers send to the client library's errors.
var errorsOf = map[int32]error{
	CodeOK:                      nil,
	-8:                          zk.ErrBadArguments,
	-100:                        zk.ErrAPIError,
	CodeNoNode:                  zk.ErrNoNode,
	CodeNoAuth:                  zk.ErrNoAuth,
	CodeBadVersion:              zk.ErrBadVersion,
	CodeNoChildrenForEphemerals: zk.ErrNoChildrenForEphemerals,
	CodeNodeExists:              zk.ErrNodeExists,
	CodeNotEmpty:                zk.ErrNotEmpty,
	CodeExpired:                 zk.ErrSessionExpired,
	-114:                        zk.ErrInvalidACL,
	CodeAuthFailed:              zk.ErrAuthFailed,
	-116:                        zk.ErrClosing,
	-117:                        zk.ErrNothing,
	-118:                        zk.ErrSessionMoved,
	-120:                        ErrLocalSession,
	-125:                        ErrQuota,
	CodeThrottled:               ErrThrottled,
}

// Errors for codes for which the client library has none.
var (
	// ErrThrottled is the error of a request that a server has not executed because it has too
	// many.
	ErrThrottled = errors.New("server has too many requests")
	// ErrLocalSession is the error of an ephemeral create if servers have local sessions and do not
	// upgrade them.
	ErrLocalSession = errors.New("local sessions cannot create ephemeral nodes")
	// ErrTooLong is the error of a request whose reply exceeds MaxFrame or MaxNames. The server has
	// executed it.
	ErrTooLong = errors.New("reply is too long: more than 64 MiB, or more than 1,048,576 children")
	// ErrQuota is the error of a write that would exceed a quota that servers enforce.
	ErrQuota = errors.New("server quota exceeded")
)

// ErrUnimplemented is the error of an operation that a server does not support.
var ErrUnimplemented = ErrorOf(-6)

// ErrorOf returns the error for a code. Each code for which the client library has no error gets
// its own.
func ErrorOf(code int32) error {
	if err, ok := errorsOf[code]; ok {
		return err
	}
	return codeError(code)
}

// codeError is the error for a code that has no other.
type codeError int32

func (e codeError) Error() string { return fmt.Sprintf("unknown error: %d", int32(e)) }
