package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	const session = 3 * time.Second
	path := root(t)
	old, others := []string{leader.Addr}, []string{followers[0].Addr, followers[1].Addr}
	pairs := []*stalePair{{name: "fresh"}, {name: "idle"}}
	pairs[1].connect(t, session, old, others)
	time.Sleep(idleness(session))
	pairs[0].connect(t, session, old, others)
	for _, p := range pairs {
		p.lock(t, path+"/"+p.name)
		waitForChildren(t, leader.Addr, path+"/"+p.name, 2)
	}

	t.Cleanup(func() {
		require.NoError(t, leader.Heal(context.Background()))
		// For its election the connections to those that were killed still stand. TCP tries these ever more rarely,
		// and the election asks ever more rarely too, up to a minute apart: it can take longer than our patience.
		require.NoError(t, leader.Kill(context.Background()))
		require.NoError(t, leader.Restart(context.Background()))
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
	for _, p := range pairs {
		p.judge(t, cut)
	}
}
