package ways

import (
	"context"

	"github.com/zklock-go/zklock"
)

type zklockWay struct {
	plain
	servers []string
}

func newZKLock(at Endpoints) Way {
	return zklockWay{plain{Info{"zklock", "ZooKeeper", "Mutex of this library", true, "Hold.Check, and the hold's context"}}, at.ZooKeeper}
}

func (w zklockWay) Open(ctx context.Context) (Session, error) {
	client, err := zklock.Connect(ctx, w.servers, &zklock.Options{SessionTimeout: Lease, Root: zkRoot})
	if err != nil {
		return nil, err
	}
	return zklockSession{client}, nil
}

type zklockSession struct{ client *zklock.Client }

func (s zklockSession) Close() error { return s.client.Close() }

func (s zklockSession) Locker(_ context.Context, name string) (Locker, error) {
	return &zklockLocker{mutex: s.client.Mutex("/" + name)}, nil
}

type zklockLocker struct {
	mutex *zklock.Mutex
	hold  *zklock.Hold
}

func (l *zklockLocker) Lock(ctx context.Context) (err error) {
	l.hold, err = l.mutex.Lock(ctx)
	return err
}

func (l *zklockLocker) Unlock(ctx context.Context) error { return l.hold.Unlock(ctx) }
func (l *zklockLocker) Held(context.Context) bool        { return l.hold.Check() == nil }
func (l *zklockLocker) Token() int64                     { return l.hold.Token() }
func (l *zklockLocker) Close() error                     { return nil }
