// SPDX-License-Identifier: Apache-2.0

package frames

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// A request for a new session does not mention an earlier one: neither its number and password nor the last transaction that
// it has seen, because of which a restored ensemble would refuse it.
func TestARequestForANewSessionHasNoZxidOfTheLast(t *testing.T) {
	earlier := bytes.Repeat([]byte{7}, 48)
	p := NewSessionRequest(earlier)
	require.Equal(t, bytes.Repeat([]byte{7}, 48), earlier, "it is the caller's")
	want := slices.Concat(bytes.Repeat([]byte{7}, 8), make([]byte, 8), bytes.Repeat([]byte{7}, 4), make([]byte, 8), bytes.Repeat([]byte{7}, 4), make([]byte, 16))
	require.Equal(t, want, p)
}

func TestATooShortPieceIsNotARequest(t *testing.T) {
	whole := []byte{0, 0, 0, 8, 0, 0, 0, 5, 0, 0, 0, 3}
	r, ok := Parse(whole)
	require.True(t, ok)
	require.Equal(t, []int32{5, 3}, []int32{r.Xid(), r.Op()})
	r.Number(6)
	require.Equal(t, int32(6), r.Xid())
	require.Equal(t, byte(5), whole[7], "the piece is the sender's")
	for n := range whole {
		_, ok := Parse(whole[:n])
		require.False(t, ok, n)
	}
}

func TestARequestKnowsWhetherItSetsAWatch(t *testing.T) {
	for _, r := range []Request{Get("/a", true), Children("/a", true), newRequest(OpSetWatches, 0), newRequest(106, 0)} { // the last adds one
		require.True(t, r.Watches())
	}
	for _, r := range []Request{Get("/a", false), Children("/a", false), Exists("/\x01"), Sync("/"), Delete("/a", 1), newRequest(OpPing, 0)} {
		require.False(t, r.Watches())
	}
}

func TestAConnectionRequestContainsTheNewestZxid(t *testing.T) {
	p := bytes.Repeat([]byte{0}, 48)
	p[15] = 5
	require.Equal(t, byte(7), SawRequest(p, 7)[15])
	require.Equal(t, byte(5), SawRequest(p, 3)[15], "the client library has seen more")
	require.Equal(t, byte(5), p[15], "it is the caller's")
}

// The size of a transaction is known before it is made, and no request is copied while it is.
func TestARequestHasItsComputedLength(t *testing.T) {
	acl := []zk.ACL{{Perms: 1, Scheme: "world", ID: "anyone"}, {Perms: 31, Scheme: "digest", ID: "joe:x"}}
	ops := []any{
		&zk.CreateRequest{Path: "/a", Data: []byte("data"), Acl: acl, Flags: 3},
		&zk.CreateRequest{Path: "/none"},
		&zk.SetDataRequest{Path: "/b", Data: []byte{}, Version: 4},
		&zk.DeleteRequest{Path: "/c", Version: -1},
		&zk.CheckVersionRequest{Path: "/", Version: -1},
	}
	size, err := SizeOf(ops)
	require.NoError(t, err)
	require.Len(t, Multi(ops), size)
	const path = "/locks/orders/_c_0123456789abcdef0123456789abcdef-lock-0000000001"
	data := []byte("0123456789abcdef0123456789abcdef")
	for name, r := range map[string]Request{
		"transaction": Multi(ops), "create": Create(path, data, 0, acl), "container": Create(path, nil, zk.FlagContainer, acl),
		"get": Get(path, true), "children": Children(path, false), "exists": Exists(path),
		"set": SetData(path, data, 3), "delete": Delete(path, 3), "watches": SetWatches(1, []string{path, "/b"}, []string{path}),
		"token": SASL(1, data), "credential": Auth(path, data), "close": Close(),
	} {
		require.Equal(t, len(r), cap(r), name)
		require.Less(t, testing.AllocsPerRun(1, func() { r.Number(1) }), 1.0, name)
	}
	for name, r := range map[string]Request{"access": GetACL(path), "sync": Sync(path)} {
		require.Equal(t, len(r)+1, cap(r), name) // as long as a request with a flag
	}
	for _, op := range []any{&zk.CreateTTLRequest{}, zk.DeleteRequest{}, nil} {
		_, err = SizeOf(append(ops, op))
		require.ErrorContains(t, err, "not an operation of a transaction")
	}
}

// Each request is, byte for byte, what the protocol says. Package conn compares most of them with the client library's.
func TestRequestsAreEncoded(t *testing.T) {
	acl := []zk.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}
	world := reply(nil).int(1).int(31).text("world").text("anyone")
	flag := func(r reply, set byte) reply { return append(r, set) }
	none := reply(nil).int(-1)
	for name, c := range map[string]struct {
		made Request
		op   int32
		body []byte
	}{
		"create":    {Create("/a", []byte("x"), 3, acl), OpCreate, slices.Concat(reply(nil).text("/a").text("x"), world, reply(nil).int(3))},
		"container": {Create("/a", nil, zk.FlagContainer, acl), OpCreateContainer, slices.Concat(reply(nil).text("/a"), none, world, reply(nil).int(zk.FlagContainer))},
		"get":       {Get("/a", true), OpGetData, flag(reply(nil).text("/a"), 1)},
		"children":  {Children("/a", false), OpGetChildren2, flag(reply(nil).text("/a"), 0)},
		"exists":    {Exists("/a"), OpExists, flag(reply(nil).text("/a"), 0)},
		"acl":       {GetACL("/a"), OpGetACL, reply(nil).text("/a")},
		"sync":      {Sync("/a"), OpSync, reply(nil).text("/a")},
		"set":       {SetData("/a", []byte{}, 4), OpSetData, reply(nil).text("/a").text("").int(4)},
		"delete":    {Delete("/a", -1), OpDelete, reply(nil).text("/a").int(-1)},
		"watches": {SetWatches(1<<40, []string{"/a", "/b"}, []string{"/c"}), OpSetWatches,
			slices.Concat(reply(nil).long(1 << 40).int(2).text("/a").text("/b").int(0).int(1).text("/c"))},
		"no watches": {SetWatches(3, nil, nil), OpSetWatches, reply(nil).long(3).int(0).int(0).int(0)},
		"close":      {Close(), OpClose, reply{}},
		"auth":       {Auth("digest", []byte("u:p")), OpAuth, reply(nil).int(0).text("digest").text("u:p")},
		"transaction": {Multi([]any{&zk.DeleteRequest{Path: "/a", Version: 2}, &zk.CheckVersionRequest{Path: "/b", Version: -1}}), OpMulti,
			slices.Concat(flag(reply(nil).int(OpDelete), 0).int(-1).text("/a").int(2), flag(reply(nil).int(OpCheck), 0).int(-1).text("/b").int(-1), flag(none, 1).int(-1))},
	} {
		require.Equal(t, c.op, c.made.Op(), name)
		require.Equal(t, c.body, []byte(c.made[head:]), name)
		c.made.Number(9)
		require.Equal(t, int32(9), c.made.Xid(), name)
		require.Equal(t, reply(nil).int(int32(len(c.made)-4)), reply(c.made[:4]), name)
	}
	require.Equal(t, []byte(reply(nil).int(4+4+4+3).int(5).int(OpSASL).text("abc")), SASL(5, []byte("abc")))
	require.Equal(t, []byte(reply(nil).int(44).int(0).long(0).int(1500).long(7).text("0123456789abcdef")), Connect(1500*time.Millisecond, 7, []byte("0123456789abcdef")))
	require.Equal(t, []byte(reply(nil).int(44).int(0).long(0).int(1500).long(0).text(string(make([]byte, maxPassword)))), Connect(1500*time.Millisecond, 0, nil))
}

func TestRequestsThatDifferInTheirNumbersAreAlike(t *testing.T) {
	a, b := Auth("digest", []byte("u:p")), Auth("digest", []byte("u:p"))
	a.Number(1)
	b.Number(2)
	require.True(t, a.IsLike(b))
	require.False(t, a.IsLike(Auth("digest", []byte("u:q"))))
	require.False(t, a.IsLike(Auth("sha", []byte("u:p"))))
	require.False(t, GetACL("/a").IsLike(Sync("/a")))
}

func TestAConnectionRequestIsRead(t *testing.T) {
	p := reply(nil).int(44).int(0).long(99).int(10_000).long(7).text("0123456789abcdef")
	id, ok := SessionOf(p)
	require.True(t, ok)
	require.Equal(t, int64(7), id)
	timeout, ok := TimeoutOf(p)
	require.True(t, ok)
	require.Equal(t, 10*time.Second, timeout)
	for n := range p {
		_, ok = SessionOf(p[:n])
		require.Equal(t, n >= 32, ok, n)
		_, ok = TimeoutOf(p[:n])
		require.Equal(t, n >= 20, ok, n)
	}
}
