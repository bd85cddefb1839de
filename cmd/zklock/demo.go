package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/zklock-go/zklock/zktest"
)

const demoAbout = `
Sells 10 items to 8 workers: first with nothing between them, then with a lock in
ZooKeeper, while one worker crashes as it holds the lock and another is cut off from all
servers. At the end come a table and a timeline of it, as one HTML file.

Without --servers a ZooKeeper in this very process is used and nothing has to be installed.`

type demo struct {
	std            streams
	server         *serverFlags
	items, workers int
	html           string
	path           string
}

func runDemo(args []string, std streams) error {
	f := newFlags(std, "demo", "[flags]", demoAbout)
	d := demo{std: std, server: f.server()}
	f.IntVar(&d.items, "items", 10, "how many `items` there are")
	f.IntVar(&d.workers, "workers", 8, "how many `workers` order them")
	f.StringVar(&d.html, "html", "zklock-demo.html", "`file` for the timeline; empty for none")
	f.StringVar(&d.path, "path", "/zklock-demo/sale", "`path` of the lock")
	if _, err := f.parse(args, 0, 0); err != nil {
		return err
	}
	if d.items < 7 || d.workers < 3 {
		return misuse("demo: the story takes at least 7 items and 3 workers")
	}
	ctx, stop := untilInterrupted()
	defer stop()
	if !f.given("servers") && os.Getenv("ZKLOCK_SERVERS") == "" {
		server, err := d.ownServer()
		if err != nil {
			return err
		}
		defer server.Close()
	}
	return d.run(ctx)
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
	if err := d.show(free, false, func() error { free.openUnlocked(d.workers); return nil }); err != nil {
		return err
	}
	workers, err := d.hire(ctx)
	defer dismiss(workers)
	if err != nil {
		return err
	}
	session := workers[0].client.SessionTimeout()
	fmt.Fprintf(d.std.out, "\nThe same sale with a zklock (servers %s, session timeout %v):\n", d.server.servers, session)
	locked := newSale(d.items)
	locked.faults = []fault{{3, crashes}, {6, isCutOff}}
	if err := d.show(locked, true, func() error { return locked.open(ctx, workers, d.path) }); err != nil {
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
	if opts.Dialer != nil {
		return nil, misuse("demo: has no TLS")
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
			return workers, exit{codeUnavailable, err}
		}
	}
	return workers, nil
}

// dismiss closes what the workers have open.
func dismiss(workers []*worker) {
	var all sync.WaitGroup
	for _, w := range workers {
		if w != nil && w.client != nil {
			// Owned by this call, which waits; Close bounds it.
			all.Go(func() { w.client.Close() })
		}
	}
	all.Wait()
}

// show runs a sale and lets it be watched: live on a terminal, elsewhere as a log if that is worth reading.
func (d *demo) show(s *sale, logged bool, open func() error) error {
	stop := func() {}
	if _, _, terminal := windowSize(d.std.out); terminal {
		stop = watchLive(d.std.out, s, d.workers, d.items).stop
	} else if logged {
		s.log.each = func(e event) { printEvent(d.std.out, e) }
	}
	err := open()
	stop()
	if err == nil {
		fmt.Fprintf(d.std.out, "%8.3fs  all gone: %d sold of %d\n", time.Since(s.log.start).Seconds(), s.shop.soldSoFar(), d.items)
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
