// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

// TestACrashOfAClientWithManyNodesHarmsNoServer ends the session of a client that holds as many permits as it could acquire.
// ZooKeeper writes the paths of all nodes of the session into one transaction. It cannot read a transaction of more than two
// megabytes, and does not start if there is one in its log.
//
//zklock:promise P7.8 A18
func TestACrashOfAClientWithManyNodesHarmsNoServer(t *testing.T) {
	t.Parallel()
	part(t)
	ensemble := start(t, zkcontainer.Options{})
	server, ctx := ensemble.Members[0], soon(t)
	owner := connect(t, &zklock.Options{SessionTimeout: 4 * time.Second, Dialer: ensemble.DialFrom("owner")}, server.Addr)
	path := root(t) + "/" + strings.Repeat("x", 900)
	var holds []*zklock.Hold // each owns 0.8 MB of paths
	for {
		hold, err := owner.Semaphore(path, 10_000).Acquire(ctx, 850)
		if err != nil {
			assert.ErrorIs(t, err, zklock.ErrLimit, "the limit of paths for each session")
			break
		}
		// If the machine pauses for long, the session expires, and its nodes are gone.
		holds = slices.DeleteFunc(append(holds, hold), func(h *zklock.Hold) bool { return h.Check() != nil })
		require.LessOrEqual(t, len(holds), 2)
	}

	ensemble.Partition("owner")
	waitForChildren(t, server.Addr, path+"/leases", 0) // the session has expired
	ensemble.HealClient("owner")
	require.NoError(t, server.Stop(ctx))
	require.NoError(t, server.Start(ctx), "the server reads its log")
}
