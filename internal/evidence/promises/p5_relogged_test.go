// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// A leader without a quorum logs requests without answering them or showing their effect, and commits them when it is elected
// again.
//
//zklock:promise P5.1
func TestACreateCommittedAtALeadersReelectionLeavesNothing(t *testing.T) {
	for _, outage := range []time.Duration{3 * time.Second, 9 * time.Second, 12 * time.Second, time.Minute} {
		for _, timeout := range []time.Duration{term, 40 * time.Second} {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				srv.ElectLeader(0)
				time.Sleep(time.Second)
				front, asks := connect(t, srv, "front", timeout), connect(t, srv, "asks", timeout, 0)
				unlockSoon(t, front)
				time.Sleep(time.Second)
				srv.Member(1).Stop()
				srv.Member(2).Stop()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				gone := lockLater(ctx, asks.Mutex(path).Lock)
				tried := lockLater(ctx, asks.Mutex(path+"2").TryLock)
				stays := lockLater(t.Context(), asks.Mutex(path+"3").Lock)
				time.Sleep(outage)
				srv.Member(1).Start()
				srv.Member(2).Start()
				time.Sleep(2*time.Minute + 5*timeout)
				synctest.Wait()
				require.Error(t, gone.err)
				require.Error(t, tried.err)
				require.True(t, stays.returned())
				require.NoError(t, stays.err)
				require.Len(t, queue(srv, path+"3"), 1)
				unlock(t, stays.hold)
				for _, p := range []string{path, path + "2", path + "3"} {
					require.Empty(t, queue(srv, p), "outage %v", outage)
				}
				second, err := front.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				unlock(t, second)
			})
		}
	}
}
