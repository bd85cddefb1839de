// Command replay runs the simulator so that a run is a function of its plan and a schedule.
//
// The simulator's tests are compiled to WebAssembly and run by wazero: one thread, a clock that is not the machine's, and
// random numbers from a generator whose seed is the schedule. The same sources, compiler, plan and schedule give the same
// history, byte by byte, on every machine; another schedule lets goroutines run in another order.
//
//	replay run -seed 7 -schedule 3            prints the history of a drawn plan, then its verdict
//	replay run -plan FILE -schedule 3 -story  tells what happened to a plan that was saved
//	replay explore -budget 10m                walks seeds and schedules, and prints how to repeat what it finds
//	replay shrink -seed 7 -schedule 3         cuts a plan that fails to a small one that still does
//	replay robust -plan FILE -mutant NAME     counts in how many schedules a plan shows a defect
//	replay spread -plan FILE -mutant NAME     counts with how many seeds it does; -made NAME does so for a made plan
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

// settings are what the flags say.
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
	flags.StringVar(&s.job.Made, "made", "", "the name of a made plan, as in 'lost answers/mutex', in place of one that is drawn")
	flags.IntVar(&s.job.Shorten, "shorten", 8, "make a drawn plan so many times shorter")
	flags.StringVar(&s.job.Hostile, "hostile", "", "kinds of trouble besides the usual ones")
	flags.StringVar(&s.job.Faults, "faults", "", "only the faults whose names match this pattern")
	flags.StringVar(&s.job.Focus, "focus", "", "the recipe of all locks")
	plan := flags.String("plan", "", "a file with the plan, a bug file with its schedule too, or a history, in place of a plan that is drawn")
	flags.StringVar(&s.root, "root", "../..", "the directory of the library's module")
	flags.StringVar(&s.mutant, "mutant", "", "the name of a deliberate defect to put into the library")
	flags.BoolVar(&s.story, "story", false, "tell what happened instead of printing the history")
	flags.BoolVar(&s.native, "native", false, "run this machine's own code: faster, but a schedule says nothing then")
	flags.StringVar(&s.out, "out", "", "where shrink writes the bug file, and explore histories")
	flags.DurationVar(&s.budget, "budget", 10*time.Minute, "how long explore and shrink go on")
	flags.IntVar(&s.parallel, "parallel", runtime.NumCPU(), "how many runs at a time")
	flags.IntVar(&s.seeds, "seeds", 0, "how many seeds explore takes before it goes on with the next schedule; 0 means all of them with one schedule each")
	flags.IntVar(&s.runs, "runs", 20, "how many schedules robust takes, and how many seeds spread")
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

// run prints one run.
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
