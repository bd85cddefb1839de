// SPDX-License-Identifier: Apache-2.0

package history

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAStoryListsTheEventsOfALockInOrder(t *testing.T) {
	const node, other = "/locks/a/_c_0123456789abcdef0123456789abcdef-lock-0000000007", "/locks/b/_c_x-lock-0000000001"
	h := &History{
		Ops: []Op{
			{ID: 1, Recipe: Mutex, Path: "/locks/a", Client: "c0", Node: node, Token: 5, Outcome: Granted,
				Call: time.Second, Return: 2 * time.Second, End: 9 * time.Second, Lost: true},
			{ID: 2, Recipe: Mutex, Path: "/locks/b", Client: "c1", Call: time.Second},
		},
		Txns: []Txn{
			{Zxid: 5, Time: 1500 * time.Millisecond, Kind: Create, Client: "c0", Path: node, Lock: "/locks/a"},
			{Zxid: 6, Time: 3 * time.Second, Kind: Create, Client: "c1", Path: other, Lock: "/locks/b"},
			{Zxid: 7, Time: 8 * time.Second, Kind: Ended, Client: "c0", Gone: []string{node}},
		},
		Faults: []Window{{From: 4 * time.Second, To: 7 * time.Second, Kind: "cut off"}},
	}
	var out strings.Builder
	require.NoError(t, Story(&out, h, []Violation{{Rule: "P2", Path: "/locks/a", At: 8 * time.Second, Ops: []int64{1}, Text: "relied on it"}}))
	require.Equal(t, `
      1.000000s  c0, operation 1: requests /locks/a
      1.500000s  servers: _c_0123...lock-0000000007 is created for c0 (5)
      2.000000s  c0, operation 1: holds /locks/a by _c_0123...lock-0000000007, token 5
      4.000000s  fault: cut off begins
      7.000000s  fault: cut off is over
      8.000000s  servers: the session of c0 ends, with _c_0123...lock-0000000007
      8.000000s  !! P2: relied on it (operations [1])
      9.000000s  c0, operation 1: is notified of the loss
`[1:], out.String())
}
