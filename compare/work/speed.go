package work

import (
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

// one client, one lock, nobody else.
func (b *bench) uncontended(ctx context.Context) error {
	all := append([]ways.Way{b.floor}, b.ways...)
	return b.measure(ctx, "uncontended", 0, all, func(ctx context.Context, w ways.Way) (map[string]float64, error) {
		return b.race(ctx, w, race{sessions: 1, lockers: 1, locks: 1})
	})
}

// some workers with sessions of their own on one lock.
func (b *bench) contended(ctx context.Context) error {
	return b.crowd(ctx, "contended", b.plan.Workers, b.handOff, b.ways, workers)
}

// workers is n workers with sessions of their own on one lock.
func workers(n int) race { return race{sessions: n, lockers: n, locks: 1} }

// queueSessions is how many clients share the waiters of a long queue.
const queueSessions = 16

// a queue that always has n waiters.
func (b *bench) queue(ctx context.Context) error {
	return b.crowd(ctx, "queue", b.plan.Queues, b.handOff, b.ways, standing)
}

// standing is a queue that always has n waiters.
func standing(n int) race {
	return race{sessions: min(n+1, queueSessions), lockers: n + 1, locks: 1, standing: true}
}

// 64 goroutines on 64 locks over one client.
func (b *bench) many(ctx context.Context) error {
	all := append([]ways.Way{b.floor}, b.ways...)
	return b.measure(ctx, "many", 64, all, func(ctx context.Context, w ways.Way) (map[string]float64, error) {
		return b.race(ctx, w, race{sessions: 1, lockers: 64, locks: 64})
	})
}

// shareClients are the ways that goroutines of one program would use together; the others are of another language, or
// differ from one of these only in what they store.
var shareClients = []string{"sql-advisory", "redis-setnx", "redsync", "redis-pubsub", "rueidislock", "etcd-mutex",
	Reference, "zklock", "zklock-cohort", "zklock-unfenced"}

func sharing(all []ways.Way) []ways.Way { return chosen(all, shareClients) }

// some clients, as one process has one, and the goroutines of each on one lock.
func (b *bench) goroutines(ctx context.Context) error {
	all := sharing(b.ways)
	if len(all) == 0 {
		return nil
	}
	return b.crowd(ctx, "goroutines", b.plan.Clients, b.handOff, all, func(n int) race {
		return race{sessions: n, lockers: n * Goroutines, locks: 1}
	})
}

// crowd measures some ways at some sizes with many contenders for one lock, beside the floor of their hand-offs.
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

// handOffs measures the floor of hand-offs for as long as a way is measured.
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
	standing                 bool                              // the first holder waits until all others stand in the queue
	served                   func(ways.Way) []*servers.Process // whose requests count; nil for the single servers
	connected                func(ways.Way) int                // how many connections a way has; nil where nobody counts
}

// race opens the contenders, lets them lock and unlock in a loop, and measures what happens within the window.
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
	if err := sleep(ctx, settle); err != nil {
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
	worked, made := processorTime(), allocations()
	counted := time.Now() // asking can take long, so the grants that belong to the requests have a window of their own
	from := time.Now()
	if shape.standing {
		if err := run.releaseFirst(loops); err != nil {
			return nil, err
		}
	}
	if err := sleep(ctx, b.plan.Window); err != nil {
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
	worked, made = processorTime()-worked, allocations()-made
	run.stopping.Store(true)
	stop()
	if err := run.wait(); err != nil {
		return nil, err
	}
	turns := run.turns()
	values := summarize(turns, from, to, shape.locks == 1 && shape.lockers > 1)
	if n := len(grantedWithin(turns, counted, countedAgain)); n > 0 {
		values[Requests] = float64(after-before) / float64(n)
		if shape.connected == nil && ways.IsInProcess(w) { // the distance is ours as well, and others work in processes of their own
			values[ClientCPU] = float64(worked.Microseconds()) / float64(n)
			values[Allocations] = float64(made) / float64(n)
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

// memory is what this process has in use, its goroutines' stacks included, when all that is not needed has been freed. That
// takes time, so it is asked for only where it is a figure.
func memory(weighed bool) float64 {
	if !weighed {
		return 0
	}
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc + stats.StackInuse)
}

// processorTime is what this process has used of the processors.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// allocations is how many objects this process has made so far.
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

// field is the contenders of one measurement.
type field struct {
	sessions []ways.Session
	lockers  []ways.Locker
}

// parallel is how many sessions or contenders are opened and closed at a time.
const parallel = 16

// assemble opens sessions and spreads the contenders over them; contender i is for lock i modulo the names.
func assemble(ctx context.Context, w ways.Way, sessions, lockers int, names []string) (*field, error) {
	f := &field{sessions: make([]ways.Session, sessions), lockers: make([]ways.Locker, lockers)}
	if err := each(sessions, func(i int) error {
		s, err := w.Open(ctx)
		if err == nil { // else there is nothing to close
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

// close frees everything. A library that hangs is left behind.
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

// each does n things, some side by side, and returns what went wrong.
func each(n int, do func(i int) error) error {
	var (
		wg   sync.WaitGroup
		next atomic.Int64
		errs = make([]error, n)
	)
	for range min(n, parallel) {
		wg.Add(1)
		// Owned by each, which waits; ends when no number is left.
		go func() {
			defer wg.Done()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = do(i)
			}
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// turn is one time that a contender asked for the lock. got is zero if it was not granted.
type turn struct {
	who                       int
	asked, got, giving, given time.Time
}

// runners lock and unlock in a loop each.
type runners struct {
	lockers  []ways.Locker
	logs     [][]turn
	errs     []error
	wg       sync.WaitGroup
	stopping atomic.Bool
	holders  atomic.Int64
	overlaps atomic.Int64
	first    turn
	holding  bool // contender 0 holds before the start
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

// releaseFirst lets contender 0 join the others.
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
	r.wg.Add(1)
	// Owned by the runners; ends once stopping is set and its turn is over or its context done; wait waits.
	go func() {
		defer r.wg.Done()
		for !r.stopping.Load() {
			if err := r.turn(ctx, i); err != nil {
				if !r.stopping.Load() {
					r.errs[i] = err
				}
				return
			}
		}
	}()
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
	// The end of the measurement must not leave a lock behind.
	err := r.lockers[i].Unlock(context.WithoutCancel(ctx))
	t.given = time.Now()
	return err
}

// patience is how long the last turns and the closing of clients may take. Longer means that a library hangs.
const patience = 30 * time.Second

func (r *runners) wait() error { return bounded("the last turns", r.wg.Wait) }

// bounded waits for do, but not for ever.
func bounded(what string, do func()) error {
	done := make(chan struct{})
	// Owned by bounded, which waits for it or reports that it hangs.
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
	for _, err := range r.errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
