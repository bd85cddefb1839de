// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/parity"
	zklab "github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zkcontainer"
	"github.com/zklock-go/zklock/zktest"
)

// reaping is the interval at which both servers remove empty containers. It is longer than any test.
const reaping = time.Hour

// TestParity checks the real server with the same rules as zktest, and sends the same random requests to both. The random
// requests avoid the intended differences, which zktest's documentation lists.
//
// It does not run in parallel with other tests. Next to TestFaults, a request to the follower was not answered for ten seconds
// in four of six runs, and then the leader expired the sessions of the players. Alone, this happened in none of six runs. The
// likely cause is ZOOKEEPER-4537: in 3.8.0, a commit that arrives while the server is about to wait is not processed before the
// next request, and the players wait for each other. This was not observed directly: none of 70,000 writes under other load
// took a second. Since then, a player that waits for long sends pings.
func TestParity(t *testing.T) {
	part(t)
	alone := zkcontainer.Options{
		Config: []string{"extendedTypesEnabled=true"},
		// No one else may write during the test, so the removal of empty containers must not run.
		JVMFlags: fmt.Sprintf("-Dznode.container.checkIntervalMs=%d", reaping.Milliseconds()),
	}
	real := dialer(start(t, alone).Addrs()[0])
	t.Run("random requests to one server", func(t *testing.T) { playBoth(t, real, 0) })
	t.Run("rules", func(t *testing.T) { parity.Run(t, real) })

	alone.Servers = 3
	ensemble := start(t, alone)
	followers, err := ensemble.Followers(t.Context())
	require.NoError(t, err)
	t.Run("random requests to a follower", func(t *testing.T) { playBoth(t, dialer(followers[0].Addr), 1000) })
}

func dialer(addr string) parity.Dial {
	return func() (net.Conn, error) { return net.DialTimeout("tcp", addr, 5*time.Second) }
}

// seeds returns the number of random sequences for each kind of server: ZKLOCK_PARITY_SEEDS, or 30.
func seeds(t *testing.T) uint64 {
	text := os.Getenv("ZKLOCK_PARITY_SEEDS")
	if text == "" {
		return 30
	}
	n, err := strconv.ParseUint(text, 10, 16)
	require.NoError(t, err)
	return n
}

// playBoth sends random requests to the real and to the in-process server, and compares replies, stats, events and their order.
func playBoth(t *testing.T, real parity.Dial, firstSeed uint64) {
	const length = 300
	flavor := zktest.ZooKeeper38
	if parity.Version(t, real) >= 309 {
		flavor = zktest.ZooKeeper39
	}
	ours := dialer(zktest.Run(t, zklab.With(zktest.Options{Flavor: flavor}, zklab.Options{ContainerCheck: reaping})).Addr())
	begin := time.Now()
	n := seeds(t)
	for seed := range n {
		steps := parity.Random(firstSeed+seed, length)
		want, got := parity.Play(t, real, steps), parity.Play(t, ours, steps)
		for i := range want {
			require.Equal(t, want[i], got[i], "seed %d: the real server differs from zktest after\n%s",
				firstSeed+seed, strings.Join(slices.Clone(got[max(0, i-40):i]), "\n"))
		}
	}
	t.Logf("%d sequences, %d requests each in %v", n, n*length, time.Since(begin).Round(time.Millisecond))
}
