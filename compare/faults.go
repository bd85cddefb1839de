// SPDX-License-Identifier: Apache-2.0

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
	"strings"
	"syscall"
	"time"

	"github.com/zklock-go/zklock/compare/faults"
	"github.com/zklock-go/zklock/compare/report"
	"github.com/zklock-go/zklock/compare/ways"
)

// underFaults runs the subcommand faults: it measures when holders learn of a loss under nine faults.
//
//	go run . faults                                     everything, three rounds; about twenty minutes
//	go run . faults --only "leader killed" --clients zklock
//	go run . faults --lease 15s --only "follower cut off from its peers" --add
//	go run . faults --render                            draw pictures and page again
func underFaults(args []string) error {
	flags := flag.NewFlagSet("compare faults", flag.ContinueOnError)
	rounds := flags.Int("rounds", 3, "rounds")
	only := flags.String("only", "", "some faults, separated by commas")
	clients := flags.String("clients", "", "some clients, separated by commas")
	lease := flags.Duration("lease", 6*time.Second, "session timeout and lease")
	add := flags.Bool("add", false, "add to the stored trials, replacing those with the same lease")
	render := flags.Bool("render", false, "draw pictures and page again from an earlier run, without measuring")
	results := flags.String("results", "results/faults.json", "read and write the trials in this file")
	page := flags.String("page", "report.md", "replace the generated parts of this page; empty for no page")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ways.Lease = *lease
	if (*only != "" || *clients != "") && !*add && !*render {
		// A partial run writes to its own directory, so that it never replaces the figures of a full one.
		*results, *page = filepath.Join(filepath.Dir(*results), "partial", "faults.json"), ""
		if err := os.MkdirAll(filepath.Dir(*results), 0o755); err != nil {
			return err
		}
	}
	if !*render {
		if err := tryFaults(*results, *rounds, words(*only), words(*clients), *add); err != nil {
			return err
		}
	}
	return report.RenderFaults(*results, *page)
}

// words splits a comma-separated list. It returns nil for an empty list.
func words(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// tryFaults runs the trials and saves the run after each one.
func tryFaults(file string, rounds int, only, names []string, add bool) error {
	run := report.FaultRun{When: time.Now().UTC().Truncate(time.Second), Commit: report.ThisCommit(), Machine: report.ThisMachine(), Versions: report.FaultVersions()}
	if add {
		earlier, err := report.LoadFaults(file)
		if err != nil {
			return err
		}
		run.AddTo(earlier, ways.Lease.Seconds())
	}
	clients := slices.DeleteFunc(slices.Clone(faults.Clients), func(c faults.Client) bool {
		return names != nil && !slices.Contains(names, c.Name)
	})
	chosen := faults.Named(only)
	if len(clients) == 0 || len(chosen) == 0 {
		return errors.New("no such client or fault")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return faults.Run(ctx, clients, chosen, rounds, func(t faults.Trial) {
		run.Trials = append(run.Trials, t)
		run.Loads = append(run.Loads, report.Load1())
		fmt.Fprintf(os.Stderr, "round %d  %-31s %-17s %s\n", t.Round+1, t.Fault, t.Client, report.BriefTrial(t))
		if err := run.Save(file); err != nil {
			fmt.Fprintln(os.Stderr, "compare:", err)
		}
	})
}
