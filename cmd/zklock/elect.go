package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/plain"
)

const electAbout = `
With a COMMAND: stands for election at PATH and runs the command when elected, exactly as
"zklock run" does under a lock; the leadership ends with the command. Others see --value.

Without a COMMAND: prints the leader's value, with --watch each time there is another.

` + exitCodes + `
Without a COMMAND, 75 says that there is no leader.`

func electCommand(std streams) *command {
	f := newFlags(std, "elect", "[flags] PATH [-- COMMAND [ARGS...]]", electAbout)
	j := &job{server: f.server().security(f), std: std}
	j.server.owner(f)
	j.flags(f)
	var w waiting
	w.flags(f)
	host, _ := os.Hostname()
	value := f.String("value", "", "`text` that others see while we lead (default: the host's name, unless --anonymous)")
	latch := f.Bool("latch", false, "take part in an election of Curator's LeaderLatch")
	watch := f.Bool("watch", false, "without a COMMAND: print every leader from now on, until Ctrl-C")
	return &command{f, func(args []string) error {
		if !slices.Contains(args, "--") {
			path, err := f.parseAlone(args)
			if err == nil {
				err = onlyGiven(f, "value", "anonymous", "grace", "end-rest", "wait", "no-wait", "conflict-exit-code", "acl", "lock-delay")
			}
			if err != nil {
				return err
			}
			return showLeader(j.server, path, *latch, *watch)
		}
		path, err := j.parse(f, args)
		if err == nil {
			err = w.check(f, j.server)
		}
		switch {
		case err != nil:
			return err
		case *watch:
			return misuse("elect: --watch does nothing with a COMMAND")
		case !f.given("value") && !j.server.anonymous:
			*value = host
		}
		j.waiting = w
		return w.recode(j.run(func(ctx context.Context, client *zklock.Client) (*zklock.Hold, error) {
			election := client.Election(path, &zklock.ElectionOptions{Latch: *latch})
			if w.noWait {
				return j.server.attempt(ctx, func(ctx context.Context) (*zklock.Hold, error) {
					return tryElection(ctx, election, []byte(*value))
				})
			}
			return election.Campaign(ctx, []byte(*value))
		}))
	}}
}

// onlyGiven refuses flags that do nothing without a COMMAND.
func onlyGiven(f *flags, useless ...string) error {
	for _, name := range useless {
		if f.given(name) {
			return misuse("%s: --%s does nothing without a COMMAND", f.Name(), name)
		}
	}
	return nil
}

// tryElection leads if nobody else does or wants to. Otherwise the error names the leader.
func tryElection(ctx context.Context, election *zklock.Election, value []byte) (*zklock.Hold, error) {
	hold, err := election.TryCampaign(ctx, value)
	if !errors.Is(err, zklock.ErrLocked) {
		return hold, err
	}
	if leader, unknown := election.Leader(ctx); unknown == nil {
		err = fmt.Errorf("%w: %s leads", zklock.ErrLocked, plain.Short(string(leader.Data), 60))
	}
	return nil, err
}

func showLeader(server *serverFlags, path string, latch, watch bool) error {
	return server.use(func(ctx context.Context, client *zklock.Client) error {
		election := client.Election(path, &zklock.ElectionOptions{Latch: latch})
		if watch {
			return showLeaders(ctx, election, server.std)
		}
		var leader zklock.Contender
		err := server.ask(ctx, func(ctx context.Context) (err error) {
			leader, err = election.Leader(ctx)
			return err
		})
		if errors.Is(err, zklock.ErrNoLeader) {
			return exit{codeNotAcquired, err}
		}
		if err != nil {
			return serverError(err)
		}
		return printLeader(server.std, leader)
	})
}

func showLeaders(ctx context.Context, election *zklock.Election, std streams) error {
	for leader, err := range election.Observe(ctx) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return serverError(err)
		}
		if err := printLeader(std, leader); err != nil {
			return err
		}
	}
	return nil
}

func printLeader(std streams, leader zklock.Contender) error {
	_, err := fmt.Fprintln(std.out, valueOf(leader))
	return err
}

// valueOf returns a leader's value in one line, whatever it is.
func valueOf(leader zklock.Contender) string { return plain.Short(string(leader.Data), 4<<10) }
