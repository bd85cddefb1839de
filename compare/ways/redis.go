// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	rsredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func redisClient(addr string) *redis.Client {
	// DisableIdentity avoids an extra request on each connection.
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: 64, DisableIdentity: true})
}

func init() { redis.SetLogger(silent{}) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

type setNXWay struct {
	plain
	addr string
}

func newSetNX(at Endpoints) Way {
	return setNXWay{plain{Info{"redis-setnx", "Redis", "SET NX PX, compare-and-delete script; losers poll", false, "asks the server"}}, at.Redis}
}

func (w setNXWay) Open(context.Context) (Session, error) {
	return setNXSession{redisClient(w.addr)}, nil
}

type setNXSession struct{ client *redis.Client }

func (s setNXSession) Close() error { return s.client.Close() }

func (s setNXSession) Locker(_ context.Context, name string) (Locker, error) {
	return &setNXLocker{client: s.client, key: name}, nil
}

type setNXLocker struct {
	client     *redis.Client
	key, owner string
}

var deleteIfOurs = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`)

func (l *setNXLocker) Lock(ctx context.Context) error {
	l.owner = newOwner()
	return poll(ctx, func() (bool, error) { return l.client.SetNX(ctx, l.key, l.owner, Lease).Result() })
}

func (l *setNXLocker) Unlock(ctx context.Context) error {
	deleted, err := deleteIfOurs.Run(ctx, l.client, []string{l.key}, l.owner).Int()
	return lostIf(deleted == 0, err)
}

func (l *setNXLocker) Held(ctx context.Context) bool {
	value, err := l.client.Get(ctx, l.key).Result()
	return err == nil && value == l.owner
}

func (l *setNXLocker) Token() int64 { return 0 }
func (l *setNXLocker) Close() error { return nil }

// redsyncWay uses redsync's Mutex, on one server or, for Redlock, on five.
type redsyncWay struct {
	plain
	addrs []string
}

func newRedsync(at Endpoints) Way {
	return redsyncWay{plain{Info{"redsync", "Redis", "redsync on one server, its own retry delay of 50 to 250 ms", false, "Until, by the local clock"}}, []string{at.Redis}}
}

func newRedlock(at Endpoints) Way {
	return redsyncWay{plain{Info{"redlock-5", "Redlock", "redsync on five servers (Redlock), its own retry delay", false, "Until, by the local clock"}}, at.Redlock}
}

func (w redsyncWay) Open(context.Context) (Session, error) {
	s := &redsyncSession{}
	var pools []rsredis.Pool
	for _, addr := range w.addrs {
		client := redisClient(addr)
		s.clients = append(s.clients, client)
		pools = append(pools, goredis.NewPool(client))
	}
	s.sync = redsync.New(pools...)
	return s, nil
}

type redsyncSession struct {
	clients []*redis.Client
	sync    *redsync.Redsync
}

func (s *redsyncSession) Close() error {
	var all error
	for _, c := range s.clients {
		all = errors.Join(all, c.Close())
	}
	return all
}

func (s *redsyncSession) Locker(_ context.Context, name string) (Locker, error) {
	mutex := s.sync.NewMutex(name, redsync.WithExpiry(Lease), redsync.WithTries(math.MaxInt32))
	return &redsyncLocker{mutex: mutex}, nil
}

type redsyncLocker struct {
	mutex   *redsync.Mutex
	doubted bool // used only by Sign
}

// Sign renews the lease, as a careful user of redsync does, since redsync does not renew it by itself. A failed renewal is a
// doubt, and the end of Until is a loss. Sign must have returned a loss or an error before the locker locks again.
func (l *redsyncLocker) Sign(ctx context.Context) (Sign, error) {
	for {
		left := time.Until(l.mutex.Until())
		if left <= 0 {
			return Loss, nil
		}
		if err := Pause(ctx, min(left, Lease/3)); err != nil {
			return "", err
		}
		ok, _ := l.mutex.ExtendContext(ctx)
		if ok == l.doubted && time.Now().Before(l.mutex.Until()) {
			l.doubted = !ok
			return map[bool]Sign{true: Trust, false: Doubt}[ok], nil
		}
	}
}

func (l *redsyncLocker) Lock(ctx context.Context) error { return l.mutex.LockContext(ctx) }

func (l *redsyncLocker) Unlock(ctx context.Context) error {
	ok, err := l.mutex.UnlockContext(ctx)
	return lostIf(!ok, err)
}

func (l *redsyncLocker) Held(context.Context) bool { return time.Now().Before(l.mutex.Until()) }
func (l *redsyncLocker) Token() int64              { return 0 }
func (l *redsyncLocker) Close() error              { return nil }
