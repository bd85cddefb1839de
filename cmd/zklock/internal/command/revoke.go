// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
	"github.com/zklock-go/zklock/operate"
)

const revokeAbout = `
Asks the holders of the lock at PATH to release it. This is only a request: a command
under "zklock run" gets TERM, a program decides for itself, and some libraries do not
support it. "zklock ls" shows which contenders have been asked.`

func revokeCommand(std cli.Streams) *cli.Command {
	f := cli.NewFlags(std, "revoke", "[flags] PATH", revokeAbout)
	server := servers.New(f).Security(f)
	node := f.String("node", "", "ask only the contender with this `name`, as shown by ls")
	return f.Command(func(args []string) error {
		positional, err := f.Parse(args, 1, 1)
		c := choice{node: *node, holders: !f.Given("node")}
		if err == nil {
			err = c.check(f)
		}
		if err != nil {
			return err
		}
		return eachChosen(server, positional[0], c, operate.Revoke, "asked to release")
	})
}

// choice selects contenders of a queue.
type choice struct {
	node         string
	holders, all bool
}

// check rejects a --node that is empty, as an unset variable of a script would make it, or that is combined with --holders
// or --all: either would select more contenders than the one named.
func (c choice) check(f *cli.Flags) error {
	switch {
	case f.Given("node") && c.node == "":
		return outcome.Misuse("%s: --node needs a name", f.Name())
	case c.node != "" && (c.holders || c.all):
		return outcome.Misuse("%s: --node cannot be combined with --holders or --all", f.Name())
	case c.holders && c.all:
		return outcome.Misuse("%s: --holders and --all cannot be combined: --all evicts the waiters, too", f.Name())
	}
	return nil
}

func (c choice) covers(who zklock.Contender) bool {
	return c.all || c.holders && who.Holds || c.node != "" && slices.Contains([]string{show.Base(who), show.Text(show.Base(who)), show.Ending(show.Base(who))}, c.node)
}

// none returns the reason why no contender was selected.
func (c choice) none() string {
	switch {
	case c.node != "":
		return fmt.Sprintf("no contender is named %q", c.node)
	case c.all:
		return "there are no holders or waiters"
	}
	return "there are no holders"
}

// waitingFirst orders waiters before holders, and the last in the queue first. If contenders are removed in that order,
// none of them acquires the lock in between.
func waitingFirst(queue []zklock.Contender) []zklock.Contender {
	var waiting, holding []zklock.Contender
	for _, who := range slices.Backward(queue) {
		if who.Holds {
			holding = append(holding, who)
		} else {
			waiting = append(waiting, who)
		}
	}
	return append(waiting, holding...)
}

// eachChosen calls do for each contender that c selects. It returns an error if there are none.
func eachChosen(server *servers.Flags, path string, c choice, do func(context.Context, *zklock.Client, zklock.Contender) error, done string) error {
	server.Hasty = true
	return server.Use(func(ctx context.Context, client *zklock.Client) error {
		chosen, err := allChosen(ctx, server, client, path, c)
		if err != nil {
			return err
		}
		var errs []error
		for _, who := range waitingFirst(chosen) {
			err := server.Ask(ctx, func(ctx context.Context) error { return do(ctx, client, who) })
			if outcome.Unavailable.Is(err) {
				errs = append(errs, err)
				break
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if _, err := fmt.Fprintf(server.Streams.Out, "%s: %s %s\n", done, show.Text(who.Node), show.Owner(who)); err != nil {
				errs = append(errs, err)
			}
		}
		return outcome.ByCause(errors.Join(errs...))
	})
}

// allChosen returns the contenders that c selects. It returns an error if there are none.
func allChosen(ctx context.Context, server *servers.Flags, client *zklock.Client, path string, c choice) ([]zklock.Contender, error) {
	var q *operate.Queue
	err := server.Ask(ctx, func(ctx context.Context) (err error) {
		q, err = operate.Inspect(ctx, client, path)
		return err
	})
	if err != nil {
		return nil, outcome.ByCause(err)
	}
	chosen := slices.DeleteFunc(slices.Clone(q.Contenders), func(who zklock.Contender) bool { return !c.covers(who) })
	switch {
	case len(q.Contenders) == 0:
		return nil, noneAt(ctx, server, client, path, c)
	case len(chosen) == 0:
		return nil, fmt.Errorf("%s: %s", path, c.none())
	case c.node != "" && len(chosen) > 1:
		return nil, outcome.Misuse("%s: %d contenders match %s: use the full node name (ls --wide)", path, len(chosen), c.node)
	}
	return chosen, nil
}

// noneAt returns the error for a path that has no contenders. It may be the directory of locks.
func noneAt(ctx context.Context, server *servers.Flags, client *zklock.Client, path string, c choice) error {
	var below []*operate.Queue
	server.Ask(ctx, func(ctx context.Context) (err error) {
		below, err = operate.Queues(ctx, client, path)
		return err
	})
	if len(below) == 0 {
		return fmt.Errorf("%s: %s", path, c.none())
	}
	return fmt.Errorf("%s: %s, but %s below it: name one of them (see ls -r)", path, c.none(), show.Count(len(below), "lock is", "locks are"))
}
