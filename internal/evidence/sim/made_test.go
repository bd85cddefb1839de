// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var made = flag.String("made", "", "run the made plans whose names match this pattern only")

// TestNoMadePlanBreaksAPromise runs all made plans with one seed.
func TestNoMadePlanBreaksAPromise(t *testing.T) {
	var total tally
	runMade(t, uint64(max(1, *oneSeed)), &total)
	t.Log(total.String() + total.pace(processorTime()))
}

// runMade runs the made plans with a seed.
func runMade(t *testing.T, seed uint64, total *tally) {
	names, pattern := MadePlans(), regexp.MustCompile(*made)
	if _, err := MadePlan(*made, seed); err == nil {
		names, pattern = []string{*made}, regexp.MustCompile("") // also one of pairs or triples
	}
	t.Run("made", func(t *testing.T) {
		for i, name := range names {
			if !pattern.MatchString(name) || testing.Short() && i%4 > 0 {
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
			})
		}
	})
}

// A plan whose pattern matches no fault would have no faults.
func TestMadePlansHaveTheFaultsThatTheyName(t *testing.T) {
	for _, name := range MadePlans() {
		p, err := MadePlan(name, 1)
		require.NoError(t, err)
		if p.Only == "^none$" {
			require.Empty(t, p.troubles(), name)
			continue
		}
		p.Servers = 3 // some faults need more than one
		for part := range strings.SplitSeq(p.Only, "|") {
			pattern := regexp.MustCompile(part)
			there := false
			for _, faults := range p.troubles() {
				there = there || slices.ContainsFunc(faults, func(x fault) bool { return pattern.MatchString(x.name) })
			}
			require.True(t, there, "%s: %s", name, part)
		}
	}
	_, err := MadePlan("contention/rain", 1)
	require.ErrorContains(t, err, `no made plan "contention/rain"`)
}
