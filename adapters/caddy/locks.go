// SPDX-License-Identifier: Apache-2.0

package zkcaddy

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/zklock-go/zklock"
	zkcertmagic "github.com/zklock-go/zklock/adapters/certmagic"
)

// locks is the storage that Caddy uses: a zkcertmagic.Storage whose client may not be connected yet.
type locks struct {
	certmagic.Storage // with its own locks, which are not used
	session           *session
	connected         func() *zkcertmagic.Storage // call it when there is a client
	dir               string
}

var (
	_ certmagic.TryLocker        = (*locks)(nil)
	_ certmagic.LockLeaseRenewer = (*locks)(nil)
)

func newLocks(certificates certmagic.Storage, s *session, dir string) *locks {
	return &locks{certificates, s, sync.OnceValue(func() *zkcertmagic.Storage {
		return zkcertmagic.NewStorage(certificates, s.client, dir)
	}), dir}
}

// storage waits for the client until ctx is done.
func (l *locks) storage(ctx context.Context) (*zkcertmagic.Storage, error) {
	if _, err := l.session.get(ctx); err != nil {
		return nil, err
	}
	return l.connected(), nil
}

// Lock waits until there is a client and the lock is held, or until ctx is done.
func (l *locks) Lock(ctx context.Context, name string) error {
	s, err := l.storage(ctx)
	if err != nil {
		return fmt.Errorf("zklock: lock %s: %w", name, err)
	}
	return s.Lock(ctx, name)
}

// TryLock waits for the client, but not for other holders.
func (l *locks) TryLock(ctx context.Context, name string) (bool, error) {
	s, err := l.storage(ctx)
	if err != nil {
		return false, fmt.Errorf("zklock: lock %s: %w", name, err)
	}
	return s.TryLock(ctx, name)
}

// Unlock releases the lock, even if ctx is done.
func (l *locks) Unlock(ctx context.Context, name string) error {
	s, err := l.held()
	if err != nil {
		return fmt.Errorf("zklock: unlock %s: %w", name, err)
	}
	return s.Unlock(ctx, name)
}

// RenewLockLease returns an error if the lock is no longer held.
func (l *locks) RenewLockLease(ctx context.Context, name string, d time.Duration) error {
	s, err := l.held()
	if err != nil {
		return fmt.Errorf("zklock: renew %s: %w", name, err)
	}
	return s.RenewLockLease(ctx, name, d)
}

// held returns the storage if there is a client. Without one, no lock is held.
func (l *locks) held() (*zkcertmagic.Storage, error) {
	select {
	case <-l.session.done:
		return l.storage(context.Background())
	default:
		return nil, zklock.ErrNotHeld
	}
}

// String returns the name under which certmagic logs the storage, in the form of zkcertmagic.Storage.
func (l *locks) String() string { return zkcertmagic.NewStorage(l.Storage, nil, l.dir).String() }
