// SPDX-License-Identifier: Apache-2.0

package sqlfence_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/adapters/sqlfence"
	"github.com/zklock-go/zklock/zktest"
)

// onEach runs the test on each database that there is.
func onEach(t *testing.T, test func(t *testing.T, s *setup)) {
	t.Run("SQLite", func(t *testing.T) {
		db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(t.TempDir(), "db"))+"?_pragma=busy_timeout(60000)")
		require.NoError(t, err)
		t.Cleanup(func() { db.Close() })
		test(t, newSetup(t, db, sqlfence.SQLite))
	})
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newSetup(t, postgres(t), sqlfence.PostgreSQL)) })
	t.Run("MariaDB", func(t *testing.T) { test(t, newSetup(t, mariadb(t), sqlfence.MySQL)) })
}

// setup is a database with a table "orders" of one row, a fence, and a ZooKeeper.
type setup struct {
	db     *sql.DB
	fence  *sqlfence.Fence
	srv    *zktest.Server
	client *zklock.Client
}

func newSetup(t *testing.T, db *sql.DB, dialect sqlfence.Dialect) *setup {
	fence, err := sqlfence.New(dialect, nil)
	require.NoError(t, err)
	for _, statement := range []string{
		`DROP TABLE IF EXISTS zklock_fence`, `DROP TABLE IF EXISTS orders`,
		fence.Schema(), fence.Schema(), // the second one finds the table
		`CREATE TABLE orders (id BIGINT PRIMARY KEY, state TEXT)`,
		`INSERT INTO orders (id, state) VALUES (42, 'new')`,
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	srv := zktest.Start(t)
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.Dial, FailStop: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return &setup{db, fence, srv, client}
}

func (s *setup) lock(t *testing.T) *zklock.Hold {
	hold, err := s.client.Mutex("/locks/orders").Lock(t.Context())
	require.NoError(t, err)
	return hold
}

// takeAway ends a hold without its holder's doing, and has another one hold.
func (s *setup) takeAway(t *testing.T, hold *zklock.Hold) *zklock.Hold {
	require.NoError(t, s.srv.DeleteNode(hold.Node()))
	return s.lock(t)
}

func (s *setup) begin(t *testing.T) *sql.Tx {
	tx, err := s.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { tx.Rollback() })
	return tx
}

func (s *setup) write(t *testing.T, tx sqlfence.Tx, hold *zklock.Hold, state string) error {
	_, err := s.fence.Exec(t.Context(), tx, hold, `UPDATE orders SET state = '`+state+`' WHERE id = 42`)
	return err
}

// commit writes in a transaction of its own.
func (s *setup) commit(t *testing.T, hold *zklock.Hold, state string) {
	tx := s.begin(t)
	require.NoError(t, s.write(t, tx, hold, state))
	require.NoError(t, tx.Commit())
}

func (s *setup) state(t *testing.T) (state string) {
	require.NoError(t, s.db.QueryRowContext(t.Context(), `SELECT state FROM orders WHERE id = 42`).Scan(&state))
	return state
}

// standsStill is a transaction of a process that is stopped before its next statement.
type standsStill struct {
	*sql.Tx
	meanwhile func()
	sent      int
}

func (s *standsStill) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if s.meanwhile != nil {
		s.meanwhile()
		s.meanwhile = nil
	}
	s.sent++
	return s.Tx.ExecContext(ctx, query, args...)
}

func TestAHolderThatWasStoppedIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, s *setup) {
		stopped := s.lock(t)
		s.commit(t, stopped, "packed")
		tx := &standsStill{Tx: s.begin(t), meanwhile: func() {
			s.commit(t, s.takeAway(t, stopped), "shipped")
		}}
		err := s.write(t, tx, stopped, "canceled")
		assert.ErrorIs(t, err, sqlfence.ErrStale)
		assert.ErrorContains(t, err, "/locks/orders")
		assert.Equal(t, 1, tx.sent, "the write itself must not be sent")
		require.NoError(t, tx.Rollback())
		assert.Equal(t, "shipped", s.state(t))
	})
}

func TestAHolderThatOnlyReadsShutsOutEarlierOnes(t *testing.T) {
	onEach(t, func(t *testing.T, s *setup) {
		stopped := s.lock(t)
		tx := &standsStill{Tx: s.begin(t), meanwhile: func() {
			next := s.takeAway(t, stopped)
			reads := s.begin(t)
			require.NoError(t, s.fence.Raise(t.Context(), reads, next))
			require.NoError(t, reads.Commit())
		}}
		assert.ErrorIs(t, s.write(t, tx, stopped, "canceled"), sqlfence.ErrStale)
	})
}

func TestAHolderThatKnowsOfItsLossSendsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s *setup) {
		lost := s.lock(t)
		require.NoError(t, s.srv.DeleteNode(lost.Node()))
		<-lost.Context().Done()
		tx := &standsStill{Tx: s.begin(t)}
		assert.ErrorIs(t, s.write(t, tx, lost, "canceled"), zklock.ErrLost)
		assert.Zero(t, tx.sent)
	})
}

func TestAHolderWritesAsOftenAsItLikes(t *testing.T) {
	onEach(t, func(t *testing.T, s *setup) {
		hold := s.lock(t)
		s.commit(t, hold, "packed")
		tx := s.begin(t)
		require.NoError(t, s.write(t, tx, hold, "weighed"))
		require.NoError(t, s.write(t, tx, hold, "shipped"))
		require.NoError(t, tx.Commit())
		assert.Equal(t, "shipped", s.state(t))
	})
}

func TestATransactionThatIsRolledBackRaisesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s *setup) {
		first := s.lock(t)
		tx := &standsStill{Tx: s.begin(t), meanwhile: func() {
			next := s.begin(t)
			require.NoError(t, s.write(t, next, s.takeAway(t, first), "shipped"))
			require.NoError(t, next.Rollback())
		}}
		require.NoError(t, s.write(t, tx, first, "packed"), "nothing was written under the later hold")
		require.NoError(t, tx.Commit())
		assert.Equal(t, "packed", s.state(t))
	})
}

// An earlier holder that has raised the fence may commit: then the later one's transaction
// comes after it.
func TestALaterHolderWaitsForTheTransactionOfAnEarlierOne(t *testing.T) {
	onEach(t, func(t *testing.T, s *setup) {
		earlier := s.lock(t)
		tx := s.begin(t)
		require.NoError(t, s.write(t, tx, earlier, "packed"))
		later := s.takeAway(t, earlier)
		laterTx := s.begin(t)
		var committing atomic.Bool
		written := make(chan error, 1)
		// Owned by the test, which waits for what it sends; ends when tx does.
		go func() {
			err := s.write(t, laterTx, later, "shipped")
			assert.True(t, committing.Load(), "the later holder must not write before the earlier one's transaction ends")
			written <- err
		}()
		committing.Store(true)
		require.NoError(t, tx.Commit())
		require.NoError(t, <-written)
		require.NoError(t, laterTx.Commit())
		assert.Equal(t, "shipped", s.state(t))
	})
}

func TestOfSeveralLocksEachHasAFenceOfItsOwn(t *testing.T) {
	onEach(t, func(t *testing.T, s *setup) {
		stopped := s.lock(t)
		tx := &standsStill{Tx: s.begin(t), meanwhile: func() {
			require.NoError(t, s.srv.DeleteNode(stopped.Node()))
			both, err := s.client.LockAll(t.Context(), s.client.Mutex("/locks/orders"), s.client.Mutex("/locks/stock"))
			require.NoError(t, err)
			later := s.begin(t)
			assert.ErrorIs(t, s.fence.Raise(t.Context(), later, both), zklock.ErrInvalid)
			require.NoError(t, s.fence.RaiseOf(t.Context(), later, both, "/locks/orders"))
			require.NoError(t, s.fence.RaiseOf(t.Context(), later, both, "/locks/stock"))
			require.NoError(t, later.Commit())
		}}
		assert.ErrorIs(t, s.write(t, tx, stopped, "canceled"), sqlfence.ErrStale)
	})
}

func TestACohortShutsOutEarlierGoroutines(t *testing.T) {
	onEach(t, func(t *testing.T, s *setup) {
		cohort := s.client.Cohort("/locks/orders", &zklock.CohortOptions{Keep: time.Hour})
		stopped, err := cohort.Lock(t.Context())
		require.NoError(t, err)
		tx := &standsStill{Tx: s.begin(t), meanwhile: func() {
			require.NoError(t, stopped.Unlock(t.Context()))
			next, err := cohort.Lock(t.Context())
			require.NoError(t, err)
			s.commit(t, next, "shipped")
			require.NoError(t, next.Unlock(t.Context()))
		}}
		assert.ErrorIs(t, s.write(t, tx, stopped, "canceled"), sqlfence.ErrStale)
	})
}

// A later holder of a lock that others hold at the same time would refuse them.
func TestHoldsThatOthersShareAreRefused(t *testing.T) {
	onEach(t, func(t *testing.T, s *setup) {
		for name, lock := range map[string]zklock.Locker{
			"permits": s.client.Semaphore("/locks/permits", 3).Permits(2),
			"reader":  s.client.RWMutex("/locks/table").Reader(),
			"writer":  s.client.RWMutex("/locks/other"),
		} {
			hold, err := lock.Lock(t.Context())
			require.NoError(t, err)
			both, err := s.client.LockAll(t.Context(), s.client.Mutex("/locks/a"), sub{lock, hold})
			require.NoError(t, err)
			if name == "writer" {
				require.NoError(t, s.fence.Raise(t.Context(), s.begin(t), hold))
				require.NoError(t, hold.Downgrade(t.Context()))
			}
			assert.ErrorIs(t, s.fence.Raise(t.Context(), s.begin(t), hold), zklock.ErrInvalid, name)
			assert.ErrorIs(t, s.fence.RaiseOf(t.Context(), s.begin(t), both, hold.Path()), zklock.ErrInvalid, name)
			require.NoError(t, both.Unlock(t.Context()))
		}
	})
}

// sub is a Locker that returns a hold that it has.
type sub struct {
	zklock.Locker
	hold *zklock.Hold
}

func (s sub) Lock(context.Context) (*zklock.Hold, error) { return s.hold, nil }

// Two programs with different roots have different locks at one path, and one database.
func TestLocksOfDifferentRootsShareNoRow(t *testing.T) {
	onEach(t, func(t *testing.T, s *setup) {
		other, err := zklock.Connect(t.Context(), s.srv.Addrs(), &zklock.Options{Dialer: s.srv.Dial, Root: "/other"})
		require.NoError(t, err)
		defer other.Close()
		first := s.lock(t)
		later, err := other.Mutex("/locks/orders").Lock(t.Context())
		require.NoError(t, err)
		s.commit(t, later, "packed")
		s.commit(t, first, "shipped")
	})
}

// A year later, somebody takes a permit around the write.
func TestAWriteUnderASecondLockRaisesTheFenceOfTheFirst(t *testing.T) {
	onEach(t, func(t *testing.T, s *setup) {
		stopped := s.lock(t)
		next := s.takeAway(t, stopped)
		permit, err := s.client.Semaphore("/locks/busy", 3).Acquire(next.Context(), 1)
		require.NoError(t, err)
		s.commit(t, zklock.HoldAt(permit.Context(), "/locks/orders"), "shipped")
		s.commit(t, next, "weighed")
		assert.ErrorIs(t, s.fence.Raise(t.Context(), s.begin(t), zklock.HoldAt(permit.Context(), "/locks/stock")), zklock.ErrNotHeld)
	})
}

func TestACommaInAPathIsNoSetOfLocks(t *testing.T) {
	onEach(t, func(t *testing.T, s *setup) {
		hold, err := s.client.Mutex("/locks/a,b").Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.fence.Raise(t.Context(), s.begin(t), hold))
	})
}

func TestInvalidArgumentsAreRefused(t *testing.T) {
	_, err := sqlfence.New(0, nil)
	assert.ErrorIs(t, err, zklock.ErrInvalid)
	for _, table := range []string{"a b", "a;b", `a"`, "1a", "a.b.c", "a."} {
		_, err = sqlfence.New(sqlfence.MySQL, &sqlfence.Options{Table: table})
		assert.ErrorIs(t, err, zklock.ErrInvalid, table)
	}
	fence, err := sqlfence.New(sqlfence.MySQL, &sqlfence.Options{Table: "ops.fences"})
	require.NoError(t, err)
	assert.Contains(t, fence.Schema(), " ops.fences ")

	onEach(t, func(t *testing.T, s *setup) {
		err := s.fence.RaiseOf(t.Context(), s.begin(t), s.lock(t), "/locks/other")
		assert.ErrorIs(t, err, zklock.ErrInvalid)
		long, err := s.client.Mutex("/locks/" + strings.Repeat("x", 3072)).Lock(t.Context())
		require.NoError(t, err)
		assert.ErrorIs(t, s.fence.Raise(t.Context(), s.begin(t), long), zklock.ErrInvalid)
	})
}
