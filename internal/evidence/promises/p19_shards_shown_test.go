// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/shards"
	"github.com/zklock-go/zklock/zktest"
)

// TestAFleetOfShardsIsShownAsOne has a fleet and other locks: shards that are held, and then one that is not.
//
//zklock:promise P19.1 P19.2
func TestAFleetOfShardsIsShownAsOne(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		operator := connect(t, srv, "operator", term)
		none, err := operate.InspectShards(t.Context(), operator, shardsPath)
		require.NoError(t, err)
		require.Equal(t, &operate.Shards{Path: shardsPath}, none)

		f := newShardFleet(t, srv, 10)
		f.join("a", nil)
		time.Sleep(time.Second)
		f.join("b", &shards.Options{Label: "east", Weight: 4})
		time.Sleep(5 * time.Second)
		for _, other := range []string{"/shards/other", "/shards/orders/0010", "/shards/members"} { // no shard of this fleet, and no fleet
			_, err := operator.Mutex(other).Lock(t.Context())
			require.NoError(t, err)
		}
		shown, err := operate.InspectShards(t.Context(), operator, shardsPath)
		require.NoError(t, err)
		require.Equal(t, 10, shown.Number)
		require.Len(t, shown.Members, 2)
		require.Equal(t, f.live["a"].Held(), shown.Members[0].Held)
		require.Equal(t, f.live["b"].Held(), shown.Members[1].Held)
		require.Equal(t, "east", shown.Members[1].Label)
		require.Equal(t, 4, shown.Members[1].Weight)
		require.Empty(t, shown.Free)
		require.Zero(t, shown.Waiting)

		queues, err := operate.Queues(t.Context(), operator, "/")
		require.NoError(t, err)
		fleets, others := operate.GroupShards(queues)
		require.Len(t, fleets, 1)
		var paths []string
		for _, q := range others {
			paths = append(paths, q.Path)
		}
		require.Equal(t, []string{"/shards/members", "/shards/orders/0010", "/shards/other"}, paths)

		for _, q := range queues { // as if one shard had no holder, and another one were somebody's who is no member
			switch q.Path {
			case shards.Path(shardsPath, 3):
				q.Contenders[0].Holds = false
			case shards.Path(shardsPath, 7):
				q.Contenders[0].Session = 1
			}
		}
		fleets, _ = operate.GroupShards(queues)
		require.Equal(t, []int{3, 7}, fleets[0].Free)
		require.Equal(t, 1, fleets[0].Waiting)
	})
}
