package queue

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// aloneGrace is how long a contender that found the queue empty may hold before it
// watches its own node: a lock that is taken and released at once costs no watch. A contender
// that has others around it, or saw its own node longer ago, watches it before it holds.
const aloneGrace = 10 * time.Millisecond

// selfWatch watches a contender's own node: deletion by anybody means lost, and data
// may carry a request to let go. It has a goroutine while it looks at the node, and none while
// the watch stands.
type selfWatch struct {
	c    *Engine
	node *session.OwnNode

	mu      sync.Mutex         // guards what follows
	begin   *time.Timer        // nil once it has begun; a watch that was left before never begins
	watch   *session.NodeWatch // the newest, set when our node was there; nil before the first; perhaps it has fired
	left    bool               // never false again: nobody needs it any more
	ended   bool               // never false again: watch stays what it is
	changed chan struct{}      // closed, and nil again, when any of watch, left and ended changes; nil while nobody waits for that
}

// newSelfWatch returns a selfWatch that begins after a while, unless it is stopped.
func newSelfWatch(c *Engine, n *session.OwnNode, after time.Duration) *selfWatch {
	g := &selfWatch{c: c, node: n}
	if after <= 0 {
		g.run()
		return g
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begin = time.AfterFunc(after, g.start)
	return g
}

// start begins to watch after a while.
func (g *selfWatch) start() {
	g.mu.Lock()
	g.begin = nil
	g.mu.Unlock()
	g.run()
}

func (g *selfWatch) run() {
	// Owned by the client; ends when the watch stands, when the node departs, it or its session is
	// gone or the client is closed, which waits for it.
	if !g.c.Calls.Run(g.watchOver) {
		g.show(nil)
	}
}

// stop ends the watch, because the node is to be deleted, or prevents it from beginning.
func (g *selfWatch) stop() {
	g.mu.Lock()
	if g.begin != nil {
		g.begin.Stop()
	}
	g.left = true
	g.wake()
	w := g.watch
	g.mu.Unlock()
	if w != nil && w.NeverMind() {
		g.show(nil)
	}
}

// show tells of the watch that stands now; nil for none from now on.
func (g *selfWatch) show(w *session.NodeWatch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w == nil {
		g.ended = true
	} else {
		g.watch = w
	}
	g.wake()
}

// wake has those look again that wait for a change. It must be called with mu held.
func (g *selfWatch) wake() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// newest returns the newest watch, nil before the first.
func (g *selfWatch) newest() *session.NodeWatch {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.watch
}

// state returns the newest watch and whether there will be no other, and a channel that is
// closed when that changes.
func (g *selfWatch) state() (w *session.NodeWatch, ended bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.watch, g.ended, g.changed
}

// isLeft reports whether nobody needs the watch any more.
func (g *selfWatch) isLeft() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.left
}

// stands reports whether nothing has happened to the node, as await makes sure.
func (g *selfWatch) stands() bool {
	w := g.newest()
	if w == nil || g.node.IsGone() {
		return false
	}
	quiet, _ := w.IsQuiet()
	return quiet
}

// await waits until it is certain that the node was there when whatever the caller has
// seen happened: others leave, and our own node may have been deleted before them. The
// watch that stands tells it without a request.
func (g *selfWatch) await(ctx context.Context) error {
	n := g.node
	for {
		w, ended, changed := g.state()
		var renewed <-chan struct{}
		if w != nil {
			var quiet bool
			if quiet, renewed = w.IsQuiet(); quiet && !n.IsGone() {
				return nil
			}
		}
		if ended && !n.IsGone() && !n.Sess.IsOver() {
			return outcome.ErrClosed
		}
		select {
		case <-renewed:
		case <-changed:
		case <-n.Gone.Done():
			return outcome.ErrGone
		case <-n.Sess.Over():
			return outcome.ErrSessionOver
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// watchOver watches the node, until the watch stands or nobody needs it.
func (g *selfWatch) watchOver() {
	var p session.Pace
	for {
		w, err := g.c.Watch(g.c.Life, g.node.Sess, g.node.Path())
		switch {
		case err == nil:
			g.c.readable.Store(true)
			g.show(w)
			g.inspect(session.Node{Data: w.Data, Stat: w.Stat})
			if g.stand(w) {
				return
			}
		case errors.Is(err, zk.ErrNoNode):
			g.node.MarkGone(nil)
			g.show(nil)
			return
		case outcome.IsRefusal(err):
			g.node.MarkGone(session.ErrUnreadable)
			g.show(nil)
			return
		case !outcome.IsTransient(err): // over or closed
			g.show(nil)
			return
		default: // who is granted meanwhile waits until the node was seen
			if !g.pause(p.Longer()) {
				g.show(nil)
				return
			}
		}
	}
}

// stand reports whether the watch on our own node stands, or nobody needs it. Then it goes
// on when the watch fires.
func (g *selfWatch) stand(w *session.NodeWatch) bool {
	if !w.WhenFired(func() { g.fired(w) }) {
		return !g.goesOn(w)
	}
	if g.isLeft() && w.NeverMind() { // stop may have come before whenFired
		g.show(nil)
	}
	return true
}

// fired goes on when the watch on our own node has fired.
func (g *selfWatch) fired(w *session.NodeWatch) {
	if g.goesOn(w) {
		g.run()
	}
}

// goesOn takes what a watch on our own node has seen, and reports whether there is to be another.
func (g *selfWatch) goesOn(w *session.NodeWatch) bool {
	if w.Saw == session.NodeGone && !g.node.Sess.IsOver() {
		g.node.MarkGone(nil)
	} else if !g.isLeft() && g.c.Life.Err() == nil && !g.node.Sess.IsOver() {
		return true
	}
	g.show(nil)
	return false
}

// pause waits, unless the contender is done with sooner: then it is false.
func (g *selfWatch) pause(d time.Duration) bool {
	_, _, changed := g.state()
	if g.isLeft() {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-changed:
	case <-g.node.Sess.Over():
	case <-g.c.Life.Done():
	}
	return false
}

// inspect looks for a request and for a forged downgrade in our own node's data, and
// restores the data beside the request.
func (g *selfWatch) inspect(seen session.Node) {
	own := g.node.OwnData()
	if bytes.Equal(seen.Data, own) {
		return // nobody has written
	}
	if node.IsDowngraded(seen.Data) && !node.IsDowngraded(own) {
		g.node.MarkGone(session.ErrForged)
	}
	if g.node.Hear(seen) {
		g.putBack(seen)
	}
}

// putBack restores our data, with the request, if Curator's message has replaced it. It does
// not restore data that must never change.
func (g *selfWatch) putBack(seen session.Node) {
	if g.node.Fixed || !bytes.Equal(seen.Data, node.CuratorRevocation) {
		return
	}
	var p session.Pace
	for {
		_, err := g.c.Set(g.c.Life, g.node.Sess, g.node.Path(), node.WithRevocation(g.node.OwnData()), seen.Stat.Version)
		if !outcome.IsTransient(err) || !g.pause(p.Longer()) {
			return // written; or somebody wrote since, which is looked at as well
		}
	}
}
