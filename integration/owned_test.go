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

// TestACrashOfAClientWithManyNodesHarmsNoServer lets the session of a client end that has taken all the permits it could get.
// ZooKeeper writes the paths of all its nodes into one transaction. It reads none of more than two megabytes, and does not start
// with one in its log.
func TestACrashOfAClientWithManyNodesHarmsNoServer(t *testing.T) {
	t.Parallel()
	part(t)
	ensemble := start(t, zkcontainer.Options{})
	server, ctx := ensemble.Members[0], soon(t)
	owner := connect(t, &zklock.Options{SessionTimeout: 4 * time.Second, Dialer: ensemble.DialFrom("owner")}, server.Addr)
	path := root(t) + "/" + strings.Repeat("x", 900)
	var holds []*zklock.Hold // each has 0.8 MB of paths
	for {
		hold, err := owner.Semaphore(path, 10_000).Acquire(ctx, 850)
		if err != nil {
			assert.ErrorIs(t, err, zklock.ErrLimit, "it takes no more than may end at once")
			break
		}
		// On a machine that stands still for long a session can end, and with it what it owned.
		holds = slices.DeleteFunc(append(holds, hold), func(h *zklock.Hold) bool { return h.Check() != nil })
		require.LessOrEqual(t, len(holds), 2)
	}

	ensemble.Partition("owner")
	waitForChildren(t, server.Addr, path+"/leases", 0) // the session is over
	ensemble.HealClient("owner")
	require.NoError(t, server.Kill(ctx))
	require.NoError(t, server.Restart(ctx), "the server reads its log")
}
