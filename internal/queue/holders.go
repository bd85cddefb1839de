package queue

import (
	"slices"
	"sync"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// holders knows which contenders of this client hold, by directory. A third party can delete the node of one, and another that
// waits for it may learn of that sooner: the first watches its node only after a while, and a reconnect sets watches anew in
// any order. So a contender that has its turn finds out first what has become of those ahead.
type holders struct {
	mu sync.Mutex
	of map[string][]holder // guarded by mu
}

// holder is one who holds. What it says does not change.
type holder interface {
	at() (dir string, s *session.Session)
	made() (name string, czxid int64) // zero if it is not known, which it is of all that were added
	isShared() bool
	nodesHeld(yield func(n *session.OwnNode, watched bool) bool) // its nodes; a watch tells of the end of one before anything else can
}

// add is called before who is certain to hold.
func (h *holders) add(who holder) {
	dir, _ := who.at()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[string][]holder{}
	}
	h.of[dir] = append(h.of[dir], who)
}

// remove is called when who holds no more.
func (h *holders) remove(who holder) {
	dir, _ := who.at()
	h.mu.Lock()
	defer h.mu.Unlock()
	left := slices.DeleteFunc(h.of[dir], func(other holder) bool { return other == who })
	if len(left) == 0 {
		delete(h.of, dir)
		return
	}
	h.of[dir] = left
}

// others returns those that hold in the queue of who.
func (h *holders) others(who holder) []holder {
	dir, s := who.at()
	h.mu.Lock()
	defer h.mu.Unlock()
	var others []holder
	for _, other := range h.of[dir] {
		if _, under := other.at(); other != who && under == s {
			others = append(others, other)
		}
	}
	return others
}

// isOlder reports whether the node of other was certainly made before that of who. Numbers begin anew with a directory, and a
// transaction has none smaller after it.
func isOlder(other, who holder) bool {
	name, czxid := other.made()
	ours, before := who.made()
	if before != 0 {
		return czxid < before
	}
	e, _ := node.ParseEntry(name) // the answer to the create was lost
	own, _ := node.ParseEntry(ours)
	return !node.NeedCzxid(e, own) && node.Compare(e, own) < 0
}

// endMissing ends those older than who that are not in a line that was seen when its node was there.
func (h *holders) endMissing(who holder, has func(name string) bool) {
	for _, other := range h.others(who) {
		if !isOlder(other, who) {
			continue
		}
		for n := range other.nodesHeld {
			if !has(n.Name) {
				n.MarkGone(nil)
			}
		}
	}
}

// unwatched returns the nodes of those that cannot hold beside who, of which no watch tells. If there are any such holders, it
// returns those of who as well: one of them may have been granted because ours is gone.
func (h *holders) unwatched(who holder) (nodes []*session.OwnNode) {
	add := func(n *session.OwnNode, watched bool) bool {
		if !watched && !n.IsGone() {
			nodes = append(nodes, n)
		}
		return true
	}
	alone := true
	for _, other := range h.others(who) {
		if !other.isShared() || !who.isShared() {
			other.nodesHeld(add)
			alone = false
		}
	}
	if !alone {
		who.nodesHeld(add)
	}
	return nodes
}
