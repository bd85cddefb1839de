// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"encoding/json"
)

// Description names a server's version and durability, which a reader needs to judge a figure.
type Description struct {
	Server     string `json:"server"`
	Version    string `json:"version"`
	Durability string `json:"durability"`
}

// Singles holds one server of each kind, and five for Redlock. The speed of the ways is measured on them.
type Singles struct {
	Postgres, Redis, Memcached, Etcd, ZooKeeper *Process
	Redlock                                     []*Process
}

// StartSingles starts the servers of a Singles.
func (s *Set) StartSingles(ctx context.Context) (*Singles, error) {
	var all Singles
	for _, one := range []struct {
		start func(context.Context) (*Process, error)
		into  **Process
	}{
		{s.Postgres, &all.Postgres}, {s.Redis, &all.Redis}, {s.Memcached, &all.Memcached},
		{s.Etcd, &all.Etcd}, {s.ZooKeeper, &all.ZooKeeper},
	} {
		p, err := one.start(ctx)
		if err != nil {
			return nil, err
		}
		*one.into = p
	}
	var err error
	all.Redlock, err = s.Redlock(ctx)
	return &all, err
}

// Describe returns versions and durability settings, as reported by the servers where they report them.
func (a *Singles) Describe(ctx context.Context) []Description {
	version, err := pgQuery[string](ctx, a.Postgres.Addr, "SHOW server_version")
	if err != nil {
		version = "unknown"
	}
	return []Description{
		{"PostgreSQL", version, pgDurability(ctx, a.Postgres.Addr) + "; standby asynchronous"},
		{"Redis", redisVersion(ctx, a.Redis.Addr), redisDurability(ctx, a.Redis.Addr) + "; replica asynchronous"},
		{"memcached", memcachedVersion(ctx, a.Memcached.Addr), "none: all data is lost with the process"},
		{"etcd", etcdVersion(ctx, a.Etcd.Addr), "default: log synced before each reply"},
		{"ZooKeeper", zkVersion(ctx, a.ZooKeeper.Addr), "default: log synced before each reply (forceSync=yes)"},
	}
}

func redisVersion(ctx context.Context, addr string) string {
	info, err := redisInfo(ctx, addr, "server")
	if err != nil {
		return "unknown"
	}
	return info["redis_version"]
}

func memcachedVersion(ctx context.Context, addr string) string {
	stats, err := memcachedStats(ctx, addr)
	if err != nil {
		return "unknown"
	}
	return stats["version"]
}

func etcdVersion(ctx context.Context, addr string) string {
	text, err := httpGet(ctx, "http://"+addr+"/version")
	if err != nil {
		return "unknown"
	}
	var v struct {
		Server string `json:"etcdserver"`
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return "unknown"
	}
	return v.Server
}
