// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
)

const topAbout = `
Shows the busiest locks at and below PATH (default: all), live: how many holders and
waiters there are, how long the lock has been held, and by whom. It uses watches: while
nothing changes, each directory is checked once per session timeout.

HELD is how long ago zklock saw the lock being granted; ">" means it was already held
when zklock started. If standard output is not a terminal, or with --json, it prints a
line of JSON for each change.`

func topCommand(std cli.Streams) *cli.Command {
	f := cli.NewFlags(std, "top", "[flags] [PATH]", topAbout)
	server := servers.New(f).Security(f)
	asJSON := f.Bool("json", false, "print a line of JSON for each change, even on a terminal")
	limit := f.Int("limit", 0, "on a terminal, show at most this many `locks` (default: as many as fit)")
	return f.Command(func(args []string) error {
		positional, err := f.Parse(args, 0, 1)
		switch {
		case err != nil:
			return err
		case *limit < 0:
			return outcome.Misuse("top: --limit %d is negative", *limit)
		}
		path := "/"
		if len(positional) == 1 {
			path = positional[0]
		}
		if err := checkTree(f, path); err != nil {
			return err
		}
		server.Hasty = true
		return server.Use(func(ctx context.Context, client *zklock.Client) error {
			if *asJSON || !terminal.IsDisplay(std.Out) {
				return outcome.ByCause(show.Lines(ctx, client, path, server.Contact, std))
			}
			return outcome.ByCause(show.Screen(ctx, client, path, *limit, server.Contact, std))
		})
	})
}
