// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// newOwner returns a value that no other contender uses.
func newOwner() string { return rand.Text() }

type memcachedWay struct {
	plain
	addr string
}

func newMemcached(at Endpoints) Way {
	return memcachedWay{plain{Info{"memcached-add", "memcached", "add with an expiry; losers poll", false, "asks the server"}}, at.Memcached}
}

func (w memcachedWay) Open(context.Context) (Session, error) {
	client := memcache.New(w.addr)
	client.MaxIdleConns = 64
	client.Timeout = time.Second
	return memcachedSession{client}, nil
}

type memcachedSession struct{ client *memcache.Client }

func (s memcachedSession) Close() error { return s.client.Close() }

func (s memcachedSession) Locker(_ context.Context, name string) (Locker, error) {
	return &memcachedLocker{client: s.client, key: name}, nil
}

type memcachedLocker struct {
	client *memcache.Client
	key    string
	owner  string
}

func (l *memcachedLocker) Lock(ctx context.Context) error {
	l.owner = newOwner()
	item := &memcache.Item{Key: l.key, Value: []byte(l.owner), Expiration: int32(Lease / time.Second)}
	return poll(ctx, func() (bool, error) {
		err := l.client.Add(item)
		if errors.Is(err, memcache.ErrNotStored) {
			return false, nil
		}
		return err == nil, err
	})
}

// Unlock deletes the item if it is still ours. memcached has no compare-and-delete, so Unlock does the usual substitute: a
// gets, and a cas to an item that expires at once.
func (l *memcachedLocker) Unlock(context.Context) error {
	item, err := l.client.Get(l.key)
	if errors.Is(err, memcache.ErrCacheMiss) || (err == nil && string(item.Value) != l.owner) {
		return ErrLost
	}
	if err != nil {
		return err
	}
	item.Expiration = -1
	return l.client.CompareAndSwap(item)
}

func (l *memcachedLocker) Held(context.Context) bool {
	item, err := l.client.Get(l.key)
	return err == nil && string(item.Value) == l.owner
}

func (l *memcachedLocker) Token() int64 { return 0 }
func (l *memcachedLocker) Close() error { return nil }
