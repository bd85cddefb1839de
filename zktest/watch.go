package zktest

// watchMode says how a watch behaves. A connection can have several modes on
// one path at once.
type watchMode uint8

const (
	watchOnce watchMode = 1 << iota
	watchPersistent
	watchRecursive
)

// The event types on the wire.
const (
	eventCreated  int32 = 1
	eventDeleted  int32 = 2
	eventData     int32 = 3
	eventChildren int32 = 4
)

// watchSet holds watches of one sort, by path and by connection.
type watchSet struct {
	byPath    map[string]map[*conn]watchMode
	byConn    map[*conn]map[string]struct{}
	recursive int // how many entries have watchRecursive: without any, parents need no look
}

func newWatchSet() watchSet {
	return watchSet{byPath: make(map[string]map[*conn]watchMode), byConn: make(map[*conn]map[string]struct{})}
}

func (w *watchSet) add(path string, c *conn, mode watchMode) {
	conns := w.byPath[path]
	if conns == nil {
		conns = make(map[*conn]watchMode)
		w.byPath[path] = conns
	}
	if mode == watchRecursive && conns[c]&watchRecursive == 0 {
		w.recursive++
	}
	conns[c] |= mode
	paths := w.byConn[c]
	if paths == nil {
		paths = make(map[string]struct{})
		w.byConn[c] = paths
	}
	paths[path] = struct{}{}
}

func (w *watchSet) has(path string, c *conn) bool { return w.byPath[path][c] != 0 }

// drop takes modes away from a watch and answers whether it had any of them.
func (w *watchSet) drop(path string, c *conn, modes watchMode) bool {
	conns := w.byPath[path]
	had := conns[c] & modes
	if had == 0 {
		return false
	}
	if had&watchRecursive != 0 {
		w.recursive--
	}
	if conns[c] &^= modes; conns[c] != 0 {
		return true
	}
	delete(conns, c)
	if len(conns) == 0 {
		delete(w.byPath, path)
	}
	delete(w.byConn[c], path)
	if len(w.byConn[c]) == 0 {
		delete(w.byConn, c)
	}
	return true
}

func (w *watchSet) dropConn(c *conn) {
	for path := range w.byConn[c] {
		w.drop(path, c, watchOnce|watchPersistent|watchRecursive)
	}
}

func (w *watchSet) count() int {
	total := 0
	for _, paths := range w.byConn {
		total += len(paths)
	}
	return total
}

// trigger sends an event to each watcher of path, and to the recursive ones of
// its parents, except to those in skip; one-shot watches are used up by it. It
// answers who was watching. A connection gets one event however often it asked.
func (w *watchSet) trigger(path string, event int32, skip map[*conn]bool) map[*conn]bool {
	var told map[*conn]bool
	tell := func(c *conn) {
		if told == nil {
			told = make(map[*conn]bool)
		}
		if !told[c] && !skip[c] {
			c.notify(event, path)
		}
		told[c] = true
	}
	for c, mode := range w.byPath[path] {
		if mode != watchRecursive || event != eventChildren {
			tell(c)
		}
		w.drop(path, c, watchOnce)
	}
	if w.recursive > 0 && event != eventChildren {
		w.eachParent(path, tell)
	}
	return told
}

// eachParent calls tell for the recursive watchers above path.
func (w *watchSet) eachParent(path string, tell func(*conn)) {
	for path != "/" {
		path, _ = splitPath(path)
		for c, mode := range w.byPath[path] {
			if mode&watchRecursive != 0 {
				tell(c)
			}
		}
	}
}

// watches are those of one member's connections. They belong to connections,
// not to sessions: clients re-send them after a reconnect.
type watches struct {
	data     watchSet // data and exists watches
	children watchSet
}

func newWatches() *watches { return &watches{data: newWatchSet(), children: newWatchSet()} }

func (w *watches) created(path string) {
	w.data.trigger(path, eventCreated, nil)
	parent, _ := splitPath(path)
	w.children.trigger(parent, eventChildren, nil)
}

func (w *watches) deleted(path string) {
	told := w.data.trigger(path, eventDeleted, nil)
	w.children.trigger(path, eventDeleted, told)
	parent, _ := splitPath(path)
	w.children.trigger(parent, eventChildren, nil)
}

func (w *watches) changed(path string) { w.data.trigger(path, eventData, nil) }

func (w *watches) dropConn(c *conn) {
	w.data.dropConn(c)
	w.children.dropConn(c)
}

// rearm serves setWatches: what changed since the client's zxid is told at
// once, the rest is watched again.
func (w *watches) rearm(t *tree, c *conn, rel int64, lists [5][]string) {
	for _, path := range lists[0] {
		w.rearmOne(&w.data, c, path, dataEvent(t.get(path), rel))
	}
	for _, path := range lists[1] {
		var event int32
		if t.get(path) != nil {
			event = eventCreated
		}
		w.rearmOne(&w.data, c, path, event)
	}
	for _, path := range lists[2] {
		w.rearmOne(&w.children, c, path, childEvent(t.get(path), rel))
	}
	for _, path := range lists[3] {
		w.data.add(path, c, watchPersistent)
		w.children.add(path, c, watchPersistent)
	}
	for _, path := range lists[4] {
		w.data.add(path, c, watchRecursive)
	}
}

func (w *watches) rearmOne(set *watchSet, c *conn, path string, event int32) {
	if event != 0 {
		c.notify(event, path)
		return
	}
	set.add(path, c, watchOnce)
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
