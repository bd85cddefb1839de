package zklock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// aloneGrace is how long a contender that found the queue empty may hold before it
// watches its own node: a lock taken and released at once costs no watch. Whoever has
// others around it, or saw its own node longer ago than that, watches before it holds.
const aloneGrace = 10 * time.Millisecond

// sentinel watches a contender's own node: deletion by anybody means lost, and data
// may carry a request to let go.
type sentinel struct {
	mu      sync.Mutex    // guards what follows
	watch   *nodeWatch    // the newest; nil before the first
	ended   bool          // there will be no other
	changed chan struct{} // closed and replaced when any of these changes
}

// guard starts the sentinel, after a while, unless there is one.
func (t *contender) guard(after time.Duration) {
	if t.sentinel != nil {
		return
	}
	g := &sentinel{changed: make(chan struct{})}
	t.sentinel = g
	// Owned by the contender; ends when it departs, its node or its session is gone or
	// the client is closed, which waits for it.
	if !t.c.calls.run(func() { t.watchOwn(g, after) }) {
		g.show(nil)
	}
	yield()
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
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *sentinel) state() (w *nodeWatch, ended bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.watch, g.ended, g.changed
}

// await waits until it is certain that the node was there when whatever the caller has
// seen happened: others leave, and our own node may have been deleted before them. The
// watch that stands tells it without a request.
func (g *sentinel) await(ctx context.Context, t *contender) error {
	for {
		w, ended, changed := g.state()
		var renewed <-chan struct{}
		if w != nil {
			var quiet bool
			if quiet, renewed = w.isQuiet(); quiet && !t.isGone() {
				if t.token == 0 {
					t.token = w.stat.Czxid
				}
				return nil
			}
		}
		if ended && !t.isGone() && !t.sess.IsOver() {
			return ErrClosed
		}
		select {
		case <-renewed:
		case <-changed:
		case <-t.gone:
			return errGone
		case <-t.sess.Over():
			return errSessionOver
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (t *contender) watchOwn(g *sentinel, after time.Duration) {
	defer g.show(nil)
	if !t.linger(after) {
		return
	}
	var p pace
	for {
		w, err := t.c.watch(t.c.life, t.sess, t.path())
		switch {
		case err == nil:
			t.c.readable.Store(true)
			g.show(w)
			t.inspect(node{w.data, w.stat})
			if !t.stand(w) {
				return
			}
		case errors.Is(err, zk.ErrNoNode):
			t.forsake(nil)
			return
		case isRefusal(err):
			t.forsake(errUnreadable)
			return
		case !isTransient(err):
			return // over or closed
		default: // who is granted meanwhile waits until the node was seen
			if !t.linger(p.longer()) {
				return
			}
		}
	}
}

// stand waits for the watch on our own node; false ends the sentinel.
func (t *contender) stand(w *nodeWatch) bool {
	defer w.wait()()
	select {
	case <-w.fired:
	case <-t.departed:
		return false
	case <-t.c.life.Done():
		return false
	}
	if t.sess.IsOver() {
		return false
	}
	if w.saw == nodeGone {
		t.forsake(nil)
		return false
	}
	return true
}

// linger waits, unless the contender is done with sooner: then it is false.
func (t *contender) linger(d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.departed:
	case <-t.sess.Over():
	case <-t.c.life.Done():
	}
	return false
}

// checkSize is about how many bytes the check of our node adds to a request.
func (t *contender) checkSize() int { return len(t.dir) + 1 + len(t.name) + 32 }

// exists is the operation that fails unless our node is there; it stays true whatever is written to it.
func (t *contender) exists() *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: t.path(), Version: -1}
}
