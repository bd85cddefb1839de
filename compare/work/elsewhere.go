package work

import (
	"context"

	"github.com/zklock-go/zklock/compare/servers"
	"github.com/zklock-go/zklock/compare/ways"
)

// (6) one client alone, and some workers on one lock, with Distance between them and their servers.
func (b *bench) latency(ctx context.Context) error {
	set, err := servers.NewSet()
	if err != nil {
		return err
	}
	defer set.Close()
	distances := map[*servers.Process]*servers.Switch{}
	at, err := reached(b.singles, func(p *servers.Process) (string, error) {
		sw, err := set.NewDistance(p.Addr, Distance)
		if err != nil {
			return "", err
		}
		distances[p] = sw
		return sw.Addr(), nil
	})
	if err != nil {
		return err
	}
	connected := func(w ways.Way) int {
		sum := 0
		for _, p := range b.servedBy(w) {
			sum += distances[p].Connections()
		}
		return sum
	}
	all := chosen(ways.All(at), b.plan.Ways)
	defer closeAll(all)
	if err := prepared(ctx, all); err != nil {
		return err
	}
	for _, n := range b.plan.Distant {
		floor := ways.Way(ways.NewHandOffFloor(at))
		if n == 1 {
			floor = ways.NewFloor(at)
		}
		err := b.crowd(ctx, "latency", []int{n}, floor, all, func(n int) race {
			shape := workers(n)
			shape.connected = connected
			return shape
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// replicated returns the ways whose servers can be an ensemble.
func replicated(all []ways.Way) []ways.Way {
	var some []ways.Way
	for _, w := range all {
		if family := w.Info().Family; family == "etcd" || family == "ZooKeeper" {
			some = append(some, w)
		}
	}
	return some
}

// (7) the contended work on three servers instead of one.
func (b *bench) ensemble(ctx context.Context) error {
	if len(replicated(b.ways)) == 0 {
		return nil
	}
	set, err := servers.NewSet()
	if err != nil {
		return err
	}
	defer set.Close()
	members := map[string]*servers.Ensemble{}
	for _, family := range []string{"etcd", "ZooKeeper"} {
		if members[family], err = ensembleOf(ctx, set, family); err != nil {
			return b.noEnsemble(ctx, err)
		}
	}
	at := ways.Endpoints{Etcd: members["etcd"].Addrs(), ZooKeeper: members["ZooKeeper"].Addrs()}
	all := replicated(chosen(ways.All(at), b.plan.Ways))
	defer closeAll(all)
	if err := prepared(ctx, all); err != nil {
		return err
	}
	return b.crowd(ctx, "ensemble", b.plan.Members, ways.NewHandOffFloor(at), all, func(n int) race {
		shape := workers(n)
		shape.served = func(w ways.Way) []*servers.Process { return members[w.Info().Family].Members }
		return shape
	})
}

// noEnsemble tells of every way why there is no figure of it, for example on a machine without network namespaces.
func (b *bench) noEnsemble(ctx context.Context, err error) error {
	for _, n := range b.plan.Members {
		for _, w := range replicated(b.ways) {
			b.tell(Sample{Work: "ensemble", Size: n, Way: w.Info().Name}, nil, err)
		}
	}
	return ctx.Err()
}
