// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fleetOf returns a history in which members have joined at the start, and hold that many shards of four each from a second on.
func fleetOf(loads ...int) *History {
	h := &History{End: time.Hour}
	shard := 0
	for i, load := range loads {
		member := int64(len(h.Ops) + 1)
		h.Ops = append(h.Ops, Op{ID: member, Kind: Join, Recipe: Shards, Path: "/f", Client: fmt.Sprint("c", i), Weight: 4})
		for range load {
			h.Ops = append(h.Ops, Op{
				ID: int64(len(h.Ops) + 1), Recipe: Mutex, Path: fmt.Sprintf("/f/%04d", shard), Client: fmt.Sprint("c", i), Outcome: Granted, Member: member,
				Node: fmt.Sprint("n", shard), Token: int64(shard + 1), Call: time.Second, Return: time.Second,
			})
			shard++
		}
	}
	return h
}

func TestAFleetIsBalancedOnceNothingHasChangedForLong(t *testing.T) {
	lim := Limits{Wake: time.Minute, Lossless: true}
	require.Empty(t, Check(fleetOf(2, 2), lim))
	require.Empty(t, Check(fleetOf(2, 1, 1), lim))
	require.Empty(t, Check(fleetOf(), lim))
	for _, h := range []*History{fleetOf(2, 1), fleetOf(3, 1), fleetOf(2, 2, 0)} {
		found := Check(h, lim)
		require.NotEmpty(t, found)
		require.Equal(t, string(Shards), found[0].Rule)
		h.Faults = []Window{{From: 0, To: time.Hour - time.Second}}
		require.Empty(t, Check(h, lim), "a fault excuses it")
		h.Faults = nil
		for i := range h.Ops {
			if h.Ops[i].Kind == Join {
				h.Ops[i].Outcome, h.Ops[i].Return = Granted, time.Minute
			}
		}
		require.Empty(t, Check(h, lim), "they did not stay for long")
	}
	h := fleetOf(2, 2)
	h.Ops[1].End = 30 * time.Minute
	require.NotEmpty(t, Check(h, lim), "a shard is left")
}
