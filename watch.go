package zklock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
)

// change is what a watch saw.
type change int

const (
	nodeGone    change = iota + 1
	nodeChanged        // its data, or something that has to be looked at again
)

// watchTable holds the live watches of a session, one for each node: the client
// library cannot remove a watch, so those who come and go while one holder stays
// must share theirs or leave one behind each.
type watchTable struct {
	mu   sync.Mutex
	live map[string]*nodeWatch // guarded by mu
}

// nodeWatch is a watch on a node that existed when it was set: on its data or, other
// than that on its own key, on its children. Fields without a guard are set before ready
// or fired is closed and never again.
type nodeWatch struct {
	set   func() (seen, error)
	ready chan struct{} // closed when the server has answered
	seen
	err error

	fired   chan struct{} // closed when it has fired or will never
	saw     change
	awaited atomic.Int32 // who waits for it now

	mu      sync.Mutex
	events  <-chan zk.Event // guarded by mu: since it was last set
	moved   <-chan struct{} // guarded by mu: closed when the connection is another than then
	renewed chan struct{}   // guarded by mu: closed and replaced when it is set anew
}

// seen is what a server answered when it set a watch.
type seen struct {
	stat   *zk.Stat
	data   []byte   // of a data watch
	names  []string // of a watch on children
	events <-chan zk.Event
}

// watch returns the watch on a node, which it sets if there is none. The error is zk.ErrNoNode for a missing node.
func (c *Client) watch(ctx context.Context, s *session, path string) (*nodeWatch, error) {
	w, _, err := c.share(ctx, s, path, func() (seen, error) { return c.getW(path) })
	return w, err
}

// watchNow is watch for who acts on what the node is: a watch that others have set shows what it was then.
func (c *Client) watchNow(ctx context.Context, s *session, path string) (*nodeWatch, error) {
	w, known, err := c.share(ctx, s, path, func() (seen, error) { return c.getW(path) })
	if err == nil && known {
		_, err = c.stat(ctx, s, path)
	}
	return w, err
}

// watchChildren is watch for a directory's children.
func (c *Client) watchChildren(ctx context.Context, s *session, dir string) (*nodeWatch, error) {
	w, _, err := c.share(ctx, s, dir+"/", func() (seen, error) { return c.childrenW(dir) })
	return w, err
}

// share returns the watch under a key, which is set if there is none; known says that there was one.
func (c *Client) share(ctx context.Context, s *session, path string, set func() (seen, error)) (_ *nodeWatch, known bool, _ error) {
	s.watches.mu.Lock()
	w, known := s.watches.live[path]
	if !known {
		w = &nodeWatch{set: set, ready: make(chan struct{}), fired: make(chan struct{}), renewed: make(chan struct{})}
		s.watches.live[path] = w
		// Owned by the client; ends when the watch fires or the session is over;
		// Close waits for it.
		if !c.calls.run(func() { c.keepWatch(s, path, w) }) {
			delete(s.watches.live, path)
			s.watches.mu.Unlock()
			return nil, known, ErrClosed
		}
	}
	s.watches.mu.Unlock()
	select {
	case <-w.ready:
		return w, known, w.err
	case <-s.over:
		return nil, known, errSessionOver
	case <-ctx.Done():
		return nil, known, context.Cause(ctx)
	}
}

// keepWatch asks for the watch and stays until it fires. A data watch, because on a
// node that is gone the server sets none; an exists watch would stay for good.
func (c *Client) keepWatch(s *session, path string, w *nodeWatch) {
	moved := s.reattached()
	w.seen, w.err = w.set()
	if w.err != nil {
		s.watches.drop(path, w)
		close(w.ready)
		return
	}
	w.renew(w.seen.events, moved)
	close(w.ready)
	w.saw = c.untilFired(s, w)
	s.watches.drop(path, w)
	close(w.fired)
}

// untilFired waits for the event. A watch is a hint: the client library re-sends it
// after a reconnect and does not look whether that succeeded, so it is set anew then.
func (c *Client) untilFired(s *session, w *nodeWatch) change {
	for {
		events, moved, _ := w.latest()
		select {
		case ev := <-events: // nothing, if isQuiet was faster
			if ev.Type == zk.EventNodeDeleted {
				return nodeGone
			}
			return nodeChanged
		case <-moved:
			if w.awaited.Load() == 0 {
				return nodeChanged // nobody waits: who comes now sets another
			}
			moved = s.reattached()
			now, err := w.set()
			switch {
			case errors.Is(err, zk.ErrNoNode):
				return nodeGone
			case err != nil || now.stat.Mzxid != w.stat.Mzxid || !slices.Equal(now.names, w.names):
				return nodeChanged
			}
			w.renew(now.events, moved)
		case <-s.over:
			return nodeChanged
		case <-c.afterlife.Done():
			return nodeChanged
		}
	}
}

// renew notes what the watch is fed by from now on.
func (w *nodeWatch) renew(events <-chan zk.Event, moved <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events, w.moved = events, moved
	close(w.renewed)
	w.renewed = make(chan struct{})
}

func (w *nodeWatch) latest() (events <-chan zk.Event, moved, renewed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events, w.moved, w.renewed
}

// isQuiet reports whether the watch would have fired if anything had happened to its
// node before any event or answer that the caller has seen: the client library hands out
// what comes on one connection in its order, so that an earlier event is in the channel
// by then, whatever goroutine has come to it. It is not quiet after a reconnect before
// it is set anew, which closes renewed.
func (w *nodeWatch) isQuiet() (quiet bool, renewed <-chan struct{}) {
	events, moved, renewed := w.latest()
	select {
	case <-events:
		return false, renewed // untilFired finds the channel closed
	default:
		return !isClosed(moved), renewed
	}
}

func (t *watchTable) drop(path string, w *nodeWatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[path] == w {
		delete(t.live, path)
	}
}

// wait notes that somebody waits for the watch, until the returned function is called.
func (w *nodeWatch) wait() (done func()) {
	w.awaited.Add(1)
	return func() { w.awaited.Add(-1) }
}

// await waits until the watched node changes, until gone is closed (then errGone) or until ctx ends.
func (w *nodeWatch) await(ctx context.Context, s *session, gone <-chan struct{}) (change, error) {
	defer w.wait()()
	select {
	case <-w.fired:
		if s.isOver() {
			return 0, errSessionOver
		}
		return w.saw, nil
	case <-gone:
		return 0, errGone
	case <-s.over:
		return 0, errSessionOver
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
