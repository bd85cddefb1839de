package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	oneSeed = flag.Int64("seed", -1, "replay the fault schedule of this seed only")
	seeds   = flag.Int("seeds", 40, "how many seeds TestNoSeedBreaksAPromise runs")
	first   = flag.Int64("first", 1, "the first of them")
	healthy = flag.Int("healthy", 10, "how many seeds TestNothingIsLostInAHealthyWorld runs")
	frozen  = flag.Bool("frozenleader", false, "let leaders stand still for as long as other servers")
	save    = flag.String("save", "", "directory for the histories of runs that failed (default: a temporary one)")
)

// simulate runs one seed in a bubble of its own.
func simulate(t *testing.T, plan *Plan) *Result {
	var res *Result
	synctest.Test(t, func(t *testing.T) { res = Run(t, plan) })
	return res
}

func TestNoSeedBreaksAPromise(t *testing.T) {
	from, n := *first, *seeds
	if *oneSeed >= 0 {
		from, n = *oneSeed, 1
	}
	shorter := 1
	if testing.Short() || raceDetector {
		n, shorter = min(n, 20), 4 // each takes ten times as long under the race detector
	}
	var total tally
	t.Run("seeds", func(t *testing.T) {
		for i := range n {
			seed := uint64(from) + uint64(i)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				plan := draw(seed)
				plan.Shorten(shorter)
				res := simulate(t, plan)
				total.add(res)
				complain(t, res)
			})
		}
	})
	t.Log(total.String())
}

// complain fails the test for a run's violations and keeps its history.
func complain(t *testing.T, res *Result) {
	if len(res.Violations) == 0 {
		return
	}
	dir := *save
	if dir == "" {
		dir = os.TempDir()
	}
	name := filepath.Join(dir, fmt.Sprintf("zklock-seed-%d.jsonl", res.Plan.Seed))
	require.NoError(t, res.History.SaveFile(name))
	for i, v := range res.Violations {
		if i == 10 {
			t.Errorf("and %d more", len(res.Violations)-i)
			break
		}
		t.Error(v)
	}
	t.Errorf("history: %s; again: go test ./internal/sim -run Seed -seed=%d", name, res.Plan.Seed)
}

func TestLongerRunsAreLonger(t *testing.T) {
	total := time.Duration(0)
	for seed := range uint64(200) {
		total += NewPlan(seed + 1).Virtual()
	}
	require.GreaterOrEqual(t, total, 1000*time.Hour)
}

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the runs make much garbage and keep little
	os.Exit(m.Run())
}
