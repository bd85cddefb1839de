// Package work is what each way to lock has to do, and how it is measured.
package work

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/zklock-go/zklock/compare/servers"
	"github.com/zklock-go/zklock/compare/ways"
)

// Reference is the way that all others are put in relation to, in the same round.
const Reference = "go-zookeeper"

// Floor is the way that is no lock, only the least that one on ZooKeeper costs.
const Floor = "create+delete"

// HandOffFloor is the way that is no lock, only the least that a hand-off on ZooKeeper costs.
const HandOffFloor = "delete+event"

// Distance is how late every byte between clients and servers is, in each direction, in the work latency.
const Distance = time.Millisecond

// Goroutines is how many goroutines share a client in the work goroutines.
const Goroutines = 8

// Sample is one measurement of one way.
type Sample struct {
	Work   string             `json:"work"`
	Size   int                `json:"size,omitempty"`
	Fault  string             `json:"fault,omitempty"`
	Way    string             `json:"way"`
	Round  int                `json:"round"`
	Values map[string]float64 `json:"values,omitempty"`
	Error  string             `json:"error,omitempty"`
}

// The names of measured values.
const (
	OpsPerSecond = "ops_per_s"
	P50          = "p50_ms"        // of the whole cycle without contention, of the hand-off with it
	P99          = "p99_ms"        // the same
	WaitP50      = "wait_p50_ms"   // from asking to holding
	WaitP99      = "wait_p99_ms"   // the same
	Jain         = "jain"          // 1: everybody got the same number of turns
	Overtaking   = "overtaking"    // share of grants that overtook somebody who stood in the queue when they asked
	Requests     = "requests"      // that the server counted, for each grant
	Overlaps     = "overlaps"      // grants while somebody else still held
	Recovery     = "recovery_s"    // from the holder's death to the next holder
	Oversold     = "oversold"      // items sold beyond the ten, holder does not ask
	OversoldAsk  = "oversold_ask"  // the same, holder asks his library right before he writes
	OversoldTok  = "oversold_tok"  // the same, the shop refuses old tokens
	NextHolder   = "next_holder_s" // from the first holder's grant to the next one's
	Connections  = "connections"   // that the clients have to their servers
	ClientCPU    = "client_cpu_us" // processor time of this process for each grant
	Allocations  = "allocations"   // of this process for each grant
	WaiterKB     = "waiter_kb"     // memory of this process for each contender that stands in the queue
)

// Plan says how much to do.
type Plan struct {
	Rounds  int           // of the speed measurements
	Repeats int           // of the crash and of each sale, which mostly wait
	Window  time.Duration // of one speed measurement
	Workers []int         // sizes of the contended work
	Queues  []int         // sizes of the standing queue
	Clients []int         // each with some goroutines
	Distant []int         // workers behind a distance
	Lines   []int         // sizes of the standing queue behind a distance
	Members []int         // workers on three servers
	Faults  []string      // of the sale
	Only    string        // one work's name; "" for all
	Ways    []string      // names; nil for all
}

// Full is the plan whose figures stand in the documentation.
func Full() Plan {
	return Plan{Rounds: 6, Repeats: 3, Window: time.Second, Workers: []int{2, 8, 32}, Queues: []int{10, 100, 1000},
		Clients: []int{1, 4}, Distant: []int{1, 8, 32}, Lines: []int{10, 100, 1000}, Members: []int{1, 8, 32}, Faults: Faults}
}

// Quick is a plan for under three minutes, to see that everything works. Its figures mean little.
func Quick() Plan {
	return Plan{Rounds: 1, Repeats: 1, Window: 250 * time.Millisecond, Workers: []int{8}, Queues: []int{10},
		Clients: []int{4}, Distant: []int{8}, Lines: []int{10}, Members: []int{8}, Faults: []string{Paused, Restarted, CutOff}}
}

// Names lists the works in order.
var Names = []string{"uncontended", "first", "contended", "queue", "many", "goroutines", "latency", "lines", "ensemble", "crash", "sale"}

// Run does the planned works and calls report with each sample as it comes, from one goroutine at a time.
func Run(ctx context.Context, plan Plan, set *servers.Set, singles *servers.Singles, report func(Sample)) error {
	b := &bench{plan: plan, set: set, singles: singles, report: report}
	defer b.close()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	for _, w := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"uncontended", b.uncontended}, {"first", b.first}, {"contended", b.contended}, {"queue", b.queue},
		{"many", b.many}, {"goroutines", b.goroutines}, {"latency", b.latency}, {"lines", b.lines}, {"ensemble", b.ensemble},
		{"crash", b.crash}, {"sale", b.sale},
	} {
		if plan.Only != "" && plan.Only != w.name {
			continue
		}
		if err := w.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// bench is one run.
type bench struct {
	plan    Plan
	set     *servers.Set
	singles *servers.Singles
	ways    []ways.Way
	floor   ways.Way
	handOff ways.Way // the floor of hand-offs

	reporting sync.Mutex
	report    func(Sample) // called under reporting
	names     int          // guarded by reporting; how many locks have been named
}

// endpoints is where the single servers are.
func endpoints(a *servers.Singles) ways.Endpoints {
	at, _ := reached(a, func(p *servers.Process) (string, error) { return p.Addr, nil })
	return at
}

// reached is where clients reach the single servers, if address tells it of each.
func reached(a *servers.Singles, address func(*servers.Process) (string, error)) (at ways.Endpoints, err error) {
	of := func(p *servers.Process) string {
		addr, trouble := address(p)
		err = errors.Join(err, trouble)
		return addr
	}
	at = ways.Endpoints{Postgres: of(a.Postgres), Redis: of(a.Redis), Memcached: of(a.Memcached),
		Etcd: []string{of(a.Etcd)}, ZooKeeper: []string{of(a.ZooKeeper)}}
	for _, p := range a.Redlock {
		at.Redlock = append(at.Redlock, of(p))
	}
	return at, err
}

func (b *bench) prepare(ctx context.Context) error {
	at := endpoints(b.singles)
	b.floor, b.handOff = ways.NewFloor(at), ways.NewHandOffFloor(at)
	b.ways = chosen(ways.All(at), b.plan.Ways)
	if len(b.ways) == 0 {
		return errors.New("no way of that name")
	}
	return prepared(ctx, b.ways)
}

func prepared(ctx context.Context, all []ways.Way) error {
	for _, w := range all {
		if err := w.Prepare(ctx); err != nil {
			return fmt.Errorf("%s: %w", w.Info().Name, err)
		}
	}
	return nil
}

func chosen(all []ways.Way, names []string) []ways.Way {
	if names == nil {
		return all
	}
	var some []ways.Way
	for _, w := range all {
		for _, n := range names {
			if w.Info().Name == n {
				some = append(some, w)
			}
		}
	}
	return some
}

func (b *bench) close() { closeAll(b.ways) }

func closeAll(all []ways.Way) {
	for _, w := range all {
		_ = w.Close()
	}
}

// lockName returns a name that no earlier measurement used, so that none can disturb the next.
func (b *bench) lockName() string {
	b.reporting.Lock()
	defer b.reporting.Unlock()
	b.names++
	return fmt.Sprintf("lock-%d", b.names)
}

func (b *bench) tell(s Sample, values map[string]float64, err error) {
	s.Values = values
	if err != nil {
		s.Error = err.Error()
	}
	b.reporting.Lock()
	defer b.reporting.Unlock()
	b.report(s)
}

// crowdedConnections is the size of a queue from which on some ways are tried in one round only.
const crowdedConnections = 1000

// isOverrun reports whether a way is slow to build such a queue, as a database with a process for each connection is, or
// does not live to see it: nobody renews the first holder's lease.
func isOverrun(w ways.Way) bool {
	return w.Info().Family == "PostgreSQL" || slices.Contains([]string{"memcached-add", "redis-setnx", "redsync", "redlock-5"}, w.Info().Name)
}

// measure runs one measurement of every way in turn, again and again: the ways are interleaved, so that whatever else
// happens on the machine meets all of them.
func (b *bench) measure(ctx context.Context, work string, size int, all []ways.Way, one func(context.Context, ways.Way) (map[string]float64, error)) error {
	for round := range b.plan.Rounds {
		for i := range all {
			// Every round begins with another way.
			w := all[(i+round*3)%len(all)]
			if size >= crowdedConnections && isOverrun(w) && round > 0 {
				continue
			}
			// A way that grants a million times leaves a log that the next one must not pay for.
			runtime.GC()
			limited, cancel := context.WithTimeout(ctx, 90*time.Second)
			values, err := one(limited, w)
			cancel()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			b.tell(Sample{Work: work, Size: size, Way: w.Info().Name, Round: round}, values, err)
		}
	}
	return nil
}

// servedBy returns the servers whose requests count for a way.
func (b *bench) servedBy(w ways.Way) []*servers.Process {
	switch w.Info().Family {
	case "PostgreSQL":
		return []*servers.Process{b.singles.Postgres}
	case "memcached":
		return []*servers.Process{b.singles.Memcached}
	case "Redis":
		return []*servers.Process{b.singles.Redis}
	case "Redlock":
		return b.singles.Redlock
	case "etcd":
		return []*servers.Process{b.singles.Etcd}
	default:
		return []*servers.Process{b.singles.ZooKeeper}
	}
}

// Samples is about how many samples the plan will give.
func (p Plan) Samples() int {
	all := chosen(ways.All(ways.Endpoints{}), p.Ways)
	n, floor := len(all), 1
	each := map[string]int{
		"uncontended": n + floor, "first": n, "contended": (n + floor) * len(p.Workers), "queue": (n + floor) * len(p.Queues), "many": n + floor,
		"goroutines": withFloor(len(sharing(all))) * len(p.Clients), "latency": (n + floor) * len(p.Distant),
		"lines": withFloor(len(inLine(all))) * len(p.Lines), "ensemble": withFloor(len(replicated(all))) * len(p.Members),
		"crash": n, "sale": n * len(p.Faults),
	}
	sum := 0
	for name, samples := range each {
		if p.Only != "" && p.Only != name {
			continue
		}
		if name == "crash" || name == "sale" {
			sum += samples * p.Repeats
		} else {
			sum += samples * p.Rounds
		}
	}
	return sum
}

// withFloor adds the floor to some ways, if there are any.
func withFloor(n int) int {
	if n == 0 {
		return 0
	}
	return n + 1
}
