// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// Each server logs the quorum requests of heartbeats, so their size is limited: with many holds, their nodes are checked in turn.
// A node whose deletion caused no event is noticed at its turn.
//
//zklock:promise P9.7
func TestHeartbeatsOfManyHoldsAreSmallAndCheckEachInTurn(t *testing.T) {
	t.Parallel()
	const many = 900
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		var holds []*zklock.Hold
		for i := range many {
			hold, err := c.Mutex(fmt.Sprint("/many/", i)).Lock(t.Context())
			require.NoError(t, err)
			holds = append(holds, hold)
		}
		time.Sleep(term)
		var mu sync.Mutex
		beats, most, checked := 0, 0, map[string]int{} // guarded by mu
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpMulti {
				mu.Lock()
				defer mu.Unlock()
				beats++
				most = max(most, requestSize(r))
				for _, p := range r.Paths {
					checked[p]++
				}
			}
			return zktest.Pass
		})
		var lost []*zklock.Hold
		for i := 0; i < many; i += 100 {
			giveBack := withholdRead(t, srv, holds[i].Node())
			require.NoError(t, srv.DeleteNode(holds[i].Node()))
			giveBack()
			lost = append(lost, holds[i])
		}
		for _, hold := range lost {
			<-hold.Context().Done()
		}
		taken := func() (n, bytes int, all map[string]int) {
			mu.Lock()
			defer mu.Unlock()
			n, bytes, all = beats, most, checked
			beats, checked = 0, map[string]int{}
			return n, bytes, all
		}
		for range 5 {
			time.Sleep(6 * term)
			n, bytes, all := taken()
			t.Logf("%d heartbeats of %d bytes at most", n, bytes)
			require.Less(t, bytes, 16<<10)
			require.GreaterOrEqual(t, n, 2*many/100)
			for i, hold := range holds {
				if i%100 > 0 {
					require.NoError(t, hold.Check())
					require.NotZero(t, all[hold.Node()], "of %d heartbeats", n)
				}
			}
		}
	})
}

// Each of many short holds is new, and needs no heartbeat.
//
//zklock:promise P9.7
func TestShortHoldsDoNotTakeTheTurnOfALongOne(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		long, err := c.Mutex("/long").Lock(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var others sync.WaitGroup
		for i := range 300 {
			others.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				for ctx.Err() == nil {
					hold, err := c.Mutex(fmt.Sprint("/short/", i)).Lock(t.Context())
					if !assert.NoError(t, err) {
						return
					}
					time.Sleep(3 * time.Second)
					assert.NoError(t, hold.Unlock(t.Context()))
				}
			})
		}
		time.Sleep(2 * term)
		giveBack := withholdRead(t, srv, long.Node())
		require.NoError(t, srv.DeleteNode(long.Node()))
		giveBack()
		time.Sleep(2 * term)
		require.ErrorIs(t, long.Check(), zklock.ErrLost)
		cancel()
		others.Wait()
	})
}
