package zklock

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// aloneGrace is how long a contender that found the queue empty may hold before it
// watches its own node: a lock that is taken and released at once costs no watch. A contender
// that has others around it, or saw its own node longer ago, watches it before it holds.
const aloneGrace = 10 * time.Millisecond

// sentinel watches a contender's own node: deletion by anybody means lost, and data
// may carry a request to let go. It has a goroutine while it looks at the node, and none while
// the watch stands.
type sentinel struct {
	c    *engine
	node *ownNode

	mu      sync.Mutex    // guards what follows
	begin   *time.Timer   // nil once it has begun
	watch   *nodeWatch    // the newest; nil before the first
	left    bool          // nobody needs it any more
	ended   bool          // there will be no other watch
	changed chan struct{} // closed when any of these changes; nil while nobody waits for that
}

// newSentinel returns a sentinel that begins to watch after a while, unless it is stopped.
func newSentinel(c *engine, n *ownNode, after time.Duration) *sentinel {
	g := &sentinel{c: c, node: n}
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
func (g *sentinel) start() {
	g.mu.Lock()
	g.begin = nil
	g.mu.Unlock()
	g.run()
}

func (g *sentinel) run() {
	// Owned by the client; ends when the watch stands, when the node departs, it or its session is
	// gone or the client is closed, which waits for it.
	if !g.c.calls.run(g.watchOver) {
		g.show(nil)
	}
}

// stop ends the sentinel, whose node departs, or has it never begin.
func (g *sentinel) stop() {
	g.mu.Lock()
	if g.begin != nil {
		g.begin.Stop()
	}
	g.left = true
	g.wake()
	w := g.watch
	g.mu.Unlock()
	if w != nil && w.neverMind() {
		g.show(nil)
	}
}

// show tells of the watch that stands now; nil for none from now on.
func (g *sentinel) show(w *nodeWatch) {
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
func (g *sentinel) wake() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// newest returns the newest watch, nil before the first.
func (g *sentinel) newest() *nodeWatch {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.watch
}

// state returns the newest watch and whether there will be no other, and a channel that is
// closed when that changes.
func (g *sentinel) state() (w *nodeWatch, ended bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.watch, g.ended, g.changed
}

// isLeft reports whether nobody needs the sentinel any more.
func (g *sentinel) isLeft() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.left
}

// stands reports whether nothing has happened to the node, as await makes sure.
func (g *sentinel) stands() bool {
	w := g.newest()
	if w == nil || g.node.isGone() {
		return false
	}
	quiet, _ := w.isQuiet()
	return quiet
}

// await waits until it is certain that the node was there when whatever the caller has
// seen happened: others leave, and our own node may have been deleted before them. The
// watch that stands tells it without a request. It returns the node's czxid.
func (g *sentinel) await(ctx context.Context) (czxid int64, err error) {
	n := g.node
	for {
		w, ended, changed := g.state()
		var renewed <-chan struct{}
		if w != nil {
			var quiet bool
			if quiet, renewed = w.isQuiet(); quiet && !n.isGone() {
				return w.stat.Czxid, nil
			}
		}
		if ended && !n.isGone() && !n.sess.IsOver() {
			return 0, ErrClosed
		}
		select {
		case <-renewed:
		case <-changed:
		case <-n.gone.done():
			return 0, errGone
		case <-n.sess.Over():
			return 0, errSessionOver
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// watchOver watches the node, until the watch stands or the sentinel ends.
func (g *sentinel) watchOver() {
	var p pace
	for {
		w, err := g.c.watch(g.c.life, g.node.sess, g.node.path())
		switch {
		case err == nil:
			g.c.readable.Store(true)
			g.show(w)
			g.inspect(node{w.data, w.stat})
			if g.stand(w) {
				return
			}
		case errors.Is(err, zk.ErrNoNode):
			g.node.forsake(nil)
			g.show(nil)
			return
		case isRefusal(err):
			g.node.forsake(errUnreadable)
			g.show(nil)
			return
		case !isTransient(err): // over or closed
			g.show(nil)
			return
		default: // who is granted meanwhile waits until the node was seen
			if !g.linger(p.longer()) {
				g.show(nil)
				return
			}
		}
	}
}

// stand reports whether the watch on our own node stands, or the sentinel has ended. Then it goes
// on when the watch fires.
func (g *sentinel) stand(w *nodeWatch) bool {
	if !w.whenFired(func() { g.fired(w) }) {
		return !g.goesOn(w)
	}
	if g.isLeft() && w.neverMind() { // stop may have come before whenFired
		g.show(nil)
	}
	return true
}

// fired goes on when the watch on our own node has fired.
func (g *sentinel) fired(w *nodeWatch) {
	if g.goesOn(w) {
		g.run()
	}
}

// goesOn takes what a watch on our own node has seen, and reports whether there is to be another.
func (g *sentinel) goesOn(w *nodeWatch) bool {
	if w.saw == nodeGone && !g.node.sess.IsOver() {
		g.node.forsake(nil)
	} else if !g.isLeft() && g.c.life.Err() == nil && !g.node.sess.IsOver() {
		return true
	}
	g.show(nil)
	return false
}

// linger waits, unless the contender is done with sooner: then it is false.
func (g *sentinel) linger(d time.Duration) bool {
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
	case <-g.node.sess.Over():
	case <-g.c.life.Done():
	}
	return false
}

// inspect looks for a request and for a forged downgrade in our own node's data, and
// restores the data beside the request.
func (g *sentinel) inspect(seen node) {
	own := g.node.ownData()
	if bytes.Equal(seen.data, own) {
		return // nobody has written
	}
	if isDowngraded(seen.data) && !isDowngraded(own) {
		g.node.forsake(errForged)
	}
	if g.node.hear(seen) {
		g.putBack(seen)
	}
}

// putBack restores our data, with the request, if Curator's message has replaced it. It does
// not restore data that must never change.
func (g *sentinel) putBack(seen node) {
	if g.node.fixed || !bytes.Equal(seen.data, curatorRevocation) {
		return
	}
	var p pace
	for {
		_, err := g.c.set(g.c.life, g.node.sess, g.node.path(), withRevocation(g.node.ownData()), seen.stat.Version)
		if !isTransient(err) || !g.linger(p.longer()) {
			return // written; or somebody wrote since, which is looked at as well
		}
	}
}
