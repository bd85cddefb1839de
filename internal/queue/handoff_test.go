// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// The node ahead is written again and again, and each time the next watch is throttled for a while. The waiter pauses as long after
// the last of these errors as after the first, because watches were set between them.
func TestAWaitersPausesAreShortAgainAfterASuccess(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		held := obtain(t, a)
		waiter := later(func() (*Grant, error) { return b.Obtain(t.Context(), wantLock(testDir)) })
		time.Sleep(time.Second)
		watches := srv.WatchCount()
		var left atomic.Int32 // how many more requests of b are throttled
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "b" && r.Op == zktest.OpGetData && left.Add(-1) >= 0 {
				return throttled
			}
			return zktest.Pass
		})
		for i := range 12 {
			left.Store(asks)
			require.NoError(t, srv.PutNode(held.Nodes()[0].Path(), fmt.Append(nil, i)))
			time.Sleep(600 * time.Millisecond) // more than the pauses between the requests of one watch
			require.Negative(t, left.Load(), "the watch after %d writes was throttled for longer", i+1)
			require.Equal(t, watches, srv.WatchCount())
		}
		release(t, held)
		waiter.release(t)
	})
}
