// SPDX-License-Identifier: Apache-2.0

package zktest

// The event types on the wire.
const (
	eventCreated  int32 = 1
	eventDeleted  int32 = 2
	eventData     int32 = 3
	eventChildren int32 = 4
)

// watchEvent is an event of a node. Connections without permission to read the node do
// not receive it, but it uses up their one-shot watches nevertheless.
type watchEvent struct {
	kind int32
	path string
	zxid int64
	acl  []ACL // nil if everyone may receive the event
}

// watcher is the owner of a watch: a connection. Other connections of its session do not
// receive its events.
type watcher interface {
	notify(watchEvent)
	sessionID() int64 // 0 until there is a session
}

// watchMode is a mode of a watch. A connection can have several modes on one path at the
// same time.
type watchMode uint8

const (
	watchOnce watchMode = 1 << iota
	watchPersistent
	watchRecursive
	anyMode = watchOnce | watchPersistent | watchRecursive
)

// watchSet holds watches of one kind, by path and by watcher.
type watchSet struct {
	byPath    map[string]map[watcher]watchMode
	byWatcher map[watcher]map[string]struct{}
	recursive int // number of entries with watchRecursive; if zero, trigger can skip the parents
}

func newWatchSet() watchSet {
	return watchSet{byPath: make(map[string]map[watcher]watchMode), byWatcher: make(map[watcher]map[string]struct{})}
}

func (w *watchSet) add(path string, c watcher, mode watchMode) {
	conns := w.byPath[path]
	if conns == nil {
		conns = make(map[watcher]watchMode)
		w.byPath[path] = conns
	}
	if mode == watchRecursive && conns[c]&watchRecursive == 0 {
		w.recursive++
	}
	conns[c] |= mode
	paths := w.byWatcher[c]
	if paths == nil {
		paths = make(map[string]struct{})
		w.byWatcher[c] = paths
	}
	paths[path] = struct{}{}
}

func (w *watchSet) has(path string, c watcher) bool { return w.byPath[path][c] != 0 }

// drop removes modes from a watch. It reports whether the watch had any of them.
func (w *watchSet) drop(path string, c watcher, modes watchMode) bool {
	conns := w.byPath[path]
	had := conns[c] & modes
	if had == 0 {
		return false
	}
	if had&watchRecursive != 0 {
		w.recursive--
	}
	conns[c] &^= modes
	if conns[c] != 0 {
		return true
	}
	delete(conns, c)
	if len(conns) == 0 {
		delete(w.byPath, path)
	}
	delete(w.byWatcher[c], path)
	if len(w.byWatcher[c]) == 0 {
		delete(w.byWatcher, c)
	}
	return true
}

func (w *watchSet) dropWatcher(c watcher) {
	for path := range w.byWatcher[c] {
		w.drop(path, c, anyMode)
	}
}

func (w *watchSet) count() int {
	total := 0
	for _, paths := range w.byWatcher {
		total += len(paths)
	}
	return total
}

// trigger sends an event to each watcher of its path and to the recursive watchers of the
// parents, except those in skip, and removes one-shot watches. It returns the watchers.
// Each receives at most one event, even if it has several watches.
func (w *watchSet) trigger(ev watchEvent, skip map[watcher]bool) map[watcher]bool {
	var told map[watcher]bool
	tell := func(c watcher) {
		if told == nil {
			told = make(map[watcher]bool)
		}
		if !told[c] && !skip[c] {
			c.notify(ev)
		}
		told[c] = true
	}
	for c, mode := range w.byPath[ev.path] {
		if mode != watchRecursive || ev.kind != eventChildren {
			tell(c)
		}
		w.drop(ev.path, c, watchOnce)
	}
	if w.recursive > 0 && ev.kind != eventChildren {
		w.eachParent(ev.path, tell)
	}
	return told
}

// eachParent calls tell for the recursive watchers above path.
func (w *watchSet) eachParent(path string, tell func(watcher)) {
	for path != "/" {
		path, _ = splitPath(path)
		for c, mode := range w.byPath[path] {
			if mode&watchRecursive != 0 {
				tell(c)
			}
		}
	}
}

// watches holds the watches of one member's connections. They belong to connections, not
// to sessions: clients send them again after a reconnect.
type watches struct {
	data     watchSet // data and exists watches
	children watchSet
}

func newWatches() *watches { return &watches{data: newWatchSet(), children: newWatchSet()} }

func (w *watches) created(e treeEvent) {
	w.data.trigger(e.of(eventCreated), nil)
	w.children.trigger(e.ofParent(), nil)
}

func (w *watches) deleted(e treeEvent) {
	told := w.data.trigger(e.of(eventDeleted), nil)
	w.children.trigger(e.of(eventDeleted), told)
	w.children.trigger(e.ofParent(), nil)
}

func (w *watches) changed(e treeEvent) { w.data.trigger(e.of(eventData), nil) }

func (e treeEvent) of(kind int32) watchEvent { return watchEvent{kind, e.path, e.zxid, e.acl} }

func (e treeEvent) ofParent() watchEvent {
	parent, _ := splitPath(e.path)
	return watchEvent{eventChildren, parent, e.zxid, e.parentACL}
}

func (w *watches) count() int { return w.data.count() + w.children.count() }

// on returns the number of watches on a path.
func (w *watches) on(path string) int { return len(w.data.byPath[path]) + len(w.children.byPath[path]) }

// addTo adds the number of watches on each path to counts.
func (w *watches) addTo(counts map[string]int) {
	for _, set := range []*watchSet{&w.data, &w.children} {
		for path, watchers := range set.byPath {
			counts[path] += len(watchers)
		}
	}
}

func (w *watches) dropWatcher(c watcher) {
	w.data.dropWatcher(c)
	w.children.dropWatcher(c)
}

// rearm handles setWatches: for nodes that have changed since the client's zxid it sends
// an event at once, and for the others it sets the watch again.
func (w *watches) rearm(t *tree, c watcher, rel int64, lists [5][]string) {
	for _, path := range lists[0] {
		w.data.rearm(c, watchEvent{kind: dataEvent(t.get(path), rel), path: path, zxid: t.zxid})
	}
	for _, path := range lists[1] {
		var event int32
		if t.get(path) != nil {
			event = eventCreated
		}
		w.data.rearm(c, watchEvent{kind: event, path: path, zxid: t.zxid})
	}
	for _, path := range lists[2] {
		w.children.rearm(c, watchEvent{kind: childEvent(t.get(path), rel), path: path, zxid: t.zxid})
	}
	for _, path := range lists[3] {
		w.data.add(path, c, watchPersistent)
		w.children.add(path, c, watchPersistent)
	}
	for _, path := range lists[4] {
		w.data.add(path, c, watchRecursive)
	}
}

// rearm sends the event, or sets the watch if there is no event.
func (w *watchSet) rearm(c watcher, ev watchEvent) {
	if ev.kind != 0 {
		c.notify(ev)
		return
	}
	w.add(ev.path, c, watchOnce)
}

func dataEvent(n *znode, rel int64) int32 {
	switch {
	case n == nil:
		return eventDeleted
	case n.stat.Mzxid > rel:
		return eventData
	}
	return 0
}

func childEvent(n *znode, rel int64) int32 {
	switch {
	case n == nil:
		return eventDeleted
	case n.stat.Pzxid > rel:
		return eventChildren
	}
	return 0
}
