// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/parity"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// overTCP returns a Dial for the server at $PARITY_ADDRESS, or nil if that is not set.
func overTCP() parity.Dial {
	addr := os.Getenv("PARITY_ADDRESS")
	if addr == "" {
		return nil
	}
	return func() (net.Conn, error) { return net.DialTimeout("tcp", addr, 5*time.Second) }
}

// to returns a Dial for one member of an in-process ensemble.
func to(m *zktest.Member, srv *zktest.Server) parity.Dial {
	return func() (net.Conn, error) { return srv.Dial("tcp", m.Addr(), time.Second) }
}

func TestRulesHoldForASingleServer(t *testing.T) { inBubbles(t, 1, 0, zktest.ZooKeeper38) }

func TestRulesHoldThroughAFollower(t *testing.T) { inBubbles(t, 3, 1, zktest.ZooKeeper38) }

func TestRulesHoldForALaterVersion(t *testing.T) { inBubbles(t, 3, 2, zktest.ZooKeeper39) }

// inBubbles checks each rule against a fresh ensemble of n, through one member.
func inBubbles(t *testing.T, n, member int, flavor zktest.Flavor) {
	parity.RunEach(t, func(t *testing.T, check func(*testing.T, parity.Dial)) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.Options{Servers: n, Flavor: flavor})
			check(t, to(srv.Member(member), srv))
		})
	})
}

func TestRulesHoldForARealServer(t *testing.T) {
	dial := overTCP()
	if dial == nil {
		t.Skip("PARITY_ADDRESS is not set")
	}
	parity.Run(t, dial)
}

// TestRandomSequences runs the same steps against two servers: a single one, and
// a follower of an ensemble or the server at $PARITY_ADDRESS.
func TestRandomSequences(t *testing.T) {
	flavor, seeds := zktest.ZooKeeper38, uint64(10)
	other := overTCP()
	if other == nil {
		ensemble := zktest.Start(t, lab.With(zktest.Options{Servers: 3}, lab.Options{ContainerCheck: time.Hour}))
		other = to(ensemble.Member(1), ensemble)
	} else if seeds = 300; parity.Version(t, other) >= 309 {
		flavor = zktest.ZooKeeper39
	}
	single := zktest.Start(t, lab.With(zktest.Options{Flavor: flavor}, lab.Options{ContainerCheck: time.Hour}))
	for seed := range seeds {
		steps := parity.Random(seed, 300)
		want, got := parity.Play(t, other, steps), parity.Play(t, to(single.Member(0), single), steps)
		for i := range want {
			require.Equal(t, want[i], got[i], "seed %d, after\n%s", seed, strings.Join(got[max(0, i-40):i], "\n"))
		}
	}
}
