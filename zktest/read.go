package zktest

import (
	"fmt"
	"slices"
	"strings"
)

// encodeLocal answers what a member serves from its own replica.
func (c *conn) encodeLocal(e *encoder, r *call) (over bool) {
	m := c.member
	zxid := m.tree.zxid
	if c.sess.owner != m && m == m.s.leader && r.op != OpPing {
		c.close()
		return true
	}
	head := len(e.buf)
	switch r.op {
	case OpAuth:
		code := c.authenticate(r)
		e.replyHeader(r.xid, 0, code)
		return code != CodeOK
	case OpPing:
		e.replyHeader(xidPing, zxid, CodeOK)
		return false
	case OpSASL:
		return c.encodeSASL(e, r)
	}
	if !r.op.known() {
		e.replyHeader(r.xid, zxid, CodeUnimplemented)
		return true
	}
	e.replyHeader(r.xid, zxid, CodeOK)
	body := len(e.buf)
	if code := c.encodeRead(e, r); code != CodeOK {
		e.buf = e.buf[:body]
		e.buf[head+12], e.buf[head+13], e.buf[head+14], e.buf[head+15] =
			byte(code>>24), byte(code>>16), byte(code>>8), byte(code)
	}
	return false
}

func (c *conn) encodeRead(e *encoder, r *call) int32 {
	m := c.member
	switch r.op {
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2, OpGetACL, OpGetAllChildrenNumber:
		return c.encodeNode(e, r)
	case OpSetWatches, OpSetWatches2:
		m.watches.rearm(m.tree, c, r.relZxid, r.watches)
		m.s.stir()
	case OpAddWatch:
		return c.addWatch(e, r)
	case OpCheckWatches, OpRemoveWatches:
		return c.removeWatches(r)
	case OpWhoAmI:
		c.encodeIDs(e)
	case OpGetEphemerals:
		e.strings(m.tree.ephemeralsOf(c.sess.id, r.path))
	case OpMultiRead:
		c.encodeMultiRead(e, r)
	default:
		return CodeUnimplemented
	}
	return CodeOK
}

func (c *conn) encodeNode(e *encoder, r *call) int32 {
	m := c.member
	if r.op == OpExists && strings.IndexByte(r.path, 0) >= 0 {
		return CodeBadArguments
	}
	n := m.tree.get(r.path)
	if n == nil {
		if r.op == OpExists && r.watch {
			c.watch(r)
		}
		return CodeNoNode
	}
	perms := PermRead
	if r.op == OpGetACL {
		perms |= PermAdmin
	}
	if !(r.op == OpExists && m.s.opts.Flavor != ZooKeeper39) && !allowed(n.acl, perms, c.ids) {
		return CodeNoAuth
	}
	switch r.op {
	case OpExists:
		e.stat(n.shown())
	case OpGetData:
		e.buffer(n.data)
		e.stat(n.shown())
	case OpGetChildren:
		e.strings(n.children.shuffled(m.s.rng))
	case OpGetChildren2:
		e.strings(n.children.shuffled(m.s.rng))
		e.stat(n.shown())
	case OpGetACL:
		e.acls(c.visibleACL(n))
		e.stat(n.shown())
	case OpGetAllChildrenNumber:
		e.int32(int32(m.tree.descendants(canonical(r.path))))
	}
	if r.watch {
		c.watch(r)
	}
	return CodeOK
}

// watch registers the one-shot watch that a read asked for.
func (c *conn) watch(r *call) {
	set := &c.member.watches.data
	if r.op == OpGetChildren || r.op == OpGetChildren2 {
		set = &c.member.watches.children
	}
	set.add(r.path, c, watchOnce)
	c.s.stir()
}

func (c *conn) visibleACL(n *znode) []ACL {
	if allowed(n.acl, PermAdmin, c.ids) {
		return n.acl
	}
	return masked(n.acl)
}

func (c *conn) encodeMultiRead(e *encoder, r *call) {
	for i := range r.subs {
		sub := &r.subs[i]
		sub.watch = false
		start := len(e.buf)
		e.multiHeader(sub.op, false, CodeOK)
		if code := c.encodeRead(e, sub); code != CodeOK {
			e.buf = e.buf[:start]
			e.multiHeader(opError, false, code)
			e.int32(code)
		}
	}
	e.multiHeader(-1, true, -1)
}

// addWatch serves the persistent modes: 0 for one node and its children, 1 for
// all that is below it.
func (c *conn) addWatch(e *encoder, r *call) int32 {
	w := c.member.watches
	switch r.flags {
	case 0:
		w.data.add(r.path, c, watchPersistent)
		w.children.add(r.path, c, watchPersistent)
	case 1:
		w.data.add(r.path, c, watchRecursive)
	default:
		return CodeMarshalling
	}
	c.s.stir()
	e.int32(CodeOK)
	return CodeOK
}

// removeWatches serves checkWatches as well, which only looks. Types: 1 child
// watches, 2 data watches, 3 any.
func (c *conn) removeWatches(r *call) int32 {
	const all = watchOnce | watchPersistent | watchRecursive
	w := c.member.watches
	if r.flags < 1 || r.flags > 3 {
		return CodeMarshalling
	}
	var found bool
	for i, set := range []*watchSet{&w.children, &w.data} {
		if r.flags != 3 && r.flags != int32(i+1) {
			continue
		}
		if r.op == OpCheckWatches {
			found = c.watched(set, r.path) || found
		} else {
			found = set.drop(r.path, c, all) || found
		}
	}
	if !found {
		return CodeNoWatcher
	}
	return CodeOK
}

// watched reports whether there is a watch on a path: one of the connection's
// own, or before 3.9 of any.
func (c *conn) watched(set *watchSet, path string) bool {
	return set.has(path, c) || c.s.opts.Flavor == ZooKeeper38 && len(set.byPath[path]) > 0
}

func (c *conn) encodeIDs(e *encoder) {
	e.int32(int32(len(c.ids)))
	for _, id := range c.ids {
		e.string(id.scheme)
		name := id.id
		if id.scheme == "digest" {
			name, _, _ = strings.Cut(name, ":")
		}
		e.string(name)
	}
}

// authenticate adds an identity to the connection. An unknown scheme ends it.
func (c *conn) authenticate(r *call) int32 {
	if r.scheme == "ip" {
		return CodeOK // proved by the address already
	}
	if r.scheme != "digest" {
		return CodeAuthFailed
	}
	id := identity{"digest", digestID(string(r.data))}
	if super := c.s.opts.Super; super != "" && digestID(super) == id.id {
		c.addID(superuser[0])
	}
	c.addID(id)
	return CodeOK
}

// encodeSASL answers a step of DIGEST-MD5: the client's first token, which is
// empty, with a challenge, its second with the proof that the server knows the
// password too. A server without users answers with no token at all, and a token
// that is null closes the connection, as ZooKeeper has it.
func (c *conn) encodeSASL(e *encoder, r *call) (over bool) {
	if r.data == nil {
		c.close()
		return true
	}
	users := c.s.opts.SASL
	if len(users) == 0 {
		e.replyHeader(r.xid, 0, CodeOK)
		e.buffer(nil)
		return false
	}
	if len(r.data) == 0 {
		c.nonce = fmt.Sprintf("%016x%016x", c.s.rng.Uint64(), c.s.rng.Uint64())
		e.replyHeader(r.xid, 0, CodeOK)
		e.buffer([]byte(saslChallenge(c.nonce)))
		return false
	}
	user, last, ok := saslVerify(users, c.nonce, string(r.data))
	if !ok {
		e.replyHeader(r.xid, 0, c.s.opts.saslRefusal())
		e.buffer(nil)
		return true
	}
	c.addID(identity{"sasl", user})
	e.replyHeader(r.xid, 0, CodeOK)
	e.buffer([]byte(last))
	return false
}

func (o *Options) saslRefusal() int32 {
	if o.RequireSASL {
		return CodeRequiresSASL
	}
	return CodeAuthFailed
}

// hasSASL reports whether the connection has proved a user of SASL.
func (c *conn) hasSASL() bool {
	return slices.ContainsFunc(c.ids, func(id identity) bool { return id.scheme == "sasl" })
}

func (c *conn) addID(id identity) {
	if !slices.Contains(c.ids, id) {
		c.ids = append(c.ids, id)
	}
}
