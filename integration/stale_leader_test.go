// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStaleLeader cuts a leader off from its followers, which elect another one. For a while, the old leader still acts as
// leader: it answers its clients, and resumes the sessions of clients that reconnect, without a quorum. Clients must not rely
// on its replies.
//
//zklock:promise P2.1 A1
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
		require.NoError(t, leader.Rejoin(context.Background()))
		// Restart the old leader, because otherwise its next election can take longer than patience: it still has
		// connections to the killed followers, and both TCP and the election back off, up to a minute.
		require.NoError(t, leader.Stop(context.Background()))
		require.NoError(t, leader.Start(context.Background()))
		require.NoError(t, ensemble.WaitHealthy(context.Background()))
	})
	require.NoError(t, leader.CutOff(t.Context()))
	cut := time.Now()
	for _, f := range followers {
		require.NoError(t, f.Stop(t.Context()))
	}
	back := make(chan error, len(followers))
	for _, f := range followers {
		// Owned by this test, which waits for it: neither serves before both are back.
		go func() { back <- f.Start(context.Background()) }()
	}
	for range followers {
		require.NoError(t, await(t, back, "a new leader"))
	}
	for _, p := range pairs {
		p.judge(t, cut)
	}
}
