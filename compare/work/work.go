// Package work is what each way to lock has to do, and how it is measured.
package work

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zklock-go/zklock/compare/servers"
	"github.com/zklock-go/zklock/compare/ways"
)

// Reference is the way that all others are put in relation to, in the same round.
const Reference = "go-zookeeper"

// Floor is the way that is no lock, only the least that one on ZooKeeper costs.
const Floor = "create+delete"

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
	Inversions   = "inversions"    // share of grants that overtook somebody who had asked at least inversionSlack earlier
	Requests     = "requests"      // that the server counted, for each grant
	Overlaps     = "overlaps"      // grants while somebody else still held
	Recovery     = "recovery_s"    // from the holder's death to the next holder
	Oversold     = "oversold"      // items sold beyond the ten, holder does not ask
	OversoldAsk  = "oversold_ask"  // the same, holder asks his library right before he writes
	OversoldTok  = "oversold_tok"  // the same, the shop refuses old tokens
	NextHolder   = "next_holder_s" // from the first holder's grant to the next one's
)

// Plan says how much to do.
type Plan struct {
	Rounds  int
	Window  time.Duration // of one speed measurement
	Workers []int         // sizes of the contended work
	Queues  []int         // sizes of the standing queue
	Faults  []string      // of the sale
	Only    string        // one work's name; "" for all
	Ways    []string      // names; nil for all
}

// Full is the plan whose figures stand in the documentation.
func Full() Plan {
	return Plan{Rounds: 5, Window: time.Second, Workers: []int{2, 8, 32}, Queues: []int{2, 10, 100, 1000}, Faults: Faults}
}

// Quick is a plan for under three minutes, to see that everything works. Its figures mean little.
func Quick() Plan {
	return Plan{Rounds: 1, Window: 500 * time.Millisecond, Workers: []int{8}, Queues: []int{10}, Faults: []string{Paused, Restarted, CutOff}}
}

// Names lists the works in order.
var Names = []string{"uncontended", "contended", "queue", "many", "crash", "sale"}

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
		{"uncontended", b.uncontended}, {"contended", b.contended}, {"queue", b.queue},
		{"many", b.many}, {"crash", b.crash}, {"sale", b.sale},
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

	reporting sync.Mutex
	report    func(Sample) // called under reporting
	names     int          // guarded by reporting; how many locks have been named
}

// endpoints is where the single servers are.
func endpoints(a *servers.Singles) ways.Endpoints {
	at := ways.Endpoints{Postgres: a.Postgres.Addr, Redis: a.Redis.Addr, Memcached: a.Memcached.Addr,
		Etcd: []string{a.Etcd.Addr}, ZooKeeper: []string{a.ZooKeeper.Addr}}
	for _, p := range a.Redlock {
		at.Redlock = append(at.Redlock, p.Addr)
	}
	return at
}

func (b *bench) prepare(ctx context.Context) error {
	at := endpoints(b.singles)
	b.floor = ways.NewFloor(at)
	b.ways = chosen(ways.All(at), b.plan.Ways)
	if len(b.ways) == 0 {
		return errors.New("no way of that name")
	}
	for _, w := range b.ways {
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

func (b *bench) close() {
	for _, w := range b.ways {
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

// crowdedConnections is the size of a queue from which on a database with a process for each connection takes a minute
// to get so far at all: it is measured in one round only.
const crowdedConnections = 1000

// measure runs one measurement of every way in turn, again and again: the ways are interleaved, so that whatever else
// happens on the machine meets all of them.
func (b *bench) measure(ctx context.Context, work string, size int, all []ways.Way, one func(context.Context, ways.Way) (map[string]float64, error)) error {
	for round := range b.plan.Rounds {
		for i := range all {
			// Every round begins with another way.
			w := all[(i+round*3)%len(all)]
			if size >= crowdedConnections && w.Info().Family == "PostgreSQL" && round > 0 {
				continue
			}
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
	n := len(makersOf(p))
	each := map[string]int{
		"uncontended": n + 1, "contended": n * len(p.Workers), "queue": n * len(p.Queues), "many": n + 1,
		"crash": n, "sale": n * len(p.Faults),
	}
	sum := 0
	for name, samples := range each {
		if p.Only == "" || p.Only == name {
			sum += samples * p.Rounds
		}
	}
	return sum
}

func makersOf(p Plan) []ways.Way { return chosen(ways.All(ways.Endpoints{}), p.Ways) }
