package session

import (
	"sync"

	"github.com/go-zookeeper/zk"
)

// turns are our nodes that heartbeats check, all of them or some in turn.
type turns struct {
	mu   sync.Mutex
	kept map[*OwnNode]bool // guarded by mu: false for those that are being deleted, and checked no more
	seen map[*OwnNode]bool // guarded by mu: those that were found while others still wait for their turn
}

func newTurns() turns { return turns{kept: map[*OwnNode]bool{}, seen: map[*OwnNode]bool{}} }

// add has a node checked, and reports whether it was not.
func (k *turns) add(t *OwnNode) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept[t] {
		return false
	}
	k.kept[t], t.Kept = true, true
	return true
}

// leave has a node stay and be checked no more.
func (k *turns) leave(t *OwnNode) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept[t] = false
}

func (k *turns) remove(t *OwnNode) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.kept, t)
	delete(k.seen, t)
}

// isAny reports whether any node is to be checked under s, or being deleted.
func (k *turns) isAny(s *Session) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for t := range k.kept {
		if t.Sess == s {
			return true
		}
	}
	return false
}

// maxChecks bounds how many bytes of checks one heartbeat sends, which all servers log: about a hundred nodes.
const maxChecks = 10_000

// due returns nodes to be checked under s, those first whose turn it is. It says whether these are all of them.
func (k *turns) due(s *Session) (due []*OwnNode, all bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var again []*OwnNode
	for t, held := range k.kept {
		switch {
		case t.Sess != s || !held:
		case k.seen[t]:
			again = append(again, t)
		default:
			due = append(due, t)
		}
	}
	waiting := len(due)
	due = append(due, again...)
	due = due[:fitting(due, maxChecks)]
	return due, len(due) >= waiting
}

// setSeen notes that nodes were found. If no others waited for their turn, everybody's begins again.
func (k *turns) setSeen(nodes []*OwnNode, all bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if all {
		clear(k.seen)
		return
	}
	for _, t := range nodes {
		if k.kept[t] {
			k.seen[t] = true
		}
	}
}

// fitting returns how many nodes from the first on a request of so many bytes can check, one in any case.
func fitting(nodes []*OwnNode, most int) int {
	size := 0
	for i, t := range nodes {
		if size += t.checkSize(); size > most && i > 0 {
			return i
		}
	}
	return len(nodes)
}

// checks returns operations that check that the nodes exist, or the root if there are none.
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
