package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/sim"
)

const root = "../.."

// Each bug that was found shows itself with the defect put back, and with this library it does not.
func TestEachBugIsStillCaughtAndStaysMended(t *testing.T) {
	names, err := filepath.Glob(root + "/internal/sim/testdata/bugs/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	mended, err := Build(t.Context(), root, "")
	require.NoError(t, err)
	t.Cleanup(func() { mended.Close(context.Background()) }) // behind the bugs, which run beside each other
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			t.Parallel() // most of the time goes into compiling
			b := readBug(t, name)
			plan, err := json.Marshal(b.Plan)
			require.NoError(t, err)
			job := Job{Plan: plan, Schedule: b.Schedule}
			res, err := mended.Run(t.Context(), job)
			require.NoError(t, err)
			require.Empty(t, res.Verdict)

			broken, err := Build(t.Context(), root, b.Mutant)
			require.NoError(t, err)
			defer broken.Close(context.WithoutCancel(t.Context()))
			res, err = broken.Run(t.Context(), job)
			require.NoError(t, err)
			require.NotEmpty(t, res.Verdict, "the defect is not found any more: record another plan (docs/testing.md)")
			rule, _, _ := strings.Cut(b.Showed, ":")
			require.Equal(t, rule, res.Verdict[0].Rule)

			again, err := broken.Run(t.Context(), job)
			require.NoError(t, err)
			require.Equal(t, string(res.Text), string(again.Text), "two runs of a plan with one schedule")
		})
	}
}

func readBug(t *testing.T, name string) bug {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var b bug
	require.NoError(t, json.Unmarshal(text, &b))
	return b
}

func TestAFailureIsRepeatedByOneLine(t *testing.T) {
	job := Job{Seed: 7, Schedule: 3, Shorten: 8}
	require.Equal(t, "make replay SCHEDULE=3 SEED=7", job.Command())
	job.Hostile, job.Faults = "short,streams", "cut off|delays"
	require.Equal(t, `make replay SCHEDULE=3 SEED=7 ARGS="-hostile 'short,streams' -faults 'cut off|delays'"`, job.Command())
	require.Equal(t, "make replay SCHEDULE=3 PLAN=bug.json", Job{Plan: []byte("{}"), Name: "bug.json", Schedule: 3}.Command())
}

func TestAWalkTakesAllSeedsWithOneScheduleThenWithTheNext(t *testing.T) {
	w := &walk{s: &settings{seeds: 2, job: Job{Seed: 5, Schedule: 1}}}
	var got [][2]uint64
	for range 4 {
		job, _ := w.next()
		got = append(got, [2]uint64{job.Seed, job.Schedule})
	}
	require.Equal(t, [][2]uint64{{5, 1}, {6, 1}, {5, 2}, {6, 2}}, got)
}

func TestWhatHasNoVerdictIsNoResult(t *testing.T) {
	for _, out := range []string{"", "PASS\n", "{\"history\":{\"version\":1}}\npanic: }\n"} {
		_, err := read([]byte(out))
		require.Error(t, err, out)
	}
	res, err := read([]byte("{\"history\":{\"version\":1,\"end\":5}}\n{\"verdict\":[{\"Rule\":\"P2\"}]}\nPASS\n"))
	require.NoError(t, err)
	require.Equal(t, "P2", res.Verdict[0].Rule)
	require.NotContains(t, string(res.Text), "PASS")
}

func TestABugFileIsReadAsItWasWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "bug.json")
	written := bug{Showed: "P2: two", Schedule: 7, Plan: *sim.NewPlan(3)}
	require.NoError(t, written.save(name))
	require.Equal(t, written, readBug(t, name))

	job := Job{Schedule: 1}
	require.NoError(t, job.load(name))
	require.Equal(t, uint64(7), job.Schedule)
	plan, err := json.Marshal(written.Plan)
	require.NoError(t, err)
	require.JSONEq(t, string(plan), string(job.Plan))

	require.NoError(t, os.WriteFile(name, plan, 0o600))
	job = Job{Schedule: 2}
	require.NoError(t, job.load(name))
	require.Equal(t, uint64(2), job.Schedule, "a plan alone has none")
	require.JSONEq(t, string(plan), string(job.Plan))
}
