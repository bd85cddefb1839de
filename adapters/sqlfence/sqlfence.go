// SPDX-License-Identifier: Apache-2.0

// Package sqlfence rejects SQL writes from a holder that was suspended and has since lost its
// lock to another. A table stores the largest fencing token seen for each lock, and transactions
// of earlier holders are rejected.
//
//	fence, err := sqlfence.New(sqlfence.PostgreSQL, nil)
//	...
//	hold := zklock.HoldAt(ctx, "/locks/orders/42")
//	_, err = fence.Exec(ctx, tx, hold, `UPDATE orders SET state = $1 WHERE id = $2`, "shipped", 42)
//
// Use it for locks that have one holder at a time. Holds of readers and of semaphores are refused: a
// later holder would lock out an earlier one that still holds.
//
// The statements are tested on PostgreSQL, SQLite and MariaDB. Those for MariaDB should also
// work on MySQL, which is not tested.
package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/zklock-go/zklock"
)

// ErrStale reports that a later holder of the lock has raised the fence. This holder has
// lost the lock, whatever its clock says, and its transaction must be rolled back.
var ErrStale = errors.New("stale token: a later holder of the lock has written")

// Dialect is the SQL dialect of the database.
type Dialect int

const (
	PostgreSQL Dialect = iota + 1 // 9.5 or newer
	SQLite                        // 3.24 or newer
	MySQL                         // MySQL with InnoDB, or MariaDB
)

// Tx is a transaction: *sql.Tx or a wrapper of one.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

var _ Tx = (*sql.Tx)(nil)

// Options configure a Fence. Nil means the defaults.
type Options struct {
	// Table is the name of the table, which can be prefixed with a schema. The default is
	// zklock_fence.
	Table string
}

// Fence is a table of fencing tokens with one row for each lock. It is safe for concurrent
// use.
type Fence struct {
	dialect Dialect
	table   string
}

// tableName matches names that need no quotes in any dialect.
var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

// maxPath is the longest path that fits the key of the table in MySQL.
const maxPath = 3072

// New returns a fence. Schema returns the statement that creates its table.
func New(dialect Dialect, opts *Options) (*Fence, error) {
	f := &Fence{dialect: dialect, table: "zklock_fence"}
	if opts != nil && opts.Table != "" {
		f.table = opts.Table
	}
	if dialect < PostgreSQL || dialect > MySQL {
		return nil, fmt.Errorf("sqlfence: %w: unknown dialect %d", zklock.ErrInvalid, dialect)
	}
	if !tableName.MatchString(f.table) {
		return nil, fmt.Errorf("sqlfence: %w: invalid table name %q", zklock.ErrInvalid, f.table)
	}
	return f, nil
}

// Schema returns the statement that creates the table if it does not exist. Run it in the
// migrations of your database.
func (f *Fence) Schema() string {
	switch f.dialect {
	case MySQL: // VARBINARY, because paths are case-sensitive
		return `CREATE TABLE IF NOT EXISTS ` + f.table + ` (path VARBINARY(3072) NOT NULL PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB`
	default:
		return `CREATE TABLE IF NOT EXISTS ` + f.table + ` (path TEXT NOT NULL PRIMARY KEY, token BIGINT NOT NULL)`
	}
}

// Exec raises the fence for hold and then executes your statement in the same transaction. It
// returns ErrStale if a later holder has raised the fence.
func (f *Fence) Exec(ctx context.Context, tx Tx, hold *zklock.Hold, query string, args ...any) (sql.Result, error) {
	if err := f.Raise(ctx, tx, hold); err != nil {
		return nil, err
	}
	return tx.ExecContext(ctx, query, args...)
}

// Raise writes the token of hold to the fence of its lock. Call it as the first statement of
// a transaction. If it succeeds, no earlier holder can write from then on, and no later one
// before the transaction has ended: the rest of the transaction has the data to itself. If it
// returns ErrStale or an error of hold.Check, nothing is written, and the transaction must be
// rolled back.
//
// Until a holder has raised the fence, an earlier one that was suspended can still write. Raise
// the fence before you read the data, not only before you write it.
//
// The fence is that of the lock's full path in ZooKeeper, with the servers' chroot and the client's
// Options.Root. For locks of several ensembles, use a table for each. Raise returns zklock.ErrInvalid
// for a hold of LockAll (see RaiseOf), of a reader and of a semaphore's permits.
//
// In a function that gets the hold from its context, pass zklock.HoldAt(ctx, path). Then nothing is
// written if the caller does not hold that lock.
func (f *Fence) Raise(ctx context.Context, tx Tx, hold *zklock.Hold) error {
	if hold.Recipe() == "all" {
		return fmt.Errorf("sqlfence: raise %s: %w: the hold has several locks: choose one with RaiseOf", hold.Path(), zklock.ErrInvalid)
	}
	return f.RaiseOf(ctx, tx, hold, hold.Path())
}

// RaiseOf is like Raise, for the lock at path. hold must be a hold of that lock, or a hold of
// LockAll that includes it. If you raise several fences in one transaction, do so in the same
// order everywhere.
func (f *Fence) RaiseOf(ctx context.Context, tx Tx, hold *zklock.Hold, path string) error {
	if hold.Path() == "" { // nil or zero: HoldAt has found none
		return fmt.Errorf("sqlfence: raise: %w: the caller does not hold the lock", zklock.ErrNotHeld)
	}
	if hold.TokenOf(path) < 0 {
		return fmt.Errorf("sqlfence: raise %s: %w: the hold is of %q", path, zklock.ErrInvalid, hold.Path())
	}
	at := zklock.HoldAt(hold.Context(), path) // of that lock alone
	key := key(at)
	switch recipe := at.Recipe(); {
	case recipe == "read" || recipe == "semaphore":
		return fmt.Errorf("sqlfence: raise %s: %w: others can hold at the same time (%s), and would be refused", path, zklock.ErrInvalid, recipe)
	case len(key) > maxPath:
		return fmt.Errorf("sqlfence: raise %s: %w: longer than %d bytes", path, zklock.ErrInvalid, maxPath)
	}
	if err := hold.Check(); err != nil {
		return err
	}
	raised, err := f.raise(ctx, tx, key, at.Token())
	if err != nil {
		return fmt.Errorf("sqlfence: raise %s: %w", path, err)
	}
	if !raised {
		return fmt.Errorf("sqlfence: raise %s to token %d: %w", path, at.Token(), ErrStale)
	}
	return nil
}

// key returns the key of the row of a lock: its full path in ZooKeeper, so that programs with
// different Options.Root share no row.
func key(hold *zklock.Hold) string { return hold.Node()[:strings.LastIndexByte(hold.Node(), '/')] }

// raise writes the token to the row of path unless the row has a larger one, and reports
// whether the row now has this token. The row is locked until the transaction ends.
func (f *Fence) raise(ctx context.Context, tx Tx, path string, token int64) (bool, error) {
	if f.dialect == MySQL {
		return f.raiseAndLook(ctx, tx, path, token)
	}
	values := `($1, $2)`
	if f.dialect == SQLite {
		values = `(?, ?)`
	}
	result, err := tx.ExecContext(ctx, `INSERT INTO `+f.table+` AS fence (path, token) VALUES `+values+`
		ON CONFLICT (path) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token`, path, token)
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	return rows == 1, err
}

// raiseAndLook is raise for MySQL, which does not count a row whose token stays the same as affected.
func (f *Fence) raiseAndLook(ctx context.Context, tx Tx, path string, token int64) (bool, error) {
	if _, err := tx.ExecContext(ctx, `INSERT INTO `+f.table+` (path, token) VALUES (?, ?)
		ON DUPLICATE KEY UPDATE token = GREATEST(token, ?)`, path, token, token); err != nil {
		return false, err
	}
	var stored int64
	err := tx.QueryRowContext(ctx, `SELECT token FROM `+f.table+` WHERE path = ? FOR UPDATE`, path).Scan(&stored)
	return stored == token, err
}
