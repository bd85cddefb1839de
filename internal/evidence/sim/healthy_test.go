// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/history"
)

// Without faults, no hold is lost, and Remaining is always at least four tenths of the timeout, less what slow replies take. If a follower
// fails, it is at least a fifth.
func TestNothingIsLostInAHealthyWorld(t *testing.T) {
	t.Run("healthy", func(t *testing.T) { measure(t, NewHealthyPlan, 0.4, 4) })
	t.Run("Keeper", func(t *testing.T) { measure(t, NewKeeperPlan, 0.38, 12) }) // where syncs wait for a quorum as well
	t.Run("followers fail", func(t *testing.T) { measure(t, NewFailingPlan, 0.2, 12) })
}

// measure runs some plans of a world, in which Remaining must be at least the given share of the timeout. Slow replies can cost the given
// number of additional one-way delays.
func measure(t *testing.T, world func(seed uint64) *Plan, share, ways float64) {
	least := map[float64]float64{}
	holds, grants, requests, beats := 0, 0, 0, 0
	var mu sync.Mutex
	seeds := *healthy
	if testing.Short() || raceDetector {
		seeds = min(seeds, 1)
	}
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
				t.Parallel()
				p := world(seed + 1)
				res := simulate(t, p)
				complain(t, Choice{Seed: p.Seed}, res)
				g := res.Gauge
				require.Zero(t, g.lost)
				for ticks, left := range g.least {
					require.GreaterOrEqual(t, left, share-p.slow(ways, ticks), "%v ticks", ticks)
				}
				mu.Lock()
				defer mu.Unlock()
				for ticks, left := range g.least {
					if known, ok := least[ticks]; !ok || left < known {
						least[ticks] = left
					}
				}
				holds += g.holds
				requests += g.requests
				beats += g.beats
				for _, op := range res.History.Ops {
					if op.Kind == history.Acquire && op.Outcome == history.Granted && op.Outer == 0 {
						grants++
					}
				}
			})
		}
	})
	require.Positive(t, holds)
	for _, ticks := range slices.Sorted(maps.Keys(least)) {
		t.Logf("sessions of %v ticks: %.3f of the timeout remained at least", ticks, least[ticks])
	}
	t.Logf("%d holds, %d grants, for each %.1f requests, and %.1f of heartbeats",
		holds, grants, float64(requests)/float64(grants), float64(beats)/float64(grants))
}
