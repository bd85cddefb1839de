// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// If a plan lists its faults instead of drawing them, some can be left out.
func TestAPlanCanListItsFaults(t *testing.T) {
	plan := NewPlan(2)
	plan.Shorten(32)
	drawn := simulate(t, plan)
	require.NotEmpty(t, drawn.History.Faults)
	for _, w := range drawn.History.Faults {
		plan.Steps = append(plan.Steps, Step{w.Stream, w.Number, w.From, w.Kind})
	}
	slices.SortFunc(plan.Steps, func(a, b Step) int { return int(a.At - b.At) })
	kept := plan.Steps[:len(plan.Steps)/2]
	plan.Steps = kept

	var done []string
	for _, w := range simulate(t, plan).History.Faults {
		done = append(done, fmt.Sprint(w.Stream, w.Number, w.Kind))
	}
	var want []string
	for _, s := range kept {
		want = append(want, fmt.Sprint(s.Stream, s.Number, s.Kind))
	}
	require.ElementsMatch(t, want, done)
}
