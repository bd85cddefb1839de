// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
	"github.com/zklock-go/zklock/shards"
)

// The demo of shards has five workers. The last one joins later, and the second one is killed after that.
const (
	shardsShown  = 20
	shardWorkers = 5
	killedWorker = 1
)

// beginShards runs the demo of shards until it is over or interrupted.
func (d *demo) beginShards(theirs bool) error {
	ctx, stop := cli.UntilInterrupted()
	defer stop()
	if _, err := d.server.Options(); err != nil {
		return err
	}
	if !theirs {
		server, err := d.ownServer()
		if err != nil {
			return err
		}
		defer server.Close()
	}
	d.workers = shardWorkers
	err := d.runShards(ctx, path.Dir(d.path)+"/shards")
	if ctx.Err() != nil {
		return outcome.Interrupted()
	}
	return err
}

func (d *demo) runShards(ctx context.Context, path string) error {
	workers, err := d.hire(ctx)
	defer dismiss(ctx, workers)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel(nil)
	r := &shardLog{start: time.Now(), owner: map[int]int{}, changed: make(chan struct{})}
	join := func(w *worker) {
		r.note(shardEvent{worker: w.id, shard: -1})
		// Owned by the demo, which waits; ends with ctx.
		all.Go(func() {
			err := shards.Run(ctx, w.client, path, shardsShown, r.work(w.id))
			if ctx.Err() == nil && !w.wire.isSevered() {
				cancel(err)
			}
		})
	}
	say := func(format string, args ...any) {
		fmt.Fprintf(d.std.Out, "%8.3fs  %s\n", time.Since(r.start).Seconds(), fmt.Sprintf(format, args...))
	}
	// spread waits until these workers run all shards, and says who runs which.
	spread := func(live ...int) error {
		if err := r.await(ctx, func(owner map[int]int) bool { return isSpread(owner, live) }); err != nil {
			return err
		}
		say("%d workers run %d shards:", len(live), shardsShown)
		for _, w := range live {
			fmt.Fprintf(d.std.Out, "            worker %d  %s\n", w+1, show.Ranges(r.ownedBy(w)))
		}
		return nil
	}
	fmt.Fprintf(d.std.Out, "%d shards and %d workers (servers %s, session timeout %v):\n", shardsShown, shardWorkers, show.Text(d.server.Address()), workers[0].client.SessionTimeout())
	for _, w := range workers[:shardWorkers-1] {
		join(w)
	}
	if err := spread(0, 1, 2, 3); err != nil {
		return err
	}
	say("worker %d joins", shardWorkers)
	join(workers[shardWorkers-1])
	if err := spread(0, 1, 2, 3, 4); err != nil {
		return err
	}
	say("worker %d is killed", killedWorker+1)
	workers[killedWorker].wire.sever()
	if err := spread(0, 2, 3, 4); err != nil {
		return err
	}
	select { // so that the end can be seen in the timeline
	case <-time.After(time.Since(r.start) / 6):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	fmt.Fprintln(d.std.Out)
	r.draw(d.std.Out)
	if r.together() {
		return errors.New("two workers ran one shard at the same time: please report this")
	}
	return nil
}

// isSpread reports whether these workers run all shards, with loads that differ by at most one.
func isSpread(owner map[int]int, live []int) bool {
	load := map[int]int{}
	for _, w := range owner {
		load[w]++
	}
	least, most := shardsShown, 0
	for _, w := range live {
		least, most = min(least, load[w]), max(most, load[w])
		delete(load, w)
	}
	return len(owner) == shardsShown && len(load) == 0 && most-least <= 1
}

// shardEvent is the begin or the end of a worker's work on a shard, or, without a shard, that the worker joins.
type shardEvent struct {
	at     time.Duration
	worker int
	shard  int // -1: none
	begins bool
}

// shardLog records who runs which shard.
type shardLog struct {
	start time.Time

	mu      sync.Mutex
	events  []shardEvent  // guarded by mu
	owner   map[int]int   // guarded by mu: the worker that runs each shard
	twice   bool          // guarded by mu: two workers ran one shard at the same time
	changed chan struct{} // guarded by mu: closed at the next event
}

func (r *shardLog) note(e shardEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.at = time.Since(r.start)
	r.events = append(r.events, e)
	switch owner, taken := r.owner[e.shard]; {
	case e.shard < 0:
	case e.begins:
		r.twice = r.twice || taken
		r.owner[e.shard] = e.worker
	case owner == e.worker:
		delete(r.owner, e.shard)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// work is a worker's work on a shard: it lasts until the shard moves or is lost.
func (r *shardLog) work(worker int) shards.Work {
	return func(ctx context.Context, shard int) error {
		r.note(shardEvent{worker: worker, shard: shard, begins: true})
		defer r.note(shardEvent{worker: worker, shard: shard})
		<-ctx.Done()
		return nil
	}
}

// await waits until what is holds for the workers that run the shards.
func (r *shardLog) await(ctx context.Context, is func(owner map[int]int) bool) error {
	for {
		r.mu.Lock()
		ok, changed := is(r.owner), r.changed
		r.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *shardLog) ownedBy(worker int) (numbers []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for shard, w := range r.owner {
		if w == worker {
			numbers = append(numbers, shard)
		}
	}
	slices.Sort(numbers)
	return numbers
}

func (r *shardLog) together() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.twice
}

// drawnColumns is the width of the timeline.
const drawnColumns = 64

// draw writes a line for each shard: the worker that runs it, over time.
func (r *shardLog) draw(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	total := time.Since(r.start)
	column := func(at time.Duration) int { return min(int(at*drawnColumns/max(total, 1)), drawnColumns-1) }
	fmt.Fprintf(w, "The worker that runs each shard, during %.1f s; . if none does:\n", total.Seconds())
	for shard := range shardsShown {
		line := []byte(strings.Repeat(".", drawnColumns))
		running, since := -1, 0
		fill := func(until int) {
			for i := since; running >= 0 && i < until; i++ {
				line[i] = byte('1' + running)
			}
		}
		for _, e := range r.events {
			if e.shard != shard {
				continue
			}
			fill(column(e.at))
			running, since = -1, column(e.at)
			if e.begins {
				running = e.worker
			}
		}
		fill(drawnColumns)
		fmt.Fprintf(w, "%4d  %s\n", shard, line)
	}
}
