// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"slices"
	"time"
)

// Node describes a node of the leader's tree.
type Node struct {
	Stat
	Data      []byte
	ACL       []ACL
	Container bool
	TTL       time.Duration // 0 if the node has none
	Creates   int32         // number of children created so far, which is the next sequence number
}

func (n *znode) public() Node {
	return Node{
		Stat: n.fullStat(), Data: slices.Clone(n.data), ACL: slices.Clone(n.acl),
		Container: n.kind == container, TTL: n.ttl, Creates: n.creates,
	}
}

// private returns the tree node, without children, for which public returns n.
func (n Node) private() *znode {
	z := &znode{
		data: slices.Clone(n.Data), acl: slices.Clone(n.ACL), stat: n.Stat,
		owner: n.EphemeralOwner, ttl: n.TTL, creates: n.Creates,
	}
	switch {
	case n.Container:
		z.kind = container
	case n.TTL > 0:
		z.kind = ttlNode
	case n.EphemeralOwner != 0:
		z.kind = ephemeral
	}
	return z
}

// public returns all nodes except the system's.
func (t *tree) public() map[string]Node {
	nodes := make(map[string]Node)
	for path, n := range t.nodes {
		if !t.flavor.isSystem(path) {
			nodes[path] = n.public()
		}
	}
	return nodes
}

// load adds nodes to an empty tree, parents first.
func (t *tree) load(nodes map[string]Node) {
	paths := make([]string, 0, len(nodes))
	for path := range nodes {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		n := nodes[path].private()
		parent, name := splitPath(path)
		t.nodes[parent].children.add(name)
		t.nodes[path] = n
		t.index(path, n)
	}
}
