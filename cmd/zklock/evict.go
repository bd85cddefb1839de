package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
)

const evictAbout = `
Takes contenders of the lock at PATH out of its queue, whatever they are doing: for a
process that hangs while others wait. A holder of this library is told at once that its
lock is lost, and a command under "zklock run" gets KILL. A waiter gives up, also one
that was stopped and wakes up, or was first without knowing it yet: "zklock run" exits
with 79. Waiters go first, so that nobody is let in between.

Holders of other libraries may go on as if they held: make sure first that they are
stopped. Not told, and so queueing again, are waiters in a directory whose data cannot
be written, or is somebody else's. So are those that are stopped until 256 others were
evicted, or the directory has vanished, a minute after its last contender has gone.

The exit code is 0 if all that were meant are gone, and 77 if the servers do not allow
it: the error names who has the right to.`

func evictCommand(std streams) *command {
	f := newFlags(std, "evict", "--node NAME | --holders | --all  [flags] PATH", evictAbout)
	server := f.server().security(f)
	var c choice
	f.StringVar(&c.node, "node", "", "the contender with this `name`, as ls shows it")
	f.BoolVar(&c.holders, "holders", false, "every contender that holds")
	f.BoolVar(&c.all, "all", false, "every contender, holding or waiting")
	return &command{f, func(args []string) error {
		positional, err := f.parse(args, 1, 1)
		if err != nil {
			return err
		}
		if err := c.check(f); err != nil {
			return err
		}
		if c == (choice{}) {
			return misuse("evict: say which: --node, --holders or --all")
		}
		return evictChosen(server, positional[0], c)
	}}
}

// evictChosen evicts the contenders that are meant. One that has gone by itself meanwhile, or with
// another of its permits, is what was wanted, unless it was named.
func evictChosen(server *serverFlags, path string, c choice) error {
	return server.use(func(ctx context.Context, client *zklock.Client) error {
		chosen, err := allChosen(ctx, server, client, path, c)
		if err != nil {
			return err
		}
		var errs []error
		for _, who := range waitingFirst(chosen) {
			err := server.ask(ctx, func(ctx context.Context) error { return operate.Evict(ctx, client, who) })
			gone := errors.Is(err, zklock.ErrNotHeld) && c.node == ""
			if isUnavailable(err) {
				errs = append(errs, err)
				break // nor will they answer for the next one
			}
			if err != nil && !gone {
				errs = append(errs, err)
				continue
			}
			if _, err := fmt.Fprintf(server.std.out, "%s: %s %s\n", fateOf(who, gone), shown(who.Node), ownerOf(who)); err != nil {
				errs = append(errs, err)
			}
		}
		return serverError(errors.Join(errs...))
	})
}

// fateOf says what has become of a contender.
func fateOf(who zklock.Contender, gone bool) string {
	switch {
	case gone:
		return "gone by itself"
	case who.Holds:
		return "evicted, held"
	}
	return "evicted, waited"
}
