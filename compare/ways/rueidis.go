// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

type rueidisWay struct {
	plain
	addr string
}

func newRueidis(at Endpoints) Way {
	return rueidisWay{plain{Info{"rueidislock", "Redis", "rueidislock on one server: renewed, woken by client-side caching; one goroutine of a client asks at a time", false, "the lock's context"}}, at.Redis}
}

func (w rueidisWay) Open(context.Context) (Session, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{w.addr}},
		KeyValidity:  Lease, KeyMajority: 1, NoLoopTracking: true,
	})
	return rueidisSession{locker}, err
}

type rueidisSession struct{ locker rueidislock.Locker }

func (s rueidisSession) Close() error {
	s.locker.Close()
	return nil
}

func (s rueidisSession) Locker(_ context.Context, name string) (Locker, error) {
	return &rueidisLocker{locker: s.locker, name: name}, nil
}

type rueidisLocker struct {
	locker  rueidislock.Locker
	name    string
	held    context.Context // of the last grant; ends with the lock
	release context.CancelFunc
}

// Lock waits for the lock until ctx is done. Once the lock is granted, the end of ctx no longer affects it.
func (l *rueidisLocker) Lock(ctx context.Context) (err error) {
	holding, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, giveUp)
	l.held, l.release, err = l.locker.WithContext(holding, l.name)
	if err != nil {
		giveUp()
		return err
	}
	if !stop() {
		l.release()
		return ctx.Err()
	}
	return nil
}

// Unlock waits for the server's reply, as the library's cancel function does. It cannot return the reply's error, because
// that function does not.
func (l *rueidisLocker) Unlock(context.Context) error {
	lost := l.held.Err() != nil
	l.release()
	return lostIf(lost, nil)
}

func (l *rueidisLocker) Held(context.Context) bool { return l.held.Err() == nil }
func (l *rueidisLocker) Token() int64              { return 0 }
func (l *rueidisLocker) Close() error              { return nil }

// Sign waits for the end of the lock's context.
func (l *rueidisLocker) Sign(ctx context.Context) (Sign, error) { return lossAt(ctx, l.held.Done()) }
