// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Stat is a node's metadata as returned by ZooKeeper.
type Stat struct {
	Czxid, Mzxid   int64
	Ctime, Mtime   int64 // milliseconds since 1970
	Version        int32
	Cversion       int32 // twice the number of children created, minus the number of children that exist
	Aversion       int32
	EphemeralOwner int64
	DataLength     int32
	NumChildren    int32
	Pzxid          int64
}

// nodeKind says what ends a node apart from a delete.
type nodeKind uint8

const (
	persistent nodeKind = iota
	ephemeral
	container
	ttlNode
)

// znode is a node of one member's replica.
type znode struct {
	data     []byte
	acl      []ACL
	kind     nodeKind
	owner    int64 // for an ephemeral node, its session
	ttl      time.Duration
	stat     Stat  // Cversion, NumChildren, DataLength and EphemeralOwner are computed by fullStat
	creates  int32 // ZooKeeper's internal cversion: the next sequence number
	children childSet
}

func (n *znode) fullStat() Stat {
	s := n.stat
	s.NumChildren = int32(n.children.len())
	s.Cversion = n.creates*2 - s.NumChildren
	s.DataLength = int32(len(n.data))
	if n.kind == ephemeral {
		s.EphemeralOwner = n.owner
	}
	return s
}

// childSet is a set of names. Unlike that of a Go map, its order is the same for the same history and seed.
type childSet struct {
	names []string
	at    map[string]int
}

func (c *childSet) len() int { return len(c.names) }

func (c *childSet) add(name string) {
	if c.at == nil {
		c.at = make(map[string]int)
	}
	c.at[name] = len(c.names)
	c.names = append(c.names, name)
}

func (c *childSet) remove(name string) {
	i, last := c.at[name], len(c.names)-1
	c.names[i] = c.names[last]
	c.at[c.names[i]] = i
	c.names[last] = ""
	c.names = c.names[:last]
	delete(c.at, name)
}

// shuffled returns the names in a random order, so that no recipe depends on the order by accident.
func (c *childSet) shuffled(r *rand.Rand) []string {
	list := append(make([]string, 0, len(c.names)), c.names...)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// tree is one replica of the data. The leader's replica is authoritative.
type tree struct {
	nodes      map[string]*znode
	ephemerals map[int64]map[string]struct{} // by session
	reapable   map[string]struct{}           // containers and TTL nodes
	zxid       int64                         // the last transaction applied
	wrap       bool                          // the counter wraps around, as before 3.6, instead of stopping
	flavor     Flavor
}

const (
	systemPath = "/zookeeper"
	quotaPath  = systemPath + "/quota"
	keeperPath = "/keeper" // a Keeper's system path
)

// systemNodes are the nodes that the servers have from the beginning, parents first.
func (f Flavor) systemNodes() []string {
	if f == Keeper {
		return []string{keeperPath, keeperPath + "/api_version"}
	}
	return []string{systemPath, systemPath + "/config", quotaPath}
}

func newTree(wrap bool, f Flavor) *tree {
	t := &tree{
		nodes:      make(map[string]*znode),
		ephemerals: make(map[int64]map[string]struct{}),
		reapable:   make(map[string]struct{}),
		wrap:       wrap,
		flavor:     f,
	}
	t.nodes["/"] = &znode{data: []byte{}, acl: openACL}
	for _, path := range f.systemNodes() {
		t.nodes[path] = &znode{data: []byte{}, acl: openACL}
		parent, name := splitPath(path)
		t.nodes[parent].children.add(name)
	}
	if config := t.nodes[systemPath+"/config"]; config != nil {
		config.acl, config.stat.Aversion = []ACL{{PermRead, "world", "anyone"}}, -1
	}
	if version := t.nodes[keeperPath+"/api_version"]; version != nil {
		version.data = []byte("2")
	}
	return t
}

// isSystem reports whether a node is one of the system's, or below one.
func (f Flavor) isSystem(path string) bool {
	top := f.systemNodes()[0]
	return path == "/" || path == top || strings.HasPrefix(path, top+"/")
}

// get returns the node at path, or nil. In ZooKeeper, the empty path is the root too.
func (t *tree) get(path string) *znode {
	if path == "" {
		path = "/"
	}
	return t.nodes[path]
}

// splitPath returns the parent's path and the node's own name.
func splitPath(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/", path[i+1:]
	}
	return path[:i], path[i+1:]
}

type changeKind uint8

const (
	changeNone changeKind = iota // a check: nothing to do
	changeCreate
	changeDelete
	changeData
	changeACL
)

// change is one step of a transaction. The leader computes it, and every member
// applies it in the same way.
type change struct {
	kind    changeKind
	path    string
	data    []byte
	acl     []ACL
	node    nodeKind
	owner   int64
	ttl     time.Duration
	version int32 // for changeData and changeACL, the new version
	creates int32 // for changeCreate, the parent's new counter
}

// treeEvent is a change of a node, with the ACLs that the node and its parent had
// at the time.
type treeEvent struct {
	path           string
	zxid           int64
	acl, parentACL []ACL
}

// events receives the changes of a tree, for a member's watches.
type events interface {
	created(treeEvent)
	deleted(treeEvent)
	changed(treeEvent)
}

// nobody ignores all changes.
type nobody struct{}

func (nobody) created(treeEvent) {}
func (nobody) deleted(treeEvent) {}
func (nobody) changed(treeEvent) {}

// apply applies one step with the transaction's zxid and wall time. It returns the
// node that was created or changed, or nil.
func (t *tree) apply(c *change, zxid, ms int64, seen events) *znode {
	switch c.kind {
	case changeCreate:
		n := t.create(c, zxid, ms)
		seen.created(t.event(c.path, zxid))
		return n
	case changeDelete:
		e := t.event(c.path, zxid)
		t.remove(c.path, zxid)
		seen.deleted(e)
	case changeData:
		n := t.nodes[c.path]
		n.data = c.data
		n.stat.Version, n.stat.Mzxid, n.stat.Mtime = c.version, zxid, ms
		seen.changed(t.event(c.path, zxid))
		return n
	case changeACL:
		n := t.nodes[c.path]
		n.acl, n.stat.Aversion = c.acl, c.version
		return n
	}
	return nil
}

// event describes a change of an existing node.
func (t *tree) event(path string, zxid int64) treeEvent {
	parent, _ := splitPath(path)
	return treeEvent{path, zxid, t.nodes[path].acl, t.nodes[parent].acl}
}

func (t *tree) create(c *change, zxid, ms int64) *znode {
	parentPath, name := splitPath(c.path)
	parent := t.nodes[parentPath]
	parent.children.add(name)
	// Since ZOOKEEPER-3249 (3.6) the counter only grows. When it is exhausted, it
	// stops, and so does the parent's pzxid.
	if t.wrap || c.creates > parent.creates {
		parent.creates, parent.stat.Pzxid = c.creates, zxid
	}
	n := &znode{data: c.data, acl: c.acl, kind: c.node, owner: c.owner, ttl: c.ttl}
	n.stat.Czxid, n.stat.Mzxid, n.stat.Pzxid = zxid, zxid, zxid
	n.stat.Ctime, n.stat.Mtime = ms, ms
	t.nodes[c.path] = n
	t.index(c.path, n)
	return n
}

func (t *tree) index(path string, n *znode) {
	switch n.kind {
	case ephemeral:
		own := t.ephemerals[n.owner]
		if own == nil {
			own = make(map[string]struct{})
			t.ephemerals[n.owner] = own
		}
		own[path] = struct{}{}
	case container, ttlNode:
		t.reapable[path] = struct{}{}
	}
}

func (t *tree) remove(path string, zxid int64) {
	n := t.nodes[path]
	delete(t.nodes, path)
	delete(t.reapable, path)
	if own := t.ephemerals[n.owner]; n.kind == ephemeral {
		delete(own, path)
		if len(own) == 0 {
			delete(t.ephemerals, n.owner)
		}
	}
	parentPath, name := splitPath(path)
	parent := t.nodes[parentPath]
	parent.children.remove(name)
	parent.stat.Pzxid = max(parent.stat.Pzxid, zxid)
}

// clone returns a copy that shares only immutable parts (data, ACLs).
func (t *tree) clone() *tree {
	c := newTree(t.wrap, t.flavor)
	c.zxid = t.zxid
	clear(c.nodes)
	for path, n := range t.nodes {
		m := *n
		m.children = childSet{}
		for _, name := range n.children.names {
			m.children.add(name)
		}
		c.nodes[path] = &m
		c.index(path, &m)
	}
	return c
}

// descendants counts the nodes below path.
func (t *tree) descendants(path string) int {
	if path == "/" {
		return len(t.nodes) - 1
	}
	count := 0
	for p := range t.nodes {
		if strings.HasPrefix(p, path+"/") {
			count++
		}
	}
	return count
}

// nextVersion returns the version that follows v. It skips -1, which means any
// version in requests.
func nextVersion(v int32) int32 {
	if v == -2 {
		return 0
	}
	return v + 1
}

// badPath returns the reason why a path is invalid in ZooKeeper, or "" if it is
// valid.
func badPath(path string) string {
	switch {
	case path == "":
		return "empty path"
	case path[0] != '/':
		return "path does not start with a slash"
	case path == "/":
		return ""
	case strings.HasSuffix(path, "/"):
		return "path ends with a slash"
	}
	for _, name := range strings.Split(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return "empty or relative name in path"
		}
	}
	if strings.ContainsFunc(path, badRune) {
		return "forbidden character in path"
	}
	return ""
}

// badRune reports whether ZooKeeper rejects a character. In Java, characters beyond
// 16 bits are two surrogates, and surrogates are rejected.
func badRune(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}

// ephemeralsOf returns the sorted paths of a session's ephemeral nodes that begin with prefix.
func (t *tree) ephemeralsOf(session int64, prefix string) []string {
	list := []string{}
	trimmed := strings.TrimSpace(prefix)
	all := trimmed == "" || trimmed == "/"
	for path := range t.ephemerals[session] {
		if all || strings.HasPrefix(path, prefix) {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}

// overdue returns the nodes that the reaper may delete. Containers that never had a child are among them if they are older than
// unused, which may be 0 for no limit.
func (t *tree) overdue(now time.Time, unused time.Duration) []string {
	var list []string
	for path := range t.reapable {
		n := t.nodes[path]
		if n.children.len() > 0 {
			continue
		}
		age := now.Sub(time.UnixMilli(n.stat.Mtime))
		if n.kind == container && (n.creates > 0 || unused > 0 && age > unused) || n.kind == ttlNode && age > n.ttl {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}

// count returns ZooKeeper's node count, which counts the root twice because it has two names.
func (t *tree) count() int { return len(t.nodes) + 1 }

func (t *tree) ephemeralCount() int {
	total := 0
	for _, own := range t.ephemerals {
		total += len(own)
	}
	return total
}

// owners returns the sessions that have ephemeral nodes.
func (t *tree) owners() []int64 { return slices.Sorted(maps.Keys(t.ephemerals)) }

func (t *tree) dataSize() int {
	total := 0
	for path, n := range t.nodes {
		total += len(path) + len(n.data)
	}
	return total
}
