// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/history"
)

var (
	soakFor = flag.Duration("soak", 0, "how long TestSoak runs; 0 skips it")
	hunt    = flag.Int("hunt", 0, "the maximum number of seeds that TestHunt runs")
	rounds  = flag.Int("rounds", 0, "how many times TestHunt first runs all made plans, each time with another seed")
	saved   = flag.String("history", "", "check this saved history again")
	hostile = flag.String("hostile", "", "kinds of faults in addition to those of every plan: streams, buckets, wipes, later, short, closing, keeper, evicts, curator, backups, logins, delays, forged, blind, withheld, secret, minimums, ticks, crowds, looks, throttle or all")
	faults  = flag.String("faults", "", "use only faults whose names match this pattern")
	shorten = flag.Int("shorten", 1, "divide the duration of runs by this number")
	focus   = flag.String("focus", "", "use this recipe for all locks, or cohort")
)

// tripleRounds is how many rounds of a soak share one run of all triples, which takes several times as long as the rest of a round.
const tripleRounds = 4

// TestSoak runs new seeds for a given time: first the made plans and the pairs with one seed, then drawn plans. The first round, and then
// one of four, also has every triple.
func TestSoak(t *testing.T) {
	if *soakFor == 0 {
		t.Skip("only with -soak")
	}
	seed := uint64(time.Now().Unix()) << 16
	fmt.Println("the first seed:", seed)
	until := time.Now().Add(*soakFor)
	var total tally
	round := 0
	for time.Now().Before(until) {
		if *hostile+*faults+*focus == "" { // otherwise the flags choose what is drawn
			runMade(t, seed, &total)
			runPairs(t, seed, 2, &total)
			if round++; round%tripleRounds == 1 {
				runPairs(t, seed, 3, &total)
			}
		}
		t.Run("", func(t *testing.T) {
			for range 4 * runtime.GOMAXPROCS(0) {
				plan := draw(t, seed)
				seed++
				t.Run(fmt.Sprint(plan.Seed), func(t *testing.T) {
					t.Parallel()
					res := simulate(t, plan)
					total.add(res)
					res.Violations = res.Broken() // the others are counted
					complain(t, Choice{Seed: plan.Seed, Hostile: *hostile, Faults: *faults, Focus: *focus, Shorten: *shorten}, res)
				})
			}
		})
		fmt.Printf("%v left: %s\n", max(0, time.Until(until).Round(time.Second)), total.String()+total.pace(processorTime()))
	}
	require.LessOrEqual(t, total.idle, 1+total.seeds/100, "too many drawn plans have too little contention")
}

// draw returns the plan that the flags select for a seed.
func draw(t *testing.T, seed uint64) *Plan {
	plan, err := Choice{Seed: seed, Hostile: *hostile, Faults: *faults, Focus: *focus, Shorten: *shorten}.Draw()
	require.NoError(t, err)
	return plan
}

// TestHunt runs the made plans and the pairs, then seeds, until one breaks a promise, and reports which. It judges the mutants: if it passes, the
// mutant was not found. It prints each run at its start, so that a run that does not end can be identified.
func TestHunt(t *testing.T) {
	made := regexp.MustCompile(*made)
	for round := range *rounds {
		for _, name := range append(MadePlans(), pairPlans()...) {
			if made.MatchString(name) {
				pursue(t, Choice{Seed: uint64(round) + 1, Made: name}, fmt.Sprintf("seed %d of %q", round+1, name))
			}
		}
	}
	for i := range *hunt {
		c := Choice{Seed: uint64(i) + 1, Hostile: *hostile, Faults: *faults, Focus: *focus, Shorten: *shorten}
		pursue(t, c, fmt.Sprint("seed ", i+1))
	}
}

// pursue does one run of a hunt.
func pursue(t *testing.T, c Choice, title string) {
	fmt.Println(title)
	plan, err := c.Draw()
	require.NoError(t, err)
	for _, v := range simulate(t, plan).Broken() {
		t.Fatalf("caught by %s in %s: %s", v.Rule, title, v.Text)
	}
}

func TestJudgeAgain(t *testing.T) {
	if *saved == "" {
		t.Skip("only with -history=FILE")
	}
	h, err := history.LoadFile(*saved)
	require.NoError(t, err)
	plan, err := PlanOf(h)
	require.NoError(t, err)
	for _, v := range history.Check(h, plan.Limits()) {
		t.Error(v)
	}
}

func TestASavedHistoryHasTheVerdictOfItsRun(t *testing.T) {
	plan := NewPlan(2)
	plan.Shorten(8)
	res := simulate(t, plan)
	spoil(t, res.History)
	want := history.Check(res.History, plan.Limits())
	require.NotEmpty(t, want)

	name := filepath.Join(t.TempDir(), "run.jsonl")
	require.NoError(t, res.History.SaveFile(name))
	h, err := history.LoadFile(name)
	require.NoError(t, err)
	again, err := PlanOf(h)
	require.NoError(t, err)
	require.Equal(t, plan, again)
	require.Equal(t, want, history.Check(h, again.Limits()))

	var saved bytes.Buffer
	require.NoError(t, h.Save(&saved))
	require.Equal(t, len(h.Ops), strings.Count(saved.String(), `{"op":`))
}

// spoil extends a hold in the history so that it overlaps the next one.
func spoil(t *testing.T, h *history.History) {
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Outcome == history.Granted && op.Clean && op.Kind == history.Acquire {
			op.End += time.Hour
			return
		}
	}
	t.Fatal("no hold in the history")
}
