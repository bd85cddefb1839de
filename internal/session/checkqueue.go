// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
)

// checkQueue holds our nodes that heartbeats check, either all of them or some in turn. Nodes that were
// just checked, or just added, go to the back, so short-lived nodes cannot starve the others.
type checkQueue struct {
	mu   sync.Mutex
	kept map[*OwnNode]keeping // guarded by mu
	last int64                // guarded by mu: the last turn that was assigned
	seen *Session             // guarded by mu: the session for which isAny last returned true; nil if it last returned false
}

// keeping is the entry of a node in a checkQueue.
type keeping struct {
	by   *Heart // of the client that keeps the node
	turn int64  // the order of turns; zero for a node that is being deleted, which is no longer checked
}

func newCheckQueue() checkQueue { return checkQueue{kept: map[*OwnNode]keeping{}} }

// add adds a node of h to the checked set. It reports whether isAny would return true now, but did not
// when it was last called.
func (cq *checkQueue) add(n *OwnNode, h *Heart) bool {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.kept[n].turn > 0 || h.hasEnded {
		return false
	}
	cq.last++
	cq.kept[n], n.Kept = keeping{h, cq.last}, true
	return cq.seen != n.Sess
}

// leave keeps a node in the set but excludes it from checks.
func (cq *checkQueue) leave(n *OwnNode, h *Heart) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if !h.hasEnded {
		cq.kept[n] = keeping{by: h}
	}
}

func (cq *checkQueue) remove(n *OwnNode) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	delete(cq.kept, n)
}

// removeAll removes the nodes of h, which adds none afterwards.
func (cq *checkQueue) removeAll(h *Heart) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	h.hasEnded = true
	maps.DeleteFunc(cq.kept, func(_ *OwnNode, k keeping) bool { return k.by == h })
}

// hasAny reports whether any node of h under s is in the set.
func (cq *checkQueue) hasAny(s *Session, h *Heart) bool {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	for n, k := range cq.kept {
		if n.Sess == s && k.by == h {
			return true
		}
	}
	return false
}

// isAny reports whether any node under s is in the set, including those being deleted.
func (cq *checkQueue) isAny(s *Session) bool {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.seen = nil
	for n := range cq.kept {
		if n.Sess == s {
			cq.seen = s
			return true
		}
	}
	return false
}

// maxChecks limits the bytes of checks that one heartbeat sends, which all servers log: about a
// hundred nodes.
const maxChecks = 10_000

// due returns the nodes under s to check now.
func (cq *checkQueue) due(s *Session) []*OwnNode {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	var due []*OwnNode
	for n, k := range cq.kept {
		if n.Sess == s && k.turn > 0 {
			due = append(due, n)
		}
	}
	slices.SortFunc(due, func(a, b *OwnNode) int { return cmp.Compare(cq.kept[a].turn, cq.kept[b].turn) })
	return due[:fitting(due, maxChecks)]
}

// found moves nodes to the back.
func (cq *checkQueue) found(nodes []*OwnNode) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.last++
	for _, n := range nodes {
		if k := cq.kept[n]; k.turn > 0 {
			k.turn = cq.last
			cq.kept[n] = k
		}
	}
}

// fitting returns how many of the first nodes a request of the given size can check. It is at least
// one.
func fitting(nodes []*OwnNode, most int) int {
	size := 0
	for i, n := range nodes {
		size += n.checkSize()
		if size > most && i > 0 {
			return i
		}
	}
	return len(nodes)
}

// checks returns operations that check that the nodes exist, or that check the root if there are
// none.
func checks(nodes []*OwnNode) []any {
	var ops []any
	for _, n := range nodes {
		ops = append(ops, n.Exists())
	}
	if len(ops) == 0 {
		ops = []any{&zk.CheckVersionRequest{Path: "/", Version: -1}}
	}
	return ops
}
