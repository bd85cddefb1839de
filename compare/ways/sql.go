// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
)

// This file has the four ways on a relational database. Each contender has its own connection, as from a pool.

// sqlSchema creates the tables. Several clients can run it at the same time, which IF NOT EXISTS alone does not allow.
const sqlSchema = `
SELECT pg_advisory_xact_lock(1);
CREATE TABLE IF NOT EXISTS lock_rows (name text PRIMARY KEY, owner text NOT NULL, token bigserial, expires timestamptz NOT NULL);
CREATE TABLE IF NOT EXISTS lock_held (name text PRIMARY KEY);
CREATE TABLE IF NOT EXISTS lock_versions (name text PRIMARY KEY, owner text, version bigint NOT NULL DEFAULT 0, expires timestamptz NOT NULL DEFAULT 'epoch');`

type sqlWay struct {
	plain
	addr string
	make func(conn *pgx.Conn, name string) sqlRecipe
}

// sqlRecipe is implemented differently by each of the four ways.
type sqlRecipe interface {
	lock(ctx context.Context) error
	unlock(ctx context.Context) error
	held(ctx context.Context) bool
	token() int64
}

func newInsert(at Endpoints) Way {
	return sqlWay{plain{Info{"sql-insert", "PostgreSQL", "unique-key insert with an expiry; losers poll", true, "asks the server"}}, at.Postgres,
		func(conn *pgx.Conn, name string) sqlRecipe {
			return &insertLock{conn: conn, name: name, owner: newOwner()}
		}}
}

func newForUpdate(at Endpoints) Way {
	return sqlWay{plain{Info{"sql-for-update", "PostgreSQL", "SELECT … FOR UPDATE in a transaction held open", false, "asks the server"}}, at.Postgres,
		func(conn *pgx.Conn, name string) sqlRecipe { return &rowLock{conn: conn, name: name} }}
}

func newVersion(at Endpoints) Way {
	return sqlWay{plain{Info{"sql-version", "PostgreSQL", "optimistic version column with an expiry; losers poll", true, "asks the server"}}, at.Postgres,
		func(conn *pgx.Conn, name string) sqlRecipe {
			return &versionLock{conn: conn, name: name, owner: newOwner()}
		}}
}

func newAdvisory(at Endpoints) Way {
	return sqlWay{plain{Info{"sql-advisory", "PostgreSQL", "pg_advisory_lock of the connection", false, "asks the server"}}, at.Postgres,
		func(conn *pgx.Conn, name string) sqlRecipe { return &advisoryLock{conn: conn, key: hash(name)} }}
}

func (w sqlWay) dsn() string {
	host, port, _ := net.SplitHostPort(w.addr)
	return fmt.Sprintf("postgres://postgres@%s:%s/postgres?sslmode=disable", host, port)
}

func (w sqlWay) Prepare(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, w.dsn())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sqlSchema)
	return err
}

func (w sqlWay) Open(context.Context) (Session, error) { return sqlSession{w}, nil }

// sqlSession has no connection: each contender has one.
type sqlSession struct{ way sqlWay }

func (s sqlSession) Locker(ctx context.Context, name string) (Locker, error) {
	conn, err := pgx.Connect(ctx, s.way.dsn())
	if err != nil {
		return nil, err
	}
	// The recipes need these rows to exist.
	for _, table := range []string{"lock_held", "lock_versions"} {
		if _, err := conn.Exec(ctx, "INSERT INTO "+table+" (name) VALUES ($1) ON CONFLICT DO NOTHING", name); err != nil {
			return nil, err
		}
	}
	return &sqlLocker{way: s.way, conn: conn, name: name, recipe: s.way.make(conn, name)}, nil
}

func (s sqlSession) Close() error { return nil }

type sqlLocker struct {
	way    sqlWay
	conn   *pgx.Conn
	name   string
	recipe sqlRecipe
}

// Lock opens a new connection first if the last one is closed, as a pool does.
func (l *sqlLocker) Lock(ctx context.Context) error {
	if l.conn.IsClosed() {
		conn, err := pgx.Connect(ctx, l.way.dsn())
		if err != nil {
			return err
		}
		l.conn, l.recipe = conn, l.way.make(conn, l.name)
	}
	return l.recipe.lock(ctx)
}

func (l *sqlLocker) Unlock(ctx context.Context) error { return l.recipe.unlock(ctx) }
func (l *sqlLocker) Token() int64                     { return l.recipe.token() }

func (l *sqlLocker) Held(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return l.recipe.held(ctx)
}

func (l *sqlLocker) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return l.conn.Close(ctx)
}

type insertLock struct {
	conn        *pgx.Conn
	name, owner string
	grant       int64
}

// lock takes the row in one statement if it is free or has expired. The unique key decides between concurrent attempts.
func (l *insertLock) lock(ctx context.Context) error {
	return poll(ctx, func() (bool, error) {
		err := l.conn.QueryRow(ctx, `INSERT INTO lock_rows AS held (name, owner, expires) VALUES ($1, $2, now() + $3)
			ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = excluded.token, expires = excluded.expires
			WHERE held.expires < now() RETURNING token`, l.name, l.owner, Lease).Scan(&l.grant)
		return found(err)
	})
}

func (l *insertLock) unlock(ctx context.Context) error {
	done, err := l.conn.Exec(ctx, "DELETE FROM lock_rows WHERE name = $1 AND owner = $2 AND token = $3", l.name, l.owner, l.grant)
	return lostIf(done.RowsAffected() == 0, err)
}

func (l *insertLock) held(ctx context.Context) bool {
	var yes bool
	err := l.conn.QueryRow(ctx, "SELECT true FROM lock_rows WHERE name = $1 AND owner = $2 AND token = $3 AND expires > now()",
		l.name, l.owner, l.grant).Scan(&yes)
	return err == nil && yes
}

func (l *insertLock) token() int64 { return l.grant }

type rowLock struct {
	conn *pgx.Conn
	name string
	tx   pgx.Tx
}

func (l *rowLock) lock(ctx context.Context) error {
	tx, err := l.conn.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "SELECT 1 FROM lock_held WHERE name = $1 FOR UPDATE", l.name); err != nil {
		_ = tx.Rollback(context.WithoutCancel(ctx))
		return err
	}
	l.tx = tx
	return nil
}

func (l *rowLock) unlock(ctx context.Context) error { return l.tx.Commit(ctx) }

func (l *rowLock) held(ctx context.Context) bool {
	_, err := l.tx.Exec(ctx, "SELECT 1")
	return err == nil
}

func (l *rowLock) token() int64 { return 0 }

type versionLock struct {
	conn        *pgx.Conn
	name, owner string
	version     int64
}

// lock is the usual optimistic update: it reads the version, and writes only if the version is unchanged.
func (l *versionLock) lock(ctx context.Context) error {
	return poll(ctx, func() (bool, error) {
		var seen int64
		var free bool
		if err := l.conn.QueryRow(ctx, "SELECT version, owner IS NULL OR expires < now() FROM lock_versions WHERE name = $1",
			l.name).Scan(&seen, &free); err != nil || !free {
			return false, err
		}
		err := l.conn.QueryRow(ctx, `UPDATE lock_versions SET version = version + 1, owner = $2, expires = now() + $3
			WHERE name = $1 AND version = $4 RETURNING version`, l.name, l.owner, Lease, seen).Scan(&l.version)
		return found(err)
	})
}

func (l *versionLock) unlock(ctx context.Context) error {
	done, err := l.conn.Exec(ctx, "UPDATE lock_versions SET owner = NULL WHERE name = $1 AND version = $2 AND owner = $3", l.name, l.version, l.owner)
	return lostIf(done.RowsAffected() == 0, err)
}

func (l *versionLock) held(ctx context.Context) bool {
	var yes bool
	err := l.conn.QueryRow(ctx, "SELECT true FROM lock_versions WHERE name = $1 AND version = $2 AND owner = $3 AND expires > now()",
		l.name, l.version, l.owner).Scan(&yes)
	return err == nil && yes
}

func (l *versionLock) token() int64 { return l.version }

type advisoryLock struct {
	conn *pgx.Conn
	key  int64
}

func (l *advisoryLock) lock(ctx context.Context) error {
	_, err := l.conn.Exec(ctx, "SELECT pg_advisory_lock($1)", l.key)
	return err
}

func (l *advisoryLock) unlock(ctx context.Context) error {
	var was bool
	err := l.conn.QueryRow(ctx, "SELECT pg_advisory_unlock($1)", l.key).Scan(&was)
	return lostIf(!was, err)
}

// held checks the connection: the lock lasts as long as the connection does.
func (l *advisoryLock) held(ctx context.Context) bool {
	_, err := l.conn.Exec(ctx, "SELECT 1")
	return err == nil
}

func (l *advisoryLock) token() int64 { return 0 }

// found reports whether a query found a row. That it found none is not an error.
func found(err error) (bool, error) {
	if err == pgx.ErrNoRows {
		return false, nil
	}
	return err == nil, err
}

func lostIf(lost bool, err error) error {
	if err == nil && lost {
		return ErrLost
	}
	return err
}

func hash(name string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return int64(h.Sum64())
}
