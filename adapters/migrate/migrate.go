// SPDX-License-Identifier: Apache-2.0

// Package zkmigrate makes the instances of a program migrate their database one after the
// other with golang-migrate (github.com/golang-migrate/migrate/v4), on any database: it wraps
// the database's driver, and locks a zklock mutex instead of the database.
package zkmigrate

import (
	"context"
	"fmt"
	"sync"

	"github.com/golang-migrate/migrate/v4/database"

	"github.com/zklock-go/zklock"
)

// Driver is a driver of golang-migrate whose lock is a mutex. Use it for one migrate.Migrate.
type Driver struct {
	database.Driver

	mutex *zklock.Mutex
	ctx   context.Context // ends with Close
	end   context.CancelFunc
	turn  chan struct{} // capacity 1; full while Lock runs

	mu   sync.Mutex
	hold *zklock.Hold // guarded by mu: nil except between Lock and Unlock
}

var _ database.Driver = (*Driver)(nil)

// Wrap returns driver with the mutex at path as its lock. Use a different path for each database.
// The wait for the lock ends with ctx; migrate.Migrate.LockTimeout limits it as well.
//
//	driver, err := postgres.WithInstance(db, &postgres.Config{})
//	...
//	m, err := migrate.NewWithDatabaseInstance("file://migrations", "orders", zkmigrate.Wrap(ctx, client, "/migrations/orders", driver))
//	...
//	defer m.Close()
//	err = m.Up()
func Wrap(ctx context.Context, client *zklock.Client, path string, driver database.Driver) *Driver {
	ctx, end := context.WithCancel(ctx)
	return &Driver{Driver: driver, mutex: client.Mutex(path), ctx: ctx, end: end, turn: make(chan struct{}, 1)}
}

// Open returns an error: open the wrapped driver before Wrap.
func (d *Driver) Open(string) (database.Driver, error) {
	return nil, fmt.Errorf("zkmigrate: open: %w: wrap a driver that is open", zklock.ErrInvalid)
}

// Lock waits until the lock is held. migrate.Migrate does not wait longer than its LockTimeout, and gives up without notice to
// the driver. The next call of Lock then has the hold that such a call acquires, and Close releases it.
func (d *Driver) Lock() error {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-d.ctx.Done():
		return fmt.Errorf("zkmigrate: lock: %w", context.Cause(d.ctx))
	}
	if d.Hold().Check() == nil {
		return nil
	}
	hold, err := d.mutex.Lock(d.ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.hold = hold
	d.mu.Unlock()
	return nil
}

// Unlock releases the lock. It waits for at most the session timeout. It returns zklock.ErrLost if the lock was lost in the
// meantime: another instance may then have migrated at the same time.
func (d *Driver) Unlock() error {
	hold := d.take()
	if hold == nil {
		return fmt.Errorf("zkmigrate: unlock: %w", zklock.ErrNotHeld)
	}
	return hold.Unlock(context.WithoutCancel(d.ctx))
}

// SetVersion records a version, unless the lock was lost. golang-migrate calls it before and after each migration: so none begins
// after a loss, and one that was running then leaves the database dirty, because another instance may have run it too.
func (d *Driver) SetVersion(version int, dirty bool) error {
	if err := d.Hold().Check(); err != nil {
		return fmt.Errorf("zkmigrate: set version %d: %w", version, err)
	}
	return d.Driver.SetVersion(version, dirty)
}

// Close ends a call of Lock that waits, releases the lock if it is held, and closes the wrapped driver.
func (d *Driver) Close() error {
	d.end()
	d.turn <- struct{}{} // no call of Lock adds a hold after this, because ctx has ended
	defer func() { <-d.turn }()
	if hold := d.take(); hold != nil {
		_ = hold.Unlock(context.WithoutCancel(d.ctx)) // nobody migrates under it
	}
	return d.Driver.Close()
}

// Hold returns the hold while this instance migrates, for its token (see adapters/sqlfence), or nil.
func (d *Driver) Hold() *zklock.Hold {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hold
}

// take removes and returns the hold, so that it is released once.
func (d *Driver) take() *zklock.Hold {
	d.mu.Lock()
	defer d.mu.Unlock()
	hold := d.hold
	d.hold = nil
	return hold
}
