package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
)

// TestStaleLeader cuts a leader off from its followers, which find another at once. For a while the old one believes in its
// office, answers its clients and takes back those that come again, without asking anybody. Its clients must not believe it.
func TestStaleLeader(t *testing.T) {
	part(t)
	ensemble := three(t)
	needsNetworks(t, ensemble)
	leader, err := ensemble.Leader(t.Context())
	require.NoError(t, err)
	followers, err := ensemble.Followers(t.Context())
	require.NoError(t, err)
	path, opts, ctx := root(t), &zklock.Options{SessionTimeout: 3 * time.Second}, soon(t)
	old, err := connect(t, opts, leader.Addr).Mutex(path).Lock(ctx)
	require.NoError(t, err)
	next := connect(t, opts, followers[0].Addr, followers[1].Addr).Mutex(path)
	verdict := make(chan error, 1)
	// Owned by this test: ends with the grant or with ctx.
	go func() {
		hold, err := next.Lock(ctx)
		if err == nil {
			err = old.Check() // at the instant of the second grant
			_ = hold.Unlock(context.Background())
		}
		verdict <- err
	}()
	waitForChildren(t, leader.Addr, path, 2)

	t.Cleanup(func() {
		require.NoError(t, leader.Heal(context.Background()))
		require.NoError(t, ensemble.Healthy(context.Background()))
	})
	require.NoError(t, leader.CutFromPeers(t.Context()))
	cut := time.Now()
	for _, f := range followers {
		require.NoError(t, f.Kill(t.Context()))
	}
	back := make(chan error, len(followers))
	for _, f := range followers {
		// Owned by this test, which waits for it: neither serves before both are back.
		go func() { back <- f.Restart(context.Background()) }()
	}
	for range followers {
		require.NoError(t, await(t, back, "a new leader"))
	}
	assert.ErrorIs(t, await(t, verdict, "the second holder"), zklock.ErrLost, "the first holder has not been told")
	t.Logf("second holder %v after the cut", time.Since(cut).Round(10*time.Millisecond))
}
