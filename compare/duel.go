// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"github.com/zklock-go/zklock/compare/report"
	"github.com/zklock-go/zklock/compare/ways"
	"github.com/zklock-go/zklock/compare/work"
)

// duel compares this library with the Go client's own lock, and replaces the generated parts of a page.
func duel(args []string) error {
	flags := flag.NewFlagSet("duel", flag.ContinueOnError)
	render := flags.Bool("render", false, "write the page again from an earlier run, without measuring")
	rounds := flags.Int("rounds", 0, "rounds of each measurement (default six)")
	out := flags.String("out", "results", "write the samples to this directory, as duel.json")
	page := flags.String("page", "duel.md", "replace the generated parts of this page")
	err := flags.Parse(args)
	if err != nil {
		return err
	}
	ways.Lease = 10 * time.Second // the default of this library
	results := filepath.Join(*out, "duel.json")
	if !*render {
		plan := work.Duel()
		if *rounds > 0 {
			plan.Rounds = *rounds
		}
		if _, err := measureTo(results, plan); err != nil {
			return err
		}
	}
	r, err := report.Load(results)
	if err != nil {
		return err
	}
	fmt.Println(r.Duel())
	return r.RenderDuel(*page)
}
