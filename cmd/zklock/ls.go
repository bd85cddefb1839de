package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
)

const lsAbout = `
Lists the contenders of the lock or election at PATH, holders first, then the waiters in
the order of their turns, whatever library they use. It changes nothing.

AGE is how long ago a contender's node was made: of a holder that includes the time for
which it has waited ("zklock top" shows for how long it holds). A contender that was
asked to let go (revoke) is marked so. NODE is the end of the node's name; revoke and
evict take it as --node.

--cycles shows sessions that wait for each other in a circle: A holds one lock and waits
for another, B holds that and waits for the first. Nodes show sessions, not goroutines:
it is a deadlock where the goroutine that holds is the one that waits. A session that
waits at several locks surely has several, and is marked so.

-r and --cycles may take a minute, or what --connect-timeout says.`

// longListing is how long a listing of many locks may take, unless --connect-timeout says something else.
const longListing = time.Minute

func lsCommand(std streams) *command {
	f := newFlags(std, "ls", "[flags] PATH", lsAbout)
	server := f.server().security(f)
	v := view{out: std.out}
	f.BoolVar(&v.wide, "wide", false, "show sessions and the whole names of nodes")
	asJSON := f.Bool("json", false, "print JSON: one object a lock; with -r or --watch, each on one line")
	recursive := f.Bool("recursive", false, "list every lock below PATH that has contenders")
	f.alias("r", "recursive")
	cycles := f.Bool("cycles", false, "instead of queues, print the circles in which sessions wait for each other's locks, at PATH and below; exit with 81 if there are any")
	watch := f.Bool("watch", false, "print again whenever contenders come or go, until Ctrl-C")
	return &command{f, func(args []string) error {
		positional, err := f.parse(args, 1, 1)
		if err != nil {
			return err
		}
		if *cycles && *watch {
			return misuse("ls: --cycles and --watch do not go together")
		}
		v.columns = columnsOf(std.out)
		if *asJSON {
			v.json, v.pretty = true, !*watch && !*recursive || *cycles
		}
		patience, list := server.patience, listOne
		switch {
		case *cycles:
			list = listCircles
		case *recursive:
			list = listAll
		}
		if (*cycles || *recursive) && !f.given("connect-timeout") {
			patience = longListing
		}
		return server.use(func(ctx context.Context, client *zklock.Client) error {
			if *watch {
				return serverError(watchList(ctx, client, positional[0], *recursive, v))
			}
			return serverError(server.askFor(ctx, patience, func(ctx context.Context) error { return list(ctx, client, positional[0], v) }))
		})
	}}
}

// serverError gives an error of the library the code of its cause: what the user has
// typed, or what the server refuses.
func serverError(err error) error {
	var e exit
	switch {
	case errors.As(err, &e):
	case errors.Is(err, zklock.ErrInvalid):
		return exit{codeUsage, err}
	case errors.Is(err, zk.ErrNoAuth):
		return exit{codeNoPerm, err}
	}
	return err
}

// listOne shows one queue. Of an empty one it tells why: there is no such path, or only locks below it.
func listOne(ctx context.Context, client *zklock.Client, path string, v view) error {
	q, err := operate.Inspect(ctx, client, path)
	if err != nil || len(q.Contenders) > 0 || v.json {
		return orElse(err, func() error { return v.show(q) })
	}
	below, err := operate.Queues(ctx, client, path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return v.sayUnused(path)
	case err != nil:
		return err
	case len(below) > 0:
		return v.say("%s: nobody holds or waits here, but at %d locks below it (see ls -r)\n", path, len(below))
	}
	return v.show(q)
}

// orElse returns err if it is one, else what next returns.
func orElse(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

func listAll(ctx context.Context, client *zklock.Client, path string, v view) error {
	queues, err := operate.Queues(ctx, client, path)
	switch {
	case errors.Is(err, zk.ErrNoNode) && v.json:
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return v.sayUnused(path)
	case len(queues) == 0 && !v.json && err == nil:
		return v.say("nobody holds or waits at %s or below it\n", path)
	}
	for _, q := range queues {
		if err := v.show(q); err != nil {
			return err
		}
	}
	return err // of what could not be read
}

// watchList shows queues at first and whenever they have changed.
func watchList(ctx context.Context, client *zklock.Client, path string, recursive bool, v view) error {
	q, err := operate.Inspect(ctx, client, path)
	if !recursive && err == nil && len(q.Contenders) == 0 { // Watch is silent about it
		err = v.show(q)
	}
	if err != nil && !recursive {
		return err
	}
	for q, err := range operate.Watch(ctx, client, path) {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case !recursive && q.Path != path:
			continue
		}
		if err := v.show(q); err != nil {
			return err
		}
	}
	return nil
}
