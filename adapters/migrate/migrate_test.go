// SPDX-License-Identifier: Apache-2.0

package zkmigrate_test

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	zkmigrate "github.com/zklock-go/zklock/adapters/migrate"
	"github.com/zklock-go/zklock/zktest"
)

// table is a database without a lock of its own.
type table struct {
	mu      sync.Mutex
	version int
	dirty   bool
	ran     int
	running atomic.Int32
	during  func() // called while a migration runs
	t       *testing.T
}

func newTable(t *testing.T) *table { return &table{version: database.NilVersion, t: t} }

func (d *table) Open(string) (database.Driver, error) { return d, nil }
func (d *table) Close() error                         { return nil }
func (d *table) Lock() error                          { d.t.Error("locked"); return nil }
func (d *table) Unlock() error                        { d.t.Error("unlocked"); return nil }
func (d *table) Drop() error                          { return nil }

func (d *table) Run(io.Reader) error {
	assert.Equal(d.t, int32(1), d.running.Add(1), "one instance migrates at a time")
	defer d.running.Add(-1)
	if d.during != nil {
		d.during()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ran++
	return nil
}

func (d *table) SetVersion(version int, dirty bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version, d.dirty = version, dirty
	return nil
}

func (d *table) Version() (int, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.version, d.dirty, nil
}

// instance returns an instance of a program with its own client.
func instance(t *testing.T, srv *zktest.Server, name string, db *table) (*migrate.Migrate, *zkmigrate.Driver) {
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom(name), SessionTimeout: time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	files, err := iofs.New(fstest.MapFS{"1_a.up.sql": {Data: []byte("a")}, "2_b.up.sql": {Data: []byte("b")}}, ".")
	require.NoError(t, err)
	driver := zkmigrate.Wrap(t.Context(), client, "/migrations/orders", db)
	m, err := migrate.NewWithInstance("iofs", files, "table", driver)
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	return m, driver
}

func serve(t *testing.T) *zktest.Server {
	return zktest.Run(t, zktest.Options{TickTime: 100 * time.Millisecond})
}

func TestOneInstanceMigrates(t *testing.T) {
	srv, db := serve(t), newTable(t)
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		m, driver := instance(t, srv, name, db)
		// Ends with Up; the test waits for it.
		all.Go(func() {
			if err := m.Up(); err != migrate.ErrNoChange {
				assert.NoError(t, err)
			}
			assert.Nil(t, driver.Hold())
		})
	}
	all.Wait()
	assert.Equal(t, 2, db.ran)
	version, dirty, _ := db.Version()
	assert.Equal(t, 2, version)
	assert.False(t, dirty)
}

func TestAMigrationUnderALockThatIsLostIsDirtyAndTheLast(t *testing.T) {
	srv, db := serve(t), newTable(t)
	m, driver := instance(t, srv, "a", db)
	db.during = func() {
		require.NoError(t, srv.DeleteNode(driver.Hold().Node()))
		<-driver.Hold().Context().Done()
	}
	require.ErrorIs(t, m.Up(), zklock.ErrLost)
	assert.Equal(t, 1, db.ran, "the second migration does not begin")
	version, dirty, _ := db.Version()
	assert.Equal(t, 1, version)
	assert.True(t, dirty)
}

// migrate.Migrate gives up while the driver still waits.
func TestALockThatIsGrantedTooLateIsUsedOrReleased(t *testing.T) {
	srv, db := serve(t), newTable(t)
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom("other"), SessionTimeout: time.Second})
	require.NoError(t, err)
	defer client.Close()
	lock := client.Mutex("/migrations/orders")
	other, err := lock.Lock(t.Context())
	require.NoError(t, err)
	m, driver := instance(t, srv, "a", db)
	m.LockTimeout = time.Millisecond
	require.ErrorIs(t, m.Up(), migrate.ErrLockTimeout)
	require.NoError(t, other.Unlock(t.Context()))
	m.LockTimeout = time.Minute
	require.NoError(t, m.Up(), "not behind its own hold")
	assert.Nil(t, driver.Hold())

	other, err = lock.Lock(t.Context())
	require.NoError(t, err)
	m.LockTimeout = time.Millisecond
	require.ErrorIs(t, m.Steps(1), migrate.ErrLockTimeout)
	_, failed := m.Close()
	require.NoError(t, failed)
	require.NoError(t, other.Unlock(t.Context()))
	hold, err := lock.Lock(t.Context())
	require.NoError(t, err, "nothing waits or holds after Close")
	require.NoError(t, hold.Unlock(t.Context()))
	require.ErrorIs(t, driver.Lock(), context.Canceled)
	require.ErrorIs(t, driver.Unlock(), zklock.ErrNotHeld)
	_, err = driver.Open("x://")
	require.ErrorIs(t, err, zklock.ErrInvalid)
	require.ErrorIs(t, driver.SetVersion(1, false), zklock.ErrNotHeld)
}
