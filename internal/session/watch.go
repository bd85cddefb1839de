package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/outcome"
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

// Watch returns the watch on a node. If there is none, it sets one. For a node that does not
// exist it returns zk.ErrNoNode.
func (t *Watches) Watch(ctx context.Context, s *Session, path string) (*NodeWatch, error) {
	w, _, err := t.share(ctx, watchKey{sess: s, path: path})
	return w, err
}

// BeginWatch is watch without waiting for the answer.
func (t *Watches) BeginWatch(s *Session, path string) (*NodeWatch, error) {
	w, _, err := t.take(watchKey{sess: s, path: path})
	return w, err
}

// WatchNow is watch for callers that rely on the node's existence: a watch that another
// caller has set shows only that the node existed then, so watchNow reads it again.
func (t *Watches) WatchNow(ctx context.Context, s *Session, path string) (*NodeWatch, error) {
	w, known, err := t.share(ctx, watchKey{sess: s, path: path})
	if err == nil && known {
		_, err = t.requests.Stat(ctx, s, path)
	}
	return w, err
}

// WatchChildren returns the watch on a directory's children, as watch does.
func (t *Watches) WatchChildren(ctx context.Context, s *Session, dir string) (*NodeWatch, error) {
	w, _, err := t.share(ctx, watchKey{sess: s, path: dir, children: true})
	return w, err
}

// share returns the watch under a key. known reports whether there was one already; if not,
// share sets it.
func (t *Watches) share(ctx context.Context, key watchKey) (_ *NodeWatch, known bool, _ error) {
	w, known, err := t.take(key)
	if err == nil {
		err = w.Answered(ctx, key.sess)
	}
	return w, known, err
}

// take is share without waiting for the answer.
func (t *Watches) take(key watchKey) (w *NodeWatch, known bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w, known = t.live[key]; known {
		return w, true, nil
	}
	w = &NodeWatch{key: key}
	// Owned by the client; ends when the watch rests or has fired; Close waits for it.
	if !t.hasKeeper(key.sess) || !t.requests.Calls.Run(func() { t.begin(w) }) {
		return nil, false, outcome.ErrClosed
	}
	t.live[key] = w
	return w, false, nil
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
				comparing = t.requests.compare(t.due(s), compared, t.wake)
			}
			continue
		case <-compared:
			comparing = false
			continue
		case <-again:
			again = s.Reattached()
			for _, w := range t.of(s) {
				t.wake(w, false)
			}
			continue
		case <-s.Over():
		case <-t.requests.Afterlife.Done():
		}
		t.leave(s)
		return
	}
}

// leave fires the watches of a session that nobody looks after any more.
func (t *Watches) leave(s *Session) {
	t.mu.Lock()
	delete(t.keepers, s)
	t.mu.Unlock()
	for _, w := range t.of(s) {
		if w.wake(false) {
			t.fire(w, NodeChanged)
		}
	}
}

// of returns the watches of a session.
func (t *Watches) of(s *Session) (of []*NodeWatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, w := range t.live {
		if key.sess == s {
			of = append(of, w)
		}
	}
	return of
}

// due returns the watches of a session that are to be compared now.
func (t *Watches) due(s *Session) (due []*NodeWatch) {
	for _, w := range t.of(s) {
		if w.isDue() {
			due = append(due, w)
		}
	}
	return due
}

// onEvent wakes the watches on a node, and on its children, of which an event has come.
func (t *Watches) onEvent(s *Session, path string) {
	for _, children := range []bool{false, true} {
		t.mu.Lock()
		w := t.live[watchKey{s, path, children}]
		t.mu.Unlock()
		if w != nil {
			t.wake(w, true)
		}
	}
}

// wake has a watch that rests look what has happened.
func (t *Watches) wake(w *NodeWatch, disturbed bool) {
	if !w.wake(disturbed) {
		return
	}
	// Owned by the client; ends when the watch rests again or has fired; Close waits for it.
	if !t.requests.Calls.Run(func() { t.attend(w) }) {
		t.fire(w, NodeChanged)
	}
}

// begin sets the watch. It is a data watch, because the server sets none on a node that is gone. An exists watch
// there would stay for ever.
func (t *Watches) begin(w *NodeWatch) {
	moved := w.key.sess.Reattached()
	now, events, err := t.set(w.key)
	if err != nil {
		t.drop(w)
	}
	if w.answered(now, events, moved, err) {
		t.attend(w)
	}
}

// set asks the server for a watch.
func (t *Watches) set(key watchKey) (seen, <-chan zk.Event, error) {
	if key.children {
		names, stat, events, err := t.requests.Conn.ChildrenW(key.path)
		return seen{Stat: stat, Names: names}, events, err
	}
	data, stat, events, err := t.requests.Conn.GetW(key.path)
	return seen{Stat: stat, Data: data}, events, err
}

// attend looks after a watch until it rests or has fired.
func (t *Watches) attend(w *NodeWatch) {
	for !w.rest(t.requests.Afterlife.Done()) {
		if saw := t.look(w); saw != 0 {
			t.fire(w, saw)
			return
		}
	}
}

// fire ends a watch.
func (t *Watches) fire(w *NodeWatch, saw Change) {
	t.drop(w)
	w.fire(saw)
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
		if !w.isAwaited() {
			return NodeChanged // nobody waits, and a later caller sets another
		}
		w.forget()
		moved = s.Reattached()
		now, events, err := t.set(w.key)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return NodeGone
		case err != nil || now.Stat.Mzxid != w.Stat.Mzxid || !slices.Equal(now.Names, w.Names):
			return NodeChanged
		}
		w.renew(events, moved)
		return 0
	case <-s.Over():
		return NodeChanged
	case <-t.requests.Afterlife.Done():
		return NodeChanged
	}
}

func (t *Watches) drop(w *NodeWatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[w.key] == w {
		delete(t.live, w.key)
	}
}
