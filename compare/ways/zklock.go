// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"context"
	"time"

	"github.com/zklock-go/zklock"
)

type zklockWay struct {
	plain
	at    Endpoints
	delay time.Duration // LockDelay of the client
	lock  func(c *zklock.Client, path string) zklockLock
}

// zklockLock is implemented by zklock.Mutex and zklock.Cohort.
type zklockLock interface {
	Lock(ctx context.Context) (*zklock.Hold, error)
}

func mutexOf(c *zklock.Client, path string) zklockLock { return c.Mutex(path) }

func newZKLock(at Endpoints) Way {
	return newZKLockOf(at, "zklock", "Mutex of this library", mutexOf)
}

func newLockDelay(at Endpoints) Way {
	w := newZKLockOf(at, "zklock-delay", "Mutex of this library with a LockDelay of a lease: after a holder that has not released, the next one waits for it", mutexOf)
	w.delay = Lease
	return w
}

func newCohort(at Endpoints) Way {
	return newZKLockOf(at, "zklock-cohort", "Cohort of this library: the goroutines of a client share a place, each hold has a token",
		func(c *zklock.Client, path string) zklockLock { return c.Cohort(path) })
}

func newZKLockOf(at Endpoints, name, how string, lock func(c *zklock.Client, path string) zklockLock) zklockWay {
	return zklockWay{plain: plain{Info{name, "ZooKeeper", how, true, "Hold.Check, and the hold's context"}}, at: at, lock: lock}
}

func (w zklockWay) Open(ctx context.Context) (Session, error) {
	client, err := zklock.Connect(ctx, w.at.ZooKeeper, &zklock.Options{SessionTimeout: Lease, LockDelay: w.delay, Root: zkRoot, TLS: w.at.TLS})
	if err != nil {
		return nil, err
	}
	return zklockSession{client, w.lock}, nil
}

type zklockSession struct {
	client *zklock.Client
	lock   func(c *zklock.Client, path string) zklockLock
}

func (s zklockSession) Close() error { return s.client.Close() }

func (s zklockSession) Locker(_ context.Context, name string) (Locker, error) {
	return &zklockLocker{lock: s.lock(s.client, "/"+name)}, nil
}

type zklockLocker struct {
	lock zklockLock
	hold *zklock.Hold
}

func (l *zklockLocker) Lock(ctx context.Context) (err error) {
	l.hold, err = l.lock.Lock(ctx)
	return err
}

func (l *zklockLocker) Unlock(ctx context.Context) error { return l.hold.Unlock(ctx) }
func (l *zklockLocker) Held(context.Context) bool        { return l.hold.Check() == nil }
func (l *zklockLocker) Token() int64                     { return l.hold.Token() }
func (l *zklockLocker) Close() error                     { return nil }

// Sign waits for the end of the hold's context.
func (l *zklockLocker) Sign(ctx context.Context) (Sign, error) {
	return lossAt(ctx, l.hold.Context().Done())
}
