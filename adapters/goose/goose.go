// Package zkgoose has the instances of a program migrate their database one after the
// other: a lock.Locker and lock.SessionLocker for github.com/pressly/goose/v3 on zklock,
// for databases of any make.
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

// Locker is for goose.WithLocker or goose.WithSessionLocker. It may be used by several
// providers, one of which migrates at a time.
//
// goose does not ask a locker whether it still holds. So let the provider work under
// Context, which ends when the lock is lost. Without it the migrations go on, and only the
// provider's error says afterwards that the lock was lost.
type Locker struct {
	mutex *zklock.Mutex
	turn  chan struct{} // has room for one, from Lock to Unlock

	mu   sync.Mutex
	hold *zklock.Hold // guarded by mu: nil outside of Lock to Unlock
}

var (
	_ lock.Locker        = (*Locker)(nil)
	_ lock.SessionLocker = (*Locker)(nil)
)

// NewLocker returns a locker on the mutex at path, which is to be one for each database.
func NewLocker(client *zklock.Client, path string) *Locker {
	return &Locker{mutex: client.Mutex(path), turn: make(chan struct{}, 1)}
}

type endKey struct{}

// Context returns a context made from ctx that ends when a Locker loses the lock that it
// took under it; context.Cause then wraps zklock.ErrLost. It is to be ended by the function.
//
//	ctx, end := zkgoose.Context(ctx)
//	defer end()
//	results, err := provider.Up(ctx)
func Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	return context.WithValue(ctx, endKey{}, end), func() { end(nil) }
}

// Lock waits until the lock is held or ctx ends.
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error {
	// A lost hold stays until its Unlock: another's turn must not be what that ends.
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
		context.AfterFunc(hold.Context(), func() {
			if why := context.Cause(hold.Context()); !errors.Is(why, zklock.ErrReleased) {
				end(why)
			}
		})
	}
	return nil
}

// Unlock gives the lock up, also if ctx has ended; it waits no longer than the session timeout.
// It returns zklock.ErrLost if the lock was lost meanwhile: then another instance may have
// migrated at the same time.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error {
	hold := l.take()
	if hold == nil {
		return fmt.Errorf("zkgoose: unlock: %w", zklock.ErrNotHeld)
	}
	defer func() { <-l.turn }()
	return hold.Unlock(context.WithoutCancel(ctx))
}

// SessionLock is Lock: the lock is not the database's, so it is not the connection's either.
func (l *Locker) SessionLock(ctx context.Context, _ *sql.Conn) error { return l.Lock(ctx, nil) }

// SessionUnlock is Unlock.
func (l *Locker) SessionUnlock(ctx context.Context, _ *sql.Conn) error { return l.Unlock(ctx, nil) }

// Hold returns what the provider that migrates works under, for its token (see
// adapters/sqlfence); nil if none does.
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

// take returns the hold to the one call of Unlock that is to end it.
func (l *Locker) take() *zklock.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	hold := l.hold
	l.hold = nil
	return hold
}
