package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/history"
)

var planned = flag.String("plan", "", "carry out the plan in this file, - for the standard input, or drawn for the one seed, and print its history")

// TestPlan carries out one plan and prints its history, a JSON object a line, the last of which is the verdict. It is what
// tools/replay compiles to WebAssembly, where the same plan gives the same history.
func TestPlan(t *testing.T) {
	if *planned == "" {
		t.Skip("only with -plan")
	}
	plan := thePlan(t)
	res := simulate(t, plan)
	require.NoError(t, res.History.Save(os.Stdout))
	bad := slices.DeleteFunc(res.Violations, func(v history.Violation) bool { return v.Rule == idle })
	line, err := json.Marshal(map[string]any{"verdict": bad})
	require.NoError(t, err)
	fmt.Println(string(line))
}

// thePlan is the one that the flags ask for.
func thePlan(t *testing.T) *Plan {
	if *planned == "drawn" {
		return draw(uint64(*oneSeed))
	}
	in := os.Stdin
	if *planned != "-" {
		f, err := os.Open(*planned)
		require.NoError(t, err)
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(in)
	require.NoError(t, err)
	var plan Plan
	require.NoError(t, json.Unmarshal(text, &plan))
	return &plan
}

// A plan can list its faults instead of drawing them, and then some can be left out.
func TestAPlanCanListItsFaults(t *testing.T) {
	plan := NewPlan(2)
	plan.Shorten(8)
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
