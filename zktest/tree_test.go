// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seen records the events of a tree.
type seen struct{ made, gone, set []string }

func (s *seen) created(e treeEvent) { s.made = append(s.made, e.path) }
func (s *seen) deleted(e treeEvent) { s.gone = append(s.gone, e.path) }
func (s *seen) changed(e treeEvent) { s.set = append(s.set, e.path) }

// grown is a tree on which changes are made, each in a transaction of its own.
type grown struct {
	*tree
	seen seen
	ms   int64
}

func newGrown() *grown { return &grown{tree: newTree(false, ZooKeeper38), ms: 1000} }

func (g *grown) do(c change) *znode {
	g.zxid++
	g.ms++
	return g.apply(&c, g.zxid, g.ms, &g.seen)
}

// make creates a node as a leader would decide it.
func (g *grown) make(path string, c change) *znode {
	parent, _ := splitPath(path)
	c.kind, c.path, c.acl, c.creates = changeCreate, path, openACL, g.get(parent).creates+1
	return g.do(c)
}

func TestANewTreeHasTheSystemsNodesOnly(t *testing.T) {
	tr := newTree(false, ZooKeeper38)
	assert.Equal(t, 4, len(tr.nodes))
	assert.Equal(t, 5, tr.count(), "the root counts twice")
	assert.Empty(t, tr.public())
	assert.Same(t, tr.get("/"), tr.get(""))
	assert.Equal(t, []string{"zookeeper"}, tr.get("/").children.names)
}

func TestStatsFollowTheChanges(t *testing.T) {
	g := newGrown()
	dir := g.make("/d", change{})
	g.make("/d/a", change{data: []byte("x")})
	g.make("/d/b", change{})
	g.do(change{kind: changeDelete, path: "/d/a"})
	g.do(change{kind: changeData, path: "/d", data: []byte("yz"), version: 1})
	g.do(change{kind: changeACL, path: "/d", acl: openACL, version: 1})
	got := dir.fullStat()
	assert.Equal(t, Stat{
		Czxid: 1, Mzxid: 5, Ctime: 1001, Mtime: 1005, Version: 1, Cversion: 3, Aversion: 1,
		DataLength: 2, NumChildren: 1, Pzxid: 4,
	}, got)
	assert.Equal(t, seen{made: []string{"/d", "/d/a", "/d/b"}, gone: []string{"/d/a"}, set: []string{"/d"}}, g.seen)
}

func TestAnExhaustedCounterStopsOrWraps(t *testing.T) {
	for wrap, pzxid := range map[bool]int64{false: 1, true: 2} {
		g := newGrown()
		g.wrap = wrap
		dir := g.make("/d", change{})
		dir.creates = math.MaxInt32
		g.do(change{kind: changeCreate, path: "/d/x", acl: openACL, creates: math.MinInt32})
		assert.Equal(t, pzxid, dir.stat.Pzxid, "wrap: %v", wrap)
		assert.Equal(t, wrap, dir.creates == math.MinInt32)
	}
}

func TestEphemeralsAreFoundByTheirSession(t *testing.T) {
	g := newGrown()
	g.make("/a", change{})
	for _, path := range []string{"/a/2", "/a/1", "/b"} {
		g.make(path, change{node: ephemeral, owner: 7})
	}
	g.make("/c", change{node: ephemeral, owner: 8})
	assert.Equal(t, []string{"/a/1", "/a/2", "/b"}, g.ephemeralsOf(7, ""))
	assert.Equal(t, []string{"/a/1", "/a/2"}, g.ephemeralsOf(7, "/a"))
	assert.Equal(t, []string{"/a/1", "/a/2", "/b"}, g.ephemeralsOf(7, " / "))
	assert.Equal(t, []int64{7, 8}, g.owners())
	assert.Equal(t, 4, g.ephemeralCount())
	g.do(change{kind: changeDelete, path: "/c"})
	assert.Equal(t, []int64{7}, g.owners(), "nothing is kept of a session without ephemerals")
	assert.Equal(t, int64(7), g.get("/b").fullStat().EphemeralOwner)
}

func TestTheReaperDeletesOnlyUsedUpNodes(t *testing.T) {
	g := newGrown()
	g.make("/unused", change{node: container})
	g.make("/used", change{node: container})
	g.make("/used/x", change{})
	g.make("/busy", change{node: container})
	g.make("/busy/x", change{})
	g.make("/ttl", change{node: ttlNode, ttl: time.Second})
	g.make("/parent", change{node: ttlNode, ttl: time.Second})
	g.make("/parent/x", change{})
	g.do(change{kind: changeDelete, path: "/used/x"})
	made := time.UnixMilli(g.get("/ttl").stat.Mtime)
	assert.Equal(t, []string{"/used"}, g.overdue(made.Add(time.Second), 0))
	assert.Equal(t, []string{"/ttl", "/used"}, g.overdue(made.Add(time.Second+time.Millisecond), 0))
	assert.Equal(t, []string{"/ttl", "/unused", "/used"}, g.overdue(made.Add(2*time.Minute), time.Minute))
	assert.Equal(t, []string{"/ttl", "/used"}, g.overdue(made.Add(time.Minute/2), time.Minute))
	g.do(change{kind: changeDelete, path: "/used"})
	assert.NotContains(t, g.reapable, "/used")
}

func TestACloneIsIndependent(t *testing.T) {
	g := newGrown()
	g.make("/d", change{node: container})
	g.make("/d/e", change{node: ephemeral, owner: 7, data: []byte("x")})
	c := g.clone()
	g.do(change{kind: changeDelete, path: "/d/e"})
	g.make("/d/f", change{})
	assert.Equal(t, []string{"e"}, c.get("/d").children.names)
	assert.Equal(t, []string{"/d/e"}, c.ephemeralsOf(7, ""))
	assert.Contains(t, c.reapable, "/d")
	assert.Equal(t, int64(2), c.zxid)
	assert.Equal(t, int32(1), c.get("/d").creates)
}

func TestANodeCanBeSavedAndLoaded(t *testing.T) {
	g := newGrown()
	g.make("/c", change{node: container})
	g.make("/c/e", change{node: ephemeral, owner: 7, data: []byte("x")})
	g.make("/t", change{node: ttlNode, ttl: time.Second})
	loaded := newTree(false, ZooKeeper38)
	loaded.load(g.public())
	assert.Equal(t, g.public(), loaded.public())
	assert.Equal(t, g.ephemeralsOf(7, ""), loaded.ephemeralsOf(7, ""))
	assert.Equal(t, g.reapable, loaded.reapable)
	assert.Equal(t, []string{"e"}, loaded.get("/c").children.names)
}

func TestDescendantsAndSizesAreCounted(t *testing.T) {
	g := newGrown()
	for _, path := range []string{"/a", "/a/b", "/a/b/c", "/ab"} {
		g.make(path, change{data: []byte("12345")})
	}
	assert.Equal(t, 2, g.descendants("/a"))
	assert.Equal(t, 7, g.descendants("/"))
	bare := newTree(false, ZooKeeper38).dataSize()
	assert.Equal(t, len("/a/a/b/a/b/c/ab")+4*5, g.dataSize()-bare)
}

func TestChildrenAreListedInAnOrderThatTheSeedDecides(t *testing.T) {
	var set childSet
	var names []string
	for name := 'a'; name <= 'z'; name++ {
		set.add(string(name))
		names = append(names, string(name))
	}
	set.remove("c")
	set.remove("z")
	names = slices.DeleteFunc(names, func(s string) bool { return s == "c" || s == "z" })
	first := set.shuffled(rand.New(rand.NewPCG(1, 1)))
	assert.ElementsMatch(t, names, first)
	assert.False(t, slices.IsSorted(first), "no recipe may rely on an order")
	assert.Equal(t, first, set.shuffled(rand.New(rand.NewPCG(1, 1))))
	assert.Equal(t, 24, set.len())
}

func TestPathsThatZooKeeperRefuses(t *testing.T) {
	for _, path := range []string{"", "a", "/a/", "//", "/a//b", "/.", "/a/../b", "/a\x00", "/\u0085", "/\ud7ff\ue000", "/\ufff0", "/\U0001f600"} {
		assert.NotEmpty(t, badPath(path), "%q", path)
	}
	for _, path := range []string{"/", "/a", "/a/b", "/...", "/é", "/a b", "/zookeeper"} {
		assert.Empty(t, badPath(path), "%q", path)
	}
	for path, want := range map[string][2]string{"/a": {"/", "a"}, "/a/b": {"/a", "b"}, "/": {"/", ""}, "a": {"/", "a"}} {
		parent, name := splitPath(path)
		assert.Equal(t, want, [2]string{parent, name}, "%q", path)
	}
}

func TestAVersionSkipsMinusOne(t *testing.T) {
	for v, want := range map[int32]int32{0: 1, math.MaxInt32: math.MinInt32, -3: -2, -2: 0} {
		require.Equal(t, want, nextVersion(v))
	}
}
