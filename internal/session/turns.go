package session

import (
	"cmp"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
)

// turns are our nodes that heartbeats check, all of them or some in turn. Who was found last, or has come last, is behind all others:
// those that come and go take nobody's turn.
type turns struct {
	mu   sync.Mutex
	kept map[*OwnNode]int64 // guarded by mu: in the order of their turns; zero for those that are being deleted, and checked no more
	last int64              // guarded by mu: the turn that was given last
}

func newTurns() turns { return turns{kept: map[*OwnNode]int64{}} }

// add has a node checked, and reports whether it was not.
func (k *turns) add(t *OwnNode) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept[t] > 0 {
		return false
	}
	k.last++
	k.kept[t], t.Kept = k.last, true
	return true
}

// leave has a node stay and be checked no more.
func (k *turns) leave(t *OwnNode) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept[t] = 0
}

func (k *turns) remove(t *OwnNode) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.kept, t)
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

// due returns the nodes whose turn it is under s.
func (k *turns) due(s *Session) []*OwnNode {
	k.mu.Lock()
	defer k.mu.Unlock()
	var due []*OwnNode
	for t, turn := range k.kept {
		if t.Sess == s && turn > 0 {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *OwnNode) int { return cmp.Compare(k.kept[a], k.kept[b]) })
	return due[:fitting(due, maxChecks)]
}

// found puts nodes behind all others.
func (k *turns) found(nodes []*OwnNode) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last++
	for _, t := range nodes {
		if k.kept[t] > 0 {
			k.kept[t] = k.last
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
