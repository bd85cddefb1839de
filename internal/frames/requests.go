// SPDX-License-Identifier: Apache-2.0

package frames

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// head is the length of the header of every request: its length, its number and its operation.
const head = 4 + 4 + 4

// A Request is an encoded request to a server, including its length. It has no number before it is
// sent.
type Request []byte

// newRequest begins a request with room for size bytes after its header.
func newRequest(op int32, size int) Request {
	r := make(Request, head, head+size)
	binary.BigEndian.PutUint32(r[8:], uint32(op))
	return r
}

// Parse returns a copy of the bytes that the client library sends. ok is false if they are too
// short for a request.
func Parse(p []byte) (r Request, ok bool) { return slices.Clone(p), len(p) >= head }

// Op returns the request's operation.
func (r Request) Op() int32 { return int32(binary.BigEndian.Uint32(r[8:])) }

// Xid returns the request's number.
func (r Request) Xid() int32 { return int32(binary.BigEndian.Uint32(r[4:])) }

// Watches reports whether the request may set a watch. It returns true for all operations from
// OpSetWatches on, some of which do.
func (r Request) Watches() bool {
	switch r.Op() {
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		return r[len(r)-1] == 1
	}
	return r.Op() >= OpSetWatches
}

// Number sets the request's number and length, which completes it.
func (r Request) Number(xid int32) {
	binary.BigEndian.PutUint32(r, uint32(len(r)-4))
	binary.BigEndian.PutUint32(r[4:], uint32(xid))
}

func (r Request) int(n int32) Request { return binary.BigEndian.AppendUint32(r, uint32(n)) }

func (r Request) text(s string) Request { return append(r.int(int32(len(s))), s...) }

func (r Request) texts(all []string) Request {
	r = r.int(int32(len(all)))
	for _, s := range all {
		r = r.text(s)
	}
	return r
}

// buffer appends bytes; nil differs from empty.
func (r Request) buffer(b []byte) Request {
	if b == nil {
		return r.int(-1)
	}
	return append(r.int(int32(len(b))), b...)
}

func (r Request) flag(set bool) Request {
	if set {
		return append(r, 1)
	}
	return append(r, 0)
}

func (r Request) acl(acl []zk.ACL) Request {
	r = r.int(int32(len(acl)))
	for _, a := range acl {
		r = r.int(a.Perms).text(a.Scheme).text(a.ID)
	}
	return r
}

// sizeOfACL returns the length of what acl appends.
func sizeOfACL(acl []zk.ACL) int {
	size := 4
	for _, a := range acl {
		size += 12 + len(a.Scheme) + len(a.ID)
	}
	return size
}

// Create returns a request that creates a node.
func Create(path string, data []byte, flags int32, acl []zk.ACL) Request {
	op := int32(OpCreate)
	if flags == zk.FlagContainer {
		op = OpCreateContainer
	}
	c := zk.CreateRequest{Path: path, Data: data, Acl: acl, Flags: flags}
	return newRequest(op, sizeOf(&c)).create(&c)
}

func (r Request) create(c *zk.CreateRequest) Request {
	return r.text(c.Path).buffer(c.Data).acl(c.Acl).int(c.Flags)
}

func (r Request) set(s *zk.SetDataRequest) Request {
	return r.text(s.Path).buffer(s.Data).int(s.Version)
}

func withPath(op int32, path string) Request { return newRequest(op, 5+len(path)).text(path) }

// Get returns a request for a node's data and stat that may also set a watch on the data.
func Get(path string, watch bool) Request { return withPath(OpGetData, path).flag(watch) }

// Children returns a request for a node's children and stat that may also set a watch on the
// children.
func Children(path string, watch bool) Request { return withPath(OpGetChildren2, path).flag(watch) }

// SetWatches returns a request that sets watches on the data and on the children of nodes. For each
// node that is missing, or has changed since the transaction rel, the server sends an event instead.
func SetWatches(rel int64, data, children []string) Request {
	size := 8 + 4 + 4 + 4
	for _, paths := range [][]string{data, children} {
		for _, path := range paths {
			size += 4 + len(path)
		}
	}
	r := Request(binary.BigEndian.AppendUint64(newRequest(OpSetWatches, size), uint64(rel)))
	return r.texts(data).int(0).texts(children) // none for nodes that do not exist
}

// Exists returns a request for a node's stat.
func Exists(path string) Request { return withPath(OpExists, path).flag(false) }

// GetACL returns a request for a node's ACL.
func GetACL(path string) Request { return withPath(OpGetACL, path) }

// Sync returns a request that brings the server up to the state of its leader.
func Sync(path string) Request { return withPath(OpSync, path) }

// SetData returns a request that writes a node's data if the node has the given version.
func SetData(path string, data []byte, version int32) Request {
	s := zk.SetDataRequest{Path: path, Data: data, Version: version}
	return newRequest(OpSetData, sizeOf(&s)).set(&s)
}

// Delete returns a request that deletes a node if it has the given version.
func Delete(path string, version int32) Request {
	return newRequest(OpDelete, 8+len(path)).text(path).int(version)
}

// Multi returns the request for a transaction. SizeOf must accept its operations.
func Multi(ops []any) Request {
	const none = -1
	size, _ := SizeOf(ops)
	r := newRequest(OpMulti, size-head)
	for _, op := range ops {
		switch op := op.(type) {
		case *zk.CreateRequest:
			r = r.part(OpCreate).create(op)
		case *zk.SetDataRequest:
			r = r.part(OpSetData).set(op)
		case *zk.DeleteRequest:
			r = r.part(OpDelete).text(op.Path).int(op.Version)
		case *zk.CheckVersionRequest:
			r = r.part(OpCheck).text(op.Path).int(op.Version)
		}
	}
	return r.int(none).flag(true).int(none)
}

// part begins an operation of a transaction.
func (r Request) part(op int32) Request { return r.int(op).flag(false).int(-1) }

// SizeOf returns the length of the request for a transaction of ops. It returns an error if a
// transaction cannot contain one of them.
func SizeOf(ops []any) (size int, err error) {
	const part = 9 // before each operation, and at the end
	size = head + part
	for _, op := range ops {
		n := sizeOf(op)
		if n == 0 {
			return 0, fmt.Errorf("not an operation of a transaction: %T", op)
		}
		size += part + n
	}
	return size, nil
}

// sizeOf returns the length of an operation's fields, or zero if op is not an operation.
func sizeOf(op any) int {
	switch op := op.(type) {
	case *zk.CreateRequest:
		return 12 + len(op.Path) + len(op.Data) + sizeOfACL(op.Acl)
	case *zk.SetDataRequest:
		return 12 + len(op.Path) + len(op.Data)
	case *zk.DeleteRequest:
		return 8 + len(op.Path)
	case *zk.CheckVersionRequest:
		return 8 + len(op.Path)
	}
	return 0
}

// SASL returns a request that contains a SASL token.
func SASL(xid int32, token []byte) []byte {
	r := newRequest(OpSASL, 4+len(token))
	r = append(r.int(int32(len(token))), token...)
	r.Number(xid)
	return r
}

// Auth returns a request that presents a credential.
func Auth(scheme string, data []byte) Request {
	const kind = 0 // the only one
	return newRequest(OpAuth, 12+len(scheme)+len(data)).int(kind).text(scheme).buffer(data)
}

// Close returns a request that ends the session.
func Close() Request {
	const op = int32(OpClose)
	return newRequest(op, 0)
}

// IsLike reports whether the requests differ at most in their numbers.
func (r Request) IsLike(other Request) bool { return bytes.Equal(r[8:], other[8:]) }

// Connect returns a connection request for a session, or for a new one if id is zero.
func Connect(timeout time.Duration, id int64, password []byte) []byte {
	if password == nil {
		password = make([]byte, maxPassword)
	}
	p := make([]byte, 4+4+8, 64) // its length, the protocol version, and the last transaction seen
	p = binary.BigEndian.AppendUint32(p, uint32(timeout.Milliseconds()))
	p = binary.BigEndian.AppendUint64(p, uint64(id))
	p = append(binary.BigEndian.AppendUint32(p, uint32(len(password))), password...)
	binary.BigEndian.PutUint32(p, uint32(len(p)-4))
	return p
}

// TimeoutOf returns the session timeout that a connection request asks for. ok is false if p is too
// short for a connection request.
func TimeoutOf(p []byte) (timeout time.Duration, ok bool) {
	if len(p) < 20 {
		return 0, false
	}
	return time.Duration(int32(binary.BigEndian.Uint32(p[16:]))) * time.Millisecond, true
}

// SessionOf returns the session that a connection request asks for. ok is false if p is too short
// for a connection request.
func SessionOf(p []byte) (id int64, ok bool) {
	if len(p) < 32 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(p[20:])), true
}

// SawRequest returns the connection request p with zxid as the last transaction seen, unless p has
// a later one.
func SawRequest(p []byte, zxid int64) []byte {
	p = slices.Clone(p)
	binary.BigEndian.PutUint64(p[8:], max(binary.BigEndian.Uint64(p[8:]), uint64(zxid)))
	return p
}

// NewSessionRequest returns the connection request p without its session, so that it requests a new
// one. It also clears the last transaction seen: an ensemble restored from a backup refuses every
// client that has seen a later transaction than the ensemble has.
func NewSessionRequest(p []byte) []byte {
	p = slices.Clone(p)
	clear(p[8:16])  // the last transaction seen
	clear(p[20:28]) // the session
	clear(p[32:])   // its password
	return p
}
