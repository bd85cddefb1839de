package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/zklock-go/zklock"
)

const electAbout = `
With a COMMAND: stands for election at PATH and runs the command when elected, exactly as
"zklock run" does under a lock; the leadership ends with the command. Others see --value.

Without a COMMAND: prints the leader's value, with --watch each time there is another.`

func runElect(args []string, std streams) error {
	f := newFlags(std, "elect", "[flags] PATH [-- COMMAND [ARGS...]]", electAbout)
	j := job{server: f.server(), std: std}
	j.flags(f)
	host, _ := os.Hostname()
	value := f.String("value", host, "`text` that others see while we lead")
	latch := f.Bool("latch", false, "take part in an election of Curator's LeaderLatch")
	watch := f.Bool("watch", false, "print every leader from now on, until Ctrl-C")
	if !slices.Contains(args, "--") {
		positional, err := f.parse(args, 1, 1)
		if err != nil {
			return err
		}
		return showLeader(j.server, positional[0], *latch, *watch)
	}
	path, err := j.parse(f, args)
	if err != nil {
		return err
	}
	return j.run(func(ctx context.Context, client *zklock.Client) (*zklock.Hold, error) {
		return client.Election(path, &zklock.ElectionOptions{Latch: *latch}).Campaign(ctx, []byte(*value))
	})
}

func showLeader(server *serverFlags, path string, latch, watch bool) error {
	ctx, stop := untilInterrupted()
	defer stop()
	client, err := server.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	election := client.Election(path, &zklock.ElectionOptions{Latch: latch})
	if !watch {
		leader, err := election.Leader(ctx)
		if errors.Is(err, zklock.ErrNoLeader) {
			return exit{codeNotAcquired, err}
		}
		if err != nil {
			return invalidIsMisuse(err)
		}
		fmt.Fprintln(server.std.out, valueOf(leader))
		return nil
	}
	for leader, err := range election.Observe(ctx) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return invalidIsMisuse(err)
		}
		fmt.Fprintln(server.std.out, valueOf(leader))
	}
	return nil
}

// valueOf is one line, whatever somebody has put there.
func valueOf(leader zklock.Contender) string {
	text := string(leader.Data)
	for _, r := range text {
		if r < ' ' || r == utf8.RuneError || r == 0x7f {
			return fmt.Sprintf("%q", leader.Data)
		}
	}
	return text
}
