// SPDX-License-Identifier: Apache-2.0

package zkgoose_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/pressly/goose/v3/lock/locktesting"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/zklock-go/zklock"
	zkgoose "github.com/zklock-go/zklock/adapters/goose"
	"github.com/zklock-go/zklock/internal/evidence/everystep"
	"github.com/zklock-go/zklock/zktest"
)

func connect(t *testing.T, srv *zktest.Server) *zklock.Client { return connectAs(t, srv, "client") }

func connectAs(t *testing.T, srv *zktest.Server, name string) *zklock.Client {
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom(name), FailStop: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

func database(t *testing.T) string {
	return "file:" + filepath.ToSlash(filepath.Join(t.TempDir(), "db")) + "?_pragma=busy_timeout(60000)"
}

// provider has one migration, in Go.
func provider(t *testing.T, dsn string, migrate func(context.Context, *sql.Tx) error, opt goose.ProviderOption) *goose.Provider {
	db, err := sql.Open("sqlite", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	p, err := goose.NewProvider(goose.DialectSQLite3, db, nil, opt, goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(goose.NewGoMigration(1, &goose.GoFunc{RunTx: migrate}, nil)))
	require.NoError(t, err)
	return p
}

func TestInstancesMigrateOneAfterTheOther(t *testing.T) {
	for name, option := range map[string]func(l *zkgoose.Locker) goose.ProviderOption{
		"locker":         func(l *zkgoose.Locker) goose.ProviderOption { return goose.WithLocker(l) },
		"session locker": func(l *zkgoose.Locker) goose.ProviderOption { return goose.WithSessionLocker(l) },
	} {
		t.Run(name, func(t *testing.T) {
			srv := zktest.Start(t)
			dsn := database(t)
			var inside, applied atomic.Int32
			var all sync.WaitGroup
			for range 4 {
				locker := zkgoose.NewLocker(connect(t, srv), "/migrations/orders")
				p := provider(t, dsn, func(ctx context.Context, tx *sql.Tx) error {
					assert.EqualValues(t, 1, inside.Add(1))
					defer inside.Add(-1)
					assert.NoError(t, locker.Hold().Confirm(ctx))
					_, err := tx.ExecContext(ctx, `CREATE TABLE orders (id INTEGER)`) // fails if the table exists
					return err
				}, option(locker))
				// Ends with the migration; the test waits for it below.
				all.Go(func() {
					results, err := p.Up(t.Context())
					assert.NoError(t, err)
					applied.Add(int32(len(results)))
				})
			}
			all.Wait()
			assert.EqualValues(t, 1, applied.Load())
			assert.Empty(t, srv.Children("/migrations/orders"))
		})
	}
}

func TestAMigrationEndsWhenTheLockIsLost(t *testing.T) {
	srv := zktest.Start(t)
	locker := zkgoose.NewLocker(connect(t, srv), "/migrations/orders")
	dsn := database(t)
	p := provider(t, dsn, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `CREATE TABLE orders (id INTEGER)`); err != nil {
			return err
		}
		if err := srv.DeleteNode(locker.Hold().Node()); err != nil {
			return err
		}
		<-ctx.Done()
		assert.ErrorIs(t, context.Cause(ctx), zklock.ErrLost)
		return context.Cause(ctx)
	}, goose.WithLocker(locker))
	ctx, end := zkgoose.Context(t.Context())
	defer end()
	_, err := p.Up(ctx)
	assert.ErrorIs(t, err, zklock.ErrLost)
	assert.Nil(t, locker.Hold())

	// The migration left nothing behind, and the locker can be used again.
	p = provider(t, dsn, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `CREATE TABLE orders (id INTEGER)`)
		return err
	}, goose.WithLocker(locker))
	results, err := p.Up(t.Context())
	require.NoError(t, err)
	assert.Len(t, results, 1)
}

// When its node is deleted, another goroutine of the same client can hold the lock at once. The context has ended by then.
func TestTheContextEndsBeforeAnotherGoroutineHolds(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			client := connect(t, srv)
			locker := zkgoose.NewLocker(client, "/migrations/orders")
			ctx, end := zkgoose.Context(t.Context())
			defer end()
			require.NoError(t, locker.Lock(ctx, nil))
			atGrant := make(chan error, 1)
			// Owned by the test, which waits for its answer; ends when it holds the lock.
			go func() {
				_, err := client.Mutex("/migrations/orders").Lock(t.Context())
				assert.NoError(t, err)
				atGrant <- ctx.Err()
			}()
			time.Sleep(time.Second)
			require.NoError(t, srv.DeleteNode(locker.Hold().Node()))
			require.ErrorIs(t, <-atGrant, context.Canceled)
			require.ErrorIs(t, locker.Unlock(t.Context(), nil), zklock.ErrLost)
		})
	}
}

func TestAMigrationThatDidNotNoticeTheLossReportsIt(t *testing.T) {
	srv := zktest.Start(t)
	locker := zkgoose.NewLocker(connect(t, srv), "/migrations/orders")
	p := provider(t, database(t), func(ctx context.Context, tx *sql.Tx) error {
		hold := locker.Hold()
		err := srv.DeleteNode(hold.Node())
		<-hold.Context().Done()
		return err
	}, goose.WithLocker(locker))
	_, err := p.Up(t.Context())
	assert.ErrorIs(t, err, zklock.ErrLost)
}

// The loser's Unlock must not end the hold of the next one that uses the same locker.
func TestTheUnlockOfALostLockEndsNoOther(t *testing.T) {
	srv := zktest.Start(t)
	locker := zkgoose.NewLocker(connect(t, srv), "/migrations/orders")
	require.NoError(t, locker.Lock(t.Context(), nil))
	lost := locker.Hold()
	require.NoError(t, srv.DeleteNode(lost.Node()))
	<-lost.Context().Done()
	next := make(chan error, 1)
	// Owned by the test, which waits for what it sends; ends when the lock is granted.
	go func() { next <- locker.Lock(t.Context(), nil) }()
	assert.ErrorIs(t, locker.Unlock(t.Context(), nil), zklock.ErrLost)
	require.NoError(t, <-next)
	assert.NoError(t, locker.Hold().Check())
	require.NoError(t, locker.Unlock(t.Context(), nil))
	assert.ErrorIs(t, locker.Unlock(t.Context(), nil), zklock.ErrNotHeld)
}

func TestAWaitForTheLockEndsWithItsContext(t *testing.T) {
	srv := zktest.Start(t)
	client := connect(t, srv)
	var locker lock.Locker = zkgoose.NewLocker(client, "/migrations/orders")
	require.NoError(t, locker.Lock(t.Context(), nil))
	for _, other := range []lock.Locker{locker, zkgoose.NewLocker(client, "/migrations/orders")} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.ErrorIs(t, other.Lock(ctx, nil), context.Canceled)
	}
	require.NoError(t, locker.Unlock(t.Context(), nil))
}

// TestGoosesOwnTestsOfLockers runs goose's tests for custom lockers, in virtual time if they wait.
func TestGoosesOwnTestsOfLockers(t *testing.T) {
	t.Run("one of several lockers has the lock", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			locktesting.TestConcurrentLocking(t, nil, func(t *testing.T) lock.Locker {
				return zkgoose.NewLocker(connect(t, srv), "/migrations/orders")
			}, 2*time.Second)
		})
	})
	t.Run("one of several providers migrates", func(t *testing.T) {
		srv := zktest.Start(t)
		dsn := database(t)
		migrations := fstest.MapFS{
			"001_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id INTEGER);\n")},
			"002_items.sql":  {Data: []byte("-- +goose Up\nCREATE TABLE items (id INTEGER);\n")},
		}
		locktesting.TestProviderLocking(t, func(t *testing.T) *goose.Provider {
			db, err := sql.Open("sqlite", dsn)
			require.NoError(t, err)
			t.Cleanup(func() { db.Close() })
			p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithLocker(zkgoose.NewLocker(connect(t, srv), "/migrations/orders")))
			require.NoError(t, err)
			return p
		})
	})
}

// TestOneMigratesUnderAnyFault uses a locker, from its wait to its release, with a fault at each request.
func TestOneMigratesUnderAnyFault(t *testing.T) {
	everystep.Through(t, 3, func(t *testing.T, srv *zktest.Server, over func()) {
		struck, other := zkgoose.NewLocker(connectAs(t, srv, everystep.Client), "/migrations/orders"), zkgoose.NewLocker(connectAs(t, srv, "other"), "/migrations/orders")
		var migrates atomic.Int32
		var all sync.WaitGroup
		for _, l := range []*zkgoose.Locker{struck, other} {
			// Ends when it has migrated; the test waits for it below.
			all.Go(func() {
				ctx, end := zkgoose.Context(t.Context())
				defer end()
				if !assert.NoError(t, l.Lock(ctx, nil)) {
					return
				}
				time.Sleep(time.Microsecond) // when a server ends a session early, both are notified at the same time
				if ctx.Err() == nil {
					assert.EqualValues(t, 1, migrates.Add(1))
					select {
					case <-ctx.Done(): // the migration ends with the lock
					case <-time.After(time.Second):
					}
					migrates.Add(-1)
				}
				if err := l.Unlock(t.Context(), nil); err != nil {
					assert.True(t, errors.Is(err, zklock.ErrLost) || errors.Is(err, zklock.ErrUncertain), err)
				}
				assert.Nil(t, l.Hold())
			})
		}
		all.Wait()
		over()
		time.Sleep(2 * time.Minute) // until the session of a client that was cut off has ended
		assert.Empty(t, srv.Children("/migrations/orders"))
		for _, l := range []*zkgoose.Locker{struck, other} {
			assert.NoError(t, l.Lock(t.Context(), nil), "it can be used again")
			assert.NoError(t, l.Unlock(t.Context(), nil))
		}
	})
}
