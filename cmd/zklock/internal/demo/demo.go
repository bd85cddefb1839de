// SPDX-License-Identifier: Apache-2.0

// Package demo is the subcommand that demonstrates the library.
package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
	"github.com/zklock-go/zklock/cmd/zklock/internal/web"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/zktest"
)

const demoAbout = `
Simulates a sale: workers sell the same stock, first without a lock, then with one. In
the second run one worker crashes while holding the lock and another is cut off from
every server. Prints a summary and writes a timeline to an HTML file.

With --web, runs a shop instead, whose workers use all kinds of locks, and shows it in a
browser until you press Ctrl-C.

With --shards, spreads 20 shards over workers instead. One joins and one is killed, and
a timeline shows how the shards move.

Unless --servers or ZKLOCK_SERVERS is set, starts an in-process ZooKeeper, so nothing has
to be installed.`

type demo struct {
	std            cli.Streams
	server         *servers.Flags
	items, workers int
	html           string
	path           string
	page           web.Flags
}

// Command returns the subcommand.
func Command(std cli.Streams) *cli.Command {
	f := cli.NewFlags(std, "demo", "[flags]", demoAbout)
	d := demo{std: std, server: servers.New(f).Nodes(f)}
	f.SetText("servers", "`host:port,...` of ZooKeeper servers; also ZKLOCK_SERVERS (default: start one in this process)")
	f.SetText("session-timeout", "session timeout to request; after a crash, the next holder waits about this long (default 2s with in-process servers, otherwise 10s)")
	f.IntVar(&d.items, "items", 10, "number of `items` for sale")
	f.IntVar(&d.workers, "workers", 8, "number of `workers`")
	f.StringVar(&d.html, "html", "zklock-demo.html", "`file` to write the timeline to; empty means none")
	f.StringVar(&d.path, "path", "/zklock-demo/sale", "`path` of the lock")
	withShards := f.Bool("shards", false, "spread shards over workers instead, of which one joins and one is killed")
	withPage := d.page.Alongside(f, "run a shop that uses all kinds of locks and show it in a browser instead, until Ctrl-C")
	return f.Command(func(args []string) error {
		if _, err := f.Parse(args, 0, 0); err != nil {
			return err
		}
		if d.items < 7 || d.workers < 3 {
			return outcome.Misuse("demo: at least 7 items and 3 workers are needed")
		}
		if err := node.CheckPath(d.path); err != nil {
			return outcome.Misuse("demo: --path: %w", err)
		}
		if d.items > 1000 || d.workers > 200 {
			return outcome.Misuse("demo: at most 1000 items and 200 workers")
		}
		for _, other := range []string{"web", "html", "items", "workers"} {
			if *withShards && f.Given(other) {
				return outcome.Misuse("demo: --shards and --%s cannot be combined", other)
			}
		}
		theirs := f.Given("servers") || os.Getenv(servers.EnvServers) != ""
		if *withPage {
			return (&fleetDemo{std, d.server, &d.page, path.Dir(d.path)}).open(theirs)
		}
		if *withShards {
			return d.beginShards(theirs)
		}
		return d.begin(theirs)
	})
}

// begin runs the demo until it is over or interrupted.
func (d *demo) begin(theirs bool) error {
	ctx, stop := cli.UntilInterrupted()
	defer stop()
	if _, err := d.server.Options(); err != nil {
		return err
	}
	unclaim, err := claim(d.html)
	if err != nil {
		return err
	}
	if !theirs {
		server, err := d.ownServer()
		if err != nil {
			return err
		}
		defer server.Close()
	}
	err = d.run(ctx)
	if err != nil {
		unclaim()
	}
	if ctx.Err() != nil {
		return outcome.Interrupted()
	}
	return err
}

// claim checks that the file can be written, so that a bad name fails before the demo runs. The returned function removes
// the file if it did not exist before.
func claim(name string) (unclaim func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	info, before := os.Stat(name)
	if before == nil && info.Mode().IsRegular() && !isTimeline(name) {
		return nil, outcome.Misuse("demo: %s exists and is no timeline: choose another file with --html", name)
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, outcome.Misuse("demo: the timeline cannot be written: %w (see --html)", err)
	}
	file.Close()
	return func() {
		if errors.Is(before, fs.ErrNotExist) {
			os.Remove(name)
		}
	}, nil
}

// timelineTitle is in the beginning of a timeline: see timeline.html.
const timelineTitle = "<title>zklock: a sale of "

// isTimeline reports whether a file is empty or begins as a timeline does, and so may be replaced.
func isTimeline(name string) bool {
	file, err := os.Open(name)
	if err != nil {
		return true // the error of writing says more
	}
	defer file.Close()
	begin := make([]byte, 1024)
	n, _ := io.ReadFull(file, begin)
	return n == 0 || bytes.Contains(begin[:n], []byte(timelineTitle))
}

// ownServer starts three in-process servers with short ticks, so that sessions expire quickly.
func (d *demo) ownServer() (*zktest.Server, error) {
	server, err := listenOn("127.0.0.1:0", zktest.Options{Servers: 3, TickTime: 200 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	d.server.Servers = strings.Join(server.Addrs(), ",")
	if d.server.Session == 0 {
		d.server.Session = 2 * time.Second
	}
	return server, nil
}

func (d *demo) run(ctx context.Context) error {
	fmt.Fprintf(d.std.Out, "A sale of %d items to %d workers, without a lock:\n", d.items, d.workers)
	free := newSale(d.items)
	if err := d.show(ctx, free, false, func() error { free.openUnlocked(ctx, d.workers); return nil }); err != nil {
		return err
	}
	workers, err := d.hire(ctx)
	defer dismiss(ctx, workers)
	if err != nil {
		return err
	}
	session := workers[0].client.SessionTimeout()
	fmt.Fprintf(d.std.Out, "\nThe same sale with zklock (servers %s, session timeout %v):\n", show.Text(d.server.Address()), session)
	locked := newSale(d.items)
	locked.faults = []fault{{3, crashes}, {6, isCutOff}}
	if err := d.show(ctx, locked, true, func() error { return locked.open(ctx, workers, d.path) }); err != nil {
		return err
	}
	before, after := summarize(d.items, free), summarize(d.items, locked)
	fmt.Fprintln(d.std.Out)
	printTable(d.std.Out, before, after)
	if d.html != "" {
		if err := d.writeTimeline(free, locked, before, after, session); err != nil {
			return err
		}
	}
	if after.sold != d.items || after.together != 1 || !after.ordered {
		return errors.New("the lock broke one of its guarantees: please report this")
	}
	return nil
}

// hire connects the workers. Each has its own session.
func (d *demo) hire(ctx context.Context) ([]*worker, error) {
	opts, err := d.server.Options()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.server.Patience)
	defer cancel()
	workers := make([]*worker, d.workers)
	errs := make([]error, d.workers)
	var all sync.WaitGroup
	for i := range workers {
		// Owned by this call, which waits; ends with ctx at the latest.
		all.Go(func() { workers[i], errs[i] = hire(ctx, i, d.server, *opts) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return workers, servers.FailedToConnect(err)
		}
	}
	return workers, nil
}

// dismissTime is how long an interrupted demo waits for its clients to close.
const dismissTime = 300 * time.Millisecond

// dismiss closes the workers' clients. After an interruption it waits for at most dismissTime.
func dismiss(ctx context.Context, workers []*worker) {
	var all sync.WaitGroup
	for _, w := range workers {
		if w != nil && w.client != nil {
			if ctx.Err() != nil {
				w.wire.heal()
			}
			// Owned by this call, which waits unless it was interrupted: then the process ends. Close bounds it.
			all.Go(func() { w.client.Close() })
		}
	}
	closed := make(chan struct{})
	// Ends with the workers.
	go func() {
		all.Wait()
		close(closed)
	}()
	select {
	case <-closed:
		return
	case <-ctx.Done():
	}
	select {
	case <-closed:
	case <-time.After(dismissTime):
	}
}

// show runs a sale and displays it: live on a terminal, elsewhere as a log if logged is set. If ctx is done, show returns at
// once; the sale itself ends a little later.
func (d *demo) show(ctx context.Context, s *sale, logged bool, open func() error) error {
	stop := func() {}
	if terminal.IsDisplay(d.std.Out) {
		stop = watchLive(d.std.Out, s, d.workers, d.items).stop
	} else if logged {
		s.log.each = func(e event) {
			if ctx.Err() == nil {
				printEvent(d.std.Out, e)
			}
		}
	}
	over := make(chan error, 1)
	// Owned by the demo; ends with the sale, or after an interruption with the process.
	go func() { over <- open() }()
	var err error
	select {
	case err = <-over:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	stop()
	if err == nil {
		_, err = fmt.Fprintf(d.std.Out, "%8.3fs  sold out: %d of %d sold\n", time.Since(s.log.start).Seconds(), s.shop.soldSoFar(), d.items)
	}
	return err
}

func printEvent(w io.Writer, e event) {
	fmt.Fprintf(w, "%8.3fs  worker %d  %s", e.at.Seconds(), e.worker+1, e.kind)
	switch {
	case e.kind == begins:
		fmt.Fprintf(w, ", token %d, %d left", e.token, e.left)
	case e.kind == sells:
		fmt.Fprintf(w, ", %d left", e.left)
	}
	fmt.Fprintln(w)
}

func (d *demo) writeTimeline(free, locked *sale, before, after summary, session time.Duration) error {
	file, err := os.Create(d.html)
	if err != nil {
		return err
	}
	if err := writePage(file, page{
		Items: d.items, Workers: d.workers, Session: session,
		Rows:   tableRows(before, after),
		Free:   newTimeline(free.log.soFar(), d.workers),
		Locked: newTimeline(locked.log.soFar(), d.workers),
	}); err != nil {
		file.Close()
		return err
	}
	fmt.Fprintf(d.std.Out, "\nTimeline: %s\n", d.html)
	return file.Close()
}
