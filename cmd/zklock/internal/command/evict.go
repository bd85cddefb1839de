// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/operate"
)

const evictAbout = `
Removes contenders from the queue of the lock at PATH, even while they hold the lock. Use
it when a process hangs and others are waiting. A holder that uses this library loses its
lock at once, and a command under "zklock run" gets KILL. Evicted waiters exit with an
error ("zklock run" with code 79), even one that is suspended, or already first in line.
The errors of both say "evicted by HOST: REASON", with this host and --reason. Waiters
are removed first, so nobody acquires the lock in between.

Holders that use other libraries may carry on as if they still held the lock: stop them
first. Some waiters are not told and queue again: those in a directory whose data zklock
cannot write or does not own, and those that stay suspended until 256 more contenders
have been evicted or until the directory is removed (a minute after it became empty).

The exit code is 0 if every selected contender is gone, and 77 if the servers refuse
permission: the error then names the identities that have it.`

func evictCommand(std cli.Streams) *cli.Command {
	f := cli.NewFlags(std, "evict", "(--node NAME | --holders | --all) [flags] PATH", evictAbout)
	server := servers.New(f).Security(f)
	var c choice
	f.StringVar(&c.node, "node", "", "evict the contender with this `name`, as shown by ls")
	f.BoolVar(&c.holders, "holders", false, "evict every holder")
	f.BoolVar(&c.all, "all", false, "evict every holder and waiter")
	reason := f.String("reason", "", "`text` that the evicted contenders' errors contain, in addition to this host's name; others can read it")
	return f.Command(func(args []string) error {
		positional, err := f.Parse(args, 1, 1)
		if err != nil {
			return err
		}
		if err := c.check(f); err != nil {
			return err
		}
		if c == (choice{}) {
			return outcome.Misuse("evict: choose contenders with --node, --holders or --all")
		}
		if len(*reason) > node.MaxReason {
			return outcome.Misuse("evict: --reason has %d bytes, the limit is %d", len(*reason), node.MaxReason)
		}
		return evictChosen(server, positional[0], c, *reason)
	})
}

// evictChosen evicts the contenders that c selects. A contender that left by itself in the meantime, or together with
// another of its permits, counts as evicted unless it was selected by name.
func evictChosen(server *servers.Flags, path string, c choice, reason string) error {
	server.Hasty = true
	return server.Use(func(ctx context.Context, client *zklock.Client) error {
		chosen, err := allChosen(ctx, server, client, path, c)
		if err != nil {
			return err
		}
		var errs []error
		for _, who := range waitingFirst(chosen) {
			err := server.Ask(ctx, func(ctx context.Context) error { return operate.Evict(ctx, client, reason, who) })
			gone := errors.Is(err, zklock.ErrNotHeld) && c.node == ""
			if outcome.Unavailable.Is(err) {
				errs = append(errs, err)
				break // the servers will not answer for the next one either
			}
			if err != nil && !gone {
				errs = append(errs, err)
				continue
			}
			if _, err := fmt.Fprintf(server.Streams.Out, "%s: %s %s\n", fateOf(who, gone), show.Text(who.Node), show.Owner(who)); err != nil {
				errs = append(errs, err)
			}
		}
		return outcome.ByCause(errors.Join(errs...))
	})
}

// fateOf describes what happened to a contender.
func fateOf(who zklock.Contender, gone bool) string {
	switch {
	case gone:
		return "already gone"
	case who.Holds:
		return "evicted holder"
	}
	return "evicted waiter"
}
