package queue

import (
	"slices"
	"sync"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// holders knows who of this client holds, by directory. A third party can delete the node of one, and another who waits for
// it may learn of that sooner: the first watches its node only after a while, and a reconnect sets watches anew in any
// order. So whoever is granted finds out first what has become of those ahead.
type holders struct {
	mu sync.Mutex
	of map[string][]holder // guarded by mu
}

// holder is one who holds. What it says does not change.
type holder interface {
	at() (dir, name string, s *session.Session)
	isShared() bool
	nodesHeld(yield func(n *session.OwnNode, watched bool) bool) // its nodes; a watch tells of the end of one before anything else can
}

// add is called before who is certain to hold.
func (h *holders) add(who holder) {
	dir, _, _ := who.at()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[string][]holder{}
	}
	h.of[dir] = append(h.of[dir], who)
}

// remove is called when who holds no more.
func (h *holders) remove(who holder) {
	dir, _, _ := who.at()
	h.mu.Lock()
	defer h.mu.Unlock()
	left := slices.DeleteFunc(h.of[dir], func(other holder) bool { return other == who })
	if len(left) == 0 {
		delete(h.of, dir)
		return
	}
	h.of[dir] = left
}

// ahead returns those that are ahead of who in its queue.
func (h *holders) ahead(who holder) []holder {
	dir, name, s := who.at()
	own, _ := node.ParseEntry(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	var ahead []holder
	for _, other := range h.of[dir] {
		_, name, under := other.at()
		e, _ := node.ParseEntry(name)
		if other != who && under == s && !node.NeedCzxid(e, own) && node.Compare(e, own) < 0 {
			ahead = append(ahead, other)
		}
	}
	return ahead
}

// endMissing ends those ahead of who that are not in a line that was seen when its node was there.
func (h *holders) endMissing(who holder, has func(name string) bool) {
	for _, other := range h.ahead(who) {
		for n := range other.nodesHeld {
			if !has(n.Name) {
				n.MarkGone(nil)
			}
		}
	}
}

// unwatched returns the nodes of those ahead of who that cannot hold beside it, of which no watch tells.
func (h *holders) unwatched(who holder) (nodes []*session.OwnNode) {
	for _, other := range h.ahead(who) {
		if other.isShared() && who.isShared() {
			continue
		}
		for n, watched := range other.nodesHeld {
			if !watched && !n.IsGone() {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}
