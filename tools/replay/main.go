// SPDX-License-Identifier: Apache-2.0

// Command replay runs the simulator so that a run is a function of its plan and a schedule.
//
// It compiles the simulator's tests to WebAssembly and runs them with wazero: in one thread, with an artificial clock, and with
// random numbers from a generator whose seed is the schedule. The same sources, compiler, plan and schedule give the same
// history, byte by byte, on every machine. With another schedule, goroutines run in another order.
//
//	replay run -seed 7 -schedule 3            prints the history of a drawn plan, then its verdict
//	replay run -plan FILE -schedule 3 -story  prints the events of a saved plan's run, a line for each
//	replay explore -budget 10m                runs seeds and schedules, and prints how to repeat failures
//	replay shrink -seed 7 -schedule 3         reduces a failing plan to a smaller one that still fails
//	replay robust -plan FILE -mutant NAME     counts in how many schedules a plan shows a defect
//	replay spread -plan FILE -mutant NAME     counts with how many seeds a plan shows a defect; -made NAME uses a made plan
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/zklock-go/zklock/internal/evidence/history"
)

func main() {
	if err := command(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

// settings are the parsed flags.
type settings struct {
	job      Job
	root     string
	mutant   string
	story    bool
	native   bool
	out      string
	budget   time.Duration
	parallel int
	seeds    int
	runs     int
}

var errUsage = errors.New("replay run, explore, shrink, robust or spread; -h shows the flags of each")

var verbs = map[string]func(context.Context, *settings) error{"run": run, "explore": explore, "shrink": shrink, "robust": robust, "spread": spread}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 || verbs[args[0]] == nil {
		return errUsage
	}
	var s settings
	flags := flag.NewFlagSet("replay "+args[0], flag.ContinueOnError)
	flags.Uint64Var(&s.job.Seed, "seed", 1, "the seed from which the plan is drawn; the first one, for explore")
	flags.Uint64Var(&s.job.Schedule, "schedule", 1, "the seed of the goroutines' order; the first one, for explore")
	flags.StringVar(&s.job.Made, "made", "", "use this made plan, for example 'lost answers/mutex', instead of a drawn one")
	flags.IntVar(&s.job.Shorten, "shorten", 8, "divide the duration of a drawn plan by this number")
	flags.StringVar(&s.job.Hostile, "hostile", "", "kinds of hostile faults in addition to the usual ones")
	flags.StringVar(&s.job.Faults, "faults", "", "use only faults whose names match this pattern")
	flags.StringVar(&s.job.Focus, "focus", "", "use this recipe for all locks")
	plan := flags.String("plan", "", "read the plan from this file: a plan, a history, or a bug file (which also sets the schedule)")
	flags.StringVar(&s.root, "root", "../..", "the directory of the library's module")
	flags.StringVar(&s.mutant, "mutant", "", "put this deliberate defect into the library")
	flags.BoolVar(&s.story, "story", false, "print the events in plain words instead of the history")
	flags.BoolVar(&s.native, "native", false, "run native code: faster, but the schedule has no effect")
	flags.StringVar(&s.out, "out", "", "write the bug file (shrink) or the histories (explore) here")
	flags.DurationVar(&s.budget, "budget", 10*time.Minute, "how long explore and shrink run")
	flags.IntVar(&s.parallel, "parallel", runtime.NumCPU(), "number of runs at the same time")
	flags.IntVar(&s.seeds, "seeds", 0, "number of seeds that explore runs before the next schedule; 0 never changes the schedule")
	flags.IntVar(&s.runs, "runs", 20, "number of schedules (robust) or seeds (spread)")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *plan != "" {
		if err := s.job.load(*plan); err != nil {
			return err
		}
	}
	return verbs[args[0]](ctx, &s)
}

// run runs a job and prints its history or its story.
func run(ctx context.Context, s *settings) error {
	m, err := s.machine(ctx)
	if err != nil {
		return err
	}
	defer m.Close(ctx)
	res, err := m.Run(ctx, s.job)
	if err != nil {
		return err
	}
	if s.story {
		err = history.Story(os.Stdout, res.History, res.Verdict)
	} else {
		_, err = os.Stdout.Write(res.Text)
	}
	if err == nil && len(res.Verdict) > 0 {
		err = fmt.Errorf("%d violations; the first: %v", len(res.Verdict), res.Verdict[0])
	}
	return err
}
