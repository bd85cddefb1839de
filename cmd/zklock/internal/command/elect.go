// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/job"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
	"github.com/zklock-go/zklock/internal/escape"
)

const electAbout = `
With a COMMAND: stands for election at PATH and runs the command once elected, in the
same way as "zklock run" does under a lock. Leadership ends when the command exits. Other
clients see --value.

Without a COMMAND: prints the leader's value; with --watch, prints each new leader.

` + exitCodes + `
Without a COMMAND, 75 means that there is no leader.`

func electCommand(std cli.Streams) *cli.Command {
	f := cli.NewFlags(std, "elect", "[flags] PATH [-- COMMAND [ARGS...]]", electAbout)
	j := job.New(f)
	j.Election = true
	host, _ := os.Hostname()
	value := f.String("value", "", "`text` shown to others while this process leads (default: the host name, unless --anonymous)")
	latch := f.Bool("latch", false, "join a Curator LeaderLatch election")
	watch := f.Bool("watch", false, "without a COMMAND: print the leader and each new one, until Ctrl-C")
	return f.Command(func(args []string) error {
		if !slices.Contains(args, "--") {
			path, err := f.ParseAlone(args)
			if err == nil {
				err = onlyGiven(f, "value", "anonymous", "grace", "max-run", "end-rest", "health-cmd", "health-every", "wait", "no-wait", "conflict-exit-code", "acl", "lock-delay")
			}
			if err != nil {
				return err
			}
			return showLeader(j.Server, path, *latch, *watch)
		}
		err := j.Parse(f, args)
		switch {
		case err != nil:
			return err
		case *watch:
			return outcome.Misuse("elect: --watch has no effect with a COMMAND")
		case !f.Given("value") && !j.Server.Anonymous:
			*value = host
		}
		return j.Run(func(ctx context.Context, client *zklock.Client) (*zklock.Hold, error) {
			election := client.Election(j.Path, &zklock.ElectionOptions{Latch: *latch})
			if j.NoWait() {
				return j.Server.Attempt(ctx, func(ctx context.Context) (*zklock.Hold, error) { return election.TryCampaign(ctx, []byte(*value)) }, election.Leader)
			}
			return election.Campaign(ctx, []byte(*value))
		})
	})
}

// onlyGiven rejects flags that have no effect without a COMMAND.
func onlyGiven(f *cli.Flags, useless ...string) error {
	for _, name := range useless {
		if f.Given(name) {
			return outcome.Misuse("%s: --%s has no effect without a COMMAND", f.Name(), name)
		}
	}
	return nil
}

func showLeader(server *servers.Flags, path string, latch, watch bool) error {
	server.Hasty = true
	return server.Use(func(ctx context.Context, client *zklock.Client) error {
		election := client.Election(path, &zklock.ElectionOptions{Latch: latch})
		if watch {
			return showLeaders(ctx, election, server)
		}
		var leader zklock.Contender
		err := server.Ask(ctx, func(ctx context.Context) (err error) {
			leader, err = election.Leader(ctx)
			return err
		})
		if errors.Is(err, zklock.ErrNoLeader) {
			return outcome.NotAcquired.Errorf("%s has no leader", escape.Short(path, 512))
		}
		if err != nil {
			return outcome.ByCause(err)
		}
		return printValue(server.Streams, leader)
	})
}

func showLeaders(ctx context.Context, election *zklock.Election, server *servers.Flags) error {
	ctx, cancel := context.WithCancel(ctx)
	said := make(chan struct{})
	// Owned by this call, which waits; ends with ctx.
	go func() {
		defer close(said)
		show.SayWhetherServersAnswer(ctx, server.Contact, server.Streams.Err)
	}()
	defer func() {
		cancel()
		<-said
	}()
	for leader, err := range election.Observe(ctx) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return outcome.ByCause(err)
		}
		if err := printLeader(server.Streams, leader); err != nil {
			return err
		}
	}
	return nil
}

func printLeader(std cli.Streams, leader zklock.Contender) error {
	_, err := fmt.Fprintln(std.Out, show.Value(leader))
	return err
}

// printValue prints a leader's value as it is, for a script, or what of it cannot act on a terminal.
func printValue(std cli.Streams, leader zklock.Contender) error {
	if _, _, ok := terminal.Size(std.Out); ok {
		return printLeader(std, leader)
	}
	_, err := std.Out.Write(append(slices.Clone(leader.Data), '\n'))
	return err
}
