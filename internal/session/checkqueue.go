// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
)

// checkQueue holds our nodes that heartbeats check, either all of them or some in turn. Nodes that were
// just checked, or just added, go to the back, so short-lived nodes cannot starve the others.
type checkQueue struct {
	mu   sync.Mutex
	kept map[*OwnNode]int64 // guarded by mu: the order of turns; zero for nodes that are being deleted, which are no longer checked
	last int64              // guarded by mu: the last turn that was assigned
	seen *Session           // guarded by mu: the session for which isAny last returned true; nil if it last returned false
}

func newCheckQueue() checkQueue { return checkQueue{kept: map[*OwnNode]int64{}} }

// add adds a node to the checked set. It reports whether isAny would return true now, but did not
// when it was last called.
func (cq *checkQueue) add(t *OwnNode) bool {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.kept[t] > 0 {
		return false
	}
	cq.last++
	cq.kept[t], t.Kept = cq.last, true
	return cq.seen != t.Sess
}

// leave keeps a node in the set but excludes it from checks.
func (cq *checkQueue) leave(t *OwnNode) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.kept[t] = 0
}

func (cq *checkQueue) remove(t *OwnNode) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	delete(cq.kept, t)
}

// isAny reports whether any node under s is in the set, including those being deleted.
func (cq *checkQueue) isAny(s *Session) bool {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.seen = nil
	for t := range cq.kept {
		if t.Sess == s {
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
	for t, turn := range cq.kept {
		if t.Sess == s && turn > 0 {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *OwnNode) int { return cmp.Compare(cq.kept[a], cq.kept[b]) })
	return due[:fitting(due, maxChecks)]
}

// found moves nodes to the back.
func (cq *checkQueue) found(nodes []*OwnNode) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.last++
	for _, t := range nodes {
		if cq.kept[t] > 0 {
			cq.kept[t] = cq.last
		}
	}
}

// fitting returns how many of the first nodes a request of the given size can check. It is at least
// one.
func fitting(nodes []*OwnNode, most int) int {
	size := 0
	for i, t := range nodes {
		size += t.checkSize()
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
	for _, t := range nodes {
		ops = append(ops, t.Exists())
	}
	if len(ops) == 0 {
		ops = []any{&zk.CheckVersionRequest{Path: "/", Version: -1}}
	}
	return ops
}
