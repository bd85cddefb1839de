// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

// TestShortSessions uses servers that grant sessions shorter than two ticks. A session that is too short for heartbeats is
// refused. With a longer one, holders at a follower that is cut off lose their holds before the next contenders are granted.
//
//zklock:promise P2.1 A3
func TestShortSessions(t *testing.T) {
	part(t)
	const tick, pairs = 2 * time.Second, 6
	ensemble := start(t, zkcontainer.Options{Servers: 3, TickTime: tick, MinSessionTimeout: 500 * time.Millisecond})
	needsNetworks(t, ensemble)
	leader, err := ensemble.Leader(t.Context())
	require.NoError(t, err)
	followers, err := ensemble.Followers(t.Context())
	require.NoError(t, err)

	_, err = zklock.Connect(soon(t), ensemble.Addrs(), &zklock.Options{SessionTimeout: time.Second, TickTime: tick})
	require.ErrorIs(t, err, zklock.ErrInvalid, "a second is too short for this tick")

	opts := &zklock.Options{SessionTimeout: 3 * time.Second, TickTime: tick}
	path, ctx := root(t), soon(t)
	verdicts := make(chan error, pairs)
	for i := range pairs {
		mutexAt := func(s *zkcontainer.Member) *zklock.Mutex {
			return connect(t, opts, s.Addr).Mutex(fmt.Sprintf("%s/%d", path, i))
		}
		old, err := mutexAt(followers[0]).Lock(ctx)
		require.NoError(t, err)
		next := mutexAt(leader)
		// Owned by this test: ends with the grant or with ctx.
		go func() {
			hold, err := next.Lock(ctx)
			if err == nil {
				err = old.Check() // at the time of the second grant
				_ = hold.Unlock(context.Background())
			}
			verdicts <- err
		}()
		waitForChildren(t, leader.Addr, fmt.Sprintf("%s/%d", path, i), 2)
	}
	require.NoError(t, followers[0].CutOff(t.Context()))
	t.Cleanup(func() { assert.NoError(t, followers[0].Rejoin(context.Background())) })
	for range pairs {
		assert.ErrorIs(t, await(t, verdicts, "the second holder"), zklock.ErrLost, "the first hold had not ended")
	}
}
