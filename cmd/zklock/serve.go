package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

const serveAbout = `
Runs zklock's in-process ZooKeeper server for development: the real protocol, for any
client, until you press Ctrl-C. It keeps everything in memory: it is no server for
production. Tokens go on growing when it is started again, and its clients come back.`

func serveCommand(std streams) *command {
	f := newFlags(std, "serve", "[flags]", serveAbout)
	listen := f.String("listen", localServer, "`address` of the first server; the others count the port up")
	members := f.Int("members", 1, "size of the ensemble, all of it in this process")
	tick := f.Duration("tick", 2*time.Second, "the servers' tickTime; session timeouts are 2 to 20 ticks")
	verbose := f.Bool("verbose", false, "log what happens to standard error")
	var page pageFlags
	withPage := page.beside(f, "show the locks in a browser, as zklock web does")
	return &command{f, func(args []string) error {
		if _, err := f.parse(args, 0, 0); err != nil {
			return err
		}
		if *members < 1 || *tick <= 0 {
			return misuse("serve: --members and --tick must be positive")
		}
		opts := zktest.Options{Servers: *members, TickTime: *tick}
		if *verbose {
			opts.Logger = slog.New(slog.NewTextHandler(std.err, nil))
		}
		if !*withPage {
			return serve(std, *listen, opts, nil)
		}
		return serve(std, *listen, opts, &page)
	}}
}

// serve runs a server until it is interrupted, with a page on its locks unless that is nil.
func serve(std streams, address string, opts zktest.Options, page *pageFlags) error {
	ctx, stop := untilInterrupted()
	defer stop()
	server, err := zktest.New(opts)
	if err != nil {
		return err
	}
	defer server.Close()
	server.Restore(zktest.Snapshot{Zxid: firstZxid(opts.Servers)})
	if err := server.Listen(address); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, `zklock: an in-process ZooKeeper FOR DEVELOPMENT listens on %s
        All data is in memory and gone when this ends; nothing is checked beyond what tests need. Not for production.
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

// showOwn shows the locks of a server in this process until ctx ends.
func showOwn(ctx context.Context, std streams, server *zktest.Server, flags *pageFlags) error {
	page, err := flags.open(std, "/")
	if err != nil {
		return err
	}
	defer page.Close()
	client, err := zklock.Connect(ctx, server.Addrs(), &zklock.Options{SessionTimeout: webSession})
	if err != nil {
		return err
	}
	defer client.Close()
	return show(ctx, std, page, client)
}

// firstZxid returns the transaction number that a server begins with, after waiting until
// it is the clock's. One that is started after another one has a greater number, however
// soon: tokens go on growing over a restart, and clients that knew the server before take
// it for a newer state of the same ensemble. Servers with an older one would turn them
// away for ever.
//
// A single server counts on from any number: tokens stay below 2^53, beyond which some
// readers of JSON round. An ensemble begins with a new epoch, of which there are fewer.
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

// clock returns how many units of time have passed since the year of the first version.
func clock(now time.Time, unit time.Duration) int64 {
	return int64(now.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) / unit)
}

func listenOn(address string, opts zktest.Options) (*zktest.Server, error) {
	server, err := zktest.New(opts)
	if err != nil {
		return nil, err
	}
	if err := server.Listen(address); err != nil {
		server.Close()
		return nil, err
	}
	return server, nil
}
