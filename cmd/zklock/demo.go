package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zklock-go/zklock/zktest"
)

const demoAbout = `
Sells items to workers: first with nothing between them, then with a lock in ZooKeeper,
while one worker crashes as it holds the lock and another is cut off from all servers. At
the end come a table and a timeline of it, as one HTML file.

With --web it shows something else: a shop whose workers use all kinds of locks, in a
browser, until you press Ctrl-C.

Without --servers and ZKLOCK_SERVERS a ZooKeeper in this very process is used, and
nothing has to be installed.`

type demo struct {
	std            streams
	server         *serverFlags
	items, workers int
	html           string
	path           string
	page           pageFlags
}

func demoCommand(std streams) *command {
	f := newFlags(std, "demo", "[flags]", demoAbout)
	d := demo{std: std, server: f.server().nodes(f)}
	f.retell("servers", "`host:port,...` of ZooKeeper servers; also ZKLOCK_SERVERS (default: one in this process)")
	f.retell("session-timeout", "session timeout to ask for: about the time until the next one holds after a crash (default 2s of the servers in this process, 10s of others)")
	f.IntVar(&d.items, "items", 10, "how many `items` there are")
	f.IntVar(&d.workers, "workers", 8, "how many `workers` order them")
	f.StringVar(&d.html, "html", "zklock-demo.html", "`file` for the timeline; empty for none")
	f.StringVar(&d.path, "path", "/zklock-demo/sale", "`path` of the lock")
	withPage := d.page.beside(f, "show a shop with all kinds of locks in a browser instead, until Ctrl-C")
	return &command{f, func(args []string) error {
		if _, err := f.parse(args, 0, 0); err != nil {
			return err
		}
		if d.items < 7 || d.workers < 3 {
			return misuse("demo: the story takes at least 7 items and 3 workers")
		}
		if d.items > 1000 || d.workers > 200 {
			return misuse("demo: at most 1000 items and 200 workers")
		}
		theirs := f.given("servers") || os.Getenv(envServers) != ""
		if *withPage {
			return (&fleetDemo{std, d.server, &d.page, path.Dir(d.path)}).open(theirs)
		}
		return d.begin(theirs)
	}}
}

// begin runs the demo until it is over or interrupted.
func (d *demo) begin(theirs bool) error {
	ctx, stop := untilInterrupted()
	defer stop()
	if _, err := d.server.options(); err != nil {
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
		return exit{codeSignal + int(syscall.SIGINT), errors.New("interrupted")}
	}
	return err
}

// claim finds out now whether the file can be written at the end. What it returns removes
// the file, if it was not there before.
func claim(name string) (unclaim func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	_, before := os.Stat(name)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, misuse("demo: the timeline cannot be written: %w (--html names another file)", err)
	}
	file.Close()
	return func() {
		if errors.Is(before, fs.ErrNotExist) {
			os.Remove(name)
		}
	}, nil
}

// ownServer starts three servers with short ticks, so that nobody waits long for an expiry.
func (d *demo) ownServer() (*zktest.Server, error) {
	server, err := listenOn("127.0.0.1:0", zktest.Options{Servers: 3, TickTime: 200 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	d.server.servers = strings.Join(server.Addrs(), ",")
	if d.server.session == 0 {
		d.server.session = 2 * time.Second
	}
	return server, nil
}

func (d *demo) run(ctx context.Context) error {
	fmt.Fprintf(d.std.out, "A sale of %d items to %d workers, with no lock between them:\n", d.items, d.workers)
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
	fmt.Fprintf(d.std.out, "\nThe same sale with a zklock (servers %s, session timeout %v):\n", shown(d.server.address()), session)
	locked := newSale(d.items)
	locked.faults = []fault{{3, crashes}, {6, isCutOff}}
	if err := d.show(ctx, locked, true, func() error { return locked.open(ctx, workers, d.path) }); err != nil {
		return err
	}
	before, after := summarize(d.items, free), summarize(d.items, locked)
	fmt.Fprintln(d.std.out)
	printTable(d.std.out, before, after)
	if d.html != "" {
		if err := d.writeTimeline(free, locked, before, after, session); err != nil {
			return err
		}
	}
	if after.sold != d.items || after.together != 1 || !after.ordered {
		return errors.New("the lock did not keep its promise: please report this")
	}
	return nil
}

// hire connects the workers, each with a session of its own.
func (d *demo) hire(ctx context.Context) ([]*worker, error) {
	opts, err := d.server.options()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.server.patience)
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
			return workers, connectFailure(err)
		}
	}
	return workers, nil
}

// dismissTime is how long an interrupted demo takes to tidy up.
const dismissTime = 300 * time.Millisecond

// dismiss closes what the workers have open; after an interruption it does not wait for long.
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

// show runs a sale and lets it be watched: live on a terminal, elsewhere as a log if that
// is worth reading. An interruption ends it at once; the sale itself ends a little later.
func (d *demo) show(ctx context.Context, s *sale, logged bool, open func() error) error {
	stop := func() {}
	if isDisplay(d.std.out) {
		stop = watchLive(d.std.out, s, d.workers, d.items).stop
	} else if logged {
		s.log.each = func(e event) {
			if ctx.Err() == nil {
				printEvent(d.std.out, e)
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
		_, err = fmt.Fprintf(d.std.out, "%8.3fs  all gone: %d sold of %d\n", time.Since(s.log.start).Seconds(), s.shop.soldSoFar(), d.items)
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
	fmt.Fprintf(d.std.out, "\nTimeline: %s\n", d.html)
	return file.Close()
}
