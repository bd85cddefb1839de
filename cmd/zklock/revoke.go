package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
)

const revokeAbout = `
Asks the holders of the lock at PATH to let go. It is a request: a command under "zklock
run" gets TERM, a program decides by itself, and some libraries cannot be asked. "zklock
ls" shows which contenders were asked.`

func revokeCommand(std streams) *command {
	f := newFlags(std, "revoke", "[flags] PATH", revokeAbout)
	server := f.server().security(f)
	node := f.String("node", "", "only the contender with this `name`, as ls shows it")
	return &command{f, func(args []string) error {
		positional, err := f.parse(args, 1, 1)
		c := choice{node: *node, holders: !f.given("node")}
		if err == nil {
			err = c.check(f)
		}
		if err != nil {
			return err
		}
		return eachChosen(server, positional[0], c, operate.Revoke, "asked to let go")
	}}
}

// choice says which contenders of a queue are meant.
type choice struct {
	node         string
	holders, all bool
}

// check refuses a choice that covers more than its --node says: that may be empty, as a variable of a script can be.
func (c choice) check(f *flags) error {
	switch {
	case f.given("node") && c.node == "":
		return misuse("%s: --node wants a name", f.Name())
	case c.node != "" && (c.holders || c.all):
		return misuse("%s: --node contradicts --holders and --all", f.Name())
	}
	return nil
}

func (c choice) covers(who zklock.Contender) bool {
	return c.all || c.holders && who.Holds || c.node != "" && slices.Contains([]string{baseOf(who), shown(baseOf(who)), ending(baseOf(who))}, c.node)
}

// none says that no contender is meant.
func (c choice) none() string {
	switch {
	case c.node != "":
		return fmt.Sprintf("no contender is called %q", c.node)
	case c.all:
		return "nobody holds or waits"
	}
	return "nobody holds"
}

// waitingFirst puts those that wait before those that hold, the last in the queue first: what
// is done to them in that order lets nobody in.
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

// eachChosen does something to each contender that is meant. None at all is an error.
func eachChosen(server *serverFlags, path string, c choice, do func(context.Context, *zklock.Client, zklock.Contender) error, done string) error {
	return server.use(func(ctx context.Context, client *zklock.Client) error {
		chosen, err := allChosen(ctx, server, client, path, c)
		if err != nil {
			return err
		}
		var errs []error
		for _, who := range waitingFirst(chosen) {
			err := server.ask(ctx, func(ctx context.Context) error { return do(ctx, client, who) })
			if isUnavailable(err) {
				errs = append(errs, err)
				break
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if _, err := fmt.Fprintf(server.std.out, "%s: %s %s\n", done, shown(who.Node), ownerOf(who)); err != nil {
				errs = append(errs, err)
			}
		}
		return serverError(errors.Join(errs...))
	})
}

// allChosen returns the contenders that are meant. None at all is an error.
func allChosen(ctx context.Context, server *serverFlags, client *zklock.Client, path string, c choice) ([]zklock.Contender, error) {
	var q *operate.Queue
	err := server.ask(ctx, func(ctx context.Context) (err error) {
		q, err = operate.Inspect(ctx, client, path)
		return err
	})
	if err != nil {
		return nil, serverError(err)
	}
	chosen := slices.DeleteFunc(slices.Clone(q.Contenders), func(who zklock.Contender) bool { return !c.covers(who) })
	switch {
	case len(chosen) == 0:
		return nil, fmt.Errorf("%s: %w: %s", path, zklock.ErrNotHeld, c.none())
	case c.node != "" && len(chosen) > 1:
		return nil, misuse("%s: %d contenders are called %s: give the whole name (ls --wide)", path, len(chosen), c.node)
	}
	return chosen, nil
}
