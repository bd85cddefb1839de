// Package sqlfence keeps a holder that was stopped, and wakes up when another has the
// lock, from writing to an SQL database: a table has the largest fencing token that each
// lock has shown there, and a transaction of an earlier holder is refused.
//
//	fence, err := sqlfence.New(sqlfence.PostgreSQL, nil)
//	...
//	_, err = fence.Exec(ctx, tx, hold, `UPDATE orders SET state = $1 WHERE id = $2`, "shipped", 42)
//
// It is for locks that one holder has at a time: not for readers, nor for semaphores, of
// which a later holder would shut out an earlier one that still holds. Holds of an unfenced
// zklock.Cohort that follow one another in a process have one token: it shuts out those of other
// processes only.
//
// The statements are tested on PostgreSQL, SQLite and MariaDB. Those for MariaDB are meant for
// MySQL as well, which is not tested.
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

// ErrStale is returned when a later holder of the lock has raised the fence: then this
// holder holds no longer, whatever its clock says, and its transaction must be rolled back.
var ErrStale = errors.New("a later holder of the lock has written")

// Dialect is the make of the database.
type Dialect int

const (
	PostgreSQL Dialect = iota + 1 // 9.5 or newer
	SQLite                        // 3.24 or newer
	MySQL                         // with InnoDB, and MariaDB
)

// Tx is a transaction: *sql.Tx, or what wraps one.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

var _ Tx = (*sql.Tx)(nil)

// Options are a Fence's. Nil means the defaults.
type Options struct {
	// Table is the name of the table, which may have that of a schema before it.
	// Default zklock_fence.
	Table string
}

// Fence is a table of fencing tokens, one row for each lock. It may be used by many
// goroutines.
type Fence struct {
	dialect Dialect
	table   string
}

// A name that needs no quotes in any of the dialects.
var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

// maxPath is what the table of MySQL takes, of which the path is the key.
const maxPath = 3072

// New returns the fence in a table that Schema describes.
func New(dialect Dialect, opts *Options) (*Fence, error) {
	f := &Fence{dialect: dialect, table: "zklock_fence"}
	if opts != nil && opts.Table != "" {
		f.table = opts.Table
	}
	if dialect < PostgreSQL || dialect > MySQL {
		return nil, fmt.Errorf("sqlfence: %w: unknown dialect %d", zklock.ErrInvalid, dialect)
	}
	if !tableName.MatchString(f.table) {
		return nil, fmt.Errorf("sqlfence: %w: %q cannot be a table's name", zklock.ErrInvalid, f.table)
	}
	return f, nil
}

// Schema returns the statement that makes the table unless it exists. It belongs into the
// migrations of the database.
func (f *Fence) Schema() string {
	switch f.dialect {
	case MySQL: // bytes, because a path's upper and lower case are not the same
		return `CREATE TABLE IF NOT EXISTS ` + f.table + ` (path VARBINARY(3072) NOT NULL PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB`
	default:
		return `CREATE TABLE IF NOT EXISTS ` + f.table + ` (path TEXT NOT NULL PRIMARY KEY, token BIGINT NOT NULL)`
	}
}

// Exec raises the fence for hold and, if no later holder has, executes a statement of
// yours in the same transaction.
func (f *Fence) Exec(ctx context.Context, tx Tx, hold *zklock.Hold, query string, args ...any) (sql.Result, error) {
	if err := f.Raise(ctx, tx, hold); err != nil {
		return nil, err
	}
	return tx.ExecContext(ctx, query, args...)
}

// Raise writes the token of hold to the fence of its lock, as the first statement of a
// transaction. On success, no earlier holder can write from then on, and no later one
// before the transaction has ended: what is read and written behind it is this holder's
// alone. On ErrStale and on the errors of hold.Check nothing is written, and the
// transaction must be rolled back.
//
// Until a holder has raised the fence, an earlier one that was stopped can still write. So
// raise it before the data is read, not only before it is written.
//
// The fence is that of hold.Path, without the client's Options.Root. A hold of LockAll is
// refused: see RaiseOf.
func (f *Fence) Raise(ctx context.Context, tx Tx, hold *zklock.Hold) error {
	if several(hold) {
		return fmt.Errorf("sqlfence: raise %s: %w: it is a hold of several locks, say of which", hold.Path(), zklock.ErrInvalid)
	}
	return f.RaiseOf(ctx, tx, hold, hold.Path())
}

// RaiseOf is Raise for the lock at path, which hold is of, or which LockAll has taken with
// others. If several are raised in one transaction, let all callers do it in one order.
func (f *Fence) RaiseOf(ctx context.Context, tx Tx, hold *zklock.Hold, path string) error {
	token := hold.TokenOf(path)
	switch {
	case token == 0:
		return fmt.Errorf("sqlfence: raise %s: %w: the hold is of %s", path, zklock.ErrInvalid, hold.Path())
	case len(path) > maxPath:
		return fmt.Errorf("sqlfence: raise %s: %w: longer than %d bytes", path, zklock.ErrInvalid, maxPath)
	}
	if err := hold.Check(); err != nil {
		return err
	}
	raised, err := f.raise(ctx, tx, path, token)
	if err != nil {
		return fmt.Errorf("sqlfence: raise %s: %w", path, err)
	}
	if !raised {
		return fmt.Errorf("sqlfence: raise %s to token %d: %w", path, token, ErrStale)
	}
	return nil
}

// several reports whether LockAll has taken several locks, whose path is all of theirs.
func several(hold *zklock.Hold) bool {
	paths := strings.Split(hold.Path(), ",")
	if len(paths) == 1 {
		return false
	}
	for _, path := range paths {
		if hold.TokenOf(path) != 0 {
			return true
		}
	}
	return false
}

// raise reports whether the row of path has now this token, and not a larger one. The row
// is locked until the transaction ends.
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

// raiseAndLook is raise for MySQL, which counts a row that keeps its token as not affected.
func (f *Fence) raiseAndLook(ctx context.Context, tx Tx, path string, token int64) (bool, error) {
	if _, err := tx.ExecContext(ctx, `INSERT INTO `+f.table+` (path, token) VALUES (?, ?)
		ON DUPLICATE KEY UPDATE token = GREATEST(token, ?)`, path, token, token); err != nil {
		return false, err
	}
	var stored int64
	err := tx.QueryRowContext(ctx, `SELECT token FROM `+f.table+` WHERE path = ? FOR UPDATE`, path).Scan(&stored)
	return stored == token, err
}
