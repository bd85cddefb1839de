// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/wire"
)

// rule is a sentence about a ZooKeeper server and a function that checks it.
type rule struct {
	sentence string
	check    func(e *env)
}

// env has a client and a separate root node for the check of a rule.
type env struct {
	*client
	root    string
	release int // the server's Version
}

// another opens one more session.
func (e *env) another() *client {
	e.t.Helper()
	return connect(e.t, e.dial)
}

// Run checks every rule against the server to which dial connects. The server must
// allow TTL nodes, and there must be no other writes meanwhile.
func Run(t *testing.T, dial Dial) {
	RunEach(t, func(t *testing.T, check func(*testing.T, Dial)) { check(t, dial) })
}

// RunEach is like Run, but with a server for each rule: around starts it and calls
// check with a Dial for it. around may do so in a testing/synctest bubble.
func RunEach(t *testing.T, around func(t *testing.T, check func(*testing.T, Dial))) {
	for _, group := range [][]rule{connections, requests, transactions, semantics, watching, sessions, access} {
		for _, r := range group {
			t.Run(r.sentence, func(t *testing.T) { around(t, r.run) })
		}
	}
}

func (r rule) run(t *testing.T, dial Dial) {
	e := &env{client: connect(t, dial), root: uniqueRoot(), release: Version(t, dial)}
	e.create(e.root, persistent)
	r.check(e)
	connect(t, dial).removeAll(e.root)
}

var connections = []rule{
	{"a frame longer than jute.maxbuffer closes the connection", func(e *env) {
		require.NoError(e.t, e.wire.Raw(wire.NewBody().Int(1048576).Bytes()))
		e.closed()
	}},
	{"a frame of negative length closes the connection", func(e *env) {
		require.NoError(e.t, e.wire.Raw(wire.NewBody().Int(-5).Bytes()))
		e.closed()
	}},
	{"a frame too short for a request header closes the connection", func(e *env) {
		require.NoError(e.t, e.wire.Raw(wire.NewBody().Int(3).Bool(true).Bool(true).Bool(true).Bytes()))
		e.closed()
	}},
	{"a connect request that is cut short closes the connection", func(e *env) {
		w := open(e.t, e.dial)
		require.NoError(e.t, w.Raw(wire.NewBody().Int(0).Long(0).Framed()))
		_, err := w.Read()
		require.Error(e.t, err)
		require.True(e.t, isEnd(err))
	}},
	{"the connect reply has the read-only byte only if the request had it", func(e *env) {
		for _, asked := range []bool{false, true} {
			sess, err := open(e.t, e.dial).Connect(wire.Hello{Timeout: 10000, ReadOnly: asked})
			require.NoError(e.t, err)
			require.Equal(e.t, asked, sess.ReadOnly)
		}
	}},
	{"a session that nobody knows is refused with zeros and the connection closed", func(e *env) {
		e.refused(wire.Hello{Timeout: 10000, Session: 0x123456789, Passwd: e.sess.Passwd})
	}},
	{"a session with the wrong password is refused with zeros and the connection closed", func(e *env) {
		e.refused(wire.Hello{Timeout: 10000, Session: e.sess.ID, Passwd: bytes.Repeat([]byte{7}, 16)})
	}},
	{"a client that has seen a later zxid is closed without a reply", func(e *env) {
		w := open(e.t, e.dial)
		_, err := w.Connect(wire.Hello{Timeout: 10000, LastZxid: 1 << 60})
		require.Error(e.t, err)
		require.True(e.t, isEnd(err), "%v", err)
	}},
	{"a session's requests continue on a new connection", func(e *env) {
		e.create(e.root+"/e", ephemeral)
		e.reattach()
		require.Equal(e.t, e.sess.ID, e.stat(e.root+"/e").EphemeralOwner)
	}},
	{"a new connection of a session closes the old one", func(e *env) {
		old := *e.client
		e.attach(wire.Hello{Timeout: e.sess.Timeout, Session: e.sess.ID, Passwd: e.sess.Passwd})
		old.closed()
		require.True(e.t, e.has(e.root))
	}},
	{"ruok is answered with imok and the end of the connection", func(e *env) {
		w := open(e.t, e.dial)
		require.NoError(e.t, w.Raw([]byte("ruok")))
		b, err := w.ReadAll()
		require.NoError(e.t, err)
		require.Equal(e.t, "imok", string(b))
	}},
}

func (e *env) refused(h wire.Hello) {
	e.t.Helper()
	w := open(e.t, e.dial)
	sess, err := w.Connect(h)
	require.NoError(e.t, err)
	require.Equal(e.t, wire.Session{Passwd: make([]byte, 16)}, sess)
	_, err = w.Read()
	require.True(e.t, err != nil && isEnd(err), "%v", err)
}

var requests = []rule{
	{"a ping is answered under xid -2", func(e *env) { e.do(opPing, nil) }},
	{"an unknown request type is answered as unimplemented, and the connection closed", func(e *env) {
		e.fails(-6, 77, nil)
		e.closed()
	}},
	{"a write whose body cannot be decoded is a marshalling error", func(e *env) {
		e.fails(-5, opCreate, wire.NewBody().Int(1000))
		e.fails(-5, opMulti, multiBody(sub{99, wire.NewBody()}))
	}},
	{"a read whose body cannot be decoded is a marshalling error", func(e *env) {
		e.fails(-5, opGetData, wire.NewBody().Int(1000))
		require.True(e.t, e.has(e.root), "and the connection stays")
	}},
	{"create answers the path alone, with its own zxid before it", func(e *env) {
		r := e.ok(opCreate, createBody(e.root+"/a", nil, world, persistent))
		require.Equal(e.t, r.zxid, e.stat(e.root+"/a").Czxid)
		require.Equal(e.t, e.root+"/a", r.p.Str())
		require.Zero(e.t, r.p.Left())
	}},
	{"create2, createContainer and createTTL answer the path and the stat", func(e *env) {
		for _, r := range []reply{
			e.ok(opCreate2, createBody(e.root+"/2", []byte("abc"), world, persistent)),
			e.ok(opCreateContainer, createBody(e.root+"/c", []byte("abc"), world, container)),
			e.ok(opCreateTTL, createBody(e.root+"/t", []byte("abc"), world, ttl).Long(60000)),
		} {
			path, stat := r.p.Str(), r.p.Stat()
			require.NoError(e.t, r.p.Err)
			require.Equal(e.t, e.stat(path), stat)
			require.Equal(e.t, int32(3), stat.DataLength)
		}
	}},
	{"a null buffer is not an empty one", func(e *env) {
		for _, data := range [][]byte{nil, {}, []byte("x")} {
			e.ok(opSetData, setBody(e.root, data, -1))
			require.Equal(e.t, data, e.ok(opGetData, readBody(e.root, false)).p.Buf())
		}
	}},
	{"getChildren answers the names, getChildren2 the parent's stat too", func(e *env) {
		e.create(e.root+"/a", persistent)
		r := e.ok(opGetChildren, readBody(e.root, false))
		require.Equal(e.t, []string{"a"}, r.p.Strs())
		require.Zero(e.t, r.p.Left())
		r = e.ok(opGetChildren2, readBody(e.root, false))
		require.Equal(e.t, []string{"a"}, r.p.Strs())
		require.Equal(e.t, e.stat(e.root), r.p.Stat())
	}},
	{"reads of a missing node answer no node", func(e *env) {
		for _, op := range []int32{opExists, opGetData, opGetChildren, opGetChildren2} {
			e.fails(-101, op, readBody(e.root+"/no", false))
		}
	}},
	{"sync answers its path, of a missing node too", func(e *env) {
		require.Equal(e.t, e.root+"/no", e.ok(opSync, wire.NewBody().Str(e.root+"/no")).p.Str())
	}},
	{"getEphemerals answers the session's own nodes below a prefix", func(e *env) {
		e.create(e.root+"/e", ephemeral)
		e.another().create(e.root+"/f", ephemeral)
		require.Equal(e.t, []string{e.root + "/e"}, e.ok(opGetEphemerals, wire.NewBody().Str(e.root)).p.Strs())
		require.Empty(e.t, e.ok(opGetEphemerals, wire.NewBody().Str(e.root+"/x")).p.Strs())
	}},
	{"getAllChildrenNumber counts the descendants", func(e *env) {
		e.create(e.root+"/a", persistent)
		e.create(e.root+"/a/b", persistent)
		e.create(e.root+"/c", persistent)
		require.Equal(e.t, int32(3), e.ok(opAllChildren, wire.NewBody().Str(e.root)).p.Int())
	}},
	{"whoAmI answers the address and the authenticated user", func(e *env) {
		e.ok(opAuth, authBody("digest", "joe:secret"))
		p := e.ok(opWhoAmI, nil).p
		ids := map[string]string{}
		for n := p.Int(); n > 0; n-- {
			scheme := p.Str()
			ids[scheme] = p.Str()
		}
		require.Equal(e.t, "joe", ids["digest"])
		require.Contains(e.t, ids, "ip")
	}},
	{"multiRead answers data, children and errors one by one", func(e *env) {
		e.ok(opSetData, setBody(e.root, []byte("d"), -1))
		e.create(e.root+"/a", persistent)
		list := parseMulti(e.ok(opMultiRead, multiBody(
			sub{opGetData, readBody(e.root, false)}, sub{opGetData, readBody(e.root+"/no", false)}, sub{opGetChildren, readBody(e.root, false)},
		)).p)
		require.Len(e.t, list, 3)
		require.Equal(e.t, []byte("d"), list[0].data)
		require.Equal(e.t, int32(-101), list[1].err)
		require.Equal(e.t, int32(-101), list[1].code)
		require.Equal(e.t, []string{"a"}, list[2].names)
	}},
	{"the flags of a create must be known, and a TTL must fit them", func(e *env) {
		e.fails(-8, opCreate, createBody(e.root+"/a", nil, world, 7))
		e.fails(-8, opCreate, createBody(e.root+"/a", nil, world, -1))
		e.fails(-8, opCreateTTL, ttlBody(e.root+"/a", ttl, 0))
		e.fails(-8, opCreateTTL, ttlBody(e.root+"/a", ttl, 1<<41))
		e.fails(-8, opCreateTTL, ttlBody(e.root+"/a", persistent, 1000))
		e.fails(-8, opCreate, createBody(e.root+"/a", nil, world, ttl))
	}},
	{"an ephemeral or sequential mode is heeded by create2 as by create", func(e *env) {
		for _, op := range []int32{opCreate, opCreate2} {
			path := e.ok(op, createBody(e.root+"/n", nil, world, ephSeq)).p.Str()
			require.Equal(e.t, e.sess.ID, e.stat(path).EphemeralOwner)
		}
		require.True(e.t, e.has(e.root+"/n0000000001"))
	}},
}

func authBody(scheme, credentials string) *wire.Body {
	return wire.NewBody().Int(0).Str(scheme).Buf([]byte(credentials))
}

var transactions = []rule{
	{"every write takes one zxid, a failed one too, and a read takes none", func(e *env) {
		z := e.ok(opCreate, createBody(e.root+"/a", nil, world, persistent)).zxid
		require.Equal(e.t, z+1, e.fails(-110, opCreate, createBody(e.root+"/a", nil, world, persistent)).zxid)
		require.Equal(e.t, z+2, e.fails(-103, opSetData, setBody(e.root, nil, 99)).zxid)
		require.Equal(e.t, z+2, e.ok(opExists, readBody(e.root, false)).zxid)
		require.Equal(e.t, z+3, e.fails(-101, opDelete, deleteBody(e.root+"/no", -1)).zxid)
		require.Equal(e.t, z+3, e.ok(opSync, wire.NewBody().Str("/")).zxid)
		require.Equal(e.t, z+4, e.ok(opSetData, setBody(e.root, nil, -1)).zxid)
	}},
	{"before 3.9 a create that cannot be decoded takes a zxid too", func(e *env) {
		z := e.set(e.root).Mzxid
		if e.release < 309 {
			z++
		}
		require.Equal(e.t, z, e.fails(-5, opCreate, wire.NewBody().Int(1000)).zxid)
		require.Equal(e.t, z+1, e.set(e.root).Mzxid)
	}},
	{"the beginning and the end of a session take one zxid each", func(e *env) {
		z := e.ok(opSetData, setBody(e.root, nil, -1)).zxid
		other := e.another()
		require.Equal(e.t, z+1, e.ok(opExists, readBody(e.root, false)).zxid)
		require.Equal(e.t, z+2, other.close())
		require.Equal(e.t, z+3, e.ok(opSetData, setBody(e.root, nil, -1)).zxid)
	}},
	{"all steps of a multi share one zxid", func(e *env) {
		r := e.ok(opMulti, multiBody(
			sub{opCreate, createBody(e.root+"/a", nil, world, persistent)},
			sub{opCreate2, createBody(e.root+"/b", nil, world, container)},
			sub{opSetData, setBody(e.root+"/a", []byte("x"), 0)},
			sub{opCheck, deleteBody(e.root+"/a", 1)},
			sub{opDelete, deleteBody(e.root+"/b", 0)},
		))
		list := parseMulti(r.p)
		require.Len(e.t, list, 5)
		require.Equal(e.t, e.root+"/a", list[0].path)
		require.Equal(e.t, r.zxid, list[1].stat.Czxid)
		require.Equal(e.t, r.zxid, list[2].stat.Mzxid)
		require.Equal(e.t, []int32{opCreate, opCreate2, opSetData, opCheck, opDelete},
			[]int32{list[0].op, list[1].op, list[2].op, list[3].op, list[4].op})
		stat := e.stat(e.root + "/a")
		require.Equal(e.t, r.zxid, stat.Czxid)
		require.Equal(e.t, r.zxid, stat.Mzxid)
		require.Equal(e.t, r.zxid, e.stat(e.root).Pzxid)
	}},
	{"a multi that fails answers 0 before the bad step, its code, -2 after it, and changes nothing", func(e *env) {
		before := e.stat(e.root)
		r := e.ok(opMulti, multiBody(
			sub{opCreate, createBody(e.root+"/a", nil, world, persistent)},
			sub{opDelete, deleteBody(e.root+"/no", -1)},
			sub{opCreate, createBody(e.root+"/b", nil, world, persistent)},
		))
		var codes []int32
		for _, s := range parseMulti(r.p) {
			require.Equal(e.t, int32(-1), s.op)
			require.Equal(e.t, s.err, s.code)
			codes = append(codes, s.code)
		}
		require.Equal(e.t, []int32{0, -101, -2}, codes)
		require.Equal(e.t, before, e.stat(e.root))
		require.Equal(e.t, r.zxid+1, e.ok(opSetData, setBody(e.root, nil, -1)).zxid, "but it took a zxid")
	}},
	{"inside a multi the flags decide what a create makes, and before 3.9 they alone whether its stat is answered", func(e *env) {
		list := parseMulti(e.ok(opMulti, multiBody(
			sub{opCreate2, createBody(e.root+"/a", nil, world, persistent)},
			sub{opCreateContainer, createBody(e.root+"/b", nil, world, persistent)},
			sub{opCreate, createBody(e.root+"/c", nil, world, container)},
		)).p)
		want := []int32{opCreate, opCreate, opCreate2}
		if e.release >= 309 {
			want = []int32{opCreate2, opCreate2, opCreate2}
		}
		require.Equal(e.t, want, []int32{list[0].op, list[1].op, list[2].op})
	}},
	{"reconfig is disabled, which is a failed write", func(e *env) {
		e.fails(-123, 16, wire.NewBody().Buf(nil).Buf(nil).Buf(nil).Long(-1))
	}},
	{"an empty multi succeeds", func(e *env) {
		require.Empty(e.t, parseMulti(e.ok(opMulti, multiBody()).p))
	}},
	{"a later step of a multi sees what the earlier ones did", func(e *env) {
		list := parseMulti(e.ok(opMulti, multiBody(
			sub{opCreate, createBody(e.root+"/d", nil, world, persistent)},
			sub{opCreate, createBody(e.root+"/d/n-", nil, world, sequential)},
			sub{opCreate, createBody(e.root+"/d/n-", nil, world, sequential)},
			sub{opDelete, deleteBody(e.root+"/d/n-0000000000", -1)},
		)).p)
		require.Equal(e.t, e.root+"/d/n-0000000001", list[2].path)
		bad := parseMulti(e.ok(opMulti, multiBody(
			sub{opDelete, deleteBody(e.root+"/d/n-0000000001", -1)},
			sub{opDelete, deleteBody(e.root+"/d", -1)},
			sub{opCreate, createBody(e.root+"/d/x", nil, world, persistent)},
		)).p)
		require.Equal(e.t, int32(-101), bad[2].code)
		require.True(e.t, e.has(e.root+"/d"))
	}},
	{"check with version -1 tests that a node exists", func(e *env) {
		for path, code := range map[string]int32{e.root: 0, e.root + "/no": -101} {
			list := parseMulti(e.ok(opMulti, multiBody(sub{opCheck, deleteBody(path, -1)})).p)
			require.Equal(e.t, code, list[0].code)
		}
	}},
}

var semantics = []rule{
	{"the shown cversion counts creates and deletes of children", func(e *env) {
		for i := range 5 {
			e.create(fmt.Sprintf("%s/%d", e.root, i), persistent)
		}
		require.Equal(e.t, int32(5), e.stat(e.root).Cversion)
		for i := range 5 {
			e.delete(fmt.Sprintf("%s/%d", e.root, i))
		}
		require.Equal(e.t, int32(10), e.stat(e.root).Cversion)
	}},
	{"a sequence number counts the creates of any child and no deletes", func(e *env) {
		seq := func() string { return e.create(e.root+"/n-", sequential)[len(e.root)+3:] }
		require.Equal(e.t, "0000000000", seq())
		require.Equal(e.t, "0000000001", seq())
		e.delete(e.root + "/n-0000000000")
		require.Equal(e.t, "0000000002", seq())
		e.create(e.root+"/plain", persistent)
		require.Equal(e.t, "0000000004", seq())
		for _, name := range []string{"n-0000000001", "n-0000000002", "plain", "n-0000000004"} {
			e.delete(e.root + "/" + name)
		}
		require.Equal(e.t, "0000000005", seq(), "emptying the parent does not reset it")
	}},
	{"a parent that is deleted and made again counts from 0", func(e *env) {
		for range 2 {
			e.create(e.root+"/d", persistent)
			path := e.create(e.root+"/d/n-", sequential)
			require.Equal(e.t, e.root+"/d/n-0000000000", path)
			e.delete(path)
			e.delete(e.root + "/d")
		}
	}},
	{"a failed sequential create takes no number", func(e *env) {
		e.fails(-114, opCreate, createBody(e.root+"/n-", nil, nil, sequential))
		require.Equal(e.t, e.root+"/n-0000000000", e.create(e.root+"/n-", sequential))
	}},
	{"pzxid moves with creates and deletes of children, and with nothing else", func(e *env) {
		e.create(e.root+"/a", persistent)
		made := e.stat(e.root + "/a").Czxid
		require.Equal(e.t, made, e.stat(e.root).Pzxid)
		e.set(e.root)
		e.set(e.root + "/a")
		e.create(e.root+"/a/b", persistent)
		e.delete(e.root + "/a/b")
		require.Equal(e.t, made, e.stat(e.root).Pzxid)
		gone := e.ok(opDelete, deleteBody(e.root+"/a", -1)).zxid
		require.Equal(e.t, gone, e.stat(e.root).Pzxid)
	}},
	{"setData raises the version by one and moves mzxid", func(e *env) {
		for i := range int32(3) {
			r := e.ok(opSetData, setBody(e.root, []byte("x"), i))
			stat := r.p.Stat()
			require.Equal(e.t, i+1, stat.Version)
			require.Equal(e.t, r.zxid, stat.Mzxid)
		}
		e.fails(-103, opSetData, setBody(e.root, nil, 2))
	}},
	{"setACL raises the aversion and leaves version and mzxid alone", func(e *env) {
		before := e.stat(e.root)
		stat := e.ok(opSetACL, putACL(wire.NewBody().Str(e.root), world).Int(0)).p.Stat()
		before.Aversion = 1
		require.Equal(e.t, before, stat)
		e.fails(-103, opSetACL, putACL(wire.NewBody().Str(e.root), world).Int(0))
	}},
	{"create checks flags, the slash, the ACL, the parent, the rights, the path and the node in this order", func(e *env) {
		bad := []acl{{31, "nonsense", "x"}}
		e.create(e.root+"/a", persistent)
		e.ok(opCreate, createBody(e.root+"/locked", nil, []acl{{1 | 16, "world", "anyone"}}, persistent))
		e.fails(-8, opCreate, createBody("noslash", nil, bad, persistent))
		e.fails(-114, opCreate, createBody(e.root+"/no/x", nil, bad, persistent))
		e.fails(-101, opCreate, createBody(e.root+"/no/../x", nil, world, persistent))
		e.fails(-102, opCreate, createBody(e.root+"/locked/..", nil, world, persistent))
		e.fails(-8, opCreate, createBody(e.root+"/a/..", nil, world, persistent))
		e.fails(-110, opCreate, createBody(e.root+"/a", nil, world, persistent))
	}},
	{"a path must be absolute, without empty or relative names, control characters or a slash at its end", func(e *env) {
		for _, name := range []string{".", "..", "a\x01", "a\u007f", "\ue000", "x/"} {
			r := e.do(opCreate, createBody(e.root+"/"+name, nil, world, persistent))
			require.Contains(e.t, []int32{-8, -101}, r.err, "%q", name)
		}
		e.fails(-8, opSetData, setBody("relative", nil, -1))
		e.fails(-8, opSetData, setBody(e.root+"//a", nil, -1))
		require.Equal(e.t, e.root+"/.a..b", e.create(e.root+"/.a..b", persistent))
		require.Equal(e.t, e.root+"/é世", e.create(e.root+"/é世", persistent))
	}},
	{"a path with a NUL is bad for writes and exists, and unknown to other reads", func(e *env) {
		odd := e.root + "/a\x00b"
		e.fails(-8, opCreate, createBody(odd, nil, world, persistent))
		e.fails(-8, opDelete, deleteBody(odd, -1))
		e.fails(-8, opSetData, setBody(odd, nil, -1))
		e.fails(-8, opExists, readBody(odd, false))
		for _, op := range []int32{opGetData, opGetChildren, opGetChildren2} {
			e.fails(-101, op, readBody(odd, false))
		}
		e.fails(-101, opGetACL, wire.NewBody().Str(odd))
		e.fails(-101, opAllChildren, wire.NewBody().Str(odd))
	}},
	{"a path may be long", func(e *env) {
		long := e.root + "/" + strings.Repeat("x", 5000)
		require.Equal(e.t, long, e.create(long, persistent))
		e.set(long)
		require.Equal(e.t, long+"/n-0000000000", e.create(long+"/n-", ephSeq))
	}},
	{"a node made without data has none, which is not empty data", func(e *env) {
		for name, data := range map[string][]byte{"/none": nil, "/empty": {}} {
			e.ok(opCreate, createBody(e.root+name, data, world, persistent))
			require.Equal(e.t, data, e.ok(opGetData, readBody(e.root+name, false)).p.Buf())
			require.Zero(e.t, e.stat(e.root+name).DataLength)
		}
	}},
	{"an ephemeral has no children, sequential ones neither", func(e *env) {
		e.create(e.root+"/e", ephemeral)
		e.fails(-108, opCreate, createBody(e.root+"/e/a", nil, world, persistent))
		e.fails(-108, opCreate, createBody(e.root+"/e/n-", nil, world, ephSeq))
	}},
	{"containers and TTL nodes may have children", func(e *env) {
		e.ok(opCreateContainer, createBody(e.root+"/c", nil, world, container))
		e.ok(opCreateTTL, ttlBody(e.root+"/t", ttl, 60000))
		e.create(e.root+"/c/a", ephemeral)
		e.create(e.root+"/t/a", ephemeral)
	}},
	{"containers and TTL nodes show no owner, an ephemeral its session", func(e *env) {
		e.ok(opCreateContainer, createBody(e.root+"/c", nil, world, container))
		e.ok(opCreateTTL, ttlBody(e.root+"/t", ttl, 60000))
		e.create(e.root+"/e", ephemeral)
		require.Zero(e.t, e.stat(e.root+"/c").EphemeralOwner)
		require.Zero(e.t, e.stat(e.root+"/t").EphemeralOwner)
		require.Equal(e.t, e.sess.ID, e.stat(e.root+"/e").EphemeralOwner)
	}},
	{"a TTL node may be sequential", func(e *env) {
		require.Equal(e.t, e.root+"/t-0000000000", e.ok(opCreateTTL, ttlBody(e.root+"/t-", ttlSeq, 60000)).p.Str())
	}},
	{"delete checks the parent, its rights, the node, the version and the children in this order", func(e *env) {
		e.fails(-101, opDelete, deleteBody(e.root+"/no/a", -1))
		e.ok(opCreate, createBody(e.root+"/locked", nil, []acl{{1 | 4 | 16, "world", "anyone"}}, persistent))
		e.fails(-102, opDelete, deleteBody(e.root+"/locked/no", -1))
		e.ok(opSetACL, putACL(wire.NewBody().Str(e.root+"/locked"), world).Int(-1))
		e.fails(-101, opDelete, deleteBody(e.root+"/locked/no", 7))
		e.create(e.root+"/locked/a", persistent)
		e.create(e.root+"/locked/a/b", persistent)
		e.fails(-103, opDelete, deleteBody(e.root+"/locked/a", 7))
		e.fails(-111, opDelete, deleteBody(e.root+"/locked/a", 0))
	}},
	{"the root and ZooKeeper's own nodes cannot be deleted", func(e *env) {
		for _, path := range []string{"/", "/zookeeper", "/zookeeper/quota", "noslash"} {
			e.fails(-8, opDelete, deleteBody(path, -1))
		}
	}},
	{"anyone may delete an ephemeral of another session", func(e *env) {
		e.create(e.root+"/e", ephemeral)
		e.another().delete(e.root + "/e")
		require.False(e.t, e.has(e.root+"/e"))
	}},
}

var watching = []rule{
	{"a watch fires once", func(e *env) {
		e.ok(opGetData, readBody(e.root, true))
		e.set(e.root)
		e.set(e.root)
		require.Equal(e.t, []event{{changed, e.root}}, e.seen())
	}},
	{"a watch set twice is one event", func(e *env) {
		e.ok(opGetData, readBody(e.root, true))
		e.ok(opExists, readBody(e.root, true))
		e.set(e.root)
		require.Equal(e.t, []event{{changed, e.root}}, e.seen())
	}},
	{"create tells exists watches of the node and child watches of the parent", func(e *env) {
		e.fails(-101, opExists, readBody(e.root+"/a", true))
		e.ok(opGetChildren2, readBody(e.root, true))
		e.create(e.root+"/a", persistent)
		require.Equal(e.t, []event{{created, e.root + "/a"}, {children, e.root}}, e.seen())
	}},
	{"delete tells data watches, then child watches, of the node, and then those of the parent", func(e *env) {
		e.create(e.root+"/a", persistent)
		other := e.another()
		e.ok(opGetData, readBody(e.root+"/a", true))
		e.ok(opGetChildren, readBody(e.root, true))
		other.ok(opGetChildren, readBody(e.root+"/a", true))
		e.delete(e.root + "/a")
		require.Equal(e.t, []event{{deleted, e.root + "/a"}, {children, e.root}}, e.seen())
		require.Equal(e.t, []event{{deleted, e.root + "/a"}}, other.seen())
	}},
	{"a connection with a data and a child watch hears of a delete once", func(e *env) {
		e.create(e.root+"/a", persistent)
		e.ok(opGetData, readBody(e.root+"/a", true))
		e.ok(opGetChildren, readBody(e.root+"/a", true))
		e.delete(e.root + "/a")
		require.Equal(e.t, []event{{deleted, e.root + "/a"}}, e.seen())
	}},
	{"getData and getChildren of a missing node leave no watch", func(e *env) {
		e.fails(-101, opGetData, readBody(e.root+"/a", true))
		e.fails(-101, opGetChildren, readBody(e.root+"/a", true))
		e.create(e.root+"/a", persistent)
		e.create(e.root+"/a/b", persistent)
		e.set(e.root + "/a")
		require.Empty(e.t, e.seen())
	}},
	{"a child watch does not fire for data, grandchildren or the parent's own data", func(e *env) {
		e.create(e.root+"/a", persistent)
		e.ok(opGetChildren, readBody(e.root, true))
		e.set(e.root + "/a")
		e.set(e.root)
		e.create(e.root+"/a/b", persistent)
		require.Empty(e.t, e.seen())
		e.delete(e.root + "/a/b")
		e.delete(e.root + "/a")
		require.Equal(e.t, []event{{children, e.root}}, e.seen())
	}},
	{"a data watch does not fire for setACL or children", func(e *env) {
		e.ok(opGetData, readBody(e.root, true))
		e.create(e.root+"/a", persistent)
		e.ok(opSetACL, putACL(wire.NewBody().Str(e.root), world).Int(-1))
		require.Empty(e.t, e.seen())
	}},
	{"an event comes before the reply to the write that caused it", func(e *env) {
		e.ok(opGetData, readBody(e.root, true))
		e.set(e.root)
		require.Equal(e.t, []event{{changed, e.root}}, e.events)
	}},
	{"an event comes before any reply that shows the new state", func(e *env) {
		other := e.another()
		for range 100 {
			other.ok(opGetData, readBody(e.root, true))
			e.xid++
			require.NoError(e.t, e.wire.Send(e.xid, opSetData, setBody(e.root, nil, -1)))
			for other.stat(e.root).Version == other.version {
			}
			require.Equal(e.t, []event{{changed, e.root}}, other.events)
			other.events, other.version = nil, other.stat(e.root).Version
			e.await(e.xid)
		}
	}},
	{"a failed multi fires no watch, one that succeeds those of every step", func(e *env) {
		e.ok(opGetChildren, readBody(e.root, true))
		e.ok(opGetData, readBody(e.root, true))
		e.ok(opMulti, multiBody(sub{opSetData, setBody(e.root, nil, -1)}, sub{opCheck, deleteBody(e.root+"/no", -1)}))
		require.Empty(e.t, e.seen())
		e.ok(opMulti, multiBody(sub{opSetData, setBody(e.root, nil, -1)}, sub{opCreate, createBody(e.root+"/a", nil, world, persistent)}))
		require.Equal(e.t, []event{{changed, e.root}, {children, e.root}}, e.seen())
	}},
	{"watches end with their connection", func(e *env) {
		e.ok(opGetData, readBody(e.root, true))
		e.reattach()
		e.set(e.root)
		require.Empty(e.t, e.seen())
	}},
	{"setWatches tells what changed since its zxid and watches the rest", checkSetWatches},
	{"setWatches2 re-arms persistent watches too", func(e *env) {
		e.ok(opSetWatches2, wire.NewBody().Long(0).Strs(nil).Strs(nil).Strs(nil).Strs([]string{e.root}).Strs([]string{e.root}))
		e.create(e.root+"/a", persistent)
		require.Contains(e.t, e.seen(), event{created, e.root + "/a"})
	}},
	{"a persistent watch fires again and again for the node and its children", func(e *env) {
		require.Zero(e.t, e.ok(opAddWatch, wire.NewBody().Str(e.root).Int(0)).p.Int())
		e.set(e.root)
		e.create(e.root+"/a", persistent)
		e.set(e.root + "/a")
		e.set(e.root)
		e.delete(e.root + "/a")
		require.Equal(e.t, []event{{changed, e.root}, {children, e.root}, {changed, e.root}, {children, e.root}}, e.seen())
	}},
	{"a recursive watch hears of every node below and of no children's lists", func(e *env) {
		e.ok(opAddWatch, wire.NewBody().Str(e.root).Int(1))
		e.create(e.root+"/a", persistent)
		e.create(e.root+"/a/b", persistent)
		e.set(e.root + "/a/b")
		e.delete(e.root + "/a/b")
		require.Equal(e.t, []event{{created, e.root + "/a"}, {created, e.root + "/a/b"}, {changed, e.root + "/a/b"}, {deleted, e.root + "/a/b"}}, e.seen())
	}},
	{"an unknown watch mode is a marshalling error", func(e *env) { e.fails(-5, opAddWatch, wire.NewBody().Str(e.root).Int(9)) }},
	{"checkWatches and removeWatches tell whether there is a watch of the type", func(e *env) {
		at := func(kind int32) *wire.Body { return wire.NewBody().Str(e.root).Int(kind) }
		e.fails(-121, opCheckWatches, at(3))
		e.fails(-121, opRemoveWatches, at(3))
		e.ok(opGetData, readBody(e.root, true))
		e.ok(opCheckWatches, at(2))
		e.ok(opCheckWatches, at(3))
		e.fails(-121, opCheckWatches, at(1))
		e.fails(-121, opRemoveWatches, at(1))
		e.ok(opRemoveWatches, at(2))
		e.fails(-121, opRemoveWatches, at(2))
		e.set(e.root)
		require.Empty(e.t, e.seen())
	}},
	{"checkWatches looks for one's own watch, before 3.9 for anybody's", func(e *env) {
		e.another().ok(opGetData, readBody(e.root, true))
		code := int32(0)
		if e.release >= 309 {
			code = -121
		}
		e.fails(code, opCheckWatches, wire.NewBody().Str(e.root).Int(2))
		e.fails(-121, opCheckWatches, wire.NewBody().Str(e.root).Int(1))
		e.fails(-121, opRemoveWatches, wire.NewBody().Str(e.root).Int(2))
	}},
	{"removeWatches of any type takes data and child watches", func(e *env) {
		e.ok(opGetData, readBody(e.root, true))
		e.ok(opGetChildren, readBody(e.root, true))
		e.ok(opRemoveWatches, wire.NewBody().Str(e.root).Int(3))
		e.create(e.root+"/a", persistent)
		e.set(e.root)
		require.Empty(e.t, e.seen())
	}},
}

func checkSetWatches(e *env) {
	at := func(name string) string { return e.root + "/" + name }
	for _, name := range []string{"same", "changed", "gone", "kids", "calm"} {
		e.create(at(name), persistent)
	}
	e.create(at("edge"), persistent)
	rel := e.set(at("edge")).Mzxid // what the client has just seen is no news
	e.set(at("changed"))
	e.delete(at("gone"))
	e.create(at("kids")+"/x", persistent)
	data := []string{at("same"), at("changed"), at("gone"), at("edge")}
	exist := []string{at("no"), at("calm")}
	child := []string{at("calm"), at("kids"), at("gone")}
	e.ok(opSetWatches, wire.NewBody().Long(rel).Strs(data).Strs(exist).Strs(child))
	require.Equal(e.t, []event{
		{changed, at("changed")}, {deleted, at("gone")}, {created, at("calm")}, {children, at("kids")}, {deleted, at("gone")},
	}, e.events, "all before the reply")
	e.events = nil
	e.set(at("same"))
	e.create(at("no"), persistent)
	e.create(at("calm")+"/x", persistent)
	e.set(at("changed"))
	require.Equal(e.t, []event{{changed, at("same")}, {created, at("no")}, {children, at("calm")}}, e.seen())
}

var sessions = []rule{
	{"the timeout is clamped to 2..20 ticks", func(e *env) {
		least, most := connectFor(e.t, e.dial, 1).sess.Timeout, connectFor(e.t, e.dial, 1<<30).sess.Timeout
		require.Equal(e.t, 10*least, most)
		require.Equal(e.t, 3*least, connectFor(e.t, e.dial, 3*least).sess.Timeout)
	}},
	{"the end of a session is one transaction with all its ephemerals", func(e *env) {
		other := e.another()
		other.create(e.root+"/e1", ephemeral)
		other.create(e.root+"/e2", ephemeral)
		other.create(e.root+"/p", persistent)
		e.ok(opGetChildren, readBody(e.root, true))
		end := other.close()
		require.Equal(e.t, []event{{children, e.root}}, e.seen())
		require.Equal(e.t, end, e.stat(e.root).Pzxid)
		require.Equal(e.t, []string{"p"}, e.ok(opGetChildren, readBody(e.root, false)).p.Strs())
		require.Equal(e.t, end+1, e.ok(opSetData, setBody(e.root, nil, -1)).zxid)
	}},
	{"the loss of a connection does not end the session", func(e *env) {
		e.create(e.root+"/e", ephemeral)
		require.NoError(e.t, e.wire.Close())
		other := e.another()
		for range 20 {
			require.True(e.t, other.has(e.root+"/e"))
		}
		e.attach(wire.Hello{Timeout: e.sess.Timeout, Session: e.sess.ID, Passwd: e.sess.Passwd})
		require.NotZero(e.t, e.sess.ID)
	}},
	{"a silent session expires, not before its timeout, and its connection is closed", func(e *env) {
		quiet := connectFor(e.t, e.dial, 1)
		quiet.create(e.root+"/e", ephemeral)
		begin := time.Now()
		e.ok(opExists, readBody(e.root+"/e", true))
		for len(e.events) == 0 {
			e.do(opPing, nil)
			time.Sleep(time.Millisecond)
		}
		least := time.Duration(quiet.sess.Timeout) * time.Millisecond
		assert.GreaterOrEqual(e.t, time.Since(begin), least-10*time.Millisecond)
		quiet.closed()
		e.refused(wire.Hello{Timeout: 10000, Session: quiet.sess.ID, Passwd: quiet.sess.Passwd})
	}},
	{"pings alone keep a session", func(e *env) {
		busy := connectFor(e.t, e.dial, 1)
		busy.create(e.root+"/e", ephemeral)
		pause := time.Duration(busy.sess.Timeout) * time.Millisecond / 4
		for range 12 {
			busy.do(opPing, nil)
			time.Sleep(pause)
		}
		require.True(e.t, e.has(e.root+"/e"))
	}},
	{"a closed session cannot be attached to", func(e *env) {
		other := e.another()
		other.close()
		e.refused(wire.Hello{Timeout: 10000, Session: other.sess.ID, Passwd: other.sess.Passwd})
	}},
}

// joe is a user with a password.
const joe = "joe:secret"

var access = []rule{
	{"an unknown scheme of authentication is refused and the connection closed", func(e *env) {
		e.fails(-115, opAuth, authBody("nonsense", "x"))
		e.closed()
	}},
	{"authentication is answered at zxid 0", func(e *env) { require.Zero(e.t, e.ok(opAuth, authBody("digest", joe)).zxid) }},
	{"an empty ACL, a scheme that is not served and a bad id are invalid", func(e *env) {
		for _, list := range [][]acl{nil, {{31, "nonsense", "x"}}, {{31, "world", "somebody"}}, {{31, "digest", "nocolon"}}, {{31, "ip", "not-an-address"}}, {{31, "auth", ""}}, {{31, "sasl", "joe"}}} {
			e.fails(-114, opCreate, createBody(e.root+"/a", nil, list, persistent))
		}
	}},
	{"a repeated ACL entry is kept once", func(e *env) {
		e.ok(opCreate, createBody(e.root+"/a", nil, []acl{{31, "world", "anyone"}, {1, "ip", "127.0.0.1"}, {31, "world", "anyone"}}, persistent))
		require.Equal(e.t, []acl{{31, "world", "anyone"}, {1, "ip", "127.0.0.1"}}, e.acl(e.root+"/a"))
	}},
	{"auth expands to the caller's digests, hidden from those who may not administer", func(e *env) {
		e.ok(opAuth, authBody("digest", joe))
		e.ok(opCreate, createBody(e.root+"/a", nil, []acl{{31, "auth", ""}, {1, "world", "anyone"}}, persistent))
		require.Equal(e.t, []acl{{31, "digest", "joe:x"}, {1, "world", "anyone"}}, e.another().acl(e.root+"/a"))
		own := e.acl(e.root + "/a")
		require.Equal(e.t, "digest", own[0].scheme)
		require.NotEqual(e.t, "joe:x", own[0].id)
	}},
	{"each right guards its operation", func(e *env) {
		other := e.another()
		other.ok(opAuth, authBody("digest", joe))
		other.ok(opCreate, createBody(e.root+"/a", nil, []acl{{31, "auth", ""}}, persistent))
		a := e.root + "/a"
		e.fails(-102, opGetData, readBody(a, false))
		e.fails(-102, opGetChildren2, readBody(a, false))
		e.fails(-102, opSetData, setBody(a, nil, -1))
		e.fails(-102, opCreate, createBody(a+"/b", nil, world, persistent))
		e.fails(-102, opDelete, deleteBody(a+"/b", -1))
		e.fails(-102, opSetACL, putACL(wire.NewBody().Str(a), world).Int(-1))
		e.fails(-102, opGetACL, wire.NewBody().Str(a))
		if e.release >= 309 {
			e.fails(-102, opExists, readBody(a, false))
		} else {
			e.ok(opExists, readBody(a, false))
		}
		require.Equal(e.t, int32(-102), parseMulti(e.ok(opMulti, multiBody(sub{opCheck, deleteBody(a, -1)})).p)[0].code)
		other.ok(opGetData, readBody(a, false))
		other.set(a)
		e.ok(opAuth, authBody("digest", joe))
		e.set(a)
		other.delete(a)
	}},
	{"a refused read leaves no watch", func(e *env) {
		e.ok(opCreate, createBody(e.root+"/a", nil, []acl{{2, "world", "anyone"}}, persistent))
		e.fails(-102, opGetData, readBody(e.root+"/a", true))
		e.set(e.root + "/a")
		require.Empty(e.t, e.seen())
	}},
	{"an event is kept from a connection that may not read, and its watch is used up", func(e *env) {
		other := e.another()
		other.ok(opAuth, authBody("digest", joe))
		for _, node := range []string{"/set", "/gone", "/kids"} {
			e.create(e.root+node, persistent)
			e.ok(opGetData, readBody(e.root+node, true))
			e.ok(opGetChildren, readBody(e.root+node, true))
			other.ok(opSetACL, putACL(wire.NewBody().Str(e.root+node), []acl{{31, "auth", ""}}).Int(-1))
		}
		e.fails(-101, opExists, readBody(e.root+"/new", true))
		other.set(e.root + "/set")
		other.delete(e.root + "/gone")
		other.create(e.root+"/kids/a", persistent)
		other.ok(opCreate, createBody(e.root+"/new", nil, []acl{{31, "auth", ""}}, persistent))
		require.Empty(e.t, e.seen())
		e.ok(opAuth, authBody("digest", joe))
		other.set(e.root + "/set")
		other.create(e.root+"/kids/b", persistent)
		other.set(e.root + "/new")
		require.Empty(e.t, e.seen(), "none is left")
		other.delete(e.root + "/kids/a")
		other.delete(e.root + "/kids/b")
	}},
	{"setWatches tells what changed without regard to rights", func(e *env) {
		other := e.another()
		other.ok(opAuth, authBody("digest", joe))
		e.create(e.root+"/a", persistent)
		e.ok(opGetData, readBody(e.root+"/a", true))
		zxid := e.set(e.root).Mzxid
		require.NoError(e.t, e.wire.Close())
		other.ok(opSetACL, putACL(wire.NewBody().Str(e.root+"/a"), []acl{{31, "auth", ""}}).Int(-1))
		other.set(e.root + "/a")
		e.attach(wire.Hello{Timeout: e.sess.Timeout, Session: e.sess.ID, Passwd: e.sess.Passwd})
		e.ok(opSetWatches, wire.NewBody().Long(zxid).Strs([]string{e.root + "/a"}).Strs(nil).Strs(nil))
		require.Equal(e.t, []event{{changed, e.root + "/a"}}, e.seen())
	}},
	{"the configuration may be read by all and written by nobody", func(e *env) {
		const config = "/zookeeper/config"
		require.Equal(e.t, []acl{{1, "world", "anyone"}}, e.acl(config))
		e.fails(-102, opSetData, setBody(config, nil, -1))
		e.fails(-102, opCreate, createBody(config+"/x", nil, world, persistent))
		require.Equal(e.t, int32(-1), e.stat(config).Aversion)
		require.Equal(e.t, world, e.acl("/zookeeper"))
		require.Equal(e.t, world, e.acl("/zookeeper/quota"))
	}},
	{"an address has the rights of its ip entry", func(e *env) {
		e.ok(opCreate, createBody(e.root+"/in", nil, []acl{{31, "ip", e.address() + "/30"}}, persistent))
		e.ok(opCreate, createBody(e.root+"/out", nil, []acl{{31, "ip", "10.1.2.3"}}, persistent))
		e.set(e.root + "/in")
		e.fails(-102, opSetData, setBody(e.root+"/out", nil, -1))
	}},
}

// address returns the client's address as the server sees it. For a server in a container, this is the gateway's address.
func (c *client) address() string {
	c.t.Helper()
	p := c.ok(opWhoAmI, nil).p
	for n := p.Int(); n > 0; n-- {
		if scheme, id := p.Str(), p.Str(); scheme == "ip" {
			return id
		}
	}
	require.FailNow(c.t, "no address among the ids")
	return ""
}

func (c *client) acl(path string) []acl {
	c.t.Helper()
	p := c.ok(opGetACL, wire.NewBody().Str(path)).p
	var list []acl
	for n := p.Int(); n > 0; n-- {
		list = append(list, acl{p.Int(), p.Str(), p.Str()})
	}
	return list
}
