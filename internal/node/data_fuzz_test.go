// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// FuzzData has all that reads the data of nodes read anything: what contenders say of
// themselves, requests to release, notes and marks of evictions, numbers of permits.
//
//zklock:promise P1.2
func FuzzData(f *testing.F) {
	f.Add(OwnerData("label", false))
	f.Add(OwnerData("", true))
	f.Add(Owner{PID: 1, Shared: true, Revoke: true}.Encode())
	f.Add([]byte(`{"revoke":true}`))
	f.Add([]byte(`{"host":"h","pid":7,"label":"\u2028<"}`))
	f.Add([]byte("__REVOKE__"))
	f.Add([]byte("__REVOKE__\n__REVOKE__\nvalue"))
	f.Add(LimitData(3))
	f.Add([]byte("zklock: permits +99999999999999999999"))
	guid := NewGUID(GUIDMark)
	f.Add(DirData{Last: "_c_" + guid + "-lock-0000000001", Evicted: []Eviction{{GUID: guid}}}.Encode())
	f.Add(DirData{Evicted: []Eviction{{guid, Origin{"host", "disk is full"}}}}.Encode())
	f.Add([]byte(NotePrefix + EvictedPrefix + strings.Repeat("x ", 1000) + strings.Repeat(guid+" ", 1000)))
	f.Add([]byte(`{"periods":[{"done":[{"slot":"a","by":1}]},{"every":"1h0m0s","done":[{"slot":"1970-01-01T00:00:00Z","by":7}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		fuzzRevocations(t, data)
		fuzzDirData(t, data)
		if limit, err := ParseLimit(data); err == nil {
			require.True(t, 1 <= limit && limit <= MaxPermits)
		}
		for _, client := range []string{"_c_" + guid + "-lock-0000000001", "lock-0000000001", "x__WRIT__0000000001"} {
			view := Entry{Name: client}.View("/l", data, new(zk.Stat))
			require.GreaterOrEqual(t, view.PID+1, 1, "no process has a negative number")
		}
		require.Equal(t, before, data, "what was read stays as it is")
	})
}

func fuzzRevocations(t *testing.T, data []byte) {
	if o, ok := ReadOwner(data); ok {
		require.Equal(t, string(data), string(o.Encode()))
	}
	asked := WithRevocation(data)
	require.True(t, IsRevocation(asked))
	require.Equal(t, IsDowngraded(data), IsDowngraded(asked), "a request changes nothing else")
	if !IsRevocation(data) {
		require.Equal(t, string(data), string(WithoutRevocation(asked)))
	}
	require.False(t, IsDowngraded(WithoutRevocation(asked)) && !IsDowngraded(data))
}

func fuzzDirData(t *testing.T, data []byte) {
	b, ours := ParseDirData(data)
	if !ours {
		require.Empty(t, b.Evicted)
		return
	}
	require.LessOrEqual(t, len(b.Evicted), MaxEvicted)
	guid := NewGUID(GUIDMark)
	next := DirData{Last: "last", Evicted: b.WithEvicted(Eviction{guid, Origin{"host", "reason"}}).Evicted}
	require.LessOrEqual(t, len(next.Encode()), 64+33*MaxEvicted+MaxOrigins*(3*(maxBy+MaxReason)+20), "what we write ourselves is bounded, whatever stood there")
	back, ours := ParseDirData(next.Encode())
	require.True(t, ours)
	require.Equal(t, next, back)
	require.Contains(t, guidsOf(back), guid)
}
