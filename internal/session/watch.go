// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/outcome"
)

// Watches sets watches for a client. All waiters of a connection on one node share a watch; otherwise
// each of those that come and go while one holder stays would set its own.
type Watches struct {
	requests *Requests
	table    *watchTable
}

// NewWatches returns the Watches of a client.
func NewWatches(r *Requests, s *Shared) *Watches { return &Watches{requests: r, table: s.table} }

// WakeAll wakes the client's waiters after its life has ended. The waiters of other clients notice nothing.
func (ws *Watches) WakeAll() { ws.table.wakeAll() }

// watchTable holds the active watches of a connection, one per session and node.
type watchTable struct {
	requests *Requests // which belong to no client
	rearming rearming

	mu      sync.Mutex
	live    map[watchKey]*watch   // guarded by mu
	keepers map[*Session]struct{} // guarded by mu: the sessions that have a goroutine for their watches: see keepAll
}

func newWatchTable(r *Requests) *watchTable {
	wt := &watchTable{requests: r, live: map[watchKey]*watch{}, keepers: map[*Session]struct{}{}}
	wt.rearming = rearming{requests: r, fire: wt.fire}
	return wt
}

// Watch returns a View of a node, and sets a watch on it if there is none. If the node does not
// exist, it returns zk.ErrNoNode.
func (ws *Watches) Watch(ctx context.Context, s *Session, path string) (*View, error) {
	v, _, err := ws.subscribe(ctx, watchKey{sess: s, path: path})
	return v, err
}

// AddTo returns a View of a node like Watch, but adds the request for the watch to b if there is
// none, and does not wait for the reply.
func (ws *Watches) AddTo(b *Bundle, path string) *View {
	v, _ := ws.addTo(b, watchKey{sess: b.sess, path: path})
	return v
}

// WatchNow is like Watch for callers that rely on what the View contains. A watch set by another caller
// shows the node as it was then, and it does not fire if a server withholds the event. So WatchNow
// reads the node's stat again.
func (ws *Watches) WatchNow(ctx context.Context, s *Session, path string) (*View, error) {
	return ws.subscribeNow(ctx, watchKey{sess: s, path: path})
}

// WatchChildren is like WatchNow for a directory's children.
func (ws *Watches) WatchChildren(ctx context.Context, s *Session, dir string) (*View, error) {
	return ws.subscribeNow(ctx, watchKey{sess: s, path: dir, children: true})
}

// subscribeNow is like subscribe, but returns no View that is older than the call.
func (ws *Watches) subscribeNow(ctx context.Context, key watchKey) (*View, error) {
	for {
		v, known, err := ws.subscribe(ctx, key)
		if err != nil || !known {
			return v, err
		}
		now, err := ws.requests.Stat(ctx, key.sess, key.path)
		if err != nil || v.watch.isAs(now) {
			return v, err
		}
		ws.table.fire(v.watch, Changed)
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
	w, known, err := ws.table.liveOrNew(key, ws.requests.Life)
	v = w.latest()
	switch {
	case err != nil:
		ws.table.answered(w, View{}, err)
	case !known:
		request, read := key.request()
		add(b, request, read, func(now View, err error) { ws.table.answered(w, now, err) })
	}
	return v, known
}

// liveOrNew returns the live watch with the given key. If there is none, it registers one, which the
// caller must request; after an error, the watch that it returns is not registered. life is that of the
// client, which sets no watch once it ends.
func (wt *watchTable) liveOrNew(key watchKey, life context.Context) (w *watch, known bool, err error) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	w, known = wt.live[key]
	if known && !w.isOver() {
		return w, true, nil
	}
	w = newWatch(key)
	if life.Err() != nil || !wt.hasKeeper(key.sess) {
		return w, false, outcome.ErrClosed
	}
	wt.live[key] = w
	return w, false, nil
}

// Probe asks a server whether it knows SetWatches, which costs two requests. A server other than ClickHouse Keeper's that hangs up on it
// may end the session, so Probe is only for a new client that holds nothing.
func (ws *Watches) Probe(s *Session) {
	if is, err := ws.requests.OnClickHouse(ws.requests.Life, s); err != nil || is {
		return // ClickHouse Keeper does not restore sessions, so there are no watches to set again
	}
	ws.table.rearming.setWatches(s, 0, nil)
}

// hasKeeper makes sure that a goroutine maintains the watches of a session. It returns false if the
// last client has left. It must be called with mu held.
func (wt *watchTable) hasKeeper(s *Session) bool {
	if _, ok := wt.keepers[s]; ok {
		return true
	}
	again := s.Reattached()
	// Owned by the Shared; ends with the session, or with its life; the last client that leaves waits for it.
	if !wt.requests.Calls.Run(func() { wt.keepAll(s, again) }) {
		return false
	}
	wt.keepers[s] = struct{}{}
	return true
}

// keepAll sets the watches of a session again after each reconnect, and periodically checks that
// they have missed no change, until the session is over.
func (wt *watchTable) keepAll(s *Session, again <-chan struct{}) {
	ticker := time.NewTicker(max(s.Lease.Term()/2, time.Millisecond))
	defer ticker.Stop()
	checked, checking := make(chan struct{}, 1), false
	for {
		select {
		case <-ticker.C:
			if !checking {
				checking = wt.rearming.check(s, wt.of(s), checked)
			}
			continue
		case <-checked:
			checking = false
			continue
		case <-again:
			again = s.Reattached()
			wt.rearming.renew(s, wt.of(s))
			continue
		case <-s.Over():
		case <-wt.requests.Life.Done():
		}
		wt.dropSession(s)
		return
	}
}

// dropSession fires all watches of a session, because no goroutine maintains them now.
func (wt *watchTable) dropSession(s *Session) {
	wt.mu.Lock()
	delete(wt.keepers, s)
	wt.mu.Unlock()
	for _, w := range wt.of(s) {
		wt.fire(w, Changed)
	}
}

// wakeAll wakes all waiters, which look at their contexts.
func (wt *watchTable) wakeAll() {
	wt.mu.Lock()
	all := slices.Collect(maps.Values(wt.live))
	wt.mu.Unlock()
	for _, w := range all {
		w.wake()
	}
}

// of returns the watches of a session.
func (wt *watchTable) of(s *Session) (of []*watch) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	for key, w := range wt.live {
		if key.sess == s {
			of = append(of, w)
		}
	}
	return of
}

// onEvent handles an event of a node.
func (wt *watchTable) onEvent(s *Session, e frames.Event) {
	for _, children := range []bool{false, true} {
		saw := changeOf(e.Kind, children)
		wt.mu.Lock()
		w := wt.live[watchKey{s, e.Path, children}]
		wt.mu.Unlock()
		if w != nil && saw != 0 {
			wt.fire(w, saw)
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
func (wt *watchTable) answered(w *watch, now View, err error) {
	set, owner, v := w.answered(now, err)
	if !set {
		wt.drop(w)
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
func (wt *watchTable) fire(w *watch, saw State) {
	owner, ok := w.fire(saw)
	if !ok {
		return
	}
	wt.drop(w)
	if owner == nil {
		w.end()
		return
	}
	end := func() {
		owner.Fired(saw)
		w.end()
	}
	// Owned by the Shared; ends when Fired has returned; the last client that leaves waits for it.
	if !wt.requests.Calls.Run(end) {
		end()
	}
}

func (wt *watchTable) drop(w *watch) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	if wt.live[w.key] == w {
		delete(wt.live, w.key)
	}
}
