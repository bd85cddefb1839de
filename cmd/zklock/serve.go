package main

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/zklock-go/zklock/zktest"
)

const serveAbout = `
Runs zklock's in-process ZooKeeper server for development: the real protocol, for any
client, until you press Ctrl-C. It keeps everything in memory: it is no server for production.`

func runServe(args []string, std streams) error {
	f := newFlags(std, "serve", "[flags]", serveAbout)
	listen := f.String("listen", localServer, "`address` of the first server; the others count the port up")
	members := f.Int("members", 1, "size of the ensemble, all of it in this process")
	tick := f.Duration("tick", 2*time.Second, "the servers' tickTime; session timeouts are 2 to 20 ticks")
	verbose := f.Bool("verbose", false, "log what happens to standard error")
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
	server, err := listenOn(*listen, opts)
	if err != nil {
		return err
	}
	defer server.Close()
	ctx, stop := untilInterrupted()
	defer stop()
	fmt.Fprintf(std.out, `zklock: an in-process ZooKeeper FOR DEVELOPMENT listens on %s
        All data is in memory and gone when this ends; nothing is checked beyond what tests need. Not for production.
        In another terminal:  export ZKLOCK_SERVERS=%[1]s
`, strings.Join(server.Addrs(), ","))
	<-ctx.Done()
	return nil
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
