// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
)

// Nodes show sessions, not goroutines, so a session with several goroutines can be part of a cycle without a deadlock.

// Cycle is a cycle of sessions: each waits for the next, and the last for the first. None of them can proceed until another
// releases its lock.
type Cycle []Step

// Step is one session of a cycle.
type Step struct {
	Path     string
	Waits    zklock.Contender // the session's waiter
	Blocked  zklock.Contender // the contender that Waits waits for; it belongs to the next session
	Parallel bool             // the session must have several goroutines
}

// wait describes a waiter and the contenders that it waits for.
type wait struct {
	path  string
	who   zklock.Contender
	ahead []zklock.Contender // all contenders before it in the queue
	any   []zklock.Contender // held permits, one of which must be released
	each  []zklock.Contender // contenders that must all leave; the others ahead need not be listed, because these wait for them
	stuck bool               // it gets its turn only if another stuck wait does
}

// waitsIn returns the waits of a queue.
func waitsIn(q *operate.Queue) []*wait {
	var waits []*wait
	var held, permits []zklock.Contender
	for i, who := range q.Contenders {
		switch {
		case who.Holds && who.Kind == operate.KindPermit:
			permits = append(permits, who)
		case who.Holds:
			held = append(held, who)
		case who.Session != 0:
			w := &wait{path: q.Path, who: who, ahead: q.Contenders[:i], stuck: true}
			if who.Kind == operate.KindPermit {
				w.any = permits
			}
			w.each = append(blocking(held, who), nearest(w.ahead, who)...)
			waits = append(waits, w)
		}
	}
	return waits
}

// blocks reports whether ahead has to leave before who, which is behind it, gets its turn.
func blocks(ahead, who zklock.Contender) bool {
	switch {
	case who.Kind == operate.KindRead:
		return ahead.Kind != operate.KindRead
	case who.Kind == operate.KindPermit:
		return !ahead.Holds
	}
	return true
}

// blocking returns the holders that have to leave before who gets its turn.
func blocking(held []zklock.Contender, who zklock.Contender) []zklock.Contender {
	return slices.DeleteFunc(slices.Clone(held), func(h zklock.Contender) bool { return !blocks(h, who) })
}

// nearest returns the waiters ahead of who that block it, from the nearest one back to the first that itself waits for
// everything else ahead of it.
func nearest(ahead []zklock.Contender, who zklock.Contender) (found []zklock.Contender) {
	for _, a := range slices.Backward(ahead) {
		if a.Holds || !blocks(a, who) {
			continue
		}
		found = append(found, a)
		if a.Kind != operate.KindRead && a.Session != 0 {
			break
		}
	}
	return found
}

// graph records which waits depend on which contenders.
type graph struct {
	all  []*wait           // in queue order
	of   map[int64][]*wait // by session
	with map[string]*wait  // by node
}

func newGraph(queues []*operate.Queue) *graph {
	g := &graph{of: map[int64][]*wait{}, with: map[string]*wait{}}
	for _, q := range queues {
		for _, w := range waitsIn(q) {
			g.all = append(g.all, w)
			g.of[w.who.Session] = append(g.of[w.who.Session], w)
			g.with[w.who.Node] = w
		}
	}
	for g.loosen() {
	}
	return g
}

// loosen clears stuck for waits that eventually get their turn because every contender they wait for eventually leaves. It
// reports whether there were any.
func (g *graph) loosen() (found bool) {
	for _, w := range g.all {
		if w.stuck && g.hasTurn(w) {
			w.stuck, found = false, true
		}
	}
	return found
}

// hasTurn reports whether all contenders that w waits for eventually leave.
func (g *graph) hasTurn(w *wait) bool {
	letsGo := func(who zklock.Contender) bool { return g.letsGo(who, w) }
	stays := func(who zklock.Contender) bool { return !g.letsGo(who, w) }
	return (len(w.any) == 0 || slices.ContainsFunc(w.any, letsGo)) && !slices.ContainsFunc(w.each, stays)
}

// obstacle returns the first contender in the queue that never leaves and that has to leave before w gets its turn.
func (g *graph) obstacle(w *wait) *zklock.Contender {
	if len(w.any) > 0 && !slices.ContainsFunc(w.any, func(who zklock.Contender) bool { return g.letsGo(who, w) }) {
		return &w.any[0]
	}
	i := slices.IndexFunc(w.ahead, func(who zklock.Contender) bool { return blocks(who, w.who) && !g.letsGo(who, w) })
	if i < 0 {
		panic("bug: a stuck wait has no obstacle")
	}
	return &w.ahead[i]
}

// letsGo reports whether a contender ahead of w eventually leaves. A waiter does if it gets its turn, and a holder if none of
// its session's waits is stuck. A holder of w's own session counts as leaving: goroutines of one process wait for each other
// all the time.
func (g *graph) letsGo(who zklock.Contender, w *wait) bool {
	if !who.Holds {
		own := g.with[who.Node]
		return own == nil || !own.stuck
	}
	return who.Session == w.who.Session || g.stuckOf(who.Session) == nil
}

// stuckOf returns a stuck wait of a session, or nil if there is none.
func (g *graph) stuckOf(session int64) *wait {
	for _, w := range g.of[session] {
		if w.stuck {
			return w
		}
	}
	return nil
}

// next returns the stuck wait of the contender that blocks s.
func (g *graph) next(s Step) *wait {
	if !s.Blocked.Holds {
		return g.with[s.Blocked.Node]
	}
	return g.stuckOf(s.Blocked.Session)
}

// linked returns the queues that contain a session with another node, there or elsewhere. Cycles consist of such queues only:
// in the other queues no session holds one lock and waits for another.
func linked(queues []*operate.Queue) []*operate.Queue {
	nodes := map[int64]int{}
	for _, q := range queues {
		for _, who := range q.Contenders {
			nodes[who.Session]++
		}
	}
	delete(nodes, 0) // nodes without a session
	several := func(who zklock.Contender) bool { return nodes[who.Session] > 1 }
	return slices.DeleteFunc(slices.Clone(queues), func(q *operate.Queue) bool { return !slices.ContainsFunc(q.Contenders, several) })
}

// Cycles returns the cycles in queues. Each starts with its smallest session, and the cycles are ordered by it.
func Cycles(queues []*operate.Queue) []Cycle {
	g := newGraph(linked(queues))
	var found []Cycle
	seen := map[*wait]bool{}
	for _, session := range slices.Sorted(maps.Keys(g.of)) {
		if w := g.stuckOf(session); w != nil {
			if c := g.cycleFrom(w, seen); c != nil {
				found = append(found, c)
			}
		}
	}
	return found
}

// cycleFrom returns the cycle that w leads to, or nil if it leads to a wait that was seen before.
func (g *graph) cycleFrom(w *wait, seen map[*wait]bool) Cycle {
	var way Cycle
	for !seen[w] {
		seen[w] = true
		s := Step{w.path, w.who, *g.obstacle(w), len(g.of[w.who.Session]) > 1}
		way = append(way, s)
		w = g.next(s)
	}
	i := slices.IndexFunc(way, func(s Step) bool { return s.Waits.Node == w.who.Node })
	if i < 0 {
		return nil
	}
	return way[i:].fromSmallest()
}

// fromSmallest returns c with its smallest session first.
func (c Cycle) fromSmallest() Cycle {
	first := 0
	for i := range c {
		if c[i].Waits.Session < c[first].Waits.Session {
			first = i
		}
	}
	return slices.Concat(c[first:], c[:first])
}

// Key identifies a cycle by its nodes and by which of them hold.
func (c Cycle) Key() string {
	var b strings.Builder
	for _, s := range c {
		fmt.Fprintf(&b, "%s %s %t\n", s.Waits.Node, s.Blocked.Node, s.Blocked.Holds)
	}
	return b.String()
}

// InBoth returns the cycles in now that are also in before. Queues are read one after the other, so a cycle that is found
// only once may be composed of states from different times.
func InBoth(before, now []Cycle) []Cycle {
	return slices.DeleteFunc(now, func(c Cycle) bool {
		return !slices.ContainsFunc(before, func(old Cycle) bool { return old.Key() == c.Key() })
	})
}
