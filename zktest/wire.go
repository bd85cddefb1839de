// SPDX-License-Identifier: Apache-2.0

package zktest

import "fmt"

// maxFrame is ZooKeeper's default jute.maxbuffer. The server closes the connection on a longer frame.
const maxFrame = 1048575

// Op is a request type. Its value is the number on the wire.
type Op int32

// The request types. OpCreateSession stands for a connect request, for a new session
// or to re-attach to one. It has no number on the wire.
const (
	OpCreate               Op = 1
	OpDelete               Op = 2
	OpExists               Op = 3
	OpGetData              Op = 4
	OpSetData              Op = 5
	OpGetACL               Op = 6
	OpSetACL               Op = 7
	OpGetChildren          Op = 8
	OpSync                 Op = 9
	OpPing                 Op = 11
	OpGetChildren2         Op = 12
	OpCheck                Op = 13
	OpMulti                Op = 14
	OpCreate2              Op = 15
	OpReconfig             Op = 16
	OpCheckWatches         Op = 17
	OpRemoveWatches        Op = 18
	OpCreateContainer      Op = 19
	OpDeleteContainer      Op = 20
	OpCreateTTL            Op = 21
	OpMultiRead            Op = 22
	OpAuth                 Op = 100
	OpSetWatches           Op = 101
	OpSASL                 Op = 102
	OpGetEphemerals        Op = 103
	OpGetAllChildrenNumber Op = 104
	OpSetWatches2          Op = 105
	OpAddWatch             Op = 106
	OpWhoAmI               Op = 107
	OpCreateSession        Op = -10
	OpCloseSession         Op = -11

	opError Op = -1
)

var opNames = map[Op]string{
	OpCreate: "create", OpDelete: "delete", OpExists: "exists", OpGetData: "getData", OpSetData: "setData",
	OpGetACL: "getACL", OpSetACL: "setACL", OpGetChildren: "getChildren", OpSync: "sync", OpPing: "ping",
	OpGetChildren2: "getChildren2", OpCheck: "check", OpMulti: "multi", OpCreate2: "create2", OpReconfig: "reconfig",
	OpCheckWatches: "checkWatches", OpRemoveWatches: "removeWatches", OpCreateContainer: "createContainer",
	OpDeleteContainer: "deleteContainer", OpCreateTTL: "createTTL", OpMultiRead: "multiRead", OpAuth: "auth",
	OpSetWatches: "setWatches", OpSASL: "sasl", OpGetEphemerals: "getEphemerals",
	OpGetAllChildrenNumber: "getAllChildrenNumber", OpSetWatches2: "setWatches2", OpAddWatch: "addWatch",
	OpWhoAmI: "whoAmI", OpCreateSession: "createSession", OpCloseSession: "closeSession", opError: "error",
}

// String returns the request type's name, as in ZooKeeper's documentation.
func (op Op) String() string {
	if name, ok := opNames[op]; ok {
		return name
	}
	return fmt.Sprintf("op(%d)", int32(op))
}

// writes reports whether the request is a transaction that the leader orders.
func (op Op) writes() bool {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpDeleteContainer,
		OpSetData, OpSetACL, OpCheck, OpMulti, OpReconfig, OpCloseSession:
		return true
	}
	return false
}

// known reports whether the server supports the request type.
func (op Op) known() bool {
	_, ok := opNames[op]
	return ok && op != OpCreateSession && op != opError && op != OpSASL
}

// The error codes of replies, as on the wire.
const (
	CodeOK                      int32 = 0
	CodeRuntimeInconsistency    int32 = -2
	CodeMarshalling             int32 = -5
	CodeUnimplemented           int32 = -6
	CodeBadArguments            int32 = -8
	CodeNoNode                  int32 = -101
	CodeNoAuth                  int32 = -102
	CodeBadVersion              int32 = -103
	CodeNoChildrenForEphemerals int32 = -108
	CodeNodeExists              int32 = -110
	CodeNotEmpty                int32 = -111
	CodeSessionExpired          int32 = -112
	CodeInvalidACL              int32 = -114
	CodeAuthFailed              int32 = -115
	CodeSessionMoved            int32 = -118
	CodeNoWatcher               int32 = -121
	CodeReconfigDisabled        int32 = -123
	CodeRequiresSASL            int32 = -124
	CodeQuotaExceeded           int32 = -125
)

// The reserved xids.
const (
	xidNotification int32 = -1
	xidPing         int32 = -2
)

// The flags of a create.
const (
	flagEphemeral           int32 = 1
	flagSequential          int32 = 2
	flagEphemeralSequential int32 = 3
	flagContainer           int32 = 4
	flagTTL                 int32 = 5
	flagTTLSequential       int32 = 6
)

// call is one decoded request. Which fields are set depends on op.
type call struct {
	xid     int32
	op      Op
	path    string
	data    []byte
	acl     []ACL
	flags   int32 // create: mode; addWatch, removeWatches: mode or type
	version int32
	ttl     int64 // milliseconds; -1 if the request has none
	owner   int64 // create: the session of an ephemeral node; 0 means the requesting session
	watch   bool
	subs    []call // multi, multiRead

	relZxid int64       // setWatches
	watches [5][]string // setWatches: data, exist, child, persistent, recursive
	scheme  string      // auth

	bad bool // the body could not be decoded; the reply is CodeMarshalling
}

// decodeCall decodes a request's frame. It returns an error if the header cannot be
// decoded. If only the body cannot be decoded, it sets bad.
func decodeCall(frame []byte) (*call, error) {
	d := decoder{buf: frame}
	c := &call{xid: d.int32(), op: Op(d.int32()), ttl: -1}
	if d.err != nil {
		return nil, d.err
	}
	c.decodeBody(&d)
	c.bad = d.err != nil
	return c, nil
}

func (c *call) decodeBody(d *decoder) {
	switch c.op {
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		c.path, c.watch = d.string(), d.bool()
	case OpSync, OpGetACL, OpGetEphemerals, OpGetAllChildrenNumber:
		c.path = d.string()
	case OpMulti, OpMultiRead:
		c.decodeSubs(d)
	case OpCheckWatches, OpRemoveWatches, OpAddWatch:
		c.path, c.flags = d.string(), d.int32()
	case OpSetWatches, OpSetWatches2:
		c.decodeSetWatches(d)
	case OpAuth:
		d.int32() // the auth type, which ZooKeeper ignores
		c.scheme, c.data = d.string(), d.buffer()
	case OpSASL:
		c.data = d.buffer()
	default:
		c.decodeWrite(d)
	}
}

func (c *call) decodeWrite(d *decoder) {
	switch c.op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		c.path, c.data, c.acl, c.flags = d.string(), d.buffer(), d.acls(), d.int32()
		if c.op == OpCreateTTL {
			c.ttl = d.int64()
		}
	case OpDelete, OpCheck:
		c.path, c.version = d.string(), d.int32()
	case OpDeleteContainer: // sent only by the server itself: the body is the path
		c.path = string(d.take(len(d.buf)))
	case OpSetData:
		c.path, c.data, c.version = d.string(), d.buffer(), d.int32()
	case OpSetACL:
		c.path, c.acl, c.version = d.string(), d.acls(), d.int32()
	}
}

func (c *call) decodeSetWatches(d *decoder) {
	c.relZxid = d.int64()
	lists := 3
	if c.op == OpSetWatches2 {
		lists = 5
	}
	for i := range lists {
		c.watches[i] = d.strings()
	}
}

// decodeSubs reads a multi's records up to its closing header.
func (c *call) decodeSubs(d *decoder) {
	for d.err == nil {
		op, done := Op(d.int32()), d.bool()
		d.int32() // the header's error field has no meaning in a request
		if done || d.err != nil {
			return
		}
		sub := call{xid: c.xid, op: op, ttl: -1}
		if !subAllowed(c.op, op) {
			d.err = fmt.Errorf("%v inside %v", op, c.op)
			return
		}
		sub.decodeBody(d)
		c.subs = append(c.subs, sub)
	}
}

// creates reports whether the request is a create of one node.
func (op Op) creates() bool {
	return op == OpCreate || op == OpCreate2 || op == OpCreateContainer || op == OpCreateTTL
}

func subAllowed(outer, op Op) bool {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck:
		return outer == OpMulti
	case OpGetData, OpGetChildren:
		return outer == OpMultiRead
	}
	return false
}

// connectCall is a decoded connect request.
type connectCall struct {
	lastZxid    int64
	timeout     int32 // milliseconds
	session     int64
	passwd      []byte
	hasReadOnly bool // newer clients send one more byte, and their reply has it too
}

func decodeConnect(frame []byte) (connectCall, error) {
	d := decoder{buf: frame}
	d.int32() // protocol version
	c := connectCall{lastZxid: d.int64(), timeout: d.int32(), session: d.int64(), passwd: d.buffer()}
	c.hasReadOnly = len(d.buf) > 0
	return c, d.err
}

// beginFrame and endFrame enclose a frame. endFrame writes its length at the start.
func (e *encoder) beginFrame() int {
	e.int32(0)
	return len(e.buf)
}

func (e *encoder) endFrame(start int) {
	n := len(e.buf) - start
	e.buf[start-4], e.buf[start-3], e.buf[start-2], e.buf[start-1] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
}

func (e *encoder) replyHeader(xid int32, zxid int64, code int32) {
	e.int32(xid)
	e.int64(zxid)
	e.int32(code)
}

func (e *encoder) multiHeader(op Op, done bool, code int32) {
	e.int32(int32(op))
	e.bool(done)
	e.int32(code)
}

// settleModes sets the types of the creates inside a multi according to their flags,
// whatever types they had. ZooKeeper does this too, and it determines the reply. Only
// later versions distinguish create2 from create.
func (c *call) settleModes(keepCreate2 bool) {
	for i := range c.subs {
		sub := &c.subs[i]
		switch {
		case sub.op != OpCreate && sub.op != OpCreate2 && sub.op != OpCreateContainer:
		case sub.flags == flagContainer:
			sub.op = OpCreateContainer
		case keepCreate2 && sub.op != OpCreate:
			sub.op = OpCreate2
		default:
			sub.op = OpCreate
		}
	}
}
