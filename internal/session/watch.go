package session

import (
	"context"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/outcome"
)

// Watches holds the live watches of a client, one for each session and node. All waiters of a client on one node share
// one: those that come and go while one holder stays would else each set one.
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
func (t *Watches) BeginWatch(ctx context.Context, s *Session, path string) (*NodeWatch, error) {
	w, _, err := t.take(ctx, watchKey{sess: s, path: path})
	return w, err
}

// WatchNow is Watch for callers that rely on what the watch shows. One that another caller has set shows what was then, and a
// server that withholds an event leaves it standing, so WatchNow looks at the node again.
func (t *Watches) WatchNow(ctx context.Context, s *Session, path string) (*NodeWatch, error) {
	for {
		w, known, err := t.share(ctx, watchKey{sess: s, path: path})
		if err != nil || !known {
			return w, err
		}
		now, err := t.requests.Stat(ctx, s, path)
		if err != nil || now.Mzxid == w.Stat.Mzxid {
			return w, err
		}
		t.fire(w, NodeChanged)
	}
}

// WatchChildren returns the watch on a directory's children, as watch does.
func (t *Watches) WatchChildren(ctx context.Context, s *Session, dir string) (*NodeWatch, error) {
	w, _, err := t.share(ctx, watchKey{sess: s, path: dir, children: true})
	return w, err
}

// share returns the watch under a key. known reports whether there was one already; if not,
// share sets it.
func (t *Watches) share(ctx context.Context, key watchKey) (_ *NodeWatch, known bool, _ error) {
	w, known, err := t.take(ctx, key)
	if err == nil {
		err = w.Answered(ctx, key.sess)
	}
	return w, known, err
}

// take is share without waiting for the answer.
func (t *Watches) take(ctx context.Context, key watchKey) (w *NodeWatch, known bool, err error) {
	if err := t.requests.Ready(ctx, key.sess); err != nil {
		return nil, false, err
	}
	t.mu.Lock()
	w, known = t.live[key]
	if !known {
		w = &NodeWatch{key: key}
		if !t.hasKeeper(key.sess) {
			t.mu.Unlock()
			return nil, false, outcome.ErrClosed
		}
		t.live[key] = w
	}
	t.mu.Unlock()
	if !known {
		t.set(w, (*NodeWatch).answered)
	}
	return w, known, nil
}

// hasKeeper makes sure that a goroutine looks after the watches of a session. It
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

// keepAll sets the watches of a session anew after each reconnect, and now and then has them compared
// with their nodes, until the session is over.
func (t *Watches) keepAll(s *Session, again <-chan struct{}) {
	ticker := time.NewTicker(max(s.Lease.Term()/2, time.Millisecond))
	defer ticker.Stop()
	compared, comparing := make(chan struct{}, 1), false
	for {
		select {
		case <-ticker.C:
			if !comparing {
				comparing = t.requests.compare(t.due(s), compared, t.fire)
			}
			continue
		case <-compared:
			comparing = false
			continue
		case <-again:
			again = s.Reattached()
			t.renewAll(s)
			continue
		case <-s.Over():
		case <-t.requests.Life.Done():
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
		t.fire(w, NodeChanged)
	}
}

// isLeft reports whether nobody looks after the watches of a session.
func (t *Watches) isLeft(s *Session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.keepers[s]
	return !ok
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

// onEvent takes an event of a node.
func (t *Watches) onEvent(s *Session, e frames.Event) {
	for _, children := range []bool{false, true} {
		saw := changeOf(e.Kind, children)
		t.mu.Lock()
		w := t.live[watchKey{s, e.Path, children}]
		t.mu.Unlock()
		if w != nil && saw != 0 && w.isAnswered(saw) {
			t.fire(w, saw)
		}
	}
}

// changeOf returns what an event says to a watch on a node's children or on its data, zero for nothing.
func changeOf(kind frames.EventKind, children bool) Change {
	switch kind {
	case frames.NodeDeleted:
		return NodeGone
	case frames.DataChanged:
		if !children {
			return NodeChanged
		}
	case frames.ChildrenChanged:
		if children {
			return NodeChanged
		}
	}
	return 0
}

// set asks the server for a watch, and takes its answer by answered, which returns what has happened to
// the node; zero for nothing. It is a data watch, because the server sets none on a node that is gone.
// An exists watch there would stay for ever.
func (t *Watches) set(w *NodeWatch, answered func(w *NodeWatch, now seen, err error) Change) {
	take := func(now seen, err error) { t.took(w, answered(w, now, err), err) }
	request, read := w.key.request()
	w.asks()
	if c, err := begin(t.requests, w.key.sess, request, read, take); err != nil {
		c.Answered(frames.Reply{}, err)
	}
}

// took goes on with a watch whose request has been answered, or was not sent.
func (t *Watches) took(w *NodeWatch, saw Change, err error) {
	switch {
	case err != nil && saw == 0:
		t.drop(w) // it was refused
	case saw == 0 && t.isLeft(w.key.sess):
		t.fire(w, NodeChanged)
	case saw != 0:
		t.fire(w, saw)
	}
}

// request returns the request that sets a watch, and what reads its answer.
func (k *watchKey) request() (frames.Request, func(*frames.Answer) (seen, error)) {
	if k.children {
		return frames.Children(k.path, true), readNames
	}
	return frames.Get(k.path, true), readData
}

func readData(a *frames.Answer) (seen, error) { return seen{Data: a.Data(), Stat: a.Stat()}, nil }

func readNames(a *frames.Answer) (seen, error) { return seen{Names: a.Names(), Stat: a.Stat()}, nil }

// renewAll sets the watches of a session anew after a reconnect. One that nobody waits for fires: a later
// caller sets another.
func (t *Watches) renewAll(s *Session) {
	if t.requests.Ready(t.requests.Life, s) != nil {
		return // there are no watches to keep any more
	}
	for _, w := range t.of(s) {
		switch {
		case !w.lapse(): // it was set on this connection
		case w.isAwaited():
			t.set(w, (*NodeWatch).renewed)
		default:
			t.fire(w, NodeChanged)
		}
	}
}

// fire ends a watch, unless it has not been answered yet.
func (t *Watches) fire(w *NodeWatch, saw Change) {
	then, ok := w.fire(saw)
	if !ok {
		return
	}
	t.drop(w)
	if then == nil {
		return
	}
	tell := func() {
		then()
		w.Fired.Set()
	}
	// Owned by the client; ends when the watch on an own node has been looked after; Close waits for it.
	if !t.requests.Calls.Run(tell) {
		tell()
	}
}

func (t *Watches) drop(w *NodeWatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[w.key] == w {
		delete(t.live, w.key)
	}
}
