package zklock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
)

// change is what a watch has seen.
type change int

const (
	nodeGone    change = iota + 1
	nodeChanged        // the data or the children have changed, or may have: look again
)

// watches holds the live watches of a client, one for each session and node. The client library
// cannot remove a watch: waiters that come and go while one holder stays would each leave
// one behind if they did not share it.
type watches struct {
	requests *requests

	mu   sync.Mutex
	live map[watchKey]*nodeWatch // guarded by mu
}

func newWatches(r *requests) *watches {
	return &watches{requests: r, live: map[watchKey]*nodeWatch{}}
}

type watchKey struct {
	sess *session
	path string
}

// nodeWatch is a watch on a node that existed when the watch was set: on its data, or on its
// children, which has a key of its own in the table. Fields without a guard are set before
// ready or fired is closed, and never again.
type nodeWatch struct {
	set   func() (seen, error)
	ready chan struct{} // closed when the server has answered
	seen
	err error

	fired   chan struct{} // closed when the watch has fired or never will
	saw     change
	awaited atomic.Int32 // the number of waiters

	mu      sync.Mutex
	events  <-chan zk.Event // guarded by mu: of the watch as it was last set
	moved   <-chan struct{} // guarded by mu: closed when the connection has changed since then
	renewed chan struct{}   // guarded by mu: closed and replaced when the watch is set anew
}

// watch returns the watch on a node. If there is none, it sets one. For a node that does not
// exist it returns zk.ErrNoNode.
func (t *watches) watch(ctx context.Context, s *session, path string) (*nodeWatch, error) {
	w, _, err := t.share(ctx, s, path, func() (seen, error) { return t.requests.getW(path) })
	return w, err
}

// beginWatch is watch without waiting for the answer.
func (t *watches) beginWatch(s *session, path string) (*nodeWatch, error) {
	w, _, err := t.take(s, path, func() (seen, error) { return t.requests.getW(path) })
	return w, err
}

// watchNow is watch for callers that rely on the node's existence: a watch that another
// caller has set shows only that the node existed then, so watchNow reads it again.
func (t *watches) watchNow(ctx context.Context, s *session, path string) (*nodeWatch, error) {
	w, known, err := t.share(ctx, s, path, func() (seen, error) { return t.requests.getW(path) })
	if err == nil && known {
		_, err = t.requests.stat(ctx, s, path)
	}
	return w, err
}

// watchChildren returns the watch on a directory's children, as watch does.
func (t *watches) watchChildren(ctx context.Context, s *session, dir string) (*nodeWatch, error) {
	w, _, err := t.share(ctx, s, dir+"/", func() (seen, error) { return t.requests.childrenW(dir) })
	return w, err
}

// share returns the watch under a key. known reports whether there was one already; if not,
// share sets it.
func (t *watches) share(ctx context.Context, s *session, path string, set func() (seen, error)) (_ *nodeWatch, known bool, _ error) {
	w, known, err := t.take(s, path, set)
	if err == nil {
		err = w.answered(ctx, s)
	}
	return w, known, err
}

// take is share without waiting for the answer.
func (t *watches) take(s *session, path string, set func() (seen, error)) (w *nodeWatch, known bool, err error) {
	key := watchKey{s, path}
	t.mu.Lock()
	defer t.mu.Unlock()
	w, known = t.live[key]
	if known {
		return w, known, nil
	}
	w = &nodeWatch{set: set, ready: make(chan struct{}), fired: make(chan struct{}), renewed: make(chan struct{})}
	// Owned by the client; ends when the watch fires or the session is over;
	// Close waits for it.
	if !t.requests.calls.run(func() { t.keepWatch(key, w) }) {
		return nil, known, ErrClosed
	}
	t.live[key] = w
	return w, known, nil
}

// answered waits until the server has answered the request that sets the watch.
func (w *nodeWatch) answered(ctx context.Context, s *session) error {
	select {
	case <-w.ready:
		return w.err
	case <-s.Over():
		return errSessionOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// keepWatch sets the watch and waits until it fires. It is a data watch and not an exists
// watch, because the server sets no data watch on a node that is gone, but an exists watch
// there would stay for ever.
func (t *watches) keepWatch(key watchKey, w *nodeWatch) {
	moved := key.sess.Reattached()
	w.seen, w.err = w.set()
	if w.err != nil {
		t.drop(key, w)
		close(w.ready)
		return
	}
	w.renew(w.seen.events, moved)
	close(w.ready)
	w.saw = t.untilFired(key.sess, w)
	t.drop(key, w)
	close(w.fired)
}

// untilFired waits for the watch's event. After a reconnect it sets the watch anew, because
// the client library does not check whether its own attempt to do so has succeeded.
func (t *watches) untilFired(s *session, w *nodeWatch) change {
	for {
		events, moved, _ := w.latest()
		select {
		case ev := <-events: // the zero event if isQuiet has taken it out of the channel
			if ev.Type == zk.EventNodeDeleted {
				return nodeGone
			}
			return nodeChanged
		case <-moved:
			if w.awaited.Load() == 0 {
				return nodeChanged // nobody waits, and a later caller sets another
			}
			moved = s.Reattached()
			now, err := w.set()
			switch {
			case errors.Is(err, zk.ErrNoNode):
				return nodeGone
			case err != nil || now.stat.Mzxid != w.stat.Mzxid || !slices.Equal(now.names, w.names):
				return nodeChanged
			}
			w.renew(now.events, moved)
		case <-s.Over():
			return nodeChanged
		case <-t.requests.afterlife.Done():
			return nodeChanged
		}
	}
}

// renew replaces the channels of a watch that was set anew.
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

// isQuiet reports whether the watch has not fired, so that nothing had happened to the node
// before the last event or answer that the caller has seen. The client library delivers the
// events of one connection in their order: an earlier event is in the watch's channel by
// then, even if the goroutine that waits for it has not received it yet.
//
// After a reconnect isQuiet reports false until the watch is set anew, which closes renewed.
func (w *nodeWatch) isQuiet() (quiet bool, renewed <-chan struct{}) {
	events, moved, renewed := w.latest()
	select {
	case <-events:
		return false, renewed // untilFired finds the channel closed
	default:
		return !isClosed(moved), renewed
	}
}

func (t *watches) drop(key watchKey, w *nodeWatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[key] == w {
		delete(t.live, key)
	}
}

// wait counts a waiter until the returned function is called.
func (w *nodeWatch) wait() (done func()) {
	w.awaited.Add(1)
	return func() { w.awaited.Add(-1) }
}

// await waits until the watched node changes. If gone is closed first it returns errGone, if
// the session ends errSessionOver, and if ctx ends its cause.
func (w *nodeWatch) await(ctx context.Context, s *session, gone <-chan struct{}) (change, error) {
	defer w.wait()()
	select {
	case <-w.fired:
		if s.IsOver() {
			return 0, errSessionOver
		}
		return w.saw, nil
	case <-gone:
		return 0, errGone
	case <-s.Over():
		return 0, errSessionOver
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
