package zktest

// The event types on the wire.
const (
	eventCreated  int32 = 1
	eventDeleted  int32 = 2
	eventData     int32 = 3
	eventChildren int32 = 4
)

// watchEvent is what happened to a node. Connections that its list does not let
// read are not told; their one-shot watches are used up all the same.
type watchEvent struct {
	kind int32
	path string
	zxid int64
	acl  []ACL // nil for what everybody may know
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

// drop takes modes away from a watch and reports whether it had any of them.
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
// returns the connections that were watching. A connection gets one event however often it asked.
func (w *watchSet) trigger(ev watchEvent, skip map[*conn]bool) map[*conn]bool {
	var told map[*conn]bool
	tell := func(c *conn) {
		if told == nil {
			told = make(map[*conn]bool)
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
		c.notify(watchEvent{kind: event, path: path, zxid: c.member.tree.zxid})
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

// notify sends a watch event, if the connection may read what it is about.
func (c *conn) notify(ev watchEvent) {
	if c.closed || !allowed(ev.acl, PermRead, c.ids) {
		return
	}
	zxid := int64(-1)
	if c.s.opts.Flavor == ZooKeeper39 {
		zxid = ev.zxid
	}
	var e encoder
	start := e.beginFrame()
	e.replyHeader(xidNotification, zxid, CodeOK)
	e.int32(ev.kind)
	e.int32(3) // state: connected
	e.string(ev.path)
	e.endFrame(start)
	c.stats.sent++
	c.member.sent++
	c.enqueue(e.buf)
}
