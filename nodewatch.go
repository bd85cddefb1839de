package zklock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	deafen   func() // ends the news of events

	mu      sync.Mutex
	live    map[watchKey]*nodeWatch // guarded by mu
	keepers map[*session]struct{}   // guarded by mu: the sessions that have one, see keepAll
}

func newWatches(r *requests) *watches {
	t := &watches{requests: r, live: map[watchKey]*nodeWatch{}, keepers: map[*session]struct{}{}}
	t.deafen = r.link.Listen(t.stir)
	return t
}

type watchKey struct {
	sess *session
	path string
}

// nodeWatch is a watch on a node that existed when the watch was set: on its data, or on its
// children, which has a key of its own in the table. Fields without a guard are set before
// ready or fired, and never again.
//
// Nobody waits for its event while it rests: it is woken when an event of its node passes on the
// wire, and at every end and change of the connection's session.
type nodeWatch struct {
	key   watchKey
	set   func() (seen, error)
	ready latch // the server has answered
	seen
	err error

	missed latch // an event of it was lost: see compare
	found  change

	fired   latch // the watch has fired or never will
	saw     change
	awaited atomic.Int32 // the number of waiters
	rests   bool         // guarded by the mutex of watches, as is the next
	stirred bool         // something has happened to the node since the watch was last asked for, or may have

	rounds int // guarded by the mutex of watches: see due

	mu      sync.Mutex
	then    func()          // guarded by mu: what whenFired has asked for; nil for nothing
	events  <-chan zk.Event // guarded by mu: of the watch as it was last set
	moved   <-chan struct{} // guarded by mu: closed when the connection has changed since then
	renewed chan struct{}   // guarded by mu: closed when the watch is set anew; nil while nobody waits for that
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
	w = &nodeWatch{key: key, set: set}
	// Owned by the client; ends when the watch rests or has fired; Close waits for it.
	if !t.hasKeeper(s) || !t.requests.calls.run(func() { t.begin(w) }) {
		return nil, known, ErrClosed
	}
	t.live[key] = w
	return w, known, nil
}

// hasKeeper makes sure that a goroutine looks after the watches of a session that rest. It
// reports false if the client is closed. It must be called with mu held.
func (t *watches) hasKeeper(s *session) bool {
	if _, ok := t.keepers[s]; ok {
		return true
	}
	again := s.Reattached()
	// Owned by the client; ends with the session, at the latest by Close, which waits for it.
	if !t.requests.calls.run(func() { t.keepAll(s, again) }) {
		return false
	}
	t.keepers[s] = struct{}{}
	return true
}

// keepAll wakes the watches of a session after each reconnect, and now and then has them compared
// with their nodes, until the session is over.
func (t *watches) keepAll(s *session, again <-chan struct{}) {
	ticker := time.NewTicker(max(s.Lease.Term()/2, time.Millisecond))
	defer ticker.Stop()
	compared, comparing := make(chan struct{}, 1), false
	for {
		select {
		case <-ticker.C:
			if !comparing {
				comparing = t.compareDue(s, compared)
			}
			continue
		case <-compared:
			comparing = false
			continue
		case <-again:
			again = s.Reattached()
			for _, w := range t.wakeAll(s) {
				t.resume(w)
			}
			continue
		case <-s.Over():
		case <-t.requests.afterlife.Done():
		}
		t.mu.Lock()
		delete(t.keepers, s)
		t.mu.Unlock()
		for _, w := range t.wakeAll(s) {
			t.fire(w, nodeChanged)
		}
		return
	}
}

// wakeAll has the watches of a session rest no more that rest, and returns them.
func (t *watches) wakeAll(s *session) (woken []*nodeWatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, w := range t.live {
		if key.sess == s && w.rests {
			w.rests = false
			woken = append(woken, w)
		}
	}
	return woken
}

// A server tells nobody of a change who may not read the node at that moment, and the watch is used
// up all the same. The client does not learn of that. So as long as somebody waits for a watch, the
// client compares its node with what the watch has shown, once per session timeout.

// comparedAtOnce bounds how many nodes are compared at a time: heartbeats go on beside them.
const comparedAtOnce = 8

// compareDue begins to compare the watches that are due, and sends to done when that is over. It
// reports false if there is nothing to compare.
func (t *watches) compareDue(s *session, done chan<- struct{}) bool {
	due := t.due(s)
	// Owned by the client; ends with the requests, at the latest when Close ends the connection and
	// then waits for it.
	return len(due) > 0 && t.requests.calls.run(func() {
		sideBySide(t.requests.calls, len(due), comparedAtOnce, func(i int) error {
			t.compare(due[i])
			return nil
		})
		done <- struct{}{}
	})
}

// due returns every watch of a session that is needed, in its second round and in every other from
// then on.
func (t *watches) due(s *session) (due []*nodeWatch) {
	t.mu.Lock()
	for key, w := range t.live {
		if key.sess == s {
			if w.rounds++; w.rounds%2 == 0 {
				due = append(due, w)
			}
		}
	}
	t.mu.Unlock()
	return slices.DeleteFunc(due, func(w *nodeWatch) bool { return !w.isNeeded() })
}

// isNeeded reports whether anybody has to learn of a change by this watch alone: heartbeats look
// after our own nodes.
func (w *nodeWatch) isNeeded() bool {
	if !w.ready.isSet() || w.missed.isSet() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isOfChildren() || w.awaited.Load() > 1 || w.awaited.Load() == 1 && w.then == nil
}

func (w *nodeWatch) isOfChildren() bool { return strings.HasSuffix(w.key.path, "/") }

// compare compares a watch's node with what the watch has shown. If they differ, the watch fires.
func (t *watches) compare(w *nodeWatch) {
	now, err := t.requests.stat(t.requests.afterlife, w.key.sess, strings.TrimSuffix(w.key.path, "/"))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		w.found = nodeGone
	case err != nil || w.isAs(now):
		return
	default:
		w.found = nodeChanged
	}
	w.missed.set()
	t.wake(w)
}

// isAs reports whether a node in that state is as the watch has shown it. A number of children
// tells of those that a counter at its end did not count.
func (w *nodeWatch) isAs(now *zk.Stat) bool {
	if w.isOfChildren() {
		return now.Czxid == w.stat.Czxid && now.Pzxid == w.stat.Pzxid && now.NumChildren == w.stat.NumChildren
	}
	return now.Czxid == w.stat.Czxid && now.Mzxid == w.stat.Mzxid
}

// stir wakes the watches on a node, and on its children, of which an event has come.
func (t *watches) stir(s *session, path string) {
	for _, key := range []watchKey{{s, path}, {s, path + "/"}} {
		t.mu.Lock()
		w := t.live[key]
		t.mu.Unlock()
		if w != nil {
			t.wake(w)
		}
	}
}

// wake has a watch look what has happened to its node.
func (t *watches) wake(w *nodeWatch) {
	t.mu.Lock()
	woken := w.rests
	w.rests, w.stirred = false, true
	t.mu.Unlock()
	if woken {
		t.resume(w)
	}
}

// resume has a goroutine look after a watch that rests no more.
func (t *watches) resume(w *nodeWatch) {
	// Owned by the client; ends when the watch rests again or has fired; Close waits for it.
	if !t.requests.calls.run(func() { t.attend(w) }) {
		t.fire(w, nodeChanged)
	}
}

// rest reports whether nothing has happened to a watch. Then the caller may leave it alone.
func (t *watches) rest(w *nodeWatch) bool {
	_, moved := w.latest()
	s := w.key.sess
	t.mu.Lock()
	defer t.mu.Unlock()
	_, kept := t.keepers[s]
	w.rests = kept && !w.stirred && !isClosed(moved) && !s.IsOver()
	return w.rests
}

// answered waits until the server has answered the request that sets the watch.
func (w *nodeWatch) answered(ctx context.Context, s *session) error {
	select {
	case <-w.ready.done():
		return w.err
	case <-s.Over():
		return errSessionOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin sets the watch. It is a data watch and not an exists watch, because the server sets no
// data watch on a node that is gone, but an exists watch there would stay for ever.
func (t *watches) begin(w *nodeWatch) {
	moved := w.key.sess.Reattached()
	w.seen, w.err = w.set()
	if w.err != nil {
		t.drop(w)
		w.ready.set()
		return
	}
	w.renew(w.seen.events, moved)
	w.ready.set()
	t.attend(w)
}

// attend looks after a watch until it rests or has fired.
func (t *watches) attend(w *nodeWatch) {
	for !t.rest(w) {
		if saw := t.look(w); saw != 0 {
			t.fire(w, saw)
			return
		}
	}
}

// fire ends a watch.
func (t *watches) fire(w *nodeWatch, saw change) {
	w.saw = saw
	t.drop(w)
	w.mu.Lock()
	then := w.then
	w.then = nil
	w.fired.set()
	w.mu.Unlock()
	if then != nil {
		then()
	}
}

// look waits for the watch's event, and returns what has happened. After a reconnect it sets the
// watch anew, because the client library does not check whether its own attempt to do so has
// succeeded; it returns zero if the watch stands again.
func (t *watches) look(w *nodeWatch) change {
	s := w.key.sess
	events, moved := w.latest()
	select {
	case ev := <-events: // the zero event if isQuiet has taken it out of the channel
		if ev.Type == zk.EventNodeDeleted {
			return nodeGone
		}
		return nodeChanged
	case <-w.missed.done():
		return w.found
	case <-moved:
		if w.awaited.Load() == 0 {
			return nodeChanged // nobody waits, and a later caller sets another
		}
		t.forget(w)
		moved = s.Reattached()
		now, err := w.set()
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return nodeGone
		case err != nil || now.stat.Mzxid != w.stat.Mzxid || !slices.Equal(now.names, w.names):
			return nodeChanged
		}
		w.renew(now.events, moved)
		return 0
	case <-s.Over():
		return nodeChanged
	case <-t.requests.afterlife.Done():
		return nodeChanged
	}
}

// forget forgets what has happened to a watch that is about to be set anew.
func (t *watches) forget(w *nodeWatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.stirred = false
}

// renew replaces the channels of a watch that was set anew.
func (w *nodeWatch) renew(events <-chan zk.Event, moved <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events, w.moved = events, moved
	if w.renewed != nil {
		close(w.renewed)
		w.renewed = nil
	}
}

func (w *nodeWatch) latest() (events <-chan zk.Event, moved <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events, w.moved
}

// isQuiet reports whether the watch has not fired, so that nothing had happened to the node
// before the last event or answer that the caller has seen. The client library delivers the
// events of one connection in their order: an earlier event is in the watch's channel by
// then, even if the goroutine that waits for it has not received it yet.
//
// After a reconnect isQuiet reports false until the watch is set anew, which closes renewed.
func (w *nodeWatch) isQuiet() (quiet bool, renewed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.events: // look finds the channel closed
	default:
		if !isClosed(w.moved) && !w.missed.isSet() {
			return true, nil
		}
	}
	if w.renewed == nil {
		w.renewed = make(chan struct{})
	}
	return false, w.renewed
}

func (t *watches) drop(w *nodeWatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[w.key] == w {
		delete(t.live, w.key)
	}
}

// whenFired has fn called, which must not wait, when the watch fires, and counts as a waiter until
// then. It reports false if the watch has fired. There is one such waiter at a time.
func (w *nodeWatch) whenFired(fn func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fired.isSet() {
		return false
	}
	w.then = fn
	w.awaited.Add(1)
	return true
}

// neverMind takes back what whenFired was asked for, and reports true unless it has happened.
func (w *nodeWatch) neverMind() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.then == nil {
		return false
	}
	w.then = nil
	w.awaited.Add(-1)
	return true
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
	case <-w.fired.done():
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
