// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/cmd/zklock/internal/web"
	"github.com/zklock-go/zklock/zktest"
)

const serveAbout = `
Runs zklock's in-process ZooKeeper server for development until you press Ctrl-C. It
speaks the real protocol, to any client. All data is in memory: not for production.
Tokens keep increasing across restarts, and clients reconnect.`

// Limits of zktest.
const (
	maxMembers = 200
	leastTick  = 2 * time.Millisecond
)

func serveCommand(std cli.Streams) *cli.Command {
	f := cli.NewFlags(std, "serve", "[flags]", serveAbout)
	listen := f.String("listen", servers.Local, "`address` of the first server; the others use the following ports")
	members := f.Int("members", 1, "run `n` servers as an ensemble, all in this process")
	tick := f.Duration("tick", 2*time.Second, "the servers' tickTime; session timeouts are 2 to 20 ticks")
	verbose := f.Bool("verbose", false, "log server events to standard error")
	var page web.Flags
	withPage := page.Alongside(f, "show the locks in a browser, like zklock web")
	return f.Command(func(args []string) error {
		if _, err := f.Parse(args, 0, 0); err != nil {
			return err
		}
		if *members < 1 || *members > maxMembers {
			return outcome.Misuse("serve: --members %d is not between 1 and %d", *members, maxMembers)
		}
		if *tick < leastTick {
			return outcome.Misuse("serve: --tick %v is below %v", *tick, leastTick)
		}
		opts := zktest.Options{Servers: *members, TickTime: *tick}
		if *verbose {
			opts.Logger = slog.New(slog.NewTextHandler(std.Err, nil))
		}
		if !*withPage {
			return serve(std, *listen, opts, nil)
		}
		return serve(std, *listen, opts, &page)
	})
}

// serve runs a server until it is interrupted. If page is not nil, it also shows the server's locks in a browser.
func serve(std cli.Streams, address string, opts zktest.Options, page *web.Flags) error {
	ctx, stop := cli.UntilInterrupted()
	defer stop()
	server, err := zktest.New(opts)
	if err != nil {
		return err
	}
	defer server.Close()
	server.Restore(zktest.Snapshot{Zxid: firstZxid(opts.Servers)})
	if err := server.Listen(address); err != nil {
		return outcome.CannotListen(err)
	}
	_, err = fmt.Fprintf(std.Out, `zklock: in-process ZooKeeper FOR DEVELOPMENT, listening on %s
        All data is in memory and is lost when this process exits; it validates only what tests need. Not for production.
        In another terminal:  export ZKLOCK_SERVERS=%[1]s
`, strings.Join(server.Addrs(), ","))
	if err != nil {
		return err
	}
	if page != nil {
		return showOwn(ctx, std, server, page)
	}
	<-ctx.Done()
	return nil
}

// showOwn shows the locks of an in-process server until ctx is done.
func showOwn(ctx context.Context, std cli.Streams, server *zktest.Server, flags *web.Flags) error {
	page, err := flags.Open(std, "/")
	if err != nil {
		return err
	}
	defer page.Close()
	own := &servers.Flags{Streams: std, Servers: strings.Join(server.Addrs(), ","), Session: web.Session, Patience: 10 * time.Second}
	client, err := own.Connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	return page.Show(ctx, std, client, own.Contact.SilentSince)
}

// firstZxid returns the zxid that a server starts with. It is derived from the clock, and firstZxid waits until the clock
// has reached it, so a server that starts later always has a larger one. Tokens therefore keep increasing across restarts,
// and clients of the previous server see a newer state of the same ensemble. A server with a smaller zxid would refuse them
// forever.
//
// A single server can continue from any zxid, so tokens stay below 2^53, beyond which some JSON parsers round. An ensemble
// must start with a new epoch, and there are fewer epochs.
func firstZxid(members int) int64 {
	unit, shift := time.Millisecond, 10
	if members > 1 {
		unit, shift = 250*time.Millisecond, 32
	}
	first := clock(time.Now(), unit) + 1
	for clock(time.Now(), unit) < first {
		time.Sleep(unit / 50)
	}
	return first << shift
}

// clock returns the number of units that have passed since the beginning of 2026, the year of the first version.
func clock(now time.Time, unit time.Duration) int64 {
	return int64(now.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) / unit)
}
