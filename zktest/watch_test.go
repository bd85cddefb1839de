// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// ear is a watcher that records its events.
type ear struct {
	id   int64
	told []watchEvent
}

func (e *ear) notify(ev watchEvent) { e.told = append(e.told, ev) }
func (e *ear) sessionID() int64     { return e.id }

// heard returns what it was told since the last time, as kinds and paths.
func (e *ear) heard() []watchEvent {
	list := e.told
	for i := range list {
		list[i].zxid, list[i].acl = 0, nil
	}
	e.told = nil
	return list
}

func event(kind int32, path string) watchEvent { return watchEvent{kind: kind, path: path} }

func TestAOneShotWatchIsUsedUpByItsEvent(t *testing.T) {
	w, a := newWatches(), &ear{}
	w.data.add("/x", a, watchOnce)
	w.data.add("/x", a, watchOnce)
	w.changed(treeEvent{path: "/x"})
	w.changed(treeEvent{path: "/x"})
	assert.Equal(t, []watchEvent{event(eventData, "/x")}, a.heard(), "one event, however often it asked")
	assert.Zero(t, w.count())
	assert.Empty(t, w.data.byPath)
	assert.Empty(t, w.data.byWatcher)
}

func TestADeletionIsReportedOnceToAWatcherOfNodeAndChildren(t *testing.T) {
	w, both, child, above := newWatches(), &ear{}, &ear{}, &ear{}
	w.data.add("/d/x", both, watchOnce)
	w.children.add("/d/x", both, watchOnce)
	w.children.add("/d/x", child, watchOnce)
	w.children.add("/d", above, watchOnce)
	w.deleted(treeEvent{path: "/d/x"})
	assert.Equal(t, []watchEvent{event(eventDeleted, "/d/x")}, both.heard())
	assert.Equal(t, []watchEvent{event(eventDeleted, "/d/x")}, child.heard())
	assert.Equal(t, []watchEvent{event(eventChildren, "/d")}, above.heard())
	assert.Zero(t, w.count())
}

func TestAPersistentWatchStays(t *testing.T) {
	w, a := newWatches(), &ear{}
	w.data.add("/x", a, watchPersistent)
	w.children.add("/x", a, watchPersistent)
	w.changed(treeEvent{path: "/x"})
	w.created(treeEvent{path: "/x/y"})
	w.changed(treeEvent{path: "/x"})
	w.changed(treeEvent{path: "/x/y"})
	assert.Equal(t, []watchEvent{event(eventData, "/x"), event(eventChildren, "/x"), event(eventData, "/x")}, a.heard())
	assert.Equal(t, 2, w.on("/x"))
}

func TestARecursiveWatchSeesAllBelowAndNoChildrenEvents(t *testing.T) {
	w, a := newWatches(), &ear{}
	w.data.add("/x", a, watchRecursive)
	w.created(treeEvent{path: "/x/y"})
	w.changed(treeEvent{path: "/x/y/z"})
	w.deleted(treeEvent{path: "/x"})
	w.changed(treeEvent{path: "/xx"})
	assert.Equal(t, []watchEvent{event(eventCreated, "/x/y"), event(eventData, "/x/y/z"), event(eventDeleted, "/x")}, a.heard())
	assert.True(t, w.data.drop("/x", a, anyMode))
	assert.Zero(t, w.data.recursive)
	w.changed(treeEvent{path: "/x/y"})
	assert.Empty(t, a.heard())
}

func TestAWatchCanHaveSeveralModes(t *testing.T) {
	w, a := newWatches(), &ear{}
	w.data.add("/x", a, watchOnce)
	w.data.add("/x", a, watchRecursive)
	w.changed(treeEvent{path: "/x"})
	assert.Len(t, a.heard(), 1)
	assert.True(t, w.data.has("/x", a), "the recursive one is left")
	assert.False(t, w.data.drop("/x", a, watchOnce), "it was used up")
	assert.True(t, w.data.drop("/x", a, watchRecursive))
	assert.False(t, w.data.has("/x", a))
}

func TestWatchesEndWithTheirConnection(t *testing.T) {
	w, a, b := newWatches(), &ear{}, &ear{}
	for _, path := range []string{"/x", "/y"} {
		w.data.add(path, a, watchOnce)
		w.children.add(path, b, watchOnce)
	}
	w.data.add("/", a, watchRecursive)
	w.dropWatcher(a)
	assert.Equal(t, 2, w.count())
	assert.Zero(t, w.data.recursive)
	counts := map[string]int{"/x": 1}
	w.addTo(counts)
	assert.Equal(t, map[string]int{"/x": 2, "/y": 1}, counts)
}

func TestWatchesAreSetAgainOrFireForMissedChanges(t *testing.T) {
	g := newGrown()
	for _, path := range []string{"/same", "/set", "/came", "/dir", "/dir/x", "/quiet"} {
		g.make(path, change{})
	}
	since := g.zxid
	g.do(change{kind: changeData, path: "/set", version: 1})
	g.make("/dir/y", change{})
	w, a := newWatches(), &ear{}
	w.rearm(g.tree, a, since, [5][]string{
		{"/same", "/set", "/gone"}, {"/came", "/absent"}, {"/dir", "/quiet", "/lost"}, {"/p"}, {"/r"},
	})
	assert.Equal(t, []watchEvent{
		event(eventData, "/set"), event(eventDeleted, "/gone"), event(eventCreated, "/came"),
		event(eventChildren, "/dir"), event(eventDeleted, "/lost"),
	}, a.heard())
	for _, path := range []string{"/same", "/absent", "/p", "/r"} {
		assert.True(t, w.data.has(path, a), path)
	}
	for _, path := range []string{"/quiet", "/p"} {
		assert.True(t, w.children.has(path, a), path)
	}
	assert.Equal(t, 6, w.count())
}

func TestAnEventCarriesTheACLThatDecidesWhoMaySeeIt(t *testing.T) {
	w, a, b := newWatches(), &ear{}, &ear{}
	own, parents := []ACL{{Perms: PermRead, Scheme: "digest", ID: "a"}}, []ACL{{Perms: PermRead, Scheme: "digest", ID: "b"}}
	w.data.add("/d/x", a, watchOnce)
	w.children.add("/d", b, watchOnce)
	w.created(treeEvent{path: "/d/x", zxid: 5, acl: own, parentACL: parents})
	assert.Equal(t, []watchEvent{{eventCreated, "/d/x", 5, own}}, a.told)
	assert.Equal(t, []watchEvent{{eventChildren, "/d", 5, parents}}, b.told)
}

func TestManyWatchersOfOneNodeAreAllNotified(t *testing.T) {
	w := newWatches()
	ears := make([]*ear, 100)
	for i := range ears {
		ears[i] = &ear{}
		w.data.add("/x", ears[i], watchOnce)
	}
	w.changed(treeEvent{path: "/x"})
	assert.False(t, slices.ContainsFunc(ears, func(e *ear) bool { return len(e.heard()) != 1 }))
}
