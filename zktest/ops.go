// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// view is the tree as seen by a step of a transaction: the leader's tree with the
// effects of the previous steps. The view of a single step records no effects.
type view struct {
	t       *tree
	pending map[string]record // nil outside multi
	opts    *Options
}

// record contains the properties of a node that checks need.
type record struct {
	version, aversion int32
	creates           int32
	numChildren       int
	kind              nodeKind
	acl               []ACL
	gone              bool
}

func (v *view) get(path string) (record, bool) {
	if r, ok := v.pending[path]; ok {
		return r, !r.gone
	}
	n := v.t.get(path)
	if n == nil {
		return record{}, false
	}
	return record{
		version: n.stat.Version, aversion: n.stat.Aversion, creates: n.creates,
		numChildren: n.children.len(), kind: n.kind, acl: n.acl,
	}, true
}

func (v *view) put(path string, r record) {
	if v.pending != nil {
		v.pending[path] = r
	}
}

// prepare checks one writing step, in the same order as ZooKeeper, and returns the
// change it makes. If the step fails, it returns a code other than CodeOK.
func (v *view) prepare(r *call, session int64, ids []identity) (change, int32) {
	if v.opts.Flavor == Keeper && r.op != OpCheck && r.path != "/" && Keeper.isSystem(r.path) {
		return change{}, CodeBadArguments
	}
	switch r.op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		return v.prepareCreate(r, session, ids)
	case OpDelete, OpDeleteContainer:
		return v.prepareDelete(r, ids)
	case OpSetData:
		return v.prepareSetData(r, ids)
	case OpSetACL:
		return v.prepareSetACL(r, ids)
	case OpCheck:
		return v.prepareCheck(r, ids)
	}
	return change{}, CodeUnimplemented
}

func (v *view) prepareCreate(r *call, session int64, ids []identity) (change, int32) {
	mode, ok := modeOf(r)
	if !ok || !strings.Contains(r.path, "/") || strings.IndexByte(r.path, 0) >= 0 {
		return change{}, CodeBadArguments
	}
	acl, ok := fixACL(r.acl, ids, v.opts.servesSASL())
	if !ok {
		return change{}, CodeInvalidACL
	}
	// The parent is looked up without validating its path, so that for "a/b" or
	// "/x/" the missing parent is reported rather than the invalid path.
	parentPath := r.path[:strings.LastIndexByte(r.path, '/')]
	parent, ok := v.get(parentPath)
	if !ok {
		return change{}, CodeNoNode
	}
	if !allowed(parent.acl, PermCreate, ids) {
		return change{}, CodeNoAuth
	}
	path := r.path
	if mode.sequential {
		path += fmt.Sprintf("%010d", parent.creates)
	}
	if badPath(path) != "" {
		return change{}, CodeBadArguments
	}
	if _, exists := v.get(path); exists {
		return change{}, CodeNodeExists
	}
	if strings.HasPrefix(path, quotaPath+"/") {
		return change{}, CodeUnimplemented // better than accepting a quota that is not enforced
	}
	if parent.kind == ephemeral {
		return change{}, CodeNoChildrenForEphemerals
	}
	if v.opts.lab.OverQuota != nil && v.opts.lab.OverQuota(path, r.data) {
		return change{}, CodeQuotaExceeded
	}
	parent.creates++
	parent.numChildren++
	v.put(canonical(parentPath), parent)
	v.put(path, record{kind: mode.kind, acl: acl})
	ch := change{kind: changeCreate, path: path, data: r.data, acl: acl, node: mode.kind, creates: parent.creates}
	switch mode.kind {
	case ephemeral:
		ch.owner = session
		if r.owner != 0 {
			ch.owner = r.owner
		}
	case ttlNode:
		ch.ttl = time.Duration(r.ttl) * time.Millisecond
	}
	return ch, CodeOK
}

// canonical returns the name under which a path is recorded. The root has two names.
func canonical(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// createMode is the kind of node that a create requests.
type createMode struct {
	kind       nodeKind
	sequential bool
}

// maxTTL is ZooKeeper's limit: the bits of the owner field that remain once it is marked as a TTL.
const maxTTL = 0x00ffffffffff

// modeOf decodes the flags of a create. The request's type decides whether to create
// a container or TTL node; the flags must be consistent with a TTL.
func modeOf(r *call) (createMode, bool) {
	if r.flags < 0 || r.flags > flagTTLSequential {
		return createMode{}, false
	}
	wantsTTL := r.flags == flagTTL || r.flags == flagTTLSequential
	if wantsTTL != (r.op == OpCreateTTL) || wantsTTL && (r.ttl <= 0 || r.ttl > maxTTL) || !wantsTTL && r.ttl >= 0 {
		return createMode{}, false
	}
	m := createMode{sequential: r.flags == flagSequential || r.flags == flagEphemeralSequential || r.flags == flagTTLSequential}
	switch {
	case r.op == OpCreateContainer:
		m.kind = container
	case r.op == OpCreateTTL:
		m.kind = ttlNode
	case r.flags == flagEphemeral || r.flags == flagEphemeralSequential:
		m.kind = ephemeral
	}
	return m, true
}

// protects reports whether clients cannot delete the path.
func (f Flavor) protects(path string) bool {
	return path == "/" || slices.Contains(f.systemNodes(), path)
}

func (v *view) prepareDelete(r *call, ids []identity) (change, int32) {
	if !strings.Contains(r.path, "/") || strings.IndexByte(r.path, 0) >= 0 || v.opts.Flavor.protects(r.path) {
		return change{}, CodeBadArguments
	}
	parentPath := canonical(r.path[:strings.LastIndexByte(r.path, '/')])
	parent, ok := v.get(parentPath)
	if !ok {
		return change{}, CodeNoNode
	}
	reaping := r.op == OpDeleteContainer
	if !reaping && !allowed(parent.acl, PermDelete, ids) {
		return change{}, CodeNoAuth
	}
	n, ok := v.get(r.path)
	switch {
	case !ok:
		return change{}, CodeNoNode
	case !reaping && r.version != -1 && r.version != n.version:
		return change{}, CodeBadVersion
	case n.numChildren > 0:
		return change{}, CodeNotEmpty
	case reaping && n.kind == ephemeral:
		return change{}, CodeBadVersion
	}
	parent.numChildren--
	v.put(parentPath, parent)
	v.put(r.path, record{gone: true})
	return change{kind: changeDelete, path: r.path}, CodeOK
}

func (v *view) prepareSetData(r *call, ids []identity) (change, int32) {
	n, code := v.existing(r, PermWrite, ids)
	if code != CodeOK {
		return change{}, code
	}
	if v.opts.lab.OverQuota != nil && v.opts.lab.OverQuota(r.path, r.data) {
		return change{}, CodeQuotaExceeded
	}
	if r.version != -1 && r.version != n.version {
		return change{}, CodeBadVersion
	}
	n.version = nextVersion(n.version)
	v.put(r.path, n)
	return change{kind: changeData, path: r.path, data: r.data, version: n.version}, CodeOK
}

func (v *view) prepareSetACL(r *call, ids []identity) (change, int32) {
	if badPath(r.path) != "" {
		return change{}, CodeBadArguments
	}
	acl, ok := fixACL(r.acl, ids, v.opts.servesSASL())
	if !ok {
		return change{}, CodeInvalidACL
	}
	n, code := v.existing(r, PermAdmin, ids)
	if code != CodeOK {
		return change{}, code
	}
	if r.version != -1 && r.version != n.aversion {
		return change{}, CodeBadVersion
	}
	n.aversion, n.acl = nextVersion(n.aversion), acl
	v.put(r.path, n)
	return change{kind: changeACL, path: r.path, acl: acl, version: n.aversion}, CodeOK
}

func (v *view) prepareCheck(r *call, ids []identity) (change, int32) {
	n, code := v.existing(r, PermRead, ids)
	switch {
	case code == CodeOK && r.version != -1 && r.version != n.version:
		code = CodeBadVersion
	case code == CodeNoNode && v.opts.lab.VoidChecks:
		code = CodeOK
	}
	return change{path: r.path}, code
}

// existing returns the record of a node. It checks the path, the node and one permission, in that order.
func (v *view) existing(r *call, perm int32, ids []identity) (record, int32) {
	if badPath(r.path) != "" {
		return record{}, CodeBadArguments
	}
	n, ok := v.get(r.path)
	switch {
	case !ok:
		return n, CodeNoNode
	case !allowed(n.acl, perm, ids):
		return n, CodeNoAuth
	}
	return n, CodeOK
}
