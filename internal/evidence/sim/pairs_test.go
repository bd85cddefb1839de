// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var onePair = flag.String("pairs", "", "run the plans of pairs whose rows match this pattern only")

// TestNoPairBreaksAPromise runs the plans that together have each pair.
func TestNoPairBreaksAPromise(t *testing.T) {
	var total tally
	runPairs(t, uint64(max(1, *oneSeed)), 2, &total)
	t.Log(total.String() + total.pace(processorTime()))
}

// runPairs runs the plans of the array of a strength with a seed.
func runPairs(t *testing.T, seed uint64, strength int, total *tally) {
	pattern := regexp.MustCompile(*onePair)
	t.Run("pairs", func(t *testing.T) {
		for i, w := range arrays[strength]() {
			name := rowName(strength, i)
			if !pattern.MatchString(name+" "+w.String()) || testing.Short() && i%8 > 0 {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := Choice{Seed: seed, Made: name}
				plan, err := c.Draw()
				require.NoError(t, err)
				res := simulate(t, plan)
				res.Violations = res.Broken() // a short run has too few contended grants
				total.add(res)
				complain(t, c, res)
				if len(res.Violations) > 0 {
					t.Log(w)
				}
			})
		}
	})
}

// Each pair of values occurs in a plan, except those that a file names with a reason. These occur in none.
func TestEachPairOccurs(t *testing.T) {
	list, err := exclusions()
	require.NoError(t, err)
	not := forbid()
	count := map[tuple]int{}
	for _, w := range arrays[2]() {
		w.tuples(2, func(p tuple) { count[p]++ })
	}
	pairs := required(2, not)
	for _, p := range pairs {
		require.Positive(t, count[p], "%s=%s + %s=%s", dimensions[p[0].dim].name, dimensions[p[0].dim].values[p[0].value].name,
			dimensions[p[1].dim].name, dimensions[p[1].dim].values[p[1].value].name)
	}
	for _, e := range list {
		x, y := e.x, e.y
		if x.dim > y.dim {
			x, y = y, x
		}
		require.Zero(t, count[of([]setting{x, y})], e)
	}
	t.Logf("%d pairs in %d plans; %d are left out", len(pairs), len(arrays[2]()), len(list))
}
