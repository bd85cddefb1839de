// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zklock-go/zklock/compare/servers"
	"github.com/zklock-go/zklock/compare/ways"
)

// uncontended measures one client and one lock without contention.
func (b *bench) uncontended(ctx context.Context) error {
	all := append([]ways.Way{b.floor}, b.ways...)
	return b.measure(ctx, "uncontended", 0, all, func(ctx context.Context, w ways.Way) (map[string]float64, error) {
		return b.race(ctx, w, race{sessions: 1, lockers: 1, locks: 1})
	})
}

// contended measures several workers on one lock, each with its own session.
func (b *bench) contended(ctx context.Context) error {
	return b.crowd(ctx, "contended", b.plan.Workers, b.handOff, b.ways, workers)
}

// workers returns a race of n workers on one lock, each with its own session.
func workers(n int) race { return race{sessions: n, lockers: n, locks: 1} }

// queueSessions is the number of clients over which the waiters of a long queue are distributed.
const queueSessions = 16

// queue measures a queue that always has n waiters.
func (b *bench) queue(ctx context.Context) error {
	return b.crowd(ctx, "queue", b.plan.Queues, b.handOff, b.ways, standing)
}

// standing returns a race with a queue that always has n waiters.
func standing(n int) race {
	return race{sessions: min(n+1, queueSessions), lockers: n + 1, locks: 1, standing: true}
}

// many measures 64 goroutines on 64 locks with one client.
func (b *bench) many(ctx context.Context) error {
	all := append([]ways.Way{b.floor}, b.ways...)
	return b.measure(ctx, "many", 64, all, func(ctx context.Context, w ways.Way) (map[string]float64, error) {
		return b.race(ctx, w, race{sessions: 1, lockers: 64, locks: 64})
	})
}

// shareClients are the ways for which goroutines of one program share a client. The other ways are in another language, or
// differ from one of these only in the stored data.
var shareClients = []string{"sql-advisory", "redis-setnx", "redsync", "redis-pubsub", "rueidislock", "etcd-mutex",
	Reference, "zklock", "zklock-cohort"}

func sharing(all []ways.Way) []ways.Way { return chosen(all, shareClients) }

// goroutines measures several clients, each shared by the goroutines of one process, on one lock.
func (b *bench) goroutines(ctx context.Context) error {
	all := sharing(b.ways)
	if len(all) == 0 {
		return nil
	}
	return b.crowd(ctx, "goroutines", b.plan.Clients, b.handOff, all, func(n int) race {
		return race{sessions: n, lockers: n * Goroutines, locks: 1}
	})
}

// crowd measures ways and the floor, at several sizes. shape returns the race for a size.
func (b *bench) crowd(ctx context.Context, work string, sizes []int, floor ways.Way, all []ways.Way, shape func(n int) race) error {
	all = append([]ways.Way{floor}, all...)
	for _, n := range sizes {
		err := b.measure(ctx, work, n, all, func(ctx context.Context, w ways.Way) (map[string]float64, error) {
			if floor, ok := w.(ways.HandOffFloor); ok {
				return b.handOffs(ctx, floor)
			}
			return b.race(ctx, w, shape(n))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// handOffs measures the floor of hand-offs for the same time as a way.
func (b *bench) handOffs(ctx context.Context, floor ways.HandOffFloor) (map[string]float64, error) {
	pair, err := floor.Pair(ctx, b.lockName())
	if err != nil {
		return nil, err
	}
	defer pair.Close()
	var spans []time.Duration
	for end := time.Now().Add(b.plan.Window); len(spans) == 0 || time.Now().Before(end); {
		took, err := pair.HandOff(ctx)
		if err != nil {
			return nil, err
		}
		spans = append(spans, took)
	}
	slices.Sort(spans)
	return map[string]float64{P50: milliseconds(quantile(spans, 0.5)), P99: milliseconds(quantile(spans, 0.99))}, nil
}

// race is the shape of a speed measurement.
type race struct {
	sessions, lockers, locks int
	standing                 bool                              // the first holder waits until all others have queued
	served                   func(ways.Way) []*servers.Process // the servers whose requests count; nil for the single ones
	connected                func(ways.Way) int                // returns a way's number of connections; nil if not counted
}

// race opens the contenders, which then lock and unlock in a loop, and measures the turns within the window.
func (b *bench) race(ctx context.Context, w ways.Way, shape race) (map[string]float64, error) {
	var names []string
	for range shape.locks {
		names = append(names, b.lockName())
	}
	field, err := assemble(ctx, w, shape.sessions, shape.lockers, names)
	defer field.close()
	if err != nil {
		return nil, err
	}
	run := newRunners(field.lockers)
	settle := 200 * time.Millisecond
	if shape.standing {
		if err := run.holdFirst(ctx); err != nil {
			return nil, err
		}
		settle = 300*time.Millisecond + time.Duration(shape.lockers)*4*time.Millisecond
	}
	weighed := shape.standing && ways.IsInProcess(w)
	empty := memory(weighed)
	loops, stop := context.WithCancel(ctx)
	defer stop()
	run.start(loops)
	if err := ways.Pause(ctx, settle); err != nil {
		return nil, err
	}
	full := memory(weighed)
	served := b.servedBy
	if shape.served != nil {
		served = shape.served
	}
	before, err := requests(ctx, served(w))
	if err != nil {
		return nil, err
	}
	worked, made, busy := processorTime(), allocations(), processorTimeOf(served(w))
	counted := time.Now() // requests can take long, so the grants that belong to the requests have their own window
	from := time.Now()
	if shape.standing {
		if err := run.releaseFirst(loops); err != nil {
			return nil, err
		}
	}
	if err := ways.Pause(ctx, b.plan.Window); err != nil {
		return nil, err
	}
	to := time.Now()
	connections := 0
	if shape.connected != nil {
		connections = shape.connected(w)
	}
	after, err := requests(ctx, served(w))
	if err != nil {
		return nil, err
	}
	countedAgain := time.Now()
	worked, made, busy = processorTime()-worked, allocations()-made, processorTimeOf(served(w))-busy
	run.stopping.Store(true)
	stop()
	if err := run.wait(); err != nil {
		return nil, err
	}
	turns := run.turns()
	values := summarize(turns, from, to, shape.locks == 1 && shape.lockers > 1)
	if n := len(grantedWithin(turns, counted, countedAgain)); n > 0 {
		values[Requests] = float64(after-before) / float64(n)
		if shape.connected == nil && ways.IsInProcess(w) { // not with a Distance, which runs in this process, and not for ways that run in another one
			values[ClientCPU] = float64(worked.Microseconds()) / float64(n)
			values[Allocations] = float64(made) / float64(n)
		}
		if w.Info().Family == "ZooKeeper" { // other servers may have several processes
			values[ServerCPU] = float64(busy.Microseconds()) / float64(n)
		}
	}
	if connections > 0 {
		values[Connections] = float64(connections)
	}
	if weighed {
		values[WaiterKB] = max(0, full-empty) / 1024 / float64(shape.lockers-1)
	}
	if shape.locks == 1 {
		values[Overlaps] = float64(run.overlaps.Load())
	}
	return values, run.firstError()
}

// memory returns how many bytes of heap and stacks this process uses after a garbage collection. A collection takes time, so
// memory returns 0 without one unless weighed is set.
func memory(weighed bool) float64 {
	if !weighed {
		return 0
	}
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc + stats.StackInuse)
}

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// processorTimeOf returns the processor time that the servers have used together.
func processorTimeOf(served []*servers.Process) (sum time.Duration) {
	for _, p := range served {
		sum += p.ProcessorTime()
	}
	return sum
}

// allocations returns the number of heap objects that this process has allocated.
func allocations() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func requests(ctx context.Context, served []*servers.Process) (int64, error) {
	var sum int64
	for _, p := range served {
		n, err := p.Requests(ctx)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// field holds the contenders of one measurement and their sessions.
type field struct {
	sessions []ways.Session
	lockers  []ways.Locker
}

// parallel is the number of sessions or contenders that are opened or closed at the same time.
const parallel = 16

// assemble opens sessions and distributes the contenders over them. Contender i is for the lock names[i%len(names)]. If it
// fails, the field holds the sessions and contenders opened so far.
func assemble(ctx context.Context, w ways.Way, sessions, lockers int, names []string) (*field, error) {
	f := &field{sessions: make([]ways.Session, sessions), lockers: make([]ways.Locker, lockers)}
	if err := each(sessions, func(i int) error {
		s, err := w.Open(ctx)
		if err == nil { // otherwise s may be a non-nil interface without a session to close
			f.sessions[i] = s
		}
		return err
	}); err != nil {
		return f, err
	}
	return f, each(lockers, func(i int) error {
		l, err := f.sessions[i%sessions].Locker(ctx, names[i%len(names)])
		if err == nil {
			f.lockers[i] = l
		}
		return err
	})
}

// close closes the contenders and sessions. If a library hangs, close gives up on it after patience.
func (f *field) close() { _ = bounded("closing", f.closeAll) }

func (f *field) closeAll() {
	_ = each(len(f.lockers), func(i int) error {
		if f.lockers[i] == nil {
			return nil
		}
		return f.lockers[i].Close()
	})
	_ = each(len(f.sessions), func(i int) error {
		if f.sessions[i] == nil {
			return nil
		}
		return f.sessions[i].Close()
	})
}

// each calls do for 0 to n-1, up to parallel at the same time, and returns the joined errors.
func each(n int, do func(i int) error) error {
	var (
		wg   sync.WaitGroup
		next atomic.Int64
		errs = make([]error, n)
	)
	for range min(n, parallel) {
		// Owned by each, which waits; ends when no number is left.
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = do(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// turn is one lock and unlock of a contender. got is zero if the lock was not granted.
type turn struct {
	who                       int
	asked, got, giving, given time.Time
}

// runners is a group of goroutines that each lock and unlock in a loop.
type runners struct {
	lockers  []ways.Locker
	logs     [][]turn
	errs     []error
	wg       sync.WaitGroup
	stopping atomic.Bool
	holders  atomic.Int64
	overlaps atomic.Int64
	first    turn
	holding  bool // contender 0 holds the lock before the start
}

func newRunners(lockers []ways.Locker) *runners {
	return &runners{lockers: lockers, logs: make([][]turn, len(lockers)), errs: make([]error, len(lockers))}
}

func (r *runners) holdFirst(ctx context.Context) error {
	r.first = turn{asked: time.Now()}
	if err := r.lockers[0].Lock(ctx); err != nil {
		return err
	}
	r.first.got, r.holding = time.Now(), true
	return nil
}

// releaseFirst releases the lock of contender 0 and starts its loop.
func (r *runners) releaseFirst(ctx context.Context) error {
	r.first.giving = time.Now()
	if err := r.lockers[0].Unlock(ctx); err != nil {
		return err
	}
	r.first.given = time.Now()
	r.logs[0] = append(r.logs[0], r.first)
	r.run(ctx, 0)
	return nil
}

func (r *runners) start(ctx context.Context) {
	for i := range r.lockers {
		if i == 0 && r.holding {
			continue
		}
		r.run(ctx, i)
	}
}

func (r *runners) run(ctx context.Context, i int) {
	// Owned by the runners: ends after a turn once stopping is set, or with an error. wait waits for it.
	r.wg.Go(func() {
		for !r.stopping.Load() {
			if err := r.turn(ctx, i); err != nil {
				if !r.stopping.Load() {
					r.errs[i] = err
				}
				return
			}
		}
	})
}

func (r *runners) turn(ctx context.Context, i int) error {
	t := turn{who: i, asked: time.Now()}
	defer func() { r.logs[i] = append(r.logs[i], t) }()
	if err := r.lockers[i].Lock(ctx); err != nil {
		return err
	}
	t.got = time.Now()
	if r.holders.Add(1) > 1 {
		r.overlaps.Add(1)
	}
	t.giving = time.Now()
	r.holders.Add(-1)
	// Unlock even if the measurement has ended meanwhile.
	err := r.lockers[i].Unlock(context.WithoutCancel(ctx))
	t.given = time.Now()
	return err
}

// patience limits the time for the last turns and for closing clients. A library that takes longer hangs.
const patience = 30 * time.Second

func (r *runners) wait() error { return bounded("the last turns", r.wg.Wait) }

// bounded calls do and waits for it, but no longer than patience.
func bounded(what string, do func()) error {
	done := make(chan struct{})
	// Owned by bounded, which waits for it, or returns an error if it hangs.
	go func() {
		do()
		close(done)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return fmt.Errorf("%s did not end within %v", what, patience)
	}
}

func (r *runners) turns() []turn {
	var all []turn
	for _, log := range r.logs {
		all = append(all, log...)
	}
	return all
}

func (r *runners) firstError() error {
	return cmp.Or(r.errs...)
}
