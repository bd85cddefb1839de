// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"slices"

	"github.com/zklock-go/zklock/compare/servers"
	"github.com/zklock-go/zklock/compare/ways"
)

const redis = "Redis"

// Client is one library and the servers that it needs.
type Client struct {
	Name   string // as shown on the page
	Family string
	Way    string // the name in package ways
	fsync  bool   // the servers write each change to the disk before they answer
}

// Clients lists all clients. Clients of one family are adjacent.
var Clients = []Client{
	{Name: "Curator", Family: "ZooKeeper", Way: "curator"},
	{Name: "kazoo", Family: "ZooKeeper", Way: "kazoo"},
	{Name: "go-zookeeper", Family: "ZooKeeper", Way: "go-zookeeper"},
	{Name: "zklock", Family: "ZooKeeper", Way: "zklock"},
	{Name: "etcd concurrency", Family: "etcd", Way: "etcd-mutex"},
	{Name: "redsync", Family: redis, Way: "redlock-5"},
	{Name: "redsync, fsync", Family: redis, Way: "redlock-5", fsync: true},
}

// grouped groups the clients that share servers.
func grouped(all []Client) [][]Client {
	var groups [][]Client
	for _, c := range all {
		if n := len(groups); n > 0 && groups[n-1][0].Family == c.Family && groups[n-1][0].fsync == c.fsync {
			groups[n-1] = append(groups[n-1], c)
			continue
		}
		groups = append(groups, []Client{c})
	}
	return groups
}

// stage holds three servers, the one that the fault hits, and a Switch in front of each.
type stage struct {
	set      *servers.Set
	ensemble *servers.Ensemble
	victim   *servers.Process
	fronts   []*servers.Switch
}

// openStage starts the servers that a client needs.
func openStage(ctx context.Context, c Client, f Fault) (s *stage, err error) {
	set, err := servers.NewSet()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			set.Close()
		}
	}()
	s = &stage{set: set}
	if s.ensemble, err = start(ctx, set, c); err != nil {
		return nil, err
	}
	if s.victim, err = s.choose(ctx, c, f); err != nil {
		return nil, err
	}
	for _, m := range s.ensemble.Members {
		front, err := set.NewSwitch("")
		if err != nil {
			return nil, err
		}
		s.fronts = append(s.fronts, front)
		if m == s.victim || c.Family == redis {
			front.Point(m.Addr)
		}
	}
	return s, nil
}

func start(ctx context.Context, set *servers.Set, c Client) (*servers.Ensemble, error) {
	switch c.Family {
	case "ZooKeeper":
		return set.ZooKeeperEnsemble(ctx)
	case "etcd":
		return set.EtcdCluster(ctx)
	case redis:
		return set.RedisTrio(ctx, c.fsync)
	}
	return nil, fmt.Errorf("no servers for %q", c.Family)
}

func (s *stage) choose(ctx context.Context, c Client, f Fault) (*servers.Process, error) {
	switch {
	case c.Family == redis:
		return s.ensemble.Members[0], nil
	case f.leader:
		return s.ensemble.Leader(ctx)
	default:
		return s.ensemble.Follower(ctx)
	}
}

// openAll makes the remaining servers reachable for the holder. Before that, it can reach only the victim, so that it
// connects to it.
func (s *stage) openAll() {
	for i, m := range s.ensemble.Members {
		if m != s.victim {
			s.fronts[i].Point(m.Addr)
		}
	}
}

// holder returns the endpoints for the holder.
func (s *stage) holder() ways.Endpoints {
	var addrs []string
	for _, front := range s.fronts {
		addrs = append(addrs, front.Addr())
	}
	return endpoints(addrs)
}

// others returns the endpoints for the other contenders: all servers for Redis, and the servers other than the victim for
// the other families.
func (s *stage) others(c Client) ways.Endpoints {
	if c.Family == redis {
		return endpoints(s.ensemble.Addrs())
	}
	return endpoints(slices.DeleteFunc(s.ensemble.Addrs(), func(addr string) bool { return addr == s.victim.Addr }))
}

func endpoints(addrs []string) ways.Endpoints {
	return ways.Endpoints{ZooKeeper: addrs, Etcd: addrs, Redlock: addrs}
}
