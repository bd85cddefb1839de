// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/slots"
)

const slotsAbout = `
Lists what "zklock run --once" and "--every" have done at PATH: the name or the time of
each slot, when it was done, and by whom. Read-only.

With prune: forgets the names that were done longer ago than --older-than, and lists
them. Their commands run again if zklock is started with these names again. A path has
room for 1000 names; "zklock run" exits with 73 if it is full. A period (and "due") is
forgotten if nothing was done in it since then; no slot of a period in use is.`

func slotsCommand(std cli.Streams) *cli.Command {
	f := cli.NewFlags(std, "slots", "[prune --older-than D] [flags] PATH", slotsAbout)
	server := servers.New(f).Security(f)
	age := f.Duration("older-than", 0, "with prune: forget names that were done longer ago than this, for example 2160h for 90 days")
	asJSON := f.Bool("json", false, "print a line of JSON for each slot")
	return f.Command(func(args []string) error {
		positional, err := f.Parse(args, 1, 2)
		if err != nil {
			return err
		}
		prune := positional[0] == "prune"
		switch {
		case prune && len(positional) < 2:
			return outcome.Misuse("slots: PATH is missing")
		case !prune && len(positional) > 1:
			return outcome.Misuse("slots: unexpected argument %q", escape.Short(positional[1], 60))
		case prune && *age <= 0:
			return outcome.Misuse("slots: prune needs --older-than with a positive duration")
		case !prune && f.Given("older-than"):
			return outcome.Misuse("slots: --older-than has no effect without prune: zklock slots prune --older-than %v %s", *age, escape.Short(positional[0], 60))
		}
		path := positional[len(positional)-1]
		server.Hasty = true
		return server.Use(func(ctx context.Context, client *zklock.Client) error {
			var marks []slots.Mark
			err := server.Ask(ctx, func(ctx context.Context) (err error) {
				if prune {
					marks, err = slots.Prune(ctx, client, path, time.Now().Add(-*age))
				} else {
					marks, err = slots.Marks(ctx, client, path)
				}
				return err
			})
			printed := printMarks(std, marks, *asJSON)
			return cmp.Or(outcome.ByCause(err), printed)
		})
	})
}

// markJSON is a mark in the output of slots --json.
type markJSON struct {
	Period string     `json:"period,omitempty"`
	Slot   string     `json:"slot"`
	At     *time.Time `json:"at,omitempty"`
	By     string     `json:"by,omitempty"`
}

func printMarks(std cli.Streams, marks []slots.Mark, asJSON bool) error {
	var b bytes.Buffer
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if len(marks) > 0 && !asJSON {
		fmt.Fprintln(table, "PERIOD\tSLOT\tDONE\tBY")
	}
	for _, m := range marks {
		if asJSON {
			j := markJSON{Period: m.Period, Slot: m.Slot, By: m.By}
			if at := m.At.UTC(); !m.At.IsZero() {
				j.At = &at
			}
			if err := show.JSON(&b, j, false); err != nil {
				return err
			}
			continue
		}
		at := "-"
		if !m.At.IsZero() {
			at = m.At.Format("2006-01-02 15:04:05 -0700")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", orDash(m.Period), show.Text(m.Slot), at, orDash(m.By))
	}
	table.Flush()
	_, err := std.Out.Write(b.Bytes())
	return err
}
