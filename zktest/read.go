// SPDX-License-Identifier: Apache-2.0

package zktest

import "strings"

// reader answers a connection's requests from a replica's own data.
type reader struct {
	r       *replica
	who     watcher
	auth    *credentials
	session int64
}

func (a *reader) encode(e *encoder, r *call) int32 {
	switch r.op {
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2, OpGetACL, OpGetAllChildrenNumber:
		return a.encodeNode(e, r)
	case OpSetWatches, OpSetWatches2:
		a.r.watches.rearm(a.r.tree, a.who, r.relZxid, r.watches)
		a.r.bell.ring()
	case OpAddWatch:
		return a.addWatch(e, r)
	case OpCheckWatches, OpRemoveWatches:
		return a.removeWatches(r)
	case OpWhoAmI:
		a.auth.encode(e)
	case OpGetEphemerals:
		e.strings(a.r.tree.ephemeralsOf(a.session, r.path))
	case OpMultiRead:
		a.encodeMultiRead(e, r)
	default:
		return CodeUnimplemented
	}
	return CodeOK
}

func (a *reader) encodeNode(e *encoder, r *call) int32 {
	if r.op == OpExists && strings.IndexByte(r.path, 0) >= 0 {
		return CodeBadArguments
	}
	n := a.r.tree.get(r.path)
	if n == nil {
		if r.op == OpExists && r.watch {
			a.watch(r)
		}
		return CodeNoNode
	}
	perms := PermRead
	if r.op == OpGetACL {
		perms |= PermAdmin
	}
	if !(r.op == OpExists && a.r.opts.Flavor != ZooKeeper39) && !allowed(n.acl, perms, a.auth.ids) {
		return CodeNoAuth
	}
	switch r.op {
	case OpExists:
		e.stat(n.fullStat())
	case OpGetData:
		e.buffer(n.data)
		e.stat(n.fullStat())
	case OpGetChildren:
		e.strings(n.children.shuffled(a.r.rng))
	case OpGetChildren2:
		e.strings(n.children.shuffled(a.r.rng))
		e.stat(n.fullStat())
	case OpGetACL:
		e.acls(a.visibleACL(n))
		e.stat(n.fullStat())
	case OpGetAllChildrenNumber:
		e.int32(int32(a.r.tree.descendants(canonical(r.path))))
	}
	if r.watch {
		a.watch(r)
	}
	return CodeOK
}

// watch registers the one-shot watch that a read requests.
func (a *reader) watch(r *call) {
	set := &a.r.watches.data
	if r.op == OpGetChildren || r.op == OpGetChildren2 {
		set = &a.r.watches.children
	}
	set.add(r.path, a.who, watchOnce)
	a.r.bell.ring()
}

func (a *reader) visibleACL(n *znode) []ACL {
	if allowed(n.acl, PermAdmin, a.auth.ids) {
		return n.acl
	}
	return masked(n.acl)
}

func (a *reader) encodeMultiRead(e *encoder, r *call) {
	for i := range r.subs {
		sub := &r.subs[i]
		sub.watch = false
		start := len(e.buf)
		e.multiHeader(sub.op, false, CodeOK)
		if code := a.encode(e, sub); code != CodeOK {
			e.buf = e.buf[:start]
			e.multiHeader(opError, false, code)
			e.int32(code)
		}
	}
	e.multiHeader(-1, true, -1)
}

// addWatch handles addWatch with its persistent modes: 0 for a node and its children,
// 1 for the whole subtree.
func (a *reader) addWatch(e *encoder, r *call) int32 {
	w := a.r.watches
	switch r.flags {
	case 0:
		w.data.add(r.path, a.who, watchPersistent)
		w.children.add(r.path, a.who, watchPersistent)
	case 1:
		w.data.add(r.path, a.who, watchRecursive)
	default:
		return CodeMarshalling
	}
	a.r.bell.ring()
	e.int32(CodeOK)
	return CodeOK
}

// removeWatches handles removeWatches and checkWatches, which removes nothing. The
// types are 1 for child watches, 2 for data watches and 3 for any.
func (a *reader) removeWatches(r *call) int32 {
	w := a.r.watches
	if r.flags < 1 || r.flags > 3 {
		return CodeMarshalling
	}
	var found bool
	for i, set := range []*watchSet{&w.children, &w.data} {
		if r.flags != 3 && r.flags != int32(i+1) {
			continue
		}
		if r.op == OpCheckWatches {
			found = a.watched(set, r.path) || found
		} else {
			found = set.drop(r.path, a.who, anyMode) || found
		}
	}
	if !found {
		return CodeNoWatcher
	}
	return CodeOK
}

// watched reports whether there is a watch on a path: one of this connection, or
// before 3.9 of any connection.
func (a *reader) watched(set *watchSet, path string) bool {
	return set.has(path, a.who) || a.r.opts.Flavor == ZooKeeper38 && len(set.byPath[path]) > 0
}
