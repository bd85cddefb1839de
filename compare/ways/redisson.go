// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// redissonWay reimplements Redisson's RLock, because no well-maintained Go library has one. A hash counts the entries of the
// owner, and a watchdog renews the lease every third of it. A message on unlock wakes one waiter of each client. Redisson
// itself is written in Java, so the figures measure its protocol, not its code.
type redissonWay struct {
	plain
	addr string
}

func newRedisson(at Endpoints) Way {
	return redissonWay{plain{Info{"redis-pubsub", "Redis", "as Redisson's RLock: renewed, reentrant, woken by publish/subscribe (ours, for this comparison)", false, "asks the server"}}, at.Redis}
}

var (
	// rlockTake returns nil if the lock was acquired or re-entered, otherwise the holder's remaining time in milliseconds.
	rlockTake = redis.NewScript(`
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1])`)
	// rlockGive returns nil if the lock is not held, 0 if an outer entry remains, and 1 if the lock was released.
	rlockGive = redis.NewScript(`
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[1])
  return 0
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '0')
return 1`)
	rlockRenew = redis.NewScript(`
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[1])`)
)

func (w redissonWay) Open(context.Context) (Session, error) {
	return &rlockSession{client: redisClient(w.addr), id: newOwner(), topics: map[string]*rlockTopic{}}, nil
}

type rlockSession struct {
	client *redis.Client
	id     string

	mu     sync.Mutex
	next   int                    // guarded by mu
	topics map[string]*rlockTopic // guarded by mu; one for each lock with waiters in this session
}

// rlockTopic is the subscription that the waiters of one client for one lock share. A message wakes one of them.
type rlockTopic struct {
	sub     *redis.PubSub
	ready   chan struct{} // closed once the subscription is confirmed
	wake    chan struct{}
	waiters int // guarded by the session's mu
}

func (s *rlockSession) Close() error { return s.client.Close() }

func (s *rlockSession) Locker(_ context.Context, name string) (Locker, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return &rlockLocker{session: s, key: name, channel: "redisson_lock__channel:{" + name + "}", field: s.id + ":" + strconv.Itoa(s.next)}, nil
}

// enter adds a waiter for a lock and returns the lock's topic. For the first waiter, it subscribes.
func (s *rlockSession) enter(ctx context.Context, channel string) (*rlockTopic, error) {
	s.mu.Lock()
	topic := s.topics[channel]
	if topic == nil {
		topic = &rlockTopic{ready: make(chan struct{}), wake: make(chan struct{}, 1)}
		s.topics[channel] = topic
		topic.sub = s.client.Subscribe(context.WithoutCancel(ctx), channel)
		// Owned by the topic; ends when the last waiter closes the subscription. Nobody needs to wait for it.
		go topic.listen()
	}
	topic.waiters++
	s.mu.Unlock()
	select {
	case <-topic.ready:
		return topic, nil
	case <-ctx.Done():
		s.leave(channel, topic)
		return nil, ctx.Err()
	}
}

func (r *rlockTopic) listen() {
	ready := false
	for message := range r.sub.ChannelWithSubscriptions() {
		switch message.(type) {
		case *redis.Subscription:
			if !ready {
				ready = true
				close(r.ready)
			}
		case *redis.Message:
			select {
			case r.wake <- struct{}{}:
			default: // a waiter is being woken already
			}
		}
	}
}

func (s *rlockSession) leave(channel string, topic *rlockTopic) {
	s.mu.Lock()
	topic.waiters--
	last := topic.waiters == 0
	if last {
		delete(s.topics, channel)
	}
	s.mu.Unlock()
	if last {
		_ = topic.sub.Close()
	}
}

type rlockLocker struct {
	session *rlockSession
	key     string
	channel string
	field   string
	stop    context.CancelFunc // ends the watchdog
	done    chan struct{}      // closed when it has ended
}

func (l *rlockLocker) args() []any { return []any{Lease.Milliseconds(), l.field} }

// take tries once. If the lock is held, it returns the remaining time of the holder's lease.
func (l *rlockLocker) take(ctx context.Context) (taken bool, left time.Duration, err error) {
	ttl, err := rlockTake.Run(ctx, l.session.client, []string{l.key}, l.args()...).Int64()
	if err == redis.Nil {
		return true, 0, nil
	}
	return false, time.Duration(ttl) * time.Millisecond, err
}

func (l *rlockLocker) Lock(ctx context.Context) error {
	taken, _, err := l.take(ctx)
	if !taken && err == nil {
		err = l.wait(ctx)
	}
	if err != nil {
		return err
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.done = stop, make(chan struct{})
	// Owned by the hold; Unlock stops it and waits for it.
	go l.renew(watch)
	return nil
}

func (l *rlockLocker) wait(ctx context.Context) error {
	topic, err := l.session.enter(ctx, l.channel)
	if err != nil {
		return err
	}
	defer l.session.leave(l.channel, topic)
	for {
		taken, left, err := l.take(ctx)
		if taken || err != nil {
			return err
		}
		timer := time.NewTimer(max(left, time.Millisecond))
		select {
		case <-topic.wake:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
	}
}

func (l *rlockLocker) renew(ctx context.Context) {
	defer close(l.done)
	for Pause(ctx, Lease/3) == nil {
		renewed, err := rlockRenew.Run(ctx, l.session.client, []string{l.key}, l.args()...).Int()
		if err == nil && renewed == 0 {
			return // lost; Redisson does not notify the holder, either
		}
	}
}

func (l *rlockLocker) Unlock(ctx context.Context) error {
	l.stop()
	<-l.done
	_, err := rlockGive.Run(ctx, l.session.client, []string{l.key, l.channel}, l.args()...).Int()
	return lostIf(err == redis.Nil, ignoreNil(err))
}

func ignoreNil(err error) error {
	if err == redis.Nil {
		return nil
	}
	return err
}

func (l *rlockLocker) Held(ctx context.Context) bool {
	held, err := l.session.client.HExists(ctx, l.key, l.field).Result()
	return err == nil && held
}

func (l *rlockLocker) Token() int64 { return 0 }
func (l *rlockLocker) Close() error { return nil }
