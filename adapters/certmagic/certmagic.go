// Package zkcertmagic has a fleet obtain each certificate once: the locks of a
// github.com/caddyserver/certmagic Storage on zklock. What is stored stays in a storage of
// your choice.
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

// Storage is another Storage with locks in ZooKeeper. It is for certmagic.Config.Storage.
//
// certmagic does not stop what it does when a lock is lost: it finds out with its next
// attempt (see RenewLockLease). Until then two instances may order the same certificate.
type Storage struct {
	certmagic.Storage
	client *zklock.Client
	dir    string

	mu    sync.Mutex
	names map[string]*name // guarded by mu: those that are locked, or waited for, through this Storage
}

// name is what one name's callers in this process share.
type name struct {
	turn  chan struct{} // has room for one, from Lock to Unlock
	users int           // guarded by Storage.mu: callers from Lock to Unlock, also those that wait
	hold  *zklock.Hold  // guarded by Storage.mu: nil if none of them holds
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// NewStorage returns storage with its locks replaced by mutexes below dir, one for each
// name. A process that uses one storage uses one client for it.
func NewStorage(storage certmagic.Storage, client *zklock.Client, dir string) *Storage {
	return &Storage{Storage: storage, client: client, dir: dir, names: map[string]*name{}}
}

// String names the storage as certmagic logs it. What that does not name itself may contain passwords: it is logged by its type.
func (s *Storage) String() string {
	name, ok := s.Storage.(fmt.Stringer)
	if !ok {
		return fmt.Sprintf("%T with locks in ZooKeeper below %s", s.Storage, s.dir)
	}
	return fmt.Sprintf("%v with locks in ZooKeeper below %s", name, s.dir)
}

// Lock waits until the lock is held or ctx ends.
func (s *Storage) Lock(ctx context.Context, key string) error {
	n := s.enter(key)
	// A lost hold stays until its Unlock: another's turn must not be what that ends.
	select {
	case n.turn <- struct{}{}:
	case <-ctx.Done():
		s.leave(key, n)
		return fmt.Errorf("zkcertmagic: lock %s: %w", key, context.Cause(ctx))
	}
	return s.obtain(key, n, func(m *zklock.Mutex) (*zklock.Hold, error) { return m.Lock(ctx) })
}

// TryLock reports whether it has taken the lock, and does not wait for others.
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

// obtain takes the lock in ZooKeeper for the caller whose turn it is.
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

// Unlock gives the lock up, also if ctx has ended; it waits no longer than the session timeout.
// A lock that was lost is one that is given up. An error says that it is not known to be free
// yet: without a server it is after a session timeout.
func (s *Storage) Unlock(ctx context.Context, key string) error {
	n, hold := s.take(key)
	if hold == nil {
		return fmt.Errorf("zkcertmagic: unlock %s: %w", key, zklock.ErrNotHeld)
	}
	defer func() { <-n.turn; s.leave(key, n) }()
	if err := hold.Unlock(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, zklock.ErrLost) {
		return err
	}
	return nil
}

// RenewLockLease returns an error if the lock is not held any more, and makes certmagic's
// attempt fail by it. Nothing needs to be renewed: a lock is held for as long as the
// client's session lives, whatever the duration.
func (s *Storage) RenewLockLease(_ context.Context, key string, _ time.Duration) error {
	hold := s.Hold(key)
	if hold == nil {
		return fmt.Errorf("zkcertmagic: renew %s: %w", key, zklock.ErrNotHeld)
	}
	return hold.Check()
}

// Hold returns what this process has of the lock with that name, nil if it has not locked it.
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

// leave forgets the name when nobody uses it.
func (s *Storage) leave(key string, n *name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.users--; n.users == 0 {
		delete(s.names, key)
	}
}

// take returns the hold to the one call of Unlock that is to end it.
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

// nodeName makes a lock's name fit for a path. No two names become one.
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
