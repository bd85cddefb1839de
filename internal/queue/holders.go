package queue

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// holders knows who of this client holds, by directory. A third party can delete the node of one, and another who waits for
// it may learn of that sooner: the first watches its node only after a while, and a reconnect sets watches anew in any
// order. So whoever is granted finds out first what has become of those ahead.
type holders struct {
	mu sync.Mutex
	of map[string][]*contender // guarded by mu
}

// add is called before t is certain to hold.
func (h *holders) add(t *contender) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[string][]*contender{}
	}
	h.of[t.Dir] = append(h.of[t.Dir], t)
}

// remove is called when t holds no more.
func (h *holders) remove(t *contender) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := slices.DeleteFunc(h.of[t.Dir], func(x *contender) bool { return x == t })
	if len(left) == 0 {
		delete(h.of, t.Dir)
		return
	}
	h.of[t.Dir] = left
}

// ahead returns the nodes of those ahead of t in its queue that may be held, and of which suits says so.
func (h *holders) ahead(t *contender, suits func(x *member, of *contender) bool) []*member {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ahead []*member
	own, _ := node.ParseEntry(t.Name)
	for _, other := range h.of[t.Dir] {
		e, _ := node.ParseEntry(other.Name)
		if other == t || other.Sess != t.Sess || node.NeedCzxid(e, own) || node.Compare(e, own) > 0 {
			continue
		}
		for x := range other.each {
			if !x.IsGone() && suits(x, other) {
				ahead = append(ahead, x)
			}
		}
	}
	return ahead
}

// endMissing ends those ahead of t that are not in a line that was seen when t's node was there.
func (h *holders) endMissing(t *contender, has func(name string) bool) {
	for _, x := range h.ahead(t, func(x *member, _ *contender) bool { return !has(x.Name) }) {
		x.MarkGone(nil)
	}
}

// endThoseGone ends those ahead of t, which has its turn, that cannot hold beside it, if their nodes are gone. It asks the
// quorum where no watch tells. For permits it need not: the listing that grants them shows all that are held.
func (t *place) endThoseGone(ctx context.Context) error {
	if t.recipe.limited {
		return nil
	}
	for {
		var unsure []*session.OwnNode
		for _, x := range t.c.holders.ahead(t.contender, func(x *member, of *contender) bool {
			return !x.isWatched() && !(t.recipe.Shared && of.recipe.Shared)
		}) {
			unsure = append(unsure, &x.OwnNode)
		}
		if len(unsure) == 0 {
			return nil
		}
		_, err := session.Again(ctx, func() (none struct{}, err error) { return none, t.c.ConfirmAll(ctx, t.Sess, unsure) })
		if !errors.Is(err, outcome.ErrGone) {
			return err
		}
	}
}
