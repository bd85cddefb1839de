// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// pgBin returns the directory with the programs of the newest PostgreSQL installed from Debian's packages.
func pgBin() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("no PostgreSQL under /usr/lib/postgresql: %w", os.ErrNotExist)
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

// dsn returns the connection string for a server at addr.
func dsn(addr string) string {
	host, p, _ := net.SplitHostPort(addr)
	return fmt.Sprintf("postgres://postgres@%s:%s/postgres?sslmode=disable", host, p)
}

func (s *Set) newPostgres(name string, extra ...string) (*Process, error) {
	bin, err := pgBin()
	if err != nil {
		return nil, err
	}
	as, err := credential("postgres")
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p, err := s.newProcess(name, addr)
	if err != nil {
		return nil, err
	}
	p.as = as
	if as != nil {
		if err := os.Chown(p.dir, int(as.Uid), int(as.Gid)); err != nil {
			return nil, err
		}
	}
	p.argv = append([]string{
		filepath.Join(bin, "postgres"), "-D", filepath.Join(p.dir, "data"), "-h", "127.0.0.1", "-p", port(addr), "-k", "",
		"-c", "max_connections=1300", // the longest queue has a thousand connections
		"-c", "shared_preload_libraries=pg_stat_statements", "-c", "pg_stat_statements.track=top",
	}, extra...)
	p.ready = func(ctx context.Context, p *Process) error {
		_, err := pgQuery[int](ctx, p.Addr, "SELECT 1")
		return err
	}
	p.count = func(ctx context.Context, p *Process) (int64, error) {
		return pgQuery[int64](ctx, p.Addr, "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements")
	}
	return p, nil
}

func initdb(p *Process) error {
	bin, err := pgBin()
	if err != nil {
		return err
	}
	_, err = output(p.as, p.dir, filepath.Join(bin, "initdb"), "-D", filepath.Join(p.dir, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
	return err
}

// Postgres starts a single server.
func (s *Set) Postgres(ctx context.Context) (*Process, error) {
	p, err := s.newPostgres("postgres")
	if err != nil {
		return nil, err
	}
	if err := initdb(p); err != nil {
		return nil, err
	}
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	return p, pgExec(ctx, p.Addr, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
}

// PostgresPair starts a primary and a streaming standby and waits until the standby is in sync.
func (s *Set) PostgresPair(ctx context.Context) (*Pair, error) {
	primary, err := s.Postgres(ctx)
	if err != nil {
		return nil, err
	}
	link, err := s.NewSwitch(primary.Addr)
	if err != nil {
		return nil, err
	}
	standby, err := s.newPostgres("postgres-standby")
	if err != nil {
		return nil, err
	}
	bin, err := pgBin()
	if err != nil {
		return nil, err
	}
	// -R makes the standby follow the primary through the connection of this copy, which is the link.
	if _, err := output(standby.as, standby.dir, filepath.Join(bin, "pg_basebackup"), "-D", filepath.Join(standby.dir, "data"),
		"-d", dsn(link.Addr()), "-R", "-X", "stream", "-c", "fast"); err != nil {
		return nil, err
	}
	if err := standby.Start(ctx); err != nil {
		return nil, err
	}
	inSync := func(ctx context.Context) error {
		behind, err := pgQuery[int64](ctx, primary.Addr,
			"SELECT coalesce(min(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)), 1)::bigint FROM pg_stat_replication")
		if err == nil && behind > 0 {
			err = fmt.Errorf("standby is %d bytes behind", behind)
		}
		return err
	}
	promote := func(ctx context.Context) error { return pgExec(ctx, standby.Addr, "SELECT pg_promote()") }
	return s.newPair(ctx, &Pair{Primary: primary, Standby: standby, link: link, inSync: inSync, promote: promote})
}

func pgExec(ctx context.Context, addr, statement string) error {
	conn, err := pgx.Connect(ctx, dsn(addr))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

func pgQuery[T any](ctx context.Context, addr, query string) (T, error) {
	var value T
	conn, err := pgx.Connect(ctx, dsn(addr))
	if err != nil {
		return value, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, query).Scan(&value)
	return value, err
}

func pgDurability(ctx context.Context, addr string) string {
	var said []string
	for _, name := range []string{"fsync", "synchronous_commit", "wal_sync_method"} {
		value, err := pgQuery[string](ctx, addr, "SHOW "+name)
		if err != nil {
			return "unknown"
		}
		said = append(said, name+" "+value)
	}
	return strings.Join(said, ", ")
}
