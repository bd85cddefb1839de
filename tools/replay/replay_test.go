// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/sim"
)

const root = "../.."

var alone = flag.Bool("alone", false, "give each defect a build of its own")

// builds is how many builds share the defects: compiling is what takes the time.
const builds = 3

// schedules is how many schedules a bug may need to show itself: with each change of the library a schedule is another order.
const schedules = 64

// Each bug that was found shows itself with the defect put back, and with this library it does not.
func TestEachBugIsStillCaughtAndStaysFixed(t *testing.T) {
	names, err := filepath.Glob(root + "/internal/evidence/sim/testdata/bugs/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	mended, err := Build(t.Context(), root)
	require.NoError(t, err)
	t.Cleanup(func() { mended.Close(context.Background()) }) // after the bugs, which run in parallel
	t.Run("mended", func(t *testing.T) {
		for _, name := range names {
			t.Run(title(name), func(t *testing.T) {
				t.Parallel()
				require.Empty(t, carryOut(t, mended, readBug(t, name)).Verdict)
			})
		}
	})
	n := builds
	if *alone {
		n = len(names)
	}
	groups := make([][]string, n)
	for i, name := range names {
		groups[i%n] = append(groups[i%n], name)
	}
	for i, group := range groups {
		t.Run(fmt.Sprint("broken ", i+1), func(t *testing.T) {
			t.Parallel()
			catch(t, group)
		})
	}
}

func title(name string) string { return strings.TrimSuffix(filepath.Base(name), ".json") }

// catch puts the defects of several bugs into one build. What does not show there with its schedule gets a build of its own, and
// more schedules.
func catch(t *testing.T, names []string) {
	var defects []string
	for _, name := range names {
		defects = append(defects, readBug(t, name).Mutant)
	}
	broken, err := Build(t.Context(), root, defects...)
	require.NoError(t, err)
	defer broken.Close(context.WithoutCancel(t.Context()))
	for _, name := range names {
		b, n := readBug(t, name), schedules
		if len(names) > 1 {
			n = 1
		}
		shown := slices.ContainsFunc(b.orders(n), func(b bug) bool { return b.isShownBy(carryOut(t, broken, b)) })
		if !shown && len(names) > 1 {
			t.Logf("%s has a build of its own: its schedule does not show it together with other defects", title(name))
			catch(t, []string{name})
			continue
		}
		require.True(t, shown, "%s: the defect is no longer found: record another plan (docs/testing.md)", title(name))
	}
}

// orders returns the bug with its schedule, and with those after it, n in all.
func (b bug) orders(n int) []bug {
	list := slices.Repeat([]bug{b}, n)
	for i := range list {
		list[i].Schedule += uint64(i)
	}
	return list
}

// isShownBy reports whether the run breaks the promise first that the bug broke.
func (b bug) isShownBy(res *Result) bool {
	rule, _, _ := strings.Cut(b.Showed, " ") // shrink writes a violation, which has no colon after the rule
	return len(res.Verdict) > 0 && res.Verdict[0].Rule == strings.TrimSuffix(rule, ":")
}

func carryOut(t *testing.T, m *Machine, b bug) *Result {
	plan, err := json.Marshal(b.Plan)
	require.NoError(t, err)
	res, err := m.Run(t.Context(), Job{Plan: plan, Schedule: b.Schedule})
	require.NoError(t, err)
	return res
}

// A run is a function of its plan and a schedule.
func TestTwoRunsOfAPlanWithOneScheduleAgreeInEveryByte(t *testing.T) {
	b := readBug(t, root+"/internal/evidence/sim/testdata/bugs/sync-at-a-replaced-leader.json")
	m, err := Build(t.Context(), root)
	require.NoError(t, err)
	defer m.Close(context.WithoutCancel(t.Context()))
	require.Equal(t, string(carryOut(t, m, b).Text), string(carryOut(t, m, b).Text))
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
	require.Equal(t, `make replay SCHEDULE=3 SEED=7 ARGS="-made 'lost answers/rw'"`, Job{Seed: 7, Schedule: 3, Made: "lost answers/rw"}.Command())
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

func TestMadePlansComeBeforeSeedsWithEachSchedule(t *testing.T) {
	w := &walk{s: &settings{seeds: 1, job: Job{Seed: 5, Schedule: 1}}, made: []string{"logins/mutex"}}
	var got []string
	for range 4 {
		job, _ := w.next()
		got = append(got, job.title())
	}
	require.Equal(t, []string{"logins-mutex-seed-5-schedule-1", "seed-5-schedule-1", "logins-mutex-seed-6-schedule-2", "seed-5-schedule-2"}, got)
	w = &walk{s: &settings{job: Job{Seed: 5, Schedule: 1}}, made: []string{"logins/mutex"}}
	got = nil
	for range 3 {
		job, _ := w.next()
		got = append(got, job.title())
	}
	require.Equal(t, []string{"logins-mutex-seed-5-schedule-1", "seed-5-schedule-1", "seed-6-schedule-1"}, got)

	w = &walk{s: &settings{seeds: 1, job: Job{Seed: 5, Schedule: 1, Made: "logins/mutex"}}, made: []string{"logins/mutex"}}
	for _, want := range []string{"logins-mutex-seed-5-schedule-1", "logins-mutex-seed-6-schedule-2"} {
		job, _ := w.next()
		require.Equal(t, want, job.title(), "no others than the one that was asked for")
	}

	require.Equal(t, sim.MadePlans(), (&settings{}).made())
	require.Empty(t, (&settings{job: Job{Focus: "rw"}}).made(), "what is drawn was chosen")
	require.Equal(t, []string{"logins/mutex"}, (&settings{job: Job{Made: "logins/mutex"}}).made())
}

func TestAnOutputWithoutAVerdictIsAnError(t *testing.T) {
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
