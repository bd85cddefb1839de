// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// desk is a reader for a connection, on a replica with a few nodes.
type desk struct {
	reader
	ear *ear
}

func newDesk(t *testing.T) *desk {
	r, ear := follower(t), &ear{id: 7}
	for _, c := range []change{
		{path: "/d", data: []byte("x")}, {path: "/d/a"}, {path: "/d/b"},
		{path: "/e", node: ephemeral, owner: 7}, {path: "/d/e", node: ephemeral, owner: 7},
		{path: "/joes", acl: []ACL{{PermRead, "digest", joe.id}}},
	} {
		c.kind, c.creates = changeCreate, 1
		if c.acl == nil {
			c.acl = root
		}
		r.apply(&txn{zxid: r.tree.zxid + 1, changes: []change{c}})
	}
	return &desk{reader{r: r, who: ear, auth: &credentials{opts: r.opts}, session: 7}, ear}
}

// ask returns the answer to a request.
func (d *desk) ask(r *call) (*decoder, int32) {
	var e encoder
	code := d.encode(&e, r)
	return &decoder{buf: e.buf}, code
}

func stat(d *decoder) Stat {
	return Stat{
		Czxid: d.int64(), Mzxid: d.int64(), Ctime: d.int64(), Mtime: d.int64(), Version: d.int32(), Cversion: d.int32(),
		Aversion: d.int32(), EphemeralOwner: d.int64(), DataLength: d.int32(), NumChildren: d.int32(), Pzxid: d.int64(),
	}
}

func TestEachReadIsAnsweredFromTheReplica(t *testing.T) {
	d := newDesk(t)
	want := d.r.tree.get("/d").fullStat()
	got, code := d.ask(&call{op: OpGetData, path: "/d"})
	require.Equal(t, CodeOK, code)
	assert.Equal(t, []byte("x"), got.buffer())
	assert.Equal(t, want, stat(got))

	got, _ = d.ask(&call{op: OpExists, path: "/d"})
	assert.Equal(t, want, stat(got))
	got, _ = d.ask(&call{op: OpGetChildren, path: "/d"})
	assert.ElementsMatch(t, []string{"a", "b", "e"}, got.strings())
	got, _ = d.ask(&call{op: OpGetChildren2, path: "/d"})
	assert.Len(t, got.strings(), 3)
	assert.Equal(t, want, stat(got))
	got, _ = d.ask(&call{op: OpGetACL, path: "/d"})
	assert.Equal(t, root, got.acls())
	got, _ = d.ask(&call{op: OpGetAllChildrenNumber, path: "/d"})
	assert.Equal(t, int32(3), got.int32())
	got, _ = d.ask(&call{op: OpGetEphemerals, path: "/d"})
	assert.Equal(t, []string{"/d/e"}, got.strings())
	for _, op := range []Op{OpGetData, OpExists, OpGetChildren, OpGetACL} {
		_, code = d.ask(&call{op: op, path: "/no"})
		assert.Equal(t, CodeNoNode, code, "%v", op)
	}
	_, code = d.ask(&call{op: OpReconfig})
	assert.Equal(t, CodeUnimplemented, code)
}

func TestAReadNeedsPermission(t *testing.T) {
	d := newDesk(t)
	for _, op := range []Op{OpGetData, OpGetChildren, OpGetACL} {
		_, code := d.ask(&call{op: op, path: "/joes"})
		assert.Equal(t, CodeNoAuth, code, "%v", op)
	}
	_, code := d.ask(&call{op: OpExists, path: "/joes"})
	assert.Equal(t, CodeOK, code, "until 3.8 existence is no secret")
	d.r.opts.Flavor = ZooKeeper39
	_, code = d.ask(&call{op: OpExists, path: "/joes"})
	assert.Equal(t, CodeNoAuth, code, "from 3.9 on it is")
	d.auth.add(joe)
	got, code := d.ask(&call{op: OpGetACL, path: "/joes"})
	require.Equal(t, CodeOK, code)
	assert.Equal(t, "joe:x", got.acls()[0].ID, "the hash is for administrators")
	got, _ = d.ask(&call{op: OpWhoAmI})
	assert.Equal(t, int32(1), got.int32())
	assert.Equal(t, []string{"digest", "joe"}, []string{got.string(), got.string()})
}

func TestAReadSetsTheRequestedWatch(t *testing.T) {
	d := newDesk(t)
	w := d.r.watches
	for _, r := range []*call{
		{op: OpGetData, path: "/d"}, {op: OpExists, path: "/no"}, {op: OpExists, path: "/e"},
	} {
		r.watch = true
		_, _ = d.ask(r)
		assert.True(t, w.data.has(r.path, d.ear), r.path)
	}
	_, _ = d.ask(&call{op: OpGetChildren, path: "/d", watch: true})
	assert.True(t, w.children.has("/d", d.ear))
	for _, r := range []*call{
		{op: OpGetData, path: "/gone", watch: true}, {op: OpGetChildren, path: "/gone", watch: true}, {op: OpGetData, path: "/d/a"},
		{op: OpGetData, path: "/joes", watch: true},
	} {
		_, _ = d.ask(r)
		assert.Zero(t, w.on(r.path), "%v of %s", r.op, r.path)
	}
}

func TestPersistentWatchesAreAddedAndRemoved(t *testing.T) {
	d := newDesk(t)
	ask := func(op Op, flags int32) int32 {
		_, code := d.ask(&call{op: op, path: "/d", flags: flags})
		return code
	}
	const children, data, any = 1, 2, 3
	assert.Equal(t, CodeMarshalling, ask(OpAddWatch, 2))
	assert.Equal(t, CodeNoWatcher, ask(OpRemoveWatches, any))
	assert.Equal(t, CodeOK, ask(OpAddWatch, 0))
	assert.Equal(t, 2, d.r.watches.on("/d"))
	assert.Equal(t, CodeOK, ask(OpCheckWatches, children))
	assert.Equal(t, 2, d.r.watches.on("/d"), "a check removes nothing")
	assert.Equal(t, CodeOK, ask(OpRemoveWatches, children))
	assert.Equal(t, CodeNoWatcher, ask(OpCheckWatches, children))
	assert.Equal(t, CodeOK, ask(OpRemoveWatches, any))
	assert.Equal(t, CodeOK, ask(OpAddWatch, 1))
	assert.Equal(t, CodeOK, ask(OpRemoveWatches, data))
	assert.Equal(t, CodeMarshalling, ask(OpRemoveWatches, 4))
	d.r.watches.children.add("/d", d.ear, watchOnce)
	assert.Equal(t, CodeOK, ask(OpRemoveWatches, any), "one of either sort will do")
	assert.Zero(t, d.r.watches.count())
}

func TestACheckSeesTheWatchesOfOthersUntil38(t *testing.T) {
	d := newDesk(t)
	d.r.watches.data.add("/d", &ear{}, watchOnce)
	check := &call{op: OpCheckWatches, path: "/d", flags: 2}
	_, code := d.ask(check)
	assert.Equal(t, CodeOK, code)
	d.r.opts.Flavor = ZooKeeper39
	_, code = d.ask(check)
	assert.Equal(t, CodeNoWatcher, code)
}

func TestTheReadsOfAMultiReadFailOneByOne(t *testing.T) {
	d := newDesk(t)
	got, code := d.ask(&call{op: OpMultiRead, subs: []call{
		{op: OpGetData, path: "/d", watch: true}, {op: OpGetData, path: "/no"}, {op: OpGetChildren, path: "/e"},
	}})
	require.Equal(t, CodeOK, code)
	head := func() [3]int32 {
		op, done := got.int32(), got.bool()
		last := int32(0)
		if done {
			last = 1
		}
		return [3]int32{op, last, got.int32()}
	}
	assert.Equal(t, [3]int32{int32(OpGetData), 0, 0}, head())
	assert.Equal(t, []byte("x"), got.buffer())
	stat(got)
	assert.Equal(t, [3]int32{-1, 0, CodeNoNode}, head())
	assert.Equal(t, CodeNoNode, got.int32())
	assert.Equal(t, [3]int32{int32(OpGetChildren), 0, 0}, head())
	assert.Empty(t, got.strings())
	assert.Equal(t, [3]int32{-1, 1, -1}, head())
	assert.Empty(t, got.buf)
	assert.Zero(t, d.r.watches.count(), "a multi sets none")
}

func TestTheDecoderReadsWhatTheEncoderWrites(t *testing.T) {
	var e encoder
	e.int64(-5)
	e.bool(true)
	e.buffer(nil)
	e.buffer([]byte{})
	e.string("é𝄞")
	e.strings([]string{"a", ""})
	e.acls(root)
	d := decoder{buf: e.buf}
	assert.Equal(t, int64(-5), d.int64())
	assert.True(t, d.bool())
	assert.Nil(t, d.buffer())
	assert.Equal(t, []byte{}, d.buffer())
	assert.Equal(t, "é\xed\xa0\xb4\xed\xb4\x9e", d.string(), "four bytes of UTF-8 are Java's two surrogates")
	assert.Equal(t, []string{"a", ""}, d.strings())
	assert.Equal(t, root, d.acls())
	require.NoError(t, d.err)
	assert.Empty(t, d.buf)
	d.int32()
	assert.Error(t, d.err)
}
