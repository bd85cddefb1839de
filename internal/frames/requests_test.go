package frames

import (
	"bytes"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// A request for a new session says nothing of an earlier one: neither its number and password nor the last transaction that
// it has seen, because of which a restored ensemble would refuse it.
func TestARequestForANewSessionTellsNothingOfTheLast(t *testing.T) {
	earlier := bytes.Repeat([]byte{7}, 48)
	p := NewSessionRequest(earlier)
	require.Equal(t, bytes.Repeat([]byte{7}, 48), earlier, "it is the caller's")
	want := slices.Concat(bytes.Repeat([]byte{7}, 8), make([]byte, 8), bytes.Repeat([]byte{7}, 4), make([]byte, 8), bytes.Repeat([]byte{7}, 4), make([]byte, 16))
	require.Equal(t, want, p)
}

func TestAPieceThatIsTooShortIsNoRequest(t *testing.T) {
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

func TestARequestSaysWhetherItSetsAWatch(t *testing.T) {
	for _, r := range []Request{Get("/a", true), Children("/a", true), newRequest(OpSetWatches, 0), newRequest(106, 0)} { // the last adds one
		require.True(t, r.Watches())
	}
	for _, r := range []Request{Get("/a", false), Children("/a", false), Exists("/\x01"), Sync("/"), Delete("/a", 1), newRequest(OpPing, 0)} {
		require.False(t, r.Watches())
	}
}

func TestARequestSaysTheNewestTransactionThatWasSeen(t *testing.T) {
	p := bytes.Repeat([]byte{0}, 48)
	p[15] = 5
	require.Equal(t, byte(7), SawRequest(p, 7)[15])
	require.Equal(t, byte(5), SawRequest(p, 3)[15], "the client library has seen more")
	require.Equal(t, byte(5), p[15], "it is the caller's")
}

// The size of a transaction is known before it is made, and no request is copied while it is.
func TestARequestIsAsLongAsItWasSaidToBe(t *testing.T) {
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
	for name, r := range map[string]Request{
		"transaction": Multi(ops), "create": Create("/a", []byte("x"), 0, acl), "container": Create("/a", nil, zk.FlagContainer, acl),
		"get": Get("/a", true), "children": Children("/a", false), "exists": Exists("/a"), "access": GetACL("/a"), "sync": Sync("/"),
		"set": SetData("/a", []byte("x"), 3), "delete": Delete("/a", 3),
	} {
		require.LessOrEqual(t, cap(r)-len(r), 16, name)
		require.Less(t, testing.AllocsPerRun(1, func() { r.Number(1) }), 1.0, name)
	}
	for _, op := range []any{&zk.CreateTTLRequest{}, zk.DeleteRequest{}, nil} {
		_, err = SizeOf(append(ops, op))
		require.ErrorContains(t, err, "no operation of a transaction")
	}
}
