package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
)

// A circle is sessions each of which waits for the next: none of them gets on before another
// lets go. Nodes show sessions and not goroutines, so that a session of several goroutines can
// be in a circle without a deadlock.

// circle is sessions each of which waits for the next, and the last for the first.
type circle []step

// step is one session of a circle.
type step struct {
	path     string
	waits    zklock.Contender // what the session waits with
	blocked  zklock.Contender // what stands in its way: the next session's
	parallel bool             // the session surely has several goroutines
}

// wait is one contender that waits for others.
type wait struct {
	path string
	who  zklock.Contender
	// needs are the conditions for its turn, each of which is met when one of these lets go.
	needs [][]zklock.Contender
	stuck bool // it has its turn only if another that is stuck lets go
}

// waitsIn returns what the waiters of a queue wait for.
func waitsIn(q *operate.Queue) []*wait {
	var waits []*wait
	var held []zklock.Contender // permits that are held: any of them would do
	for i, who := range q.Contenders {
		if who.Holds && who.Kind == operate.KindPermit {
			held = append(held, who)
		}
		if who.Holds || who.Session == 0 {
			continue
		}
		w := &wait{path: q.Path, who: who, stuck: true}
		if len(held) > 0 && who.Kind == operate.KindPermit {
			w.needs = append(w.needs, held)
		}
		for _, ahead := range q.Contenders[:i] {
			if blocks(ahead, who) {
				w.needs = append(w.needs, []zklock.Contender{ahead})
			}
		}
		waits = append(waits, w)
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

// graph is who waits for whom.
type graph struct {
	of   map[int64][]*wait // by session
	with map[string]*wait  // by node
}

func newGraph(queues []*operate.Queue) *graph {
	g := &graph{map[int64][]*wait{}, map[string]*wait{}}
	for _, q := range queues {
		for _, w := range waitsIn(q) {
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
	for _, w := range g.with {
		if w.stuck && g.obstacle(w) == nil {
			w.stuck, found = false, true
		}
	}
	return found
}

// obstacle returns a contender that never lets go and without which w does not have its turn,
// or nil.
func (g *graph) obstacle(w *wait) *zklock.Contender {
	for _, any := range w.needs {
		if !slices.ContainsFunc(any, func(who zklock.Contender) bool { return g.letsGo(who, w) }) {
			return &any[0]
		}
	}
	return nil
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
func (g *graph) next(s step) *wait {
	if !s.blocked.Holds {
		return g.with[s.blocked.Node]
	}
	return g.stuckOf(s.blocked.Session)
}

// circles returns the circles in queues, in the order of their smallest sessions, with which
// they begin.
func circles(queues []*operate.Queue) []circle {
	g := newGraph(queues)
	var found []circle
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
func (g *graph) circleFrom(w *wait, seen map[*wait]bool) circle {
	var way circle
	for !seen[w] {
		seen[w] = true
		s := step{w.path, w.who, *g.obstacle(w), len(g.of[w.who.Session]) > 1}
		way = append(way, s)
		w = g.next(s)
	}
	i := slices.IndexFunc(way, func(s step) bool { return s.waits.Node == w.who.Node })
	if i < 0 {
		return nil
	}
	return way[i:].fromSmallest()
}

// fromSmallest returns c with its smallest session first.
func (c circle) fromSmallest() circle {
	first := 0
	for i := range c {
		if c[i].waits.Session < c[first].waits.Session {
			first = i
		}
	}
	return slices.Concat(c[first:], c[:first])
}

// key names the nodes of a circle and what they were at.
func (c circle) key() string {
	var b strings.Builder
	for _, s := range c {
		fmt.Fprintf(&b, "%s %s %t\n", s.waits.Node, s.blocked.Node, s.blocked.Holds)
	}
	return b.String()
}

// listCircles shows the circles among the locks at and below path. Queues are read one after
// the other, so that a circle can be put together from different times. One that is there
// again in a second look, with the same nodes, was there all the time in between.
func listCircles(ctx context.Context, client *zklock.Client, path string, v view) error {
	queues, err := operate.Queues(ctx, client, path)
	if errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("%s does not exist", path)
	}
	found := circles(queues)
	if len(found) > 0 {
		queues, err = operate.Queues(ctx, client, path)
		found = inBoth(found, circles(queues))
	}
	if err != nil && !errors.Is(err, zk.ErrNoAuth) { // else some could be read
		return err
	}
	if failed := v.showCircles(path, found); failed != nil {
		return failed
	}
	if err == nil && len(found) > 0 {
		return exit{code: codeCircle}
	}
	return err
}

// inBoth returns the circles of now that were there before.
func inBoth(before, now []circle) []circle {
	return slices.DeleteFunc(now, func(c circle) bool {
		return !slices.ContainsFunc(before, func(old circle) bool { return old.key() == c.key() })
	})
}

func (v view) showCircles(path string, found []circle) error {
	if v.json {
		return writeJSON(v.out, newCirclesJSON(found), v.pretty)
	}
	if len(found) == 0 {
		return v.say("nobody waits in a circle at %s or below it\n", path)
	}
	var b bytes.Buffer
	for _, c := range found {
		c.tell(&b)
	}
	fmt.Fprint(&b, "It is a deadlock where the goroutine that holds is the one that waits. Then one of them has to let go:\nsee zklock revoke and zklock evict.\n")
	_, err := v.out.Write(b.Bytes())
	return err
}

// tell writes a circle in words.
func (c circle) tell(w io.Writer) {
	fmt.Fprintf(w, "%d sessions wait for each other in a circle:\n", len(c))
	for _, s := range c {
		verb := "holds"
		if !s.blocked.Holds {
			verb = "waits ahead of it"
		}
		fmt.Fprintf(w, "  %s waits for %s, where %s %s\n", sessionOf(s.waits), shown(s.path), sessionOf(s.blocked), verb)
	}
	for _, s := range c {
		if s.parallel {
			fmt.Fprintf(w, "  Session 0x%x waits at several locks, so it has several goroutines: it may get on.\n", s.waits.Session)
		}
	}
}

// sessionOf names a contender's session, and its owner if that says who it is.
func sessionOf(who zklock.Contender) string {
	text := fmt.Sprintf("session 0x%x", who.Session)
	if owner := ownerOf(who); owner != "" {
		text += " (" + owner + ")"
	}
	return text
}

// circlesJSON is what ls --cycles --json prints: the names are part of the command's contract.
type circlesJSON struct {
	Cycles []circleJSON `json:"cycles"`
}

type circleJSON struct {
	Steps []stepJSON `json:"steps"` // each waits for the next one's session, the last for the first's
}

type stepJSON struct {
	Path      string        `json:"path"`      // where the session waits
	Waits     contenderJSON `json:"waits"`     // with this node
	BlockedBy contenderJSON `json:"blockedBy"` // for this one to leave
	Parallel  bool          `json:"parallel"`  // the session waits at several locks: it surely has several goroutines
}

func newCirclesJSON(found []circle) circlesJSON {
	out := circlesJSON{Cycles: []circleJSON{}}
	for _, c := range found {
		var steps []stepJSON
		for _, s := range c {
			steps = append(steps, stepJSON{s.path, newContenderJSON(s.waits), newContenderJSON(s.blocked), s.parallel})
		}
		out.Cycles = append(out.Cycles, circleJSON{steps})
	}
	return out
}
