package zklock

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// FuzzData has all that reads the data of nodes read anything: what contenders say of
// themselves, requests to let go, notes and marks of evictions, numbers of permits, slots.
func FuzzData(f *testing.F) {
	f.Add(ownerData("label", false))
	f.Add(ownerData("", true))
	f.Add(owner{PID: 1, Shared: true, Revoke: true}.encode())
	f.Add([]byte(`{"revoke":true}`))
	f.Add([]byte(`{"host":"h","pid":7,"label":"\u2028<"}`))
	f.Add([]byte("__REVOKE__"))
	f.Add([]byte("__REVOKE__\n__REVOKE__\nvalue"))
	f.Add(limitData(3))
	f.Add([]byte("zklock: permits +99999999999999999999"))
	guid := newGUID(guidMark)
	f.Add(board{"_c_" + guid + "-lock-0000000001", []string{guid}}.encode())
	f.Add([]byte(notePrefix + evictedPrefix + strings.Repeat("x ", 1000) + strings.Repeat(guid+" ", 1000)))
	f.Add([]byte(`{"periods":[{"done":[{"slot":"a","by":1}]},{"every":"1h0m0s","done":[{"slot":"1970-01-01T00:00:00Z","by":7}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		fuzzRevocations(t, data)
		fuzzBoards(t, data)
		if limit, err := parseLimit(data); err == nil {
			require.True(t, 1 <= limit && limit <= maxPermits)
		}
		fuzzSlots(t, data)
		for _, client := range []string{"_c_" + guid + "-lock-0000000001", "lock-0000000001", "x__WRIT__0000000001"} {
			who := newContenderOf("/l", entry{name: client}, node{data: data, stat: &zk.Stat{}})
			require.GreaterOrEqual(t, who.PID+1, 1, "no process has a negative number")
		}
		require.Equal(t, before, data, "what was read stays as it is")
	})
}

func fuzzRevocations(t *testing.T, data []byte) {
	if o, ok := readOwner(data); ok {
		require.Equal(t, string(data), string(o.encode()))
	}
	asked := withRevocation(data)
	require.True(t, isRevocation(asked))
	require.Equal(t, isDowngraded(data), isDowngraded(asked), "a request changes nothing else")
	if !isRevocation(data) {
		require.Equal(t, string(data), string(withoutRevocation(asked)))
	}
	require.False(t, isDowngraded(withoutRevocation(asked)) && !isDowngraded(data))
}

func fuzzBoards(t *testing.T, data []byte) {
	b, ours := parseBoard(data)
	if !ours {
		require.Empty(t, b.evicted)
		return
	}
	require.LessOrEqual(t, len(b.evicted), maxEvicted)
	guid := newGUID(guidMark)
	next := board{"last", b.withEvicted(guid).evicted}
	require.LessOrEqual(t, len(next.encode()), 64+33*maxEvicted, "what we write ourselves is bounded, whatever stood there")
	back, ours := parseBoard(next.encode())
	require.True(t, ours)
	require.Equal(t, next, back)
	require.Contains(t, back.evicted, guid)
}

func fuzzSlots(t *testing.T, data []byte) {
	s := newSlotAt(&Client{}, "/l", time.Unix(0, 0), time.Hour)
	m, err := s.parse(node{data: data, stat: &zk.Stat{}})
	if err != nil {
		return
	}
	_, err = m.with(s.slotKey, 7, s.name).find(s.slotKey, s.name)
	require.Error(t, err, "%+v is open", m)
}
