// SPDX-License-Identifier: Apache-2.0

// Command lanes compiles all tests, and runs the command's tests, which depend on real time. Then it runs the other parts of
// `make test` or `make test-all` in parallel, because tests on real servers mostly wait. While they run, it shows the running
// tests, and how long each lane took the last time. At the end it prints a table of the lanes, then the skipped tests with the
// reasons, and then the failures.
//
//	lanes [-all] [-only PATTERN] MODULE...    MODULE are the nested modules
//
// Without -all, it leaves out tests that take long and that few commits can break, and lists them.
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

	"github.com/zklock-go/zklock/internal/evidence/engine"
)

func main() {
	engine.Prepare()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	only := flag.String("only", "", "the lanes whose names match this pattern")
	everything := flag.Bool("all", false, "run everything")
	flag.Parse()
	library, err := packages(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lanes:", err)
		os.Exit(1)
	}
	pattern := regexp.MustCompile(*only)
	all := slices.DeleteFunc(lanes(library, flag.Args(), *everything), func(l lane) bool { return !pattern.MatchString(l.name) })
	compile(ctx, os.Stdout, dirs(all))
	if needsEngine(all) {
		startEngine(ctx, os.Stdout)
	}
	well := run(ctx, all)
	if !*everything {
		fmt.Println("left to make test-all:", leftOut)
	}
	if !well {
		os.Exit(1)
	}
}

// run runs the lanes and reports whether all of them succeeded.
func run(ctx context.Context, all []lane) bool {
	p := newProgress(os.Stdout, recall())
	notes, remove := notesFile()
	defer remove()
	var running sync.WaitGroup
	timed := make(chan struct{}) // closed when the command's tests, which depend on real time, have ended
	if !slices.ContainsFunc(all, func(l lane) bool { return l.name == command }) {
		close(timed)
	}
	for _, l := range all {
		// Owned by this call, which waits for it; ends with the lane's commands.
		running.Go(func() {
			if l.name == command {
				defer close(timed)
			} else {
				<-timed
			}
			p.run(ctx, l)
		})
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
