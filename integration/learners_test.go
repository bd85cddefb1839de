// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zkcontainer"
)

// TestStaleLearners cuts off an observer, and a member that was removed by a reconfiguration and still serves clients. On such
// servers, sessions start as local ones, and become global with the first create of an ephemeral node. Holds of their clients
// must end in time, too.
//
//zklock:promise P2.1
func TestStaleLearners(t *testing.T) {
	t.Parallel()
	part(t)
	config := []string{"reconfigEnabled=true", "localSessionsEnabled=true", "localSessionsUpgradingEnabled=true"}
	for i, role := range []string{"participant", "participant", "participant", "participant", "observer"} {
		config = append(config, fmt.Sprintf("server.%d=zk%[1]d:2888:3888:%s;2181", i+1, role))
	}
	ensemble := start(t, zkcontainer.Options{Servers: 5, SyncLimit: 16, Config: config, JVMFlags: "-Dzookeeper.skipACL=yes"})
	needsNetworks(t, ensemble)
	leader, err := ensemble.Leader(t.Context())
	require.NoError(t, err)
	observer, removed := ensemble.Members[4], ensemble.Members[0]
	require.Equal(t, zkcontainer.Observer, observer.Mode(t.Context()))
	if removed == leader {
		removed = ensemble.Members[1]
	}
	conn, _ := dial(t, 10*time.Second, leader.Addr)
	_, err = conn.IncrementalReconfig(nil, []string{strings.TrimPrefix(removed.Name, "zk")}, -1)
	require.NoError(t, err)

	var pairs []*stalePair
	for _, stale := range []*zkcontainer.Member{observer, removed} {
		p := &stalePair{name: stale.Name}
		p.connect(t, 2*time.Second, []string{stale.Addr}, []string{leader.Addr})
		p.lock(t, root(t)+"/"+p.name)
		waitForChildren(t, leader.Addr, root(t)+"/"+p.name, 2)
		pairs = append(pairs, p)
	}
	cut := time.Now()
	for _, stale := range []*zkcontainer.Member{observer, removed} {
		require.NoError(t, stale.CutOff(t.Context()))
		t.Cleanup(func() { require.NoError(t, stale.Rejoin(context.Background())) })
	}
	for _, p := range pairs {
		p.judge(t, cut)
	}
}
