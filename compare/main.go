// SPDX-License-Identifier: Apache-2.0

// Command compare measures the usual ways to lock on the same work, on real servers that it starts itself on
// loopback. It writes the results as JSON and as pictures, and updates compare/comparison.md.
//
//	go run .                       everything; about seventy minutes on a quiet machine
//	go run . --quick               a little of everything, in under three minutes on a quiet machine; does not change the page
//	go run . --only queue          one work
//	go run . --ways zklock,kazoo   some ways
//	go run . --render              draw pictures and page again from the JSON of an earlier run
//	go run . duel                  this library and the Go client's own lock only; about eight minutes; writes compare/duel.md
//	go run . costs                 the processor time that requests take on three ZooKeeper servers
//	go run . faults                when holders learn of a loss under nine faults of their servers; writes compare/report.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zklock-go/zklock/compare/report"
	"github.com/zklock-go/zklock/compare/servers"
	"github.com/zklock-go/zklock/compare/ways"
	"github.com/zklock-go/zklock/compare/work"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// options are the parsed flags.
type options struct {
	quick, render bool
	only, ways    string
	faults, sizes string
	rounds        int
	out, page     string
}

func run(args []string) error {
	if len(args) > 0 && args[0] == ways.PeerCommand {
		return ways.ServePeer(args[1:], os.Stdin, os.Stdout)
	}
	if len(args) > 0 && args[0] == "faults" {
		return underFaults(args[1:])
	}
	if len(args) > 0 && args[0] == "costs" {
		return measureCosts()
	}
	if len(args) > 0 && args[0] == "duel" {
		return duel(args[1:])
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	results := filepath.Join(o.out, "results.json")
	if o.render {
		loaded, err := report.Load(results)
		if err != nil {
			return err
		}
		return loaded.Render(o.out, o.page)
	}
	// A partial run writes to its own directory, so that it never replaces the figures of a full one.
	partial := o.quick || o.only != "" || o.ways != "" || o.faults != "" || o.sizes != ""
	if partial {
		o.out, o.page = filepath.Join(o.out, "partial"), ""
		results = filepath.Join(o.out, "results.json")
	}
	plan, err := o.plan()
	if err != nil {
		return err
	}
	r, err := measureTo(results, plan)
	if err != nil {
		return err
	}
	if err := r.Render(o.out, o.page); err != nil {
		return err
	}
	r.Print(os.Stdout)
	fmt.Println("written:", results)
	return nil
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.BoolVar(&o.quick, "quick", false, "a little of everything, in under three minutes")
	flags.BoolVar(&o.render, "render", false, "draw pictures and page again from an earlier run, without measuring")
	flags.StringVar(&o.only, "only", "", "one work: "+strings.Join(work.Names, ", "))
	flags.StringVar(&o.ways, "ways", "", "some ways, separated by commas")
	flags.StringVar(&o.faults, "faults", "", "some faults of the sale: "+strings.Join(work.Faults, ", "))
	flags.StringVar(&o.sizes, "sizes", "", "some sizes of the works that have them")
	flags.IntVar(&o.rounds, "rounds", 0, "rounds of each measurement (default six, or three for the crash and the sale)")
	flags.StringVar(&o.out, "out", "results", "write JSON and pictures to this directory")
	flags.StringVar(&o.page, "page", "comparison.md", "replace the generated parts of this page")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.only != "" && !slices.Contains(work.Names, o.only) {
		return o, fmt.Errorf("--only: unknown work, use one of %s", strings.Join(work.Names, ", "))
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.rounds < 0 {
		return o, fmt.Errorf("--rounds: %d is negative", o.rounds)
	}
	_, err := o.plan()
	return o, err
}

func (o options) plan() (work.Plan, error) {
	plan := work.Full()
	if o.quick {
		plan = work.Quick()
	}
	if o.rounds > 0 {
		plan.Rounds, plan.Repeats = o.rounds, o.rounds
	}
	if o.only != "" {
		plan.Only = []string{o.only}
	}
	var err error
	if plan.Ways, err = named("--ways", o.ways, wayNames()); err != nil {
		return plan, err
	}
	faults, err := named("--faults", o.faults, work.Faults)
	if err != nil {
		return plan, err
	}
	if faults != nil {
		plan.Faults = faults
	}
	if o.sizes != "" {
		sizes, err := numbers(o.sizes)
		if err != nil {
			return plan, err
		}
		plan.Workers, plan.Queues, plan.Clients, plan.Distant, plan.Lines, plan.Members = sizes, sizes, sizes, sizes, sizes, sizes
	}
	if plan.Samples() == 0 {
		return plan, fmt.Errorf("%s is not measured in the work %s", o.ways, o.only)
	}
	return plan, nil
}

func wayNames() []string {
	var all []string
	for _, w := range ways.All(ways.Endpoints{}) {
		all = append(all, w.Info().Name)
	}
	return all
}

// named splits a list of names, each of which must be known. It returns nil for an empty list.
func named(option, list string, known []string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%s: unknown name %q, use %s", option, name, strings.Join(known, ", "))
		}
	}
	return names, nil
}

func numbers(list string) ([]int, error) {
	var all []int
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--sizes: %q is not a size", text)
		}
		all = append(all, n)
	}
	return all, nil
}

// measureTo runs a plan and saves its results in a file, whose directory it creates.
func measureTo(file string, plan work.Plan) (*report.Results, error) {
	out := filepath.Dir(file)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := measure(ctx, plan, out)
	if err != nil {
		return nil, err
	}
	if err := r.Save(file); err != nil {
		return nil, err
	}
	_ = os.Remove(filepath.Join(out, "unfinished.json"))
	return r, nil
}

// saveEvery is the number of samples after which an unfinished run is saved.
const saveEvery = 25

// measure runs a plan. It saves an unfinished run in the directory out.
func measure(ctx context.Context, plan work.Plan, out string) (*report.Results, error) {
	began := time.Now()
	r := &report.Results{When: began.UTC().Truncate(time.Second), Commit: report.ThisCommit(), Machine: report.ThisMachine(), Lease: ways.Lease.String(), Poll: ways.Poll.String()}
	set, err := servers.NewSet()
	if err != nil {
		return nil, err
	}
	defer set.Close()
	fmt.Fprintln(os.Stderr, "starting the servers")
	singles, err := set.StartSingles(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w\n(compare/setup installs what is missing)", err)
	}
	r.Servers = append(singles.Describe(ctx), report.ClientVersions()...)
	for _, s := range r.Servers {
		fmt.Fprintf(os.Stderr, "  %-12s %s: %s\n", s.Server, s.Version, s.Durability)
	}
	for _, w := range append(ways.Floors(ways.Endpoints{}), ways.All(ways.Endpoints{})...) {
		r.Ways = append(r.Ways, w.Info())
	}
	r.Rounds, r.Repeats, r.Window = plan.Rounds, plan.Repeats, plan.Window.String()
	progress := newProgress(began, plan)
	err = work.Run(ctx, plan, set, singles, func(s work.Sample) {
		r.Samples = append(r.Samples, s)
		r.Loads = append(r.Loads, report.Load1())
		progress.show(s)
		// If a long run is interrupted, --render can draw the samples saved so far.
		if len(r.Samples)%saveEvery == 0 {
			r.Took = time.Since(began).Round(time.Second).String()
			if err := r.Save(filepath.Join(out, "unfinished.json")); err != nil {
				fmt.Fprintln(os.Stderr, "compare:", err)
			}
		}
	})
	r.Took = time.Since(began).Round(time.Second).String()
	if errors.Is(err, context.Canceled) {
		return nil, errors.New("interrupted")
	}
	return r, err
}

// progress writes one line for each sample.
type progress struct {
	began        time.Time
	done, expect int
}

func newProgress(began time.Time, plan work.Plan) *progress {
	return &progress{began: began, expect: plan.Samples()}
}

func (p *progress) show(s work.Sample) {
	p.done++
	what := s.Work
	if s.Size > 0 {
		what = fmt.Sprintf("%s %d", s.Work, s.Size)
	}
	if s.Fault != "" {
		what = s.Work + " " + s.Fault
	}
	fmt.Fprintf(os.Stderr, "%6s %3d%% %-14s round %d  %-15s %s\n", time.Since(p.began).Round(time.Second), min(100, 100*p.done/max(p.expect, 1)),
		what, s.Round+1, s.Way, report.Brief(s))
}
