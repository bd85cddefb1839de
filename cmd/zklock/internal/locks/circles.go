package locks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
)

// Nodes show sessions and not goroutines, so that a session of several goroutines can be in a circle without a deadlock.

// Circle is sessions each of which waits for the next, and the last for the first: none of them gets on before another
// lets go.
type Circle []Step

// Step is one session of a circle.
type Step struct {
	Path     string
	Waits    zklock.Contender // what the session waits with
	Blocked  zklock.Contender // what stands in its way: the next session's
	Parallel bool             // the session surely has several goroutines
}

// wait is one contender that waits for others.
type wait struct {
	path  string
	who   zklock.Contender
	ahead []zklock.Contender // all before it in the queue
	any   []zklock.Contender // permits that are held, of which one has to be given back
	each  []zklock.Contender // what has to leave; it stands for all others ahead, which these wait for
	stuck bool               // it has its turn only if another that is stuck lets go
}

// waitsIn returns what the waiters of a queue wait for.
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

// blocks reports whether a contender has to leave before one behind it has its turn.
func blocks(ahead, who zklock.Contender) bool {
	switch {
	case who.Kind == operate.KindRead:
		return ahead.Kind != operate.KindRead
	case who.Kind == operate.KindPermit:
		return !ahead.Holds
	}
	return true
}

// blocking returns those of held that have to leave before who has its turn.
func blocking(held []zklock.Contender, who zklock.Contender) []zklock.Contender {
	return slices.DeleteFunc(slices.Clone(held), func(h zklock.Contender) bool { return !blocks(h, who) })
}

// nearest returns those waiters ahead of who, back to one that itself waits for all that who waits for.
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

// graph is who waits for whom.
type graph struct {
	all  []*wait           // of each queue in its order
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

// loosen finds waits whose turn comes because those that they wait for let go some time, and
// reports whether there was one.
func (g *graph) loosen() (found bool) {
	for _, w := range g.all {
		if w.stuck && g.hasTurn(w) {
			w.stuck, found = false, true
		}
	}
	return found
}

// hasTurn reports whether all that w waits for let go some time.
func (g *graph) hasTurn(w *wait) bool {
	letsGo := func(who zklock.Contender) bool { return g.letsGo(who, w) }
	stays := func(who zklock.Contender) bool { return !g.letsGo(who, w) }
	return (len(w.any) == 0 || slices.ContainsFunc(w.any, letsGo)) && !slices.ContainsFunc(w.each, stays)
}

// obstacle returns a contender that never lets go and without which w does not have its turn: the first one in the queue.
func (g *graph) obstacle(w *wait) *zklock.Contender {
	if len(w.any) > 0 && !slices.ContainsFunc(w.any, func(who zklock.Contender) bool { return g.letsGo(who, w) }) {
		return &w.any[0]
	}
	i := slices.IndexFunc(w.ahead, func(who zklock.Contender) bool { return blocks(who, w.who) && !g.letsGo(who, w) })
	if i < 0 {
		panic("bug: nothing keeps a wait that is stuck")
	}
	return &w.ahead[i]
}

// letsGo reports whether a contender before w leaves some time: one that waits if it has its
// turn, and one that holds if nothing that its session waits for is in its way. What w's own
// session holds is not in its way either: goroutines of one process wait for each other all
// the time.
func (g *graph) letsGo(who zklock.Contender, w *wait) bool {
	if !who.Holds {
		own := g.with[who.Node]
		return own == nil || !own.stuck
	}
	return who.Session == w.who.Session || g.stuckOf(who.Session) == nil
}

// stuckOf returns a wait of a session that is stuck, or nil.
func (g *graph) stuckOf(session int64) *wait {
	for _, w := range g.of[session] {
		if w.stuck {
			return w
		}
	}
	return nil
}

// next returns what the obstacle of a step waits for.
func (g *graph) next(s Step) *wait {
	if !s.Blocked.Holds {
		return g.with[s.Blocked.Node]
	}
	return g.stuckOf(s.Blocked.Session)
}

// linked returns the queues in which a session stands that has another node, there or elsewhere. Circles lead through such
// queues only: in the others nobody waits for what a session waits for.
func linked(queues []*operate.Queue) []*operate.Queue {
	nodes := map[int64]int{}
	for _, q := range queues {
		for _, who := range q.Contenders {
			nodes[who.Session]++
		}
	}
	delete(nodes, 0) // of no session
	several := func(who zklock.Contender) bool { return nodes[who.Session] > 1 }
	return slices.DeleteFunc(slices.Clone(queues), func(q *operate.Queue) bool { return !slices.ContainsFunc(q.Contenders, several) })
}

// Circles returns the circles in queues, in the order of their smallest sessions, with which
// they begin.
func Circles(queues []*operate.Queue) []Circle {
	g := newGraph(linked(queues))
	var found []Circle
	seen := map[*wait]bool{}
	for _, session := range slices.Sorted(maps.Keys(g.of)) {
		if w := g.stuckOf(session); w != nil {
			if c := g.circleFrom(w, seen); c != nil {
				found = append(found, c)
			}
		}
	}
	return found
}

// circleFrom returns the circle that a wait leads to, unless that leads to one that was seen.
func (g *graph) circleFrom(w *wait, seen map[*wait]bool) Circle {
	var way Circle
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
func (c Circle) fromSmallest() Circle {
	first := 0
	for i := range c {
		if c[i].Waits.Session < c[first].Waits.Session {
			first = i
		}
	}
	return slices.Concat(c[first:], c[:first])
}

// Key names the nodes of a circle and what they were at.
func (c Circle) Key() string {
	var b strings.Builder
	for _, s := range c {
		fmt.Fprintf(&b, "%s %s %t\n", s.Waits.Node, s.Blocked.Node, s.Blocked.Holds)
	}
	return b.String()
}

// InBoth returns the circles of now that were there before, too: of queues that were read one after the other, a circle
// can be put together from different times.
func InBoth(before, now []Circle) []Circle {
	return slices.DeleteFunc(now, func(c Circle) bool {
		return !slices.ContainsFunc(before, func(old Circle) bool { return old.Key() == c.Key() })
	})
}
