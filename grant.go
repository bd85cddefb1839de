package zklock

import (
	"context"
	"slices"
)

// A grant is what is left of a place that was granted: our nodes, and how it came to them. What
// the place knew of the others in the queue is forgotten.
type grant struct {
	t      *contender // leads those that were created with it
	token  int64
	waited bool // for somebody ahead
}

// granted returns the grant of a place, nil for none.
func (t *place) granted() *grant {
	if t == nil {
		return nil
	}
	return &grant{t.contender, t.token, t.waited}
}

// nodes returns our nodes. The first is the first in the queue.
func (g *grant) nodes() []*ownNode { return g.t.nodes() }

// shared reports whether others may hold at the same time.
func (g *grant) shared() bool { return g.t.recipe.shared }

// watchSelf has our nodes watched, at once or if they are still there after a moment.
func (g *grant) watchSelf(atOnce bool) {
	after := aloneGrace
	if atOnce {
		after = 0
	}
	for t := range g.t.each {
		t.guard(after)
	}
}

// leave takes leave of our nodes, and returns a function that deletes them and returns the
// outcome. lost means that the hold has ended without a release: nothing is to say that there was one.
func (g *grant) leave(lost bool) func() error {
	g.t.lost = lost
	return removeAll(g.t.whole())
}

// retire takes leave of our node, which the creation of another one is to delete.
func (g *grant) retire() { g.t.c.beginRemoval(g.t) }

// stands reports whether our node, which is watched, is certainly there: its watch has not fired, and
// stands on the connection that we have.
func (g *grant) stands() bool { return g.t.sentinel.stands() }

// watchOthers returns a watch on the directory's children that was set when our node was there, and
// whether anybody stood in the queue then who wants the place. With self it makes sure that our
// node is watched as well.
func (g *grant) watchOthers(ctx context.Context, self bool) (w *nodeWatch, wanted bool, err error) {
	t := g.t
	for {
		w, err := t.c.watchChildren(ctx, t.sess, t.dir)
		switch {
		case err != nil:
			return nil, false, err
		case !slices.Contains(w.names, t.name): // it is older than our node, or of a server that lags
			_, err = w.await(ctx, t.sess, t.gone.done())
		case self:
			err = t.isThere(ctx)
			return w, g.isWanted(w.names), err
		default:
			return w, g.isWanted(w.names), nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// isWanted reports whether anybody stands in the queue who wants the place. Whoever was before our
// node has let us pass, and readers do not mind others that read.
func (g *grant) isWanted(names []string) bool {
	own, _ := parseEntry(g.t.name)
	return slices.ContainsFunc(parseEntries(names), func(e entry) bool {
		wasBefore := !needCzxid(e, own) && order(e, own) < 0
		return e.name != own.name && !wasBefore && !(e.shared && g.shared())
	})
}
