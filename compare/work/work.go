// SPDX-License-Identifier: Apache-2.0

// Package work defines the workloads and measures each way to lock under them.
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

// Reference is the way to which all others are compared, within the same round.
const Reference = "go-zookeeper"

// Floor is not a lock: it shows the lowest cost that a lock on ZooKeeper can have.
const Floor = "create+delete"

// HandOffFloor is not a lock: it shows the lowest cost that a hand-off on ZooKeeper can have.
const HandOffFloor = "delete+event"

// Distance is the delay between clients and servers, in each direction, in the works latency and lines.
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
	P50          = "p50_ms"        // time of lock and unlock, or of the hand-off if there is contention
	P99          = "p99_ms"        // likewise
	WaitP50      = "wait_p50_ms"   // time from the call of Lock to the grant
	WaitP99      = "wait_p99_ms"   // likewise
	Jain         = "jain"          // fairness index; 1 if all contenders got the same number of turns
	Overtaking   = "overtaking"    // share of grants that overtook a contender already in the queue
	Requests     = "requests"      // the server's count of requests per grant
	Overlaps     = "overlaps"      // grants while another contender held the lock
	Recovery     = "recovery_s"    // time from the holder's crash to the next grant
	Oversold     = "oversold"      // items sold in excess of the ten, without a check
	OversoldAsk  = "oversold_ask"  // likewise, with a check of the library before each write
	OversoldTok  = "oversold_tok"  // likewise, if the shop rejects old tokens
	NextHolder   = "next_holder_s" // time from the first holder's grant to the next one
	Connections  = "connections"   // number of connections to the servers
	ClientCPU    = "client_cpu_us" // processor time of this process per grant
	ServerCPU    = "server_cpu_us" // processor time of all ZooKeeper servers per grant
	Allocations  = "allocations"   // heap objects allocated by this process per grant
	WaiterKB     = "waiter_kb"     // memory of this process per queued contender
)

// Plan is the extent of a run.
type Plan struct {
	Rounds  int           // number of rounds of the speed measurements
	Repeats int           // number of rounds of the crash and the sale
	Window  time.Duration // duration of one speed measurement
	Workers []int         // sizes of the contended work
	Queues  []int         // lengths of the standing queue
	Clients []int         // numbers of clients that goroutines share
	Distant []int         // numbers of workers with a distance
	Lines   []int         // lengths of the standing queue with a distance
	Members []int         // numbers of workers on three servers
	Secure  []int         // numbers of workers over TLS, for ways in Go on ZooKeeper
	Faults  []string      // faults to inject into the sale
	Only    []string      // names of the works to do, or nil for all
	Ways    []string      // names of the ways, or nil for all
}

// Full returns the plan for the figures in the documentation.
func Full() Plan {
	return Plan{Rounds: 6, Repeats: 3, Window: time.Second, Workers: []int{2, 8, 32}, Queues: []int{10, 100, 1000},
		Clients: []int{1, 4}, Distant: []int{1, 8, 32}, Lines: []int{10, 100, 1000}, Members: []int{1, 8, 32}, Faults: Faults}
}

// Quick returns a plan of less than three minutes, to check that everything works. Its figures mean little.
func Quick() Plan {
	return Plan{Rounds: 1, Repeats: 1, Window: 250 * time.Millisecond, Workers: []int{8}, Queues: []int{10},
		Clients: []int{4}, Distant: []int{8}, Lines: []int{10}, Members: []int{8}, Faults: []string{Paused, Restarted, CutOff}}
}

// DuelWays are the ways of the duel.
var DuelWays = []string{Reference, "zklock", "zklock-cohort"}

// Duel returns a plan that compares this library with the reference only.
func Duel() Plan {
	return Plan{Rounds: 6, Repeats: 1, Window: 3 * time.Second, Workers: []int{2, 8, 32}, Queues: []int{100}, Distant: []int{1, 8}, Members: []int{1, 8, 32},
		Secure: []int{1, 8, 32}, Only: []string{"uncontended", "contended", "queue", "many", "latency", "tls", "ensemble"}, Ways: DuelWays}
}

// includes reports whether the plan has the work of that name.
func (p Plan) includes(name string) bool { return p.Only == nil || slices.Contains(p.Only, name) }

// Names lists the works of Full in the order in which they run. The duel has tls as well.
var Names = []string{"uncontended", "first", "contended", "queue", "many", "goroutines", "latency", "lines", "ensemble", "crash", "sale"}

// Run runs the planned works and calls report with each sample. Calls of report do not overlap.
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
		{"many", b.many}, {"goroutines", b.goroutines}, {"latency", b.latency}, {"lines", b.lines}, {"tls", b.tls}, {"ensemble", b.ensemble},
		{"crash", b.crash}, {"sale", b.sale},
	} {
		if !plan.includes(w.name) {
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

// endpoints returns the addresses of the single servers.
func endpoints(a *servers.Singles) ways.Endpoints {
	at, _ := reached(a, func(p *servers.Process) (string, error) { return p.Addr, nil })
	return at
}

// reached returns the endpoints of the single servers, with the address that the function returns for each.
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
		return errors.New("unknown lock implementation")
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

// lockName returns a new name, so that no measurement affects a later one.
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

// crowdedConnections is the size of a queue from which some ways are measured in one round only.
const crowdedConnections = 1000

// isOverrun reports whether a way does not cope with such a queue: PostgreSQL is slow, since it has a process for each
// connection, and in ways that do not renew the lease, the first holder's lease expires before the queue is complete.
func isOverrun(w ways.Way) bool {
	return w.Info().Family == "PostgreSQL" || slices.Contains([]string{"memcached-add", "redis-setnx", "redsync", "redlock-5"}, w.Info().Name)
}

// measure runs the planned rounds. Each round measures every way once, so that other load on the machine affects all ways.
func (b *bench) measure(ctx context.Context, work string, size int, all []ways.Way, one func(context.Context, ways.Way) (map[string]float64, error)) error {
	for round := range b.plan.Rounds {
		for i := range all {
			// Every round starts with another way.
			w := all[(i+round*3)%len(all)]
			if size >= crowdedConnections && isOverrun(w) && round > 0 {
				continue
			}
			// The last way can leave a large log behind. Collect it now, not during the next measurement.
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

// servedBy returns the servers whose request counts belong to a way.
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

// Samples returns the approximate number of samples of the plan.
func (p Plan) Samples() int {
	all := chosen(ways.All(ways.Endpoints{}), p.Ways)
	n, floor := len(all), 1
	each := map[string]int{
		"uncontended": n + floor, "first": n, "contended": (n + floor) * len(p.Workers), "queue": (n + floor) * len(p.Queues), "many": n + floor,
		"goroutines": withFloor(len(sharing(all))) * len(p.Clients), "latency": (n + floor) * len(p.Distant),
		"lines": withFloor(len(inLine(all))) * len(p.Lines), "tls": (n + floor) * len(p.Secure), "ensemble": withFloor(len(replicated(all))) * len(p.Members),
		"crash": n, "sale": n * len(p.Faults),
	}
	sum := 0
	for name, samples := range each {
		if !p.includes(name) {
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

// withFloor returns n+1, for n ways and the floor, or 0 if there are no ways.
func withFloor(n int) int {
	if n == 0 {
		return 0
	}
	return n + 1
}
