// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/bubble"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/zktest"
)

var (
	oneSeed = flag.Int64("seed", -1, "run only this seed")
	seeds   = flag.Int("seeds", 0, "number of seeds that TestNoSeedBreaksAPromise runs; 0 means the chosen runs")
	first   = flag.Int64("first", 1, "the first of these seeds")
	healthy = flag.Int("healthy", 4, "number of seeds that TestNothingIsLostInAHealthyWorld runs")
	save    = flag.String("save", "", "directory for the histories of failed runs (default: a temporary one)")
)

// processorTime returns the processor time that this process has used, or 0 if it is unknown.
var processorTime = func() time.Duration { return 0 }

// simulate runs a plan in a bubble. A run that does not end a day after its time, or in which virtual time stands still, fails the test.
func simulate(t *testing.T, plan *Plan) *Result {
	var res *Result
	bubble.Run(t, plan.Virtual()+24*time.Hour, func(t *testing.T) { res = Run(t, plan) })
	return res
}

// chosen are the short runs for each commit. When it was chosen, each was the first to find one or more of the mutants
// (docs/maintainers/testing.md).
var chosen = []Choice{
	{Seed: 1}, {Seed: 4}, {Seed: 5}, {Seed: 12}, {Seed: 27},
	{Seed: 1, Focus: "rw"},
	{Seed: 1, Focus: "semaphore"}, {Seed: 3, Focus: "semaphore"}, {Seed: 1, Focus: "mutex"}, {Seed: 5, Focus: "mutex"},
	{Seed: 2, Focus: "cohort"}, {Seed: 1, Hostile: "logins"}, {Seed: 1, Hostile: "delays"},
	{Seed: 1, Focus: "rw", Hostile: "delays"}, {Seed: 19, Hostile: "short", Faults: "nothing"},
	{Seed: 1, Focus: "shards"}, {Seed: 6, Focus: "shards"},
}

// theRuns returns the chosen runs, or the runs that the flags select.
func theRuns() []Choice {
	from, n := *first, *seeds
	if *oneSeed >= 0 {
		from, n = *oneSeed, 1
	}
	if n == 0 {
		runs := slices.Clone(chosen)
		for i := range runs {
			runs[i].Shorten = 4
		}
		return runs
	}
	var runs []Choice
	for i := range n {
		runs = append(runs, Choice{Seed: uint64(from) + uint64(i), Hostile: *hostile, Faults: *faults, Focus: *focus, Shorten: *shorten})
	}
	return runs
}

//zklock:promise P1.1
func TestNoSeedBreaksAPromise(t *testing.T) {
	runs := theRuns()
	if testing.Short() {
		runs = runs[:min(len(runs), 1)]
	}
	var total tally
	t.Run("seeds", func(t *testing.T) {
		for _, c := range runs {
			t.Run(strings.TrimSpace(fmt.Sprintln(c.Seed, c.Focus, c.Hostile)), func(t *testing.T) {
				t.Parallel()
				plan, err := c.Draw()
				require.NoError(t, err)
				res := simulate(t, plan)
				if c.Faults != "" {
					res.Violations = res.Broken() // it is meant to have few events
				}
				total.add(res)
				complain(t, c, res)
			})
		}
	})
	t.Log(total.String() + total.pace(processorTime()))
}

// The chosen runs cover everything that plans can draw.
func TestTheChosenRunsHaveEveryRecipeAndFault(t *testing.T) {
	recipes, kinds, flavors := map[history.Recipe]bool{}, Hostile{}, map[zktest.Flavor]bool{}
	servers, cohorts := map[int]bool{}, false
	for _, c := range chosen {
		p, err := c.Draw()
		require.NoError(t, err)
		for _, l := range p.Locks {
			recipes[l.Recipe] = true
		}
		from, to := reflect.ValueOf(p.Hostile), reflect.ValueOf(&kinds).Elem()
		for i := range to.NumField() {
			to.Field(i).SetBool(to.Field(i).Bool() || from.Field(i).Bool())
		}
		flavors[p.Flavor], servers[p.Servers] = true, true
		cohorts = cohorts || p.Cohorts
	}
	for _, r := range append(slices.Clone(Recipes), history.Shards) {
		require.True(t, recipes[r], r)
	}
	all := Hostile{}
	require.NoError(t, all.Parse("all"))
	require.Equal(t, all, kinds)
	require.Len(t, flavors, 3)
	require.Len(t, servers, 3)
	require.True(t, cohorts)
}

// complain fails the test if a run has violations, saves its history, and logs how to repeat the run.
func complain(t *testing.T, c Choice, res *Result) {
	if len(res.Violations) == 0 {
		return
	}
	dir := *save
	if dir == "" {
		dir = os.TempDir()
	}
	words := strings.FieldsFunc(fmt.Sprintf("zklock %s seed %d", c.Made, res.Plan.Seed), func(r rune) bool { return r == ' ' || r == '/' })
	name := filepath.Join(dir, strings.Join(words, "-")+".jsonl")
	for i, v := range res.Violations {
		if i == 10 {
			t.Errorf("and %d more", len(res.Violations)-i)
			break
		}
		t.Error(v)
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, res.History.SaveFile(name))
	t.Errorf("history: %s; again: go test ./internal/evidence/sim %s", name, c.again())
}

// again returns the flags that repeat a run.
func (c Choice) again() string {
	if c.Made != "" {
		return fmt.Sprintf("-run MadePlan -seed=%d -made='%s'", c.Seed, c.Made)
	}
	return fmt.Sprintf("-run Seed -seed=%d -shorten=%d -focus='%s' -hostile='%s' -faults='%s'", c.Seed, max(1, c.Shorten), c.Focus, c.Hostile, c.Faults)
}

func TestLongerRunsAreLonger(t *testing.T) {
	total := time.Duration(0)
	for seed := range uint64(200) {
		total += NewPlan(seed + 1).Virtual()
	}
	require.GreaterOrEqual(t, total, 800*time.Hour)
}

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.memprofile").Value.String() == "" {
		runtime.MemProfileRate = 0
	}
	debug.SetGCPercent(1600) // the runs allocate much and retain little
	if *soakFor == 0 {
		runtime.GOMAXPROCS(1) // with more threads, a bubble's goroutines take half as long again
	}
	os.Exit(m.Run())
}
