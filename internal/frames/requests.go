package frames

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// head is the length of what every request begins with: its own length, its number and its operation.
const head = 4 + 4 + 4

// A Request is one on its way to a server, from its length on. It has no number before it is sent.
type Request []byte

// newRequest begins a request with room for so many bytes behind its head.
func newRequest(op int32, size int) Request {
	r := make(Request, head, head+size)
	binary.BigEndian.PutUint32(r[8:], uint32(op))
	return r
}

// Parse returns a copy of a piece that the client library sends. One that is too short for a request is
// none, and ok is false.
func Parse(p []byte) (r Request, ok bool) { return slices.Clone(p), len(p) >= head }

// Op returns the request's operation.
func (r Request) Op() int32 { return int32(binary.BigEndian.Uint32(r[8:])) }

// Xid returns the request's number.
func (r Request) Xid() int32 { return int32(binary.BigEndian.Uint32(r[4:])) }

// Watches reports whether the request may set a watch. Of the operations from SetWatches on, some do.
func (r Request) Watches() bool {
	switch r.Op() {
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		return r[len(r)-1] == 1
	}
	return r.Op() >= OpSetWatches
}

// Number gives the request its number, and its length: it is complete.
func (r Request) Number(xid int32) {
	binary.BigEndian.PutUint32(r, uint32(len(r)-4))
	binary.BigEndian.PutUint32(r[4:], uint32(xid))
}

func (r Request) int(n int32) Request { return binary.BigEndian.AppendUint32(r, uint32(n)) }

func (r Request) text(s string) Request { return append(r.int(int32(len(s))), s...) }

// buffer appends bytes; nil is not the same as none.
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

// sizeOfACL is the length of what acl appends.
func sizeOfACL(acl []zk.ACL) int {
	size := 4
	for _, a := range acl {
		size += 12 + len(a.Scheme) + len(a.ID)
	}
	return size
}

// Create asks for a node.
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

// Get asks for a node's data and state, and to be told of the next change.
func Get(path string, watch bool) Request { return withPath(OpGetData, path).flag(watch) }

// Children asks for a node's children and state, and to be told of the next change of the children.
func Children(path string, watch bool) Request { return withPath(OpGetChildren2, path).flag(watch) }

// Exists asks for a node's state.
func Exists(path string) Request { return withPath(OpExists, path).flag(false) }

// GetACL asks for a node's access list.
func GetACL(path string) Request { return withPath(OpGetACL, path) }

// Sync asks the server to come up to its leader.
func Sync(path string) Request { return withPath(OpSync, path) }

// SetData asks to write a node's data if it has that version.
func SetData(path string, data []byte, version int32) Request {
	s := zk.SetDataRequest{Path: path, Data: data, Version: version}
	return newRequest(OpSetData, sizeOf(&s)).set(&s)
}

// Delete asks to delete a node if it has that version.
func Delete(path string, version int32) Request {
	return newRequest(OpDelete, 8+len(path)).text(path).int(version)
}

// Multi asks for a transaction. Its operations are those of which SizeOf knows the size.
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

// SizeOf returns how long the transaction of those operations is as a request, and an error if one of them is
// none that a transaction can have.
func SizeOf(ops []any) (size int, err error) {
	const part = 9 // before each operation, and at the end
	size = head + part
	for _, op := range ops {
		n := sizeOf(op)
		if n == 0 {
			return 0, fmt.Errorf("no operation of a transaction: %T", op)
		}
		size += part + n
	}
	return size, nil
}

// sizeOf returns the length of an operation's fields, zero for something else.
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

// SASL returns a request with a token of SASL's.
func SASL(xid int32, token []byte) []byte {
	r := newRequest(OpSASL, 4+len(token))
	r = append(r.int(int32(len(token))), token...)
	r.Number(xid)
	return r
}

// SessionOf returns the session that a connection request asks for. A piece that is too
// short for one is no connection request, and ok is false.
func SessionOf(p []byte) (id int64, ok bool) {
	if len(p) < 32 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(p[20:])), true
}

// SawRequest returns the connection request p as that of a client that has seen the transaction zxid.
func SawRequest(p []byte, zxid int64) []byte {
	p = slices.Clone(p)
	binary.BigEndian.PutUint64(p[8:], max(binary.BigEndian.Uint64(p[8:]), uint64(zxid)))
	return p
}

// NewSessionRequest returns the connection request p without what it says of a session, so
// that it asks for a new one. The last transaction seen goes as well: an ensemble that was
// restored from a backup refuses every client that has seen a later transaction than it has.
func NewSessionRequest(p []byte) []byte {
	p = slices.Clone(p)
	clear(p[8:16])  // the last transaction seen
	clear(p[20:28]) // the session
	clear(p[32:])   // its password
	return p
}
