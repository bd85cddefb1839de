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
func (ws *Watches) Watch(ctx context.Context, s *Session, path string) (*View, error) {
	v, _, err := ws.subscribe(ctx, watchKey{sess: s, path: path})
	return v, err
}

// WatchChildren is like Watch for a directory's children.
func (ws *Watches) WatchChildren(ctx context.Context, s *Session, dir string) (*View, error) {
	v, _, err := ws.subscribe(ctx, watchKey{sess: s, path: dir, children: true})
	return v, err
}

// AddTo returns a View of a node like Watch, but adds the request for the watch to b if there is
// none, and does not wait for the reply.
func (ws *Watches) AddTo(b *Bundle, path string) *View {
	v, _ := ws.addTo(b, watchKey{sess: b.sess, path: path})
	return v
}

// WatchNow is like Watch for callers that rely on the data that the View contains. A watch set by
// another caller shows the node as it was then, and it does not fire if a server withholds the
// event. So WatchNow reads the node again.
func (ws *Watches) WatchNow(ctx context.Context, s *Session, path string) (*View, error) {
	for {
		v, known, err := ws.subscribe(ctx, watchKey{sess: s, path: path})
		if err != nil || !known {
			return v, err
		}
		now, err := ws.requests.Stat(ctx, s, path)
		if err != nil || now.Mzxid == v.Stat.Mzxid {
			return v, err
		}
		ws.fire(v.watch, Changed)
	}
}

// subscribe returns a View of the watch with the given key that contains the server's reply. known
// reports whether the watch already existed; if not, subscribe sets it.
func (ws *Watches) subscribe(ctx context.Context, key watchKey) (v *View, known bool, _ error) {
	v, known, err := ws.begin(ctx, key)
	if err == nil {
		v, err = v.Answered(ctx)
	}
	return v, known, err
}

// begin is like subscribe but does not wait for the reply.
func (ws *Watches) begin(ctx context.Context, key watchKey) (v *View, known bool, err error) {
	b, err := ws.requests.Bundle(ctx, key.sess)
	if err != nil {
		return nil, false, err
	}
	v, known = ws.addTo(b, key)
	return v, known, b.Send(ctx)
}

// addTo returns a View of the watch with the given key, and reports whether it already existed. If
// not, it adds the request for the watch to b. The requests are getData and getChildren, for which a
// server sets no watch on a missing node. An exists watch on a missing node would stay forever.
func (ws *Watches) addTo(b *Bundle, key watchKey) (v *View, known bool) {
	w, known, err := ws.liveOrNew(key)
	v = w.latest()
	switch {
	case err != nil:
		ws.answered(w, View{}, err)
	case !known:
		request, read := key.request()
		add(b, request, read, func(now View, err error) { ws.answered(w, now, err) })
	}
	return v, known
}

// liveOrNew returns the live watch with the given key. If there is none, it registers one, which the
// caller must request; after an error, the watch that it returns is not registered.
func (ws *Watches) liveOrNew(key watchKey) (w *watch, known bool, err error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w, known = ws.live[key]
	if known && !w.isOver() {
		return w, true, nil
	}
	w = newWatch(key)
	if !ws.hasKeeper(key.sess) {
		return w, false, outcome.ErrClosed
	}
	ws.live[key] = w
	return w, false, nil
}

// Probe asks a server whether it knows SetWatches, which costs one request. A server that hangs up on
// it ends the session, so Probe is only for a new client that holds nothing.
func (ws *Watches) Probe(s *Session) { ws.rearming.setWatches(s, 0, nil) }

// hasKeeper makes sure that a goroutine maintains the watches of a session. It returns false if the
// client is closed. It must be called with mu held.
func (ws *Watches) hasKeeper(s *Session) bool {
	if _, ok := ws.keepers[s]; ok {
		return true
	}
	again := s.Reattached()
	// Owned by the client; ends with the session, at the latest by Close, which waits for it.
	if !ws.requests.Calls.Run(func() { ws.keepAll(s, again) }) {
		return false
	}
	ws.keepers[s] = struct{}{}
	return true
}

// keepAll sets the watches of a session again after each reconnect, and periodically checks that
// they have missed no change, until the session is over.
func (ws *Watches) keepAll(s *Session, again <-chan struct{}) {
	ticker := time.NewTicker(max(s.Lease.Term()/2, time.Millisecond))
	defer ticker.Stop()
	checked, checking := make(chan struct{}, 1), false
	for {
		select {
		case <-ticker.C:
			if !checking {
				checking = ws.rearming.check(s, ws.of(s), checked)
			}
			continue
		case <-checked:
			checking = false
			continue
		case <-again:
			again = s.Reattached()
			ws.rearming.renew(s, ws.of(s))
			continue
		case <-s.Over():
		case <-ws.requests.Life.Done():
		}
		ws.dropSession(s)
		return
	}
}

// dropSession fires all watches of a session, because no goroutine maintains them now.
func (ws *Watches) dropSession(s *Session) {
	ws.mu.Lock()
	delete(ws.keepers, s)
	ws.mu.Unlock()
	for _, w := range ws.of(s) {
		ws.fire(w, Changed)
	}
}

// of returns the watches of a session.
func (ws *Watches) of(s *Session) (of []*watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for key, w := range ws.live {
		if key.sess == s {
			of = append(of, w)
		}
	}
	return of
}

// onEvent handles an event of a node.
func (ws *Watches) onEvent(s *Session, e frames.Event) {
	for _, children := range []bool{false, true} {
		saw := changeOf(e.Kind, children)
		ws.mu.Lock()
		w := ws.live[watchKey{s, e.Path, children}]
		ws.mu.Unlock()
		if w != nil && saw != 0 {
			ws.fire(w, saw)
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
func (ws *Watches) answered(w *watch, now View, err error) {
	set, owner, v := w.answered(now, err)
	if !set {
		ws.drop(w)
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
func (ws *Watches) fire(w *watch, saw State) {
	owner, ok := w.fire(saw)
	if !ok {
		return
	}
	ws.drop(w)
	if owner == nil {
		w.end()
		return
	}
	end := func() {
		owner.Fired(saw)
		w.end()
	}
	// Owned by the client; ends when Fired has returned; Close waits for it.
	if !ws.requests.Calls.Run(end) {
		end()
	}
}

func (ws *Watches) drop(w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.live[w.key] == w {
		delete(ws.live, w.key)
	}
}
