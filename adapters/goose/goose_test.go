package zkgoose_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/zklock-go/zklock"
	zkgoose "github.com/zklock-go/zklock/adapters/goose"
	"github.com/zklock-go/zklock/zktest"
)

func connect(t *testing.T, srv *zktest.Server) *zklock.Client {
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.Dial, FailStop: func(err error) { t.Error(err) }})
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
					_, err := tx.ExecContext(ctx, `CREATE TABLE orders (id INTEGER)`) // fails if it is there
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

	// Nothing of it is left, and the locker can be used again.
	p = provider(t, dsn, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `CREATE TABLE orders (id INTEGER)`)
		return err
	}, goose.WithLocker(locker))
	results, err := p.Up(t.Context())
	require.NoError(t, err)
	assert.Len(t, results, 1)
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
