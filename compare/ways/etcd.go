// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

type etcdWay struct {
	plain
	addrs []string
}

func newEtcd(at Endpoints) Way {
	return etcdWay{plain{Info{"etcd-mutex", "etcd", "concurrency.Mutex of etcd's client, a lease for each contender", true, "Session.Done"}}, at.Etcd}
}

func (w etcdWay) Open(context.Context) (Session, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: w.addrs, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	return etcdSession{client}, err
}

type etcdSession struct{ client *clientv3.Client }

func (s etcdSession) Close() error { return s.client.Close() }

// Locker opens a concurrency.Session for each contender: two Mutexes of one Session do not exclude each other.
func (s etcdSession) Locker(_ context.Context, name string) (Locker, error) {
	l := &etcdLocker{client: s.client, prefix: "/" + name}
	return l, l.renewSession()
}

type etcdLocker struct {
	client  *clientv3.Client
	prefix  string
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func (l *etcdLocker) renewSession() error {
	session, err := concurrency.NewSession(l.client, concurrency.WithTTL(int(Lease/time.Second)))
	if err != nil {
		return err
	}
	l.session, l.mutex = session, concurrency.NewMutex(session, l.prefix)
	return nil
}

func (l *etcdLocker) Lock(ctx context.Context) error {
	if l.lost() {
		if err := l.renewSession(); err != nil {
			return err
		}
	}
	return l.mutex.Lock(ctx)
}

func (l *etcdLocker) lost() bool {
	select {
	case <-l.session.Done():
		return true
	default:
		return false
	}
}

func (l *etcdLocker) Unlock(ctx context.Context) error { return l.mutex.Unlock(ctx) }
func (l *etcdLocker) Held(context.Context) bool        { return !l.lost() }
func (l *etcdLocker) Token() int64                     { return l.mutex.Header().Revision }

// Sign waits for the end of the session, which is the only signal that the library has for a holder.
func (l *etcdLocker) Sign(ctx context.Context) (Sign, error) { return lossAt(ctx, l.session.Done()) }

func (l *etcdLocker) Close() error {
	if l.lost() {
		return nil
	}
	return l.session.Close()
}
