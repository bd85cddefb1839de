// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/outcome"
)

// Watches holds the active watches of a client, one per session and node. All waiters of a client
// on one node share a watch; otherwise each of those that come and go while one holder stays would
// set its own.
type Watches struct {
	requests      *Requests
	StopListening func() // stops receiving events
	rearming      rearming

	mu      sync.Mutex
	live    map[watchKey]*watch   // guarded by mu
	keepers map[*Session]struct{} // guarded by mu: the sessions that have a goroutine for their watches: see keepAll
}

func NewWatches(r *Requests) *Watches {
	t := &Watches{requests: r, live: map[watchKey]*watch{}, keepers: map[*Session]struct{}{}}
	t.StopListening = r.Link.Listen(t.onEvent)
	t.rearming = rearming{requests: r, fire: t.fire}
	return t
}

// Watch returns a View of a node, and sets a watch on it if there is none. If the node does not
// exist, it returns zk.ErrNoNode.
func (t *Watches) Watch(ctx context.Context, s *Session, path string) (*View, error) {
	v, _, err := t.subscribe(ctx, watchKey{sess: s, path: path})
	return v, err
}

// WatchChildren is like Watch for a directory's children.
func (t *Watches) WatchChildren(ctx context.Context, s *Session, dir string) (*View, error) {
	v, _, err := t.subscribe(ctx, watchKey{sess: s, path: dir, children: true})
	return v, err
}

// AddTo returns a View of a node like Watch, but adds the request for the watch to b if there is
// none, and does not wait for the reply.
func (t *Watches) AddTo(b *Bundle, path string) *View {
	v, _ := t.addTo(b, watchKey{sess: b.sess, path: path})
	return v
}

// WatchNow is like Watch for callers that rely on the data that the View contains. A watch set by
// another caller shows the node as it was then, and it does not fire if a server withholds the
// event. So WatchNow reads the node again.
func (t *Watches) WatchNow(ctx context.Context, s *Session, path string) (*View, error) {
	for {
		v, known, err := t.subscribe(ctx, watchKey{sess: s, path: path})
		if err != nil || !known {
			return v, err
		}
		now, err := t.requests.Stat(ctx, s, path)
		if err != nil || now.Mzxid == v.Stat.Mzxid {
			return v, err
		}
		t.fire(v.watch, Changed)
	}
}

// subscribe returns a View of the watch with the given key that contains the server's reply. known
// reports whether the watch already existed; if not, subscribe sets it.
func (t *Watches) subscribe(ctx context.Context, key watchKey) (v *View, known bool, _ error) {
	v, known, err := t.begin(ctx, key)
	if err == nil {
		v, err = v.Answered(ctx)
	}
	return v, known, err
}

// begin is like subscribe but does not wait for the reply.
func (t *Watches) begin(ctx context.Context, key watchKey) (v *View, known bool, err error) {
	b, err := t.requests.Bundle(ctx, key.sess)
	if err != nil {
		return nil, false, err
	}
	v, known = t.addTo(b, key)
	return v, known, b.Send(ctx)
}

// addTo returns a View of the watch with the given key, and reports whether it already existed. If
// not, it adds the request for the watch to b. The requests are getData and getChildren, for which a
// server sets no watch on a missing node. An exists watch on a missing node would stay forever.
func (t *Watches) addTo(b *Bundle, key watchKey) (v *View, known bool) {
	w, known, err := t.liveOrNew(key)
	v = w.latest()
	switch {
	case err != nil:
		t.answered(w, View{}, err)
	case !known:
		request, read := key.request()
		add(b, request, read, func(now View, err error) { t.answered(w, now, err) })
	}
	return v, known
}

// liveOrNew returns the live watch with the given key. If there is none, it registers one, which the
// caller must request; after an error, the watch that it returns is not registered.
func (t *Watches) liveOrNew(key watchKey) (w *watch, known bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, known = t.live[key]
	if known && !w.isOver() {
		return w, true, nil
	}
	w = newWatch(key)
	if !t.hasKeeper(key.sess) {
		return w, false, outcome.ErrClosed
	}
	t.live[key] = w
	return w, false, nil
}

// Probe asks a server whether it knows SetWatches, which costs one request. A server that hangs up on
// it ends the session, so Probe is only for a new client that holds nothing.
func (t *Watches) Probe(s *Session) { t.rearming.setWatches(s, 0, nil) }

// hasKeeper makes sure that a goroutine maintains the watches of a session. It returns false if the
// client is closed. It must be called with mu held.
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

// keepAll sets the watches of a session again after each reconnect, and periodically checks that
// they have missed no change, until the session is over.
func (t *Watches) keepAll(s *Session, again <-chan struct{}) {
	ticker := time.NewTicker(max(s.Lease.Term()/2, time.Millisecond))
	defer ticker.Stop()
	checked, checking := make(chan struct{}, 1), false
	for {
		select {
		case <-ticker.C:
			if !checking {
				checking = t.rearming.check(s, t.of(s), checked)
			}
			continue
		case <-checked:
			checking = false
			continue
		case <-again:
			again = s.Reattached()
			t.rearming.renew(s, t.of(s))
			continue
		case <-s.Over():
		case <-t.requests.Life.Done():
		}
		t.dropSession(s)
		return
	}
}

// dropSession fires all watches of a session, because no goroutine maintains them now.
func (t *Watches) dropSession(s *Session) {
	t.mu.Lock()
	delete(t.keepers, s)
	t.mu.Unlock()
	for _, w := range t.of(s) {
		t.fire(w, Changed)
	}
}

// of returns the watches of a session.
func (t *Watches) of(s *Session) (of []*watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, w := range t.live {
		if key.sess == s {
			of = append(of, w)
		}
	}
	return of
}

// onEvent handles an event of a node.
func (t *Watches) onEvent(s *Session, e frames.Event) {
	for _, children := range []bool{false, true} {
		saw := changeOf(e.Kind, children)
		t.mu.Lock()
		w := t.live[watchKey{s, e.Path, children}]
		t.mu.Unlock()
		if w != nil && saw != 0 {
			t.fire(w, saw)
		}
	}
}

// changeOf returns what an event means to a watch on a node's children or data, or zero if it does
// not concern that watch.
func changeOf(kind frames.EventKind, children bool) State {
	switch kind {
	case frames.NodeDeleted:
		return Gone
	case frames.DataChanged:
		if !children {
			return Changed
		}
	case frames.ChildrenChanged:
		if children {
			return Changed
		}
	}
	return 0
}

// answered handles the reply to the request that sets a watch, or the reason why it was not sent.
func (t *Watches) answered(w *watch, now View, err error) {
	set, owner, v := w.answered(now, err)
	if !set {
		t.drop(w)
	}
	if owner != nil {
		owner.Answered(v)
	}
}

// request returns the request that sets a watch and the function that reads its reply.
func (k *watchKey) request() (frames.Request, func(*frames.Answer) (View, error)) {
	if k.children {
		return frames.Children(k.path, true), readNames
	}
	return frames.Get(k.path, true), readData
}

func readData(a *frames.Answer) (View, error) { return View{Data: a.Data(), Stat: a.Stat()}, nil }

func readNames(a *frames.Answer) (View, error) { return View{Names: a.Names(), Stat: a.Stat()}, nil }

// fire ends a watch. If the request that sets it has not been answered yet, the reply ends it.
func (t *Watches) fire(w *watch, saw State) {
	owner, ok := w.fire(saw)
	if !ok {
		return
	}
	t.drop(w)
	if owner == nil {
		w.end()
		return
	}
	end := func() {
		owner.Fired(saw)
		w.end()
	}
	// Owned by the client; ends when Fired has returned; Close waits for it.
	if !t.requests.Calls.Run(end) {
		end()
	}
}

func (t *Watches) drop(w *watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[w.key] == w {
		delete(t.live, w.key)
	}
}
