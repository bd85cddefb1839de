// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"sync"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// holders tracks which contenders of a connection's clients hold, by directory. If a third party deletes a
// holder's node, a waiter of the same connection may learn of it first: a holder watches its node only
// after a while, and a reconnect sets watches in any order. So a contender whose turn has come
// first checks the holders ahead of it.
type holders struct {
	mu sync.Mutex
	of map[string][]holder // guarded by mu
}

// holder is a contender that holds. Its methods always return the same values.
type holder interface {
	at() (dir string, s *session.Session)
	made() (name string, czxid int64) // zero if unknown; known for all that were added
	isShared() bool
	nodesHeld(yield func(n *session.OwnNode, watched bool) bool) // its nodes; a watched node reports its deletion before anything else can reveal it
}

// add registers own before it is certain to hold.
func (h *holders) add(own holder) {
	dir, _ := own.at()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[string][]holder{}
	}
	h.of[dir] = append(h.of[dir], own)
}

// remove unregisters own when it no longer holds.
func (h *holders) remove(own holder) {
	dir, _ := own.at()
	h.mu.Lock()
	defer h.mu.Unlock()
	left := slices.DeleteFunc(h.of[dir], func(other holder) bool { return other == own })
	if len(left) == 0 {
		delete(h.of, dir)
		return
	}
	h.of[dir] = left
}

// others returns the other holders in own's queue and under its session.
func (h *holders) others(own holder) []holder {
	dir, s := own.at()
	h.mu.Lock()
	defer h.mu.Unlock()
	var others []holder
	for _, other := range h.of[dir] {
		if _, under := other.at(); other != own && under == s {
			others = append(others, other)
		}
	}
	return others
}

// isOlder reports whether other's node was certainly created before own's. Sequence numbers restart
// when a directory is created again; zxids never decrease.
func isOlder(other, own holder) bool {
	name, czxid := other.made()
	ownName, before := own.made()
	if before != 0 {
		return czxid < before
	}
	e, _ := node.ParseEntry(name) // the reply to the create was lost
	ours, _ := node.ParseEntry(ownName)
	return !node.NeedCzxid(e, ours) && node.Compare(e, ours) < 0
}

// endMissing ends the holds that are older than own and missing from a listing that was taken while
// own's node existed.
func (h *holders) endMissing(own holder, has func(name string) bool) {
	for _, other := range h.others(own) {
		if !isOlder(other, own) {
			continue
		}
		for n := range other.nodesHeld {
			if !has(n.Name) {
				n.MarkGone(nil)
			}
		}
	}
}

// unwatched returns the unwatched nodes of the holders that exclude own. If there are any such
// holders, it adds the unwatched nodes of own: one of the holders may have been granted the lock
// because own's node is gone.
func (h *holders) unwatched(own holder) (nodes []*session.OwnNode) {
	add := func(n *session.OwnNode, watched bool) bool {
		if !watched && !n.IsGone() {
			nodes = append(nodes, n)
		}
		return true
	}
	alone := true
	for _, other := range h.others(own) {
		if !other.isShared() || !own.isShared() {
			other.nodesHeld(add)
			alone = false
		}
	}
	if !alone {
		own.nodesHeld(add)
	}
	return nodes
}
