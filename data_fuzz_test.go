package zklock

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// FuzzData has all that reads the data of nodes read anything: what contenders say of
// themselves, requests to let go, notes and marks of evictions, numbers of permits, slots.
func FuzzData(f *testing.F) {
	f.Add(node.OwnerData("label", false))
	f.Add(node.OwnerData("", true))
	f.Add(node.Owner{PID: 1, Shared: true, Revoke: true}.Encode())
	f.Add([]byte(`{"revoke":true}`))
	f.Add([]byte(`{"host":"h","pid":7,"label":"\u2028<"}`))
	f.Add([]byte("__REVOKE__"))
	f.Add([]byte("__REVOKE__\n__REVOKE__\nvalue"))
	f.Add(node.LimitData(3))
	f.Add([]byte("zklock: permits +99999999999999999999"))
	guid := node.NewGUID(node.GuidMark)
	f.Add(node.Board{Last: "_c_" + guid + "-lock-0000000001", Evicted: []string{guid}}.Encode())
	f.Add([]byte(node.NotePrefix + node.EvictedPrefix + strings.Repeat("x ", 1000) + strings.Repeat(guid+" ", 1000)))
	f.Add([]byte(`{"periods":[{"done":[{"slot":"a","by":1}]},{"every":"1h0m0s","done":[{"slot":"1970-01-01T00:00:00Z","by":7}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		fuzzRevocations(t, data)
		fuzzBoards(t, data)
		if limit, err := node.ParseLimit(data); err == nil {
			require.True(t, 1 <= limit && limit <= node.MaxPermits)
		}
		fuzzSlots(t, data)
		for _, client := range []string{"_c_" + guid + "-lock-0000000001", "lock-0000000001", "x__WRIT__0000000001"} {
			who := newContenderOf("/l", node.Entry{Name: client}, session.Node{Data: data, Stat: &zk.Stat{}})
			require.GreaterOrEqual(t, who.PID+1, 1, "no process has a negative number")
		}
		require.Equal(t, before, data, "what was read stays as it is")
	})
}

func fuzzRevocations(t *testing.T, data []byte) {
	if o, ok := node.ReadOwner(data); ok {
		require.Equal(t, string(data), string(o.Encode()))
	}
	asked := node.WithRevocation(data)
	require.True(t, node.IsRevocation(asked))
	require.Equal(t, node.IsDowngraded(data), node.IsDowngraded(asked), "a request changes nothing else")
	if !node.IsRevocation(data) {
		require.Equal(t, string(data), string(node.WithoutRevocation(asked)))
	}
	require.False(t, node.IsDowngraded(node.WithoutRevocation(asked)) && !node.IsDowngraded(data))
}

func fuzzBoards(t *testing.T, data []byte) {
	b, ours := node.ParseBoard(data)
	if !ours {
		require.Empty(t, b.Evicted)
		return
	}
	require.LessOrEqual(t, len(b.Evicted), node.MaxEvicted)
	guid := node.NewGUID(node.GuidMark)
	next := node.Board{Last: "last", Evicted: b.WithEvicted(guid).Evicted}
	require.LessOrEqual(t, len(next.Encode()), 64+33*node.MaxEvicted, "what we write ourselves is bounded, whatever stood there")
	back, ours := node.ParseBoard(next.Encode())
	require.True(t, ours)
	require.Equal(t, next, back)
	require.Contains(t, back.Evicted, guid)
}

func fuzzSlots(t *testing.T, data []byte) {
	s := newSlotAt(&Client{}, "/l", time.Unix(0, 0), time.Hour)
	m, err := s.parse(session.Node{Data: data, Stat: &zk.Stat{}})
	if err != nil {
		return
	}
	_, err = m.with(s.slotKey, 7, s.name).find(s.slotKey, s.name)
	require.Error(t, err, "%+v is open", m)
}
