// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
	"github.com/zklock-go/zklock/operate"
)

const lsAbout = `
Lists the contenders of the lock or election at PATH: holders first, then waiters in
queue order, for any client library. Read-only.

AGE is how long ago a contender's node was created; for a holder this includes its time
waiting ("zklock top" shows how long it has held). A contender that has been asked to
release the lock (revoke) is marked "asked". NODE is the end of the node's name; revoke
and evict accept it as --node.

The shards of a fleet (package shards) are shown as one: which member holds which of
them. -r lists them first.

--cycles shows sessions that wait for each other in a cycle: A holds one lock and waits
for another, which B holds while waiting for the first. Nodes show sessions, not
goroutines: it is a deadlock only if the goroutine that holds is the one that waits. A
session waiting at several locks must have several goroutines, and is marked.

-r and --cycles may take up to a minute (or --connect-timeout, if given).`

// longListing is how long a listing of many locks may take, unless --connect-timeout is given.
const longListing = time.Minute

func lsCommand(std cli.Streams) *cli.Command {
	f := cli.NewFlags(std, "ls", "[flags] PATH", lsAbout)
	server := servers.New(f).Security(f)
	v := show.View{Out: std.Out}
	f.BoolVar(&v.Wide, "wide", false, "show sessions and full node names")
	asJSON := f.Bool("json", false, "print JSON: one object per lock; with -r or --watch, one object per line")
	recursive := f.Bool("recursive", false, "list every lock below PATH that has contenders")
	f.Alias("r", "recursive")
	cycles := f.Bool("cycles", false, "instead of queues, print the cycles in which sessions wait for each other's locks, at PATH and below; exit with 81 if there are any")
	watch := f.Bool("watch", false, "print again whenever contenders come or go, until Ctrl-C")
	return f.Command(func(args []string) error {
		positional, err := f.Parse(args, 1, 1)
		if err != nil {
			return err
		}
		if positional[0] == "/" && !*recursive && !*cycles {
			return outcome.Misuse("ls: / is no lock: use ls -r / to list all locks")
		}
		if *cycles && *watch {
			return outcome.Misuse("ls: --cycles and --watch cannot be combined")
		}
		v.Columns = terminal.Columns(std.Out)
		if *asJSON {
			v.JSON, v.Pretty = true, !*watch && !*recursive || *cycles
		}
		patience, list := server.Patience, listOne
		switch {
		case *cycles:
			list = listCycles
		case *recursive:
			list = listAll
		}
		if (*cycles || *recursive) && !f.Given("connect-timeout") {
			patience = longListing
		}
		server.Hasty = true
		return server.Use(func(ctx context.Context, client *zklock.Client) error {
			if *watch {
				return outcome.ByCause(watchList(ctx, client, server, positional[0], *recursive, v))
			}
			return outcome.ByCause(server.AskFor(ctx, patience, func(ctx context.Context) error { return list(ctx, client, positional[0], v) }))
		})
	})
}

// listOne shows one queue. If the queue is empty, it says whether the path does not exist or has locks below it.
func listOne(ctx context.Context, client *zklock.Client, path string, v show.View) error {
	q, err := operate.Inspect(ctx, client, path)
	if err != nil || len(q.Contenders) > 0 {
		return orElse(err, func() error { return v.Queue(q) })
	}
	below, err := operate.Queues(ctx, client, path)
	fleets, _ := operate.GroupShards(below)
	switch {
	case errors.Is(err, zk.ErrNoNode) && !v.JSON:
		return v.SayUnused(path)
	case err != nil && !v.JSON:
		return err
	case len(fleets) > 0 && fleets[0].Path == path:
		return v.Shards(fleets[0])
	case len(below) > 0 && !v.JSON:
		return v.Say("%s: not in use, but %s below it (see ls -r)\n", path, show.Count(len(below), "lock is", "locks are"))
	}
	return v.Queue(q)
}

// orElse returns err if it is not nil, and otherwise calls next.
func orElse(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

func listAll(ctx context.Context, client *zklock.Client, path string, v show.View) error {
	queues, err := operate.Queues(ctx, client, path)
	switch {
	case errors.Is(err, zk.ErrNoNode) && v.JSON:
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return v.SayUnused(path)
	case len(queues) == 0 && !v.JSON && err == nil:
		return v.Say("no locks in use at or below %s\n", path)
	}
	fleets, others := operate.GroupShards(queues)
	for _, f := range fleets {
		if err := v.Shards(f); err != nil {
			return err
		}
	}
	for _, q := range others {
		if err := v.Queue(q); err != nil {
			return err
		}
	}
	return err // names what could not be read
}

// watchList shows queues once and again after every change.
func watchList(ctx context.Context, client *zklock.Client, server *servers.Flags, path string, recursive bool, v show.View) error {
	if !recursive {
		q, err := operate.Inspect(ctx, client, path)
		if err == nil && len(q.Contenders) == 0 { // a watch does not report an empty queue
			err = v.Queue(q)
		}
		if err != nil {
			return err
		}
	}
	return show.Follow(ctx, client, path, server.Contact, server.Streams, func(q *operate.Queue, gaps *operate.Incomplete) error {
		switch {
		case gaps != nil && recursive:
			return show.SayGaps(server.Streams.Err, gaps)
		case gaps != nil, !recursive && q.Path != path:
			return nil
		}
		return v.Queue(q)
	})
}

// listCycles shows the cycles among the locks at and below path. It reads the queues one after the other, so a cycle can be
// composed of states from different times. A cycle that a second read finds with the same nodes existed all the time in
// between.
func listCycles(ctx context.Context, client *zklock.Client, path string, v show.View) error {
	queues, err := operate.Queues(ctx, client, path)
	if errors.Is(err, zk.ErrNoNode) {
		if !v.JSON {
			return v.SayUnused(path)
		}
		err = nil
	}
	found := locks.Cycles(queues)
	if len(found) > 0 {
		queues, err = operate.Queues(ctx, client, path)
		found = locks.InBoth(found, locks.Cycles(queues))
	}
	if err != nil && !errors.Is(err, zk.ErrNoAuth) { // ErrNoAuth: some queues could be read
		return err
	}
	if failed := v.Cycles(path, found, err != nil); failed != nil {
		return failed
	}
	if err == nil && len(found) > 0 {
		return outcome.Cycle.Of(nil)
	}
	return err
}
