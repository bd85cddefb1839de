package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/outcome"
)

// Change is what a watch has seen.
type Change int

const (
	NodeGone    Change = iota + 1
	NodeChanged        // the data or the children have changed, or may have: look again
)

// Watches holds the live watches of a client, one for each session and node. The client library
// cannot remove a watch: waiters that come and go while one holder stays would each leave
// one behind if they did not share it.
type Watches struct {
	requests      *Requests
	StopListening func() // ends the news of events

	mu      sync.Mutex
	live    map[watchKey]*NodeWatch // guarded by mu
	keepers map[*Session]struct{}   // guarded by mu: the sessions that have one, see keepAll
}

func NewWatches(r *Requests) *Watches {
	t := &Watches{requests: r, live: map[watchKey]*NodeWatch{}, keepers: map[*Session]struct{}{}}
	t.StopListening = r.Link.Listen(t.onEvent)
	return t
}

type watchKey struct {
	sess *Session
	path string
}

// NodeWatch is a watch on a node that existed when the watch was set: on its data, or on its
// children, which has a key of its own in the table. Fields without a guard are set before
// ready or fired, and never again.
//
// Nobody waits for its event while it rests: it is woken when an event of its node passes on the
// wire, and at every end and change of the connection's session.
type NodeWatch struct {
	key   watchKey
	set   func() (seen, error)
	ready Latch // the server has answered
	seen
	err error

	missed Latch // an event of it was lost: see compare
	found  Change

	Fired     Latch // the watch has fired or never will
	Saw       Change
	awaited   atomic.Int32 // the number of waiters
	rests     bool         // guarded by the mutex of watches, as is the next
	disturbed bool         // something has happened to the node since the watch was last asked for, or may have

	rounds int // guarded by the mutex of watches: see due

	mu      sync.Mutex
	then    func()          // guarded by mu: what whenFired has asked for; nil for nothing
	events  <-chan zk.Event // guarded by mu: of the watch as it was last set
	moved   <-chan struct{} // guarded by mu: closed when the connection has changed since then
	renewed chan struct{}   // guarded by mu: closed when the watch is set anew; nil while nobody waits for that
}

// Watch returns the watch on a node. If there is none, it sets one. For a node that does not
// exist it returns zk.ErrNoNode.
func (t *Watches) Watch(ctx context.Context, s *Session, path string) (*NodeWatch, error) {
	w, _, err := t.share(ctx, s, path, func() (seen, error) { return t.requests.getW(path) })
	return w, err
}

// BeginWatch is watch without waiting for the answer.
func (t *Watches) BeginWatch(s *Session, path string) (*NodeWatch, error) {
	w, _, err := t.take(s, path, func() (seen, error) { return t.requests.getW(path) })
	return w, err
}

// WatchNow is watch for callers that rely on the node's existence: a watch that another
// caller has set shows only that the node existed then, so watchNow reads it again.
func (t *Watches) WatchNow(ctx context.Context, s *Session, path string) (*NodeWatch, error) {
	w, known, err := t.share(ctx, s, path, func() (seen, error) { return t.requests.getW(path) })
	if err == nil && known {
		_, err = t.requests.Stat(ctx, s, path)
	}
	return w, err
}

// WatchChildren returns the watch on a directory's children, as watch does.
func (t *Watches) WatchChildren(ctx context.Context, s *Session, dir string) (*NodeWatch, error) {
	w, _, err := t.share(ctx, s, dir+"/", func() (seen, error) { return t.requests.childrenW(dir) })
	return w, err
}

// share returns the watch under a key. known reports whether there was one already; if not,
// share sets it.
func (t *Watches) share(ctx context.Context, s *Session, path string, set func() (seen, error)) (_ *NodeWatch, known bool, _ error) {
	w, known, err := t.take(s, path, set)
	if err == nil {
		err = w.Answered(ctx, s)
	}
	return w, known, err
}

// take is share without waiting for the answer.
func (t *Watches) take(s *Session, path string, set func() (seen, error)) (w *NodeWatch, known bool, err error) {
	key := watchKey{s, path}
	t.mu.Lock()
	defer t.mu.Unlock()
	w, known = t.live[key]
	if known {
		return w, known, nil
	}
	w = &NodeWatch{key: key, set: set}
	// Owned by the client; ends when the watch rests or has fired; Close waits for it.
	if !t.hasKeeper(s) || !t.requests.Calls.Run(func() { t.begin(w) }) {
		return nil, known, outcome.ErrClosed
	}
	t.live[key] = w
	return w, known, nil
}

// hasKeeper makes sure that a goroutine looks after the watches of a session that rest. It
// reports false if the client is closed. It must be called with mu held.
func (t *Watches) hasKeeper(s *Session) bool {
	if _, ok := t.keepers[s]; ok {
		return true
	}
	again := s.Reattached()
	// Owned by the client; ends with the session, at the latest by Close, which waits for it.
	if !t.requests.Calls.Run(func() { t.keepAll(s, again) }) {
		return false
	}
	t.keepers[s] = struct{}{}
	return true
}

// keepAll wakes the watches of a session after each reconnect, and now and then has them compared
// with their nodes, until the session is over.
func (t *Watches) keepAll(s *Session, again <-chan struct{}) {
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
		case <-t.requests.Afterlife.Done():
		}
		t.mu.Lock()
		delete(t.keepers, s)
		t.mu.Unlock()
		for _, w := range t.wakeAll(s) {
			t.fire(w, NodeChanged)
		}
		return
	}
}

// wakeAll has the watches of a session rest no more that rest, and returns them.
func (t *Watches) wakeAll(s *Session) (woken []*NodeWatch) {
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
func (t *Watches) compareDue(s *Session, done chan<- struct{}) bool {
	due := t.due(s)
	// Owned by the client; ends with the requests, at the latest when Close ends the connection and
	// then waits for it.
	return len(due) > 0 && t.requests.Calls.Run(func() {
		SideBySide(t.requests.Calls, len(due), comparedAtOnce, func(i int) error {
			t.compare(due[i])
			return nil
		})
		done <- struct{}{}
	})
}

// due returns every watch of a session that is needed, in its second round and in every other from
// then on.
func (t *Watches) due(s *Session) (due []*NodeWatch) {
	t.mu.Lock()
	for key, w := range t.live {
		if key.sess == s {
			if w.rounds++; w.rounds%2 == 0 {
				due = append(due, w)
			}
		}
	}
	t.mu.Unlock()
	return slices.DeleteFunc(due, func(w *NodeWatch) bool { return !w.isNeeded() })
}

// isNeeded reports whether anybody has to learn of a change by this watch alone: heartbeats look
// after our own nodes.
func (w *NodeWatch) isNeeded() bool {
	if !w.ready.IsSet() || w.missed.IsSet() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isOfChildren() || w.awaited.Load() > 1 || w.awaited.Load() == 1 && w.then == nil
}

func (w *NodeWatch) isOfChildren() bool { return strings.HasSuffix(w.key.path, "/") }

// compare compares a watch's node with what the watch has shown. If they differ, the watch fires.
func (t *Watches) compare(w *NodeWatch) {
	now, err := t.requests.Stat(t.requests.Afterlife, w.key.sess, strings.TrimSuffix(w.key.path, "/"))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		w.found = NodeGone
	case err != nil || w.isAs(now):
		return
	default:
		w.found = NodeChanged
	}
	w.missed.Set()
	t.wake(w)
}

// isAs reports whether a node in that state is as the watch has shown it. A number of children
// tells of those that a counter at its end did not count.
func (w *NodeWatch) isAs(now *zk.Stat) bool {
	if w.isOfChildren() {
		return now.Czxid == w.Stat.Czxid && now.Pzxid == w.Stat.Pzxid && now.NumChildren == w.Stat.NumChildren
	}
	return now.Czxid == w.Stat.Czxid && now.Mzxid == w.Stat.Mzxid
}

// onEvent wakes the watches on a node, and on its children, of which an event has come.
func (t *Watches) onEvent(s *Session, path string) {
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
func (t *Watches) wake(w *NodeWatch) {
	t.mu.Lock()
	woken := w.rests
	w.rests, w.disturbed = false, true
	t.mu.Unlock()
	if woken {
		t.resume(w)
	}
}

// resume has a goroutine look after a watch that rests no more.
func (t *Watches) resume(w *NodeWatch) {
	// Owned by the client; ends when the watch rests again or has fired; Close waits for it.
	if !t.requests.Calls.Run(func() { t.attend(w) }) {
		t.fire(w, NodeChanged)
	}
}

// rest reports whether nothing has happened to a watch. Then the caller may leave it alone.
func (t *Watches) rest(w *NodeWatch) bool {
	_, moved := w.latest()
	s := w.key.sess
	t.mu.Lock()
	defer t.mu.Unlock()
	_, kept := t.keepers[s]
	w.rests = kept && !w.disturbed && !IsClosed(moved) && !s.IsOver()
	return w.rests
}

// Answered waits until the server has answered the request that sets the watch.
func (w *NodeWatch) Answered(ctx context.Context, s *Session) error {
	select {
	case <-w.ready.Done():
		return w.err
	case <-s.Over():
		return outcome.ErrSessionOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin sets the watch. It is a data watch and not an exists watch, because the server sets no
// data watch on a node that is gone, but an exists watch there would stay for ever.
func (t *Watches) begin(w *NodeWatch) {
	moved := w.key.sess.Reattached()
	w.seen, w.err = w.set()
	if w.err != nil {
		t.drop(w)
		w.ready.Set()
		return
	}
	w.renew(w.seen.events, moved)
	w.ready.Set()
	t.attend(w)
}

// attend looks after a watch until it rests or has fired.
func (t *Watches) attend(w *NodeWatch) {
	for !t.rest(w) {
		if saw := t.look(w); saw != 0 {
			t.fire(w, saw)
			return
		}
	}
}

// fire ends a watch.
func (t *Watches) fire(w *NodeWatch, saw Change) {
	w.Saw = saw
	t.drop(w)
	w.mu.Lock()
	then := w.then
	w.then = nil
	w.Fired.Set()
	w.mu.Unlock()
	if then != nil {
		then()
	}
}

// look waits for the watch's event, and returns what has happened. After a reconnect it sets the
// watch anew, because the client library does not check whether its own attempt to do so has
// succeeded; it returns zero if the watch stands again.
func (t *Watches) look(w *NodeWatch) Change {
	s := w.key.sess
	events, moved := w.latest()
	select {
	case ev := <-events: // the zero event if isQuiet has taken it out of the channel
		if ev.Type == zk.EventNodeDeleted {
			return NodeGone
		}
		return NodeChanged
	case <-w.missed.Done():
		return w.found
	case <-moved:
		if w.awaited.Load() == 0 {
			return NodeChanged // nobody waits, and a later caller sets another
		}
		t.forget(w)
		moved = s.Reattached()
		now, err := w.set()
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return NodeGone
		case err != nil || now.Stat.Mzxid != w.Stat.Mzxid || !slices.Equal(now.Names, w.Names):
			return NodeChanged
		}
		w.renew(now.events, moved)
		return 0
	case <-s.Over():
		return NodeChanged
	case <-t.requests.Afterlife.Done():
		return NodeChanged
	}
}

// forget forgets what has happened to a watch that is about to be set anew.
func (t *Watches) forget(w *NodeWatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.disturbed = false
}

// renew replaces the channels of a watch that was set anew.
func (w *NodeWatch) renew(events <-chan zk.Event, moved <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events, w.moved = events, moved
	if w.renewed != nil {
		close(w.renewed)
		w.renewed = nil
	}
}

func (w *NodeWatch) latest() (events <-chan zk.Event, moved <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events, w.moved
}

// IsQuiet reports whether the watch has not fired, so that nothing had happened to the node
// before the last event or answer that the caller has seen. The client library delivers the
// events of one connection in their order: an earlier event is in the watch's channel by
// then, even if the goroutine that waits for it has not received it yet.
//
// After a reconnect isQuiet reports false until the watch is set anew, which closes renewed.
func (w *NodeWatch) IsQuiet() (quiet bool, renewed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.events: // look finds the channel closed
	default:
		if !IsClosed(w.moved) && !w.missed.IsSet() {
			return true, nil
		}
	}
	if w.renewed == nil {
		w.renewed = make(chan struct{})
	}
	return false, w.renewed
}

func (t *Watches) drop(w *NodeWatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[w.key] == w {
		delete(t.live, w.key)
	}
}

// WhenFired has fn called, which must not wait, when the watch fires, and counts as a waiter until
// then. It reports false if the watch has fired. There is one such waiter at a time.
func (w *NodeWatch) WhenFired(fn func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Fired.IsSet() {
		return false
	}
	w.then = fn
	w.awaited.Add(1)
	return true
}

// NeverMind takes back what whenFired was asked for, and reports true unless it has happened.
func (w *NodeWatch) NeverMind() bool {
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
func (w *NodeWatch) wait() (done func()) {
	w.awaited.Add(1)
	return func() { w.awaited.Add(-1) }
}

// Await waits until the watched node changes. If gone is closed first it returns errGone, if
// the session ends errSessionOver, and if ctx ends its cause.
func (w *NodeWatch) Await(ctx context.Context, s *Session, gone <-chan struct{}) (Change, error) {
	defer w.wait()()
	select {
	case <-w.Fired.Done():
		if s.IsOver() {
			return 0, outcome.ErrSessionOver
		}
		return w.Saw, nil
	case <-gone:
		return 0, outcome.ErrGone
	case <-s.Over():
		return 0, outcome.ErrSessionOver
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
