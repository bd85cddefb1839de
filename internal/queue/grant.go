package queue

import (
	"context"
	"slices"
	"time"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// A Grant is what is left of a place that was granted: our nodes, and how it came to them. What
// the place knew of the others in the queue is forgotten.
type Grant struct {
	t      *contender // leads those that were created with it
	Token  int64
	Waited bool // for somebody ahead
	// Proving is how long it was first and waited until the lease was proven.
	Proving time.Duration
}

// granted returns the grant of a place, nil for none.
func (t *place) granted() *Grant {
	if t == nil {
		return nil
	}
	return &Grant{t.contender, t.czxid, t.waited, t.proving}
}

// Nodes returns our nodes. The first is the first in the queue.
func (g *Grant) Nodes() []*session.OwnNode { return g.t.nodes() }

// Shared reports whether others may hold at the same time.
func (g *Grant) Shared() bool { return g.t.recipe.Shared }

// WatchSelf has our nodes watched, at once or if they are still there after a moment.
func (g *Grant) WatchSelf(atOnce bool) {
	after := aloneGrace
	if atOnce {
		after = 0
	}
	for x := range g.t.each {
		x.watchSelf(after)
	}
}

// Leave takes leave of our nodes, and returns a function that deletes them and returns the
// outcome. lost means that the hold has ended without a release: nothing is to say that there was one.
func (g *Grant) Leave(lost bool) func() error {
	if lost {
		g.t.lose()
	}
	return g.t.c.beginRemoval(g.t)
}

// Retire takes leave of our node, which the creation of another one is to delete.
func (g *Grant) Retire() {
	g.t.c.beginRemoval(g.t)
	g.t.unkeep()
}

// Stands reports whether our node, which is watched, is certainly there: its watch has not fired, and
// stands on the connection that we have.
func (g *Grant) Stands() bool { return g.t.isWatched() }

// WatchOthers returns a watch on the directory's children that was set when our node was there, and
// whether anybody stood in the queue then who wants the place. With self it makes sure that our
// node is watched as well.
func (g *Grant) WatchOthers(ctx context.Context, self bool) (w *session.NodeWatch, wanted bool, err error) {
	t := g.t
	for {
		w, err := t.c.WatchChildren(ctx, t.Sess, t.Dir)
		switch {
		case err != nil:
			return nil, false, err
		case !slices.Contains(w.Names, t.Name): // it is older than our node, or of a server that lags
			_, err = w.Await(ctx, t.Gone.Done())
		case self:
			err = t.isThere(ctx)
			return w, g.isWanted(w.Names), err
		default:
			return w, g.isWanted(w.Names), nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// isWanted reports whether anybody stands in the queue who wants the place. Whoever was before our
// node has let us pass, and readers do not mind others that read.
func (g *Grant) isWanted(names []string) bool {
	own, _ := node.ParseEntry(g.t.Name)
	return slices.ContainsFunc(node.ParseEntries(names), func(e node.Entry) bool {
		wasBefore := !node.NeedCzxid(e, own) && node.Compare(e, own) < 0
		return e.Name != own.Name && !wasBefore && !(e.Shared && g.Shared())
	})
}
