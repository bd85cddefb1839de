// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"

	"github.com/zklock-go/zklock/compare/servers"
	"github.com/zklock-go/zklock/compare/ways"
)

// latency measures one client alone, and several workers on one lock, with Distance between them and their servers.
func (b *bench) latency(ctx context.Context) error {
	return b.afar(ctx, "latency", b.plan.Distant, func(all []ways.Way) []ways.Way { return all }, workers)
}

// inLine returns the ways whose queues are measured with a distance: the reference and ours.
func inLine(all []ways.Way) []ways.Way { return chosen(all, []string{Reference, "zklock"}) }

// lines measures a queue that always has n waiters, with Distance between them and their servers.
func (b *bench) lines(ctx context.Context) error {
	return b.afar(ctx, "lines", b.plan.Lines, inLine, standing)
}

// afar measures a work with Distance between clients and servers. which selects from the planned ways.
func (b *bench) afar(ctx context.Context, work string, sizes []int, which func([]ways.Way) []ways.Way, shape func(n int) race) error {
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
	return b.elsewhere(ctx, work, sizes, at, which(chosen(ways.All(at), b.plan.Ways)), func(n int) race {
		shaped := shape(n)
		shaped.connected = connected
		return shaped
	})
}

// elsewhere measures ways on servers other than the single local ones, and then closes the ways.
func (b *bench) elsewhere(ctx context.Context, work string, sizes []int, at ways.Endpoints, all []ways.Way, shape func(n int) race) error {
	defer closeAll(all)
	if len(all) == 0 {
		return nil
	}
	if err := prepared(ctx, all); err != nil {
		return err
	}
	for _, n := range sizes {
		floor := ways.Way(ways.NewHandOffFloor(at))
		if n == 1 {
			floor = ways.NewFloor(at)
		}
		if err := b.crowd(ctx, work, []int{n}, floor, all, shape); err != nil {
			return err
		}
	}
	return nil
}

// replicated returns the ways whose servers can form an ensemble.
func replicated(all []ways.Way) []ways.Way {
	var some []ways.Way
	for _, w := range all {
		if family := w.Info().Family; family == "etcd" || family == "ZooKeeper" {
			some = append(some, w)
		}
	}
	return some
}

// ensemble measures one client alone, and several workers on one lock, with three servers instead of one.
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
	return b.elsewhere(ctx, "ensemble", b.plan.Members, at, replicated(chosen(ways.All(at), b.plan.Ways)), func(n int) race {
		shape := workers(n)
		shape.served = func(w ways.Way) []*servers.Process { return members[w.Info().Family].Members }
		return shape
	})
}

// tls measures one client alone, and several workers on one lock, over TLS to one server.
func (b *bench) tls(ctx context.Context) error {
	if len(b.plan.Secure) == 0 {
		return nil
	}
	set, err := servers.NewSet()
	if err != nil {
		return err
	}
	defer set.Close()
	server, err := set.SecureZooKeeper(ctx)
	if err != nil {
		return err
	}
	at := ways.Endpoints{ZooKeeper: []string{server.Port}, TLS: server.Client}
	return b.elsewhere(ctx, "tls", b.plan.Secure, at, chosen(ways.All(at), b.plan.Ways), func(n int) race {
		shape := workers(n)
		shape.served = func(ways.Way) []*servers.Process { return []*servers.Process{server.Process} }
		return shape
	})
}

// noEnsemble reports err as the sample of every way: for example, that this machine cannot create network namespaces.
func (b *bench) noEnsemble(ctx context.Context, err error) error {
	for _, n := range b.plan.Members {
		for _, w := range replicated(b.ways) {
			b.tell(Sample{Work: "ensemble", Size: n, Way: w.Info().Name}, nil, err)
		}
	}
	return ctx.Err()
}
