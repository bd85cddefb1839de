// SPDX-License-Identifier: Apache-2.0

// Package zkgoose makes the instances of a program migrate their database one after the
// other. It provides a lock.Locker and lock.SessionLocker for github.com/pressly/goose/v3
// with zklock, for any database.
package zkgoose

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/pressly/goose/v3/lock"

	"github.com/zklock-go/zklock"
)

// Locker is for goose.WithLocker or goose.WithSessionLocker. It can be used by several
// providers, of which one migrates at a time.
//
// goose does not check whether a locker still holds its lock. Run the provider with the
// context returned by Context, which is canceled when the lock is lost. Otherwise the
// migrations continue, and only the provider's error says afterwards that the lock was lost.
type Locker struct {
	mutex *zklock.Mutex
	turn  chan struct{} // capacity 1; full from Lock to Unlock

	mu   sync.Mutex
	hold *zklock.Hold // guarded by mu: nil except between Lock and Unlock
}

var (
	_ lock.Locker        = (*Locker)(nil)
	_ lock.SessionLocker = (*Locker)(nil)
)

// NewLocker returns a locker that uses the mutex at path. Use a different path for each database.
func NewLocker(client *zklock.Client, path string) *Locker {
	return &Locker{mutex: client.Mutex(path), turn: make(chan struct{}, 1)}
}

type endKey struct{}

// Context returns a copy of ctx that is canceled when a Locker loses a lock that it acquired
// with it; context.Cause then wraps zklock.ErrLost. Call the returned function when done.
//
//	ctx, end := zkgoose.Context(ctx)
//	defer end()
//	results, err := provider.Up(ctx)
func Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	return context.WithValue(ctx, endKey{}, end), func() { end(nil) }
}

// Lock waits until the lock is held or ctx is done.
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error {
	// A caller whose hold is lost keeps its turn until its Unlock, which must not release another caller's hold.
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("zkgoose: lock: %w", context.Cause(ctx))
	}
	hold, err := l.mutex.Lock(ctx)
	if err != nil {
		<-l.turn
		return err
	}
	l.set(hold)
	if end, ok := ctx.Value(endKey{}).(context.CancelCauseFunc); ok {
		hold.OnEnd(func(why error) {
			if !errors.Is(why, zklock.ErrReleased) {
				end(why)
			}
		})
	}
	return nil
}

// Unlock releases the lock, even if ctx is done. It waits for at most the session timeout. It
// returns zklock.ErrLost if the lock was lost in the meantime: another instance may then have
// migrated at the same time.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error {
	hold := l.take()
	if hold == nil {
		return fmt.Errorf("zkgoose: unlock: %w", zklock.ErrNotHeld)
	}
	defer func() { <-l.turn }()
	return hold.Unlock(context.WithoutCancel(ctx))
}

// SessionLock calls Lock: the lock does not belong to the database, nor to a connection.
func (l *Locker) SessionLock(ctx context.Context, _ *sql.Conn) error { return l.Lock(ctx, nil) }

// SessionUnlock calls Unlock.
func (l *Locker) SessionUnlock(ctx context.Context, _ *sql.Conn) error { return l.Unlock(ctx, nil) }

// Hold returns the hold of the provider that is migrating, for its token (see
// adapters/sqlfence), or nil if there is none.
func (l *Locker) Hold() *zklock.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold
}

func (l *Locker) set(hold *zklock.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold = hold
}

// take removes and returns the hold, so that only one call of Unlock releases it.
func (l *Locker) take() *zklock.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	hold := l.hold
	l.hold = nil
	return hold
}
