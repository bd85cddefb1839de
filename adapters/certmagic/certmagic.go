// SPDX-License-Identifier: Apache-2.0

// Package zkcertmagic makes a fleet obtain each certificate only once: it provides the
// locks of a github.com/caddyserver/certmagic Storage with zklock. The data stays in a
// storage of your choice.
package zkcertmagic

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/zklock-go/zklock"
)

// Storage wraps another Storage and keeps its locks in ZooKeeper. Set it as
// certmagic.Config.Storage.
//
// certmagic does not stop its work when a lock is lost: it notices at its next attempt
// (see RenewLockLease). Until then two instances may order the same certificate.
type Storage struct {
	certmagic.Storage
	client *zklock.Client
	dir    string

	mu    sync.Mutex
	names map[string]*name // guarded by mu: the names that are locked or waited for through this Storage
}

// name is the state that the callers for one name in this process share.
type name struct {
	turn  chan struct{} // capacity 1; full from Lock to Unlock
	users int           // guarded by Storage.mu: callers between Lock and Unlock, including those that wait
	hold  *zklock.Hold  // guarded by Storage.mu: nil if no caller holds the lock
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// NewStorage returns storage with its locks replaced by mutexes below dir, one for each
// name. Within a process, use the same client for everything that uses one storage.
func NewStorage(storage certmagic.Storage, client *zklock.Client, dir string) *Storage {
	return &Storage{Storage: storage, client: client, dir: dir, names: map[string]*name{}}
}

// String returns the name under which certmagic logs the storage. If the wrapped storage has no String method, String uses its
// type, because its fields may contain passwords.
func (s *Storage) String() string {
	name, ok := s.Storage.(fmt.Stringer)
	if !ok {
		return fmt.Sprintf("%T with locks in ZooKeeper below %s", s.Storage, s.dir)
	}
	return fmt.Sprintf("%v with locks in ZooKeeper below %s", name, s.dir)
}

// Lock waits until the lock is held or ctx is done.
func (s *Storage) Lock(ctx context.Context, key string) error {
	n := s.enter(key)
	// A caller whose hold is lost keeps its turn until its Unlock, which must not release another caller's hold.
	select {
	case n.turn <- struct{}{}:
	case <-ctx.Done():
		s.leave(key, n)
		return fmt.Errorf("zkcertmagic: lock %s: %w", key, context.Cause(ctx))
	}
	return s.obtain(key, n, func(m *zklock.Mutex) (*zklock.Hold, error) { return m.Lock(ctx) })
}

// TryLock reports whether it acquired the lock. It does not wait for other holders.
func (s *Storage) TryLock(ctx context.Context, key string) (bool, error) {
	n := s.enter(key)
	select {
	case n.turn <- struct{}{}:
	default:
		s.leave(key, n)
		return false, nil
	}
	err := s.obtain(key, n, func(m *zklock.Mutex) (*zklock.Hold, error) { return m.TryLock(ctx) })
	if errors.Is(err, zklock.ErrLocked) {
		return false, nil
	}
	return err == nil, err
}

// obtain acquires the lock in ZooKeeper for the caller that has the turn.
func (s *Storage) obtain(key string, n *name, take func(*zklock.Mutex) (*zklock.Hold, error)) error {
	hold, err := take(s.client.Mutex(s.dir + "/" + nodeName(key)))
	if err != nil {
		<-n.turn
		s.leave(key, n)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n.hold = hold
	return nil
}

// Unlock releases the lock, even if ctx is done. It waits for at most the session timeout. If
// the lock was lost, or the client is closed, Unlock returns nil. An error means that the lock may not be free yet: if
// no server can be reached, it becomes free after a session timeout.
func (s *Storage) Unlock(ctx context.Context, key string) error {
	n, hold := s.take(key)
	if hold == nil {
		return fmt.Errorf("zkcertmagic: unlock %s: %w", key, zklock.ErrNotHeld)
	}
	defer func() { <-n.turn; s.leave(key, n) }()
	err := hold.Unlock(context.WithoutCancel(ctx))
	if errors.Is(err, zklock.ErrLost) || errors.Is(err, zklock.ErrClosed) {
		return nil
	}
	return err
}

// RenewLockLease returns an error if the lock is no longer held, which makes certmagic's
// attempt fail. It renews nothing: a lock is held for as long as the client's session
// lives, whatever the duration.
func (s *Storage) RenewLockLease(_ context.Context, key string, _ time.Duration) error {
	hold := s.Hold(key)
	if hold == nil {
		return fmt.Errorf("zkcertmagic: renew %s: %w", key, zklock.ErrNotHeld)
	}
	return hold.Check()
}

// Hold returns this process's hold of the lock with that name, or nil if there is none.
func (s *Storage) Hold(key string) *zklock.Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.names[key]; n != nil {
		return n.hold
	}
	return nil
}

func (s *Storage) enter(key string) *name {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.names[key]
	if n == nil {
		n = &name{turn: make(chan struct{}, 1)}
		s.names[key] = n
	}
	n.users++
	return n
}

// leave removes the name if it has no more users.
func (s *Storage) leave(key string, n *name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.users--
	if n.users == 0 {
		delete(s.names, key)
	}
}

// take removes and returns the hold, so that only one call of Unlock releases it.
func (s *Storage) take(key string) (*name, *zklock.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.names[key]
	if n == nil {
		return nil, nil
	}
	hold := n.hold
	n.hold = nil
	return n, hold
}

// nodeName escapes a lock's name for use in a path. Different names stay different.
func nodeName(key string) string {
	switch escaped := url.PathEscape(key); escaped {
	case "":
		return "%"
	case ".", "..":
		return strings.ReplaceAll(escaped, ".", "%2E")
	default:
		return escaped
	}
}
