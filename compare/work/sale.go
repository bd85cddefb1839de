// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/compare/servers"
	"github.com/zklock-go/zklock/compare/ways"
)

// The faults of the sale.
const (
	Slow      = "slow"      // no fault, but the first buyer takes longer than the lease
	Paused    = "paused"    // the first buyer's process is paused for longer than the lease
	Restarted = "restarted" // the lock server (for Redlock, one of the five) is killed and restarted on its data
	Promoted  = "promoted"  // the primary is killed and a lagging replica promoted; in ensembles, the leader is killed
	CutOff    = "cut-off"   // the follower that serves the first buyer is cut off from its peers
)

// Faults lists all faults.
var Faults = []string{Slow, Paused, Restarted, Promoted, CutOff}

const (
	// saleBuyers is the number of buyers who compete with the first one.
	saleBuyers = 6
	// buyersCome is the interval between their arrivals. Some come before the fault, some after it.
	buyersCome = 400 * time.Millisecond
	// strikesAfter is the time from the first buyer's grant to the fault.
	strikesAfter = 300 * time.Millisecond
	// saleEnds limits the time from the first buyer's write to the end of the sale.
	saleEnds = 12 * time.Second
)

// firstBuyerTakes is how long the first buyer holds the lock between reading and writing.
func firstBuyerTakes(fault string) time.Duration {
	switch fault {
	case Restarted, Promoted:
		// This is shorter than the lease, so that only the fault can end the hold.
		return 3 * time.Second
	default:
		// This is less than the ten seconds for which a follower without a leader keeps serving its clients.
		return 2 * ways.Lease
	}
}

// sale sells ten items to many buyers during a fault. For each fault, all families run at the same time, each on its own
// servers.
func (b *bench) sale(ctx context.Context) error {
	for round := range b.plan.Repeats {
		for _, fault := range b.plan.Faults {
			families := grouped(b.ways)
			err := each(len(families), func(i int) error {
				b.saleOf(ctx, families[i], fault, round)
				return ctx.Err()
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func grouped(all []ways.Way) [][]ways.Way {
	var groups [][]ways.Way
	for _, w := range all {
		last := len(groups) - 1
		if last >= 0 && groups[last][0].Info().Family == w.Info().Family {
			groups[last] = append(groups[last], w)
			continue
		}
		groups = append(groups, []ways.Way{w})
	}
	return groups
}

// errNotApplicable reports that the fault does not apply to servers of this kind.
var errNotApplicable = errors.New("not applicable")

// saleOf runs one sale for each way of a family at the same time, with one fault of their common servers.
func (b *bench) saleOf(ctx context.Context, family []ways.Way, fault string, round int) {
	fail := func(err error) {
		for _, w := range family {
			b.tell(Sample{Work: "sale", Fault: fault, Way: w.Info().Name, Round: round}, nil, err)
		}
	}
	set, err := servers.NewSet()
	if err != nil {
		fail(err)
		return
	}
	defer set.Close()
	s, err := stageFor(ctx, set, family[0].Info().Family, fault)
	if errors.Is(err, errNotApplicable) {
		return
	}
	if err != nil {
		fail(err)
		return
	}
	sales, err := openSales(ctx, b, family, s)
	defer func() {
		_ = each(len(sales), func(i int) error { sales[i].close(); return nil })
	}()
	if err == nil {
		err = s.beforeLock(ctx)
	}
	if err != nil {
		fail(err)
		return
	}
	faultDone := make(chan error, 1)
	var ready sync.WaitGroup
	ready.Add(len(sales))
	// Owned by saleOf, which waits for its result. Every sale calls ready, even if it fails.
	go func() {
		ready.Wait()
		err := ways.Pause(ctx, strikesAfter)
		if err == nil {
			err = s.strike(ctx)
		}
		faultDone <- err
	}()
	_ = each(len(sales), func(i int) error {
		values, err := sales[i].run(ctx, fault, sync.OnceFunc(ready.Done))
		b.tell(Sample{Work: "sale", Fault: fault, Way: sales[i].way.Info().Name, Round: round}, values, err)
		return nil
	})
	if err := <-faultDone; err != nil {
		fail(fmt.Errorf("the fault itself failed: %w", err))
	}
}

// stage has the endpoints for a sale and its fault.
type stage struct {
	first, others ways.Endpoints // for the first buyer, and for all others
	beforeLock    func(context.Context) error
	strike        func(context.Context) error
}

func nothing(context.Context) error { return nil }

// stageFor starts the servers of a family for a fault.
func stageFor(ctx context.Context, set *servers.Set, family, fault string) (*stage, error) {
	s := &stage{beforeLock: nothing, strike: nothing}
	switch fault {
	case Slow, Paused:
		_, err := s.single(ctx, set, family)
		return s, err
	case Restarted:
		p, err := s.single(ctx, set, family)
		s.strike = func(ctx context.Context) error { return p.Restart(ctx) }
		return s, err
	case Promoted:
		return s, s.pair(ctx, set, family)
	case CutOff:
		return s, s.cutOff(ctx, set, family)
	}
	return nil, fmt.Errorf("unknown fault %q", fault)
}

// single starts the servers of a family, without replicas, and returns the one to restart.
func (s *stage) single(ctx context.Context, set *servers.Set, family string) (*servers.Process, error) {
	var (
		p   *servers.Process
		err error
	)
	switch family {
	case "PostgreSQL":
		p, err = set.Postgres(ctx)
	case "memcached":
		p, err = set.Memcached(ctx)
	case "Redis":
		p, err = set.Redis(ctx)
	case "Redlock":
		all, err := set.Redlock(ctx)
		if err != nil {
			return nil, err
		}
		for _, one := range all {
			s.first.Redlock = append(s.first.Redlock, one.Addr)
		}
		s.others = s.first
		return all[0], nil
	case "etcd":
		p, err = set.Etcd(ctx)
	case "ZooKeeper":
		p, err = set.ZooKeeper(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.first = ways.Endpoints{Postgres: p.Addr, Memcached: p.Addr, Redis: p.Addr, Etcd: []string{p.Addr}, ZooKeeper: []string{p.Addr}}
	s.others = s.first
	return p, nil
}

// pair starts replicated servers; the fault kills the primary or the leader.
func (s *stage) pair(ctx context.Context, set *servers.Set, family string) error {
	switch family {
	case "PostgreSQL":
		pair, err := set.PostgresPair(ctx)
		if err != nil {
			return err
		}
		s.first.Postgres, s.beforeLock, s.strike = pair.Front.Addr(), pair.Lag, pair.Promote
	case "Redis":
		pair, err := set.RedisPair(ctx)
		if err != nil {
			return err
		}
		s.first.Redis, s.beforeLock, s.strike = pair.Front.Addr(), pair.Lag, pair.Promote
	case "etcd", "ZooKeeper":
		e, err := s.ensemble(ctx, set, family)
		if err != nil {
			return err
		}
		s.strike = func(ctx context.Context) error {
			leader, err := e.Leader(ctx)
			if err == nil {
				leader.Kill()
			}
			return err
		}
	default:
		return errNotApplicable
	}
	s.others = s.first
	return nil
}

func (s *stage) ensemble(ctx context.Context, set *servers.Set, family string) (*servers.Ensemble, error) {
	e, err := ensembleOf(ctx, set, family)
	if err != nil {
		return nil, err
	}
	s.first = ways.Endpoints{Etcd: e.Addrs(), ZooKeeper: e.Addrs()}
	return e, nil
}

// ensembleOf starts three servers of a family that replicates itself.
func ensembleOf(ctx context.Context, set *servers.Set, family string) (*servers.Ensemble, error) {
	if family == "etcd" {
		return set.EtcdCluster(ctx)
	}
	return set.ZooKeeperEnsemble(ctx)
}

// cutOff starts an ensemble: the first buyer knows only a follower, the others know only the rest.
func (s *stage) cutOff(ctx context.Context, set *servers.Set, family string) error {
	if family != "etcd" && family != "ZooKeeper" {
		return errNotApplicable
	}
	e, err := s.ensemble(ctx, set, family)
	if err != nil {
		return err
	}
	follower, err := e.Follower(ctx)
	if err != nil {
		return err
	}
	var rest []string
	for _, m := range e.Members {
		if m != follower {
			rest = append(rest, m.Addr)
		}
	}
	s.first = ways.Endpoints{Etcd: []string{follower.Addr}, ZooKeeper: []string{follower.Addr}}
	s.others = ways.Endpoints{Etcd: rest, ZooKeeper: rest}
	s.strike = func(context.Context) error { return e.CutOff(follower) }
	return nil
}

// sale is one way's sale. One lock protects three shops, which differ in the check before a write: open has none, asking
// requires that the library has just reported the lock as held, and fenced requires a current token.
type sale struct {
	way                  ways.Way
	lock                 string
	first                *actor
	others               *field
	open, asking, fenced *shop
	over                 atomic.Bool // the first buyer has finished
	nextHolder           atomic.Int64
}

func openSales(ctx context.Context, b *bench, family []ways.Way, s *stage) ([]*sale, error) {
	sales := make([]*sale, len(family))
	err := each(len(family), func(i int) (err error) {
		sales[i], err = openSale(ctx, b, family[i].Info().Name, s)
		return err
	})
	var opened []*sale
	for _, one := range sales {
		if one != nil {
			opened = append(opened, one)
		}
	}
	return opened, err
}

func openSale(ctx context.Context, b *bench, name string, s *stage) (*sale, error) {
	way, err := ways.Named(name, s.others)
	if err != nil {
		return nil, err
	}
	if err := way.Prepare(ctx); err != nil {
		return nil, err
	}
	lock := b.lockName()
	one := &sale{way: way, lock: lock, open: newShop(false), asking: newShop(false), fenced: newShop(true)}
	firstWay, err := ways.Named(name, s.first)
	if err != nil {
		return nil, err
	}
	if one.first, err = newActor(ctx, firstWay, s.first, lock); err != nil {
		return nil, fmt.Errorf("%s: first buyer: %w", name, err)
	}
	one.others, err = assemble(ctx, way, saleBuyers, saleBuyers, []string{lock})
	if err != nil {
		one.close()
		return nil, fmt.Errorf("%s: other buyers: %w", name, err)
	}
	return one, nil
}

func (s *sale) close() {
	s.first.peer.Kill()
	s.others.close()
	_ = s.way.Close()
}

// run runs the sale. It calls ready once the first buyer holds the lock, or has failed.
func (s *sale) run(ctx context.Context, fault string, ready func()) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, firstBuyerTakes(fault)+saleEnds+10*time.Second)
	defer cancel()
	defer ready()
	if err := s.first.locker.Lock(ctx); err != nil {
		return nil, fmt.Errorf("first buyer: %w", err)
	}
	began := time.Now()
	token := s.first.locker.Token()
	seen := [3]int{s.open.read(token), s.asking.read(token), s.fenced.read(token)}
	var buyers sync.WaitGroup
	for i := range s.others.lockers {
		// Owned by run, which waits; ends with the sale or its context.
		buyers.Go(func() { s.buy(ctx, i, began) })
	}
	ready()
	if err := s.firstBuyer(ctx, fault, began, token, seen); err != nil {
		cancel()
		return nil, err
	}
	s.over.Store(true)
	// Buyers whose library cannot be canceled end when the sale closes their process or session.
	ends := time.AfterFunc(saleEnds, cancel)
	defer ends.Stop()
	_ = bounded("the sale", buyers.Wait)
	return s.values(), nil
}

// firstBuyer holds the lock for a long time and then writes, regardless of the fault.
func (s *sale) firstBuyer(ctx context.Context, fault string, began time.Time, token int64, seen [3]int) error {
	if err := ways.Pause(ctx, strikesAfter); err != nil {
		return err
	}
	if fault == Paused {
		if err := s.first.peer.Pause(); err != nil {
			return err
		}
	}
	if err := ways.Pause(ctx, firstBuyerTakes(fault)-time.Since(began)); err != nil {
		return err
	}
	if fault == Paused {
		if err := s.first.peer.Resume(); err != nil {
			return err
		}
	}
	s.open.order(seen[0], token)
	s.fenced.order(seen[2], token)
	ask, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if s.first.locker.Held(ask) {
		s.asking.order(seen[1], token)
	}
	// The lock may be lost already, so an error does not matter.
	_ = s.first.locker.Unlock(ask)
	return nil
}

// buy locks and buys in a loop, until everything is sold and the first buyer has finished.
func (s *sale) buy(ctx context.Context, i int, began time.Time) {
	if ways.Pause(ctx, time.Duration(i)*buyersCome) != nil {
		return
	}
	locker := s.others.lockers[i]
	for ctx.Err() == nil && !s.finished() {
		if err := locker.Lock(ctx); err != nil {
			// The server may be down for a moment, and some libraries' locks cannot be used again after an error.
			if ways.Pause(ctx, 50*time.Millisecond) != nil {
				return
			}
			if again, err := s.others.sessions[i].Locker(ctx, s.lock); err == nil {
				locker = again
			}
			continue
		}
		s.nextHolder.CompareAndSwap(0, int64(time.Since(began)))
		s.buyOne(ctx, locker)
		_ = locker.Unlock(ctx)
		if s.allSold() && ways.Pause(ctx, 20*time.Millisecond) != nil {
			return
		}
	}
}

func (s *sale) buyOne(ctx context.Context, locker ways.Locker) {
	token := locker.Token()
	seen := [3]int{s.open.read(token), s.asking.read(token), s.fenced.read(token)}
	if ways.Pause(ctx, 2*time.Millisecond) != nil {
		return
	}
	s.open.order(seen[0], token)
	s.fenced.order(seen[2], token)
	if locker.Held(ctx) {
		s.asking.order(seen[1], token)
	}
}

func (s *sale) allSold() bool {
	return s.open.soldOut() && s.asking.soldOut() && (s.fenced.soldOut() || !s.way.Info().Token)
}

func (s *sale) finished() bool { return s.over.Load() && s.allSold() }

func (s *sale) values() map[string]float64 {
	info := s.way.Info()
	values := map[string]float64{Oversold: float64(s.open.oversold())}
	if info.Check != "" {
		values[OversoldAsk] = float64(s.asking.oversold())
	}
	if info.Token {
		values[OversoldTok] = float64(s.fenced.oversold())
	}
	if next := s.nextHolder.Load(); next > 0 {
		values[NextHolder] = time.Duration(next).Seconds()
	}
	return values
}
