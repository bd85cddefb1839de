// Command lanes runs the parts of `make test` side by side: tests on real servers wait most of the time, and leave the
// processors to those that need them. While they run it shows what runs, and for how long it ran the last time. At the end
// it prints a table of the lanes, then what was not tested and why, and last what failed.
//
//	lanes [-only PATTERN] MODULE...    MODULE are the nested modules
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"sync"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	only := flag.String("only", "", "the lanes whose names match this pattern")
	flag.Parse()
	library, err := packages(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lanes:", err)
		os.Exit(1)
	}
	pattern := regexp.MustCompile(*only)
	all := slices.DeleteFunc(lanes(library, flag.Args()), func(l lane) bool { return !pattern.MatchString(l.name) })
	if !run(ctx, all) {
		os.Exit(1)
	}
}

// run runs the lanes and reports whether all of them are well.
func run(ctx context.Context, all []lane) bool {
	p := newProgress(os.Stdout, recall())
	notes, remove := notesFile()
	defer remove()
	var running sync.WaitGroup
	for _, l := range all {
		// Owned by this call, which waits for it; ends with the lane's commands.
		running.Go(func() { p.run(ctx, l) })
	}
	over := make(chan struct{})
	shown := make(chan struct{})
	// Owned by this call, which waits for it; ends with over.
	go func() {
		defer close(shown)
		p.showUntil(over)
	}()
	running.Wait()
	close(over)
	<-shown
	p.takeNotes(notes)
	p.table()
	p.remember()
	return p.well()
}
