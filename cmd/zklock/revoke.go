package main

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/zklock-go/zklock"
)

const revokeAbout = `
Asks those who hold the lock at PATH to let go. It is a request: a command under
"zklock run" gets TERM, a program decides by itself, and some libraries cannot be asked.
"zklock ls" shows who was asked.`

func runRevoke(args []string, std streams) error {
	f := newFlags(std, "revoke", "[flags] PATH", revokeAbout)
	server := f.server()
	node := f.String("node", "", "only the contender with this `name`, as ls shows it")
	positional, err := f.parse(args, 1, 1)
	if err != nil {
		return err
	}
	return eachChosen(server, positional[0], choice{node: *node, holders: *node == ""}, (*zklock.Client).Revoke, "asked to let go")
}

// choice says which contenders of a queue are meant.
type choice struct {
	node         string
	holders, all bool
}

func (c choice) covers(who zklock.Contender) bool {
	return c.all || c.holders && who.Holds || c.node != "" && c.node == path.Base(who.Node)
}

// eachChosen does something to each contender that is meant. None at all is an error.
func eachChosen(server *serverFlags, path string, c choice, do func(*zklock.Client, context.Context, zklock.Contender) error, done string) error {
	ctx, stop := untilInterrupted()
	defer stop()
	client, err := server.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	q, err := client.Inspect(ctx, path)
	if err != nil {
		return invalidIsMisuse(err)
	}
	var errs []error
	found := false
	for _, who := range q.Contenders {
		if !c.covers(who) {
			continue
		}
		found = true
		if err := do(client, ctx, who); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(server.std.out, "%s: %s %s\n", done, who.Node, ownerOf(who))
	}
	if !found {
		return fmt.Errorf("%s: %w: nobody there that is meant", path, zklock.ErrNotHeld)
	}
	return errors.Join(errs...)
}
