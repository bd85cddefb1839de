// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// scene has the servers, the path and the helpers for one scenario.
type scene struct {
	*testing.T
	addrs []string
	path  string
	ctx   context.Context
	raw   *zk.Conn // a client without zklock
}

func (s *scene) client() *zklock.Client { return connect(s.T, nil, s.addrs...) }

// held requires that an acquire succeeds.
func (s *scene) held(hold *zklock.Hold, err error) *zklock.Hold {
	s.Helper()
	require.NoError(s, err)
	return hold
}

func (s *scene) unlock(holds ...*zklock.Hold) {
	s.Helper()
	for _, h := range holds {
		require.NoError(s, h.Unlock(s.ctx))
	}
}

// queued waits until the queue at path has n nodes.
func (s *scene) queued(path string, n int) {
	s.Helper()
	untilChildren(s.T, s.raw, path, n)
}

// waits starts an acquire, and returns when it has queued behind that many others.
func (s *scene) waits(path string, behind int, acquire func(context.Context) (*zklock.Hold, error)) <-chan *zklock.Hold {
	s.Helper()
	got := make(chan *zklock.Hold, 1)
	// Owned by the scenario: ends with the grant or with s.ctx.
	go func() {
		if h, err := acquire(s.ctx); assert.NoError(s, err) {
			got <- h
		}
	}()
	s.queued(path, behind+1)
	return got
}

func (s *scene) lost(hold *zklock.Hold) {
	s.Helper()
	select {
	case <-hold.Context().Done():
	case <-s.ctx.Done():
		require.FailNow(s, "the hold did not end")
	}
	assert.ErrorIs(s, context.Cause(hold.Context()), zklock.ErrLost)
}

// scenario is a sentence about a recipe, and a function that checks it.
type scenario struct {
	sentence string
	play     func(s *scene)
}

// TestRecipes runs the same scenarios on zktest and on a real server.
//
//zklock:promise P1.1
func TestRecipes(t *testing.T) {
	part(t)
	backends := map[string]func(t *testing.T) []string{
		"zktest":    func(t *testing.T) []string { return []string{zktest.Run(t).Addr()} },
		"ZooKeeper": servers,
	}
	for name, addrs := range backends {
		t.Run(name, func(t *testing.T) {
			for _, sc := range scenarios {
				t.Run(sc.sentence, func(t *testing.T) {
					at := addrs(t)
					raw, _ := dial(t, 10*time.Second, at...)
					sc.play(&scene{T: t, addrs: at, path: root(t), ctx: soon(t), raw: raw})
				})
			}
		})
	}
}

var scenarios = []scenario{
	{"a try finds a lock taken and leaves nothing behind", func(s *scene) {
		m := s.client().Mutex(s.path)
		hold := s.held(m.Lock(s.ctx))
		_, err := m.TryLock(s.ctx)
		assert.ErrorIs(s, err, zklock.ErrLocked)
		s.queued(s.path, 1)
		s.unlock(hold)
		s.unlock(s.held(m.TryLock(s.ctx)))
		s.queued(s.path, 0)
	}},
	{"a canceled wait leaves nothing behind", func(s *scene) {
		hold := s.held(s.client().Mutex(s.path).Lock(s.ctx))
		other := s.client().Mutex(s.path)
		ctx, cancel := context.WithCancel(s.ctx)
		done := make(chan error, 1)
		// Owned by the scenario: ends when ctx is canceled.
		go func() {
			_, err := other.Lock(ctx)
			done <- err
		}()
		s.queued(s.path, 2)
		cancel()
		assert.ErrorIs(s, await(s.T, done, "the end of the wait"), context.Canceled)
		s.queued(s.path, 1)
		s.unlock(hold)
	}},
	{"an operator's delete ends the hold", func(s *scene) {
		hold := s.held(s.client().Mutex(s.path).Lock(s.ctx))
		next := s.waits(s.path, 1, s.client().Mutex(s.path).Lock)
		require.NoError(s, s.raw.Delete(hold.Node(), -1))
		s.lost(hold)
		assert.ErrorIs(s, hold.Unlock(s.ctx), zklock.ErrLost)
		s.unlock(await(s.T, next, "the next grant"))
	}},
	{"an eviction ends the hold, a revocation only asks", func(s *scene) {
		c := s.client()
		hold := s.held(c.Mutex(s.path).Lock(s.ctx))
		queue, err := operate.Inspect(s.ctx, s.client(), s.path)
		require.NoError(s, err)
		require.Len(s, queue.Contenders, 1)
		who := queue.Contenders[0]
		assert.True(s, who.Holds)
		assert.Equal(s, hold.Node(), who.Node)
		assert.Equal(s, hold.Token(), who.Token)
		require.NoError(s, operate.Revoke(s.ctx, s.client(), who))
		await(s.T, hold.Revoked(), "the request to release")
		require.NoError(s, hold.Check())
		require.NoError(s, operate.Evict(s.ctx, s.client(), "", who))
		s.lost(hold)
	}},
	{"the end of the session frees the lock for the next", func(s *scene) {
		first := s.client()
		hold := s.held(first.Mutex(s.path).Lock(s.ctx))
		next := s.waits(s.path, 1, s.client().Mutex(s.path).Lock)
		require.NoError(s, first.Close())
		assert.Error(s, hold.Context().Err())
		second := await(s.T, next, "the next grant")
		assert.Greater(s, second.Token(), hold.Token())
		s.unlock(second)
	}},
	{"a transaction commits only while held", func(s *scene) {
		_, err := s.raw.Create(s.path, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(s, err)
		hold := s.held(s.client().Mutex(s.path + "/lock").Lock(s.ctx))
		guarded := func(data string) []any {
			return append(hold.Guard(), &zk.SetDataRequest{Path: s.path, Data: []byte(data), Version: -1})
		}
		_, err = s.raw.Multi(guarded("in")...)
		require.NoError(s, err)
		s.unlock(hold)
		_, err = s.raw.Multi(guarded("out")...)
		assert.Error(s, err)
		data, _, err := s.raw.Get(s.path)
		require.NoError(s, err)
		assert.Equal(s, "in", string(data))
	}},
	{"a plain mutex returns ErrDeadlock to its holder, a reentrant one is entered again", func(s *scene) {
		c := s.client()
		hold := s.held(c.Mutex(s.path).Lock(s.ctx))
		_, err := c.Mutex(s.path).Lock(hold.Context())
		assert.ErrorIs(s, err, zklock.ErrDeadlock)
		s.unlock(hold)
		outer := s.held(c.Reentrant(s.path).Lock(s.ctx))
		inner := s.held(c.Reentrant(s.path).Lock(outer.Context()))
		assert.Equal(s, outer.Token(), inner.Token())
		s.queued(s.path, 1)
		s.unlock(inner)
		require.NoError(s, outer.Check())
		s.unlock(outer)
		s.queued(s.path, 0)
	}},
	{"several locks are taken all or none", func(s *scene) {
		c := s.client()
		a, b := c.Mutex(s.path+"/a"), c.Mutex(s.path+"/b")
		other := s.held(s.client().Mutex(s.path + "/b").Lock(s.ctx))
		ctx, cancel := context.WithCancel(s.ctx)
		done := make(chan error, 1)
		// Owned by the scenario: ends when ctx is canceled.
		go func() {
			_, err := c.LockAll(ctx, b, a)
			done <- err
		}()
		s.queued(s.path+"/b", 2)
		cancel()
		assert.ErrorIs(s, await(s.T, done, "the end of the wait"), context.Canceled)
		s.queued(s.path+"/a", 0)
		s.unlock(other)
		s.unlock(s.held(c.LockAll(s.ctx, b, a)))
		s.queued(s.path+"/a", 0)
		s.queued(s.path+"/b", 0)
	}},
	{"observers see leaders and values in order", func(s *scene) {
		election := s.client().Election(s.path, nil)
		first := s.held(election.Campaign(s.ctx, []byte("first")))
		seen := make(chan string, 10)
		watcher := s.client().Election(s.path, nil)
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		// Owned by the scenario: ends when ctx is canceled.
		go func() {
			for who, err := range watcher.Observe(ctx) {
				if err != nil {
					return
				}
				seen <- string(who.Data)
			}
		}()
		expect := func(value string) { assert.Equal(s, value, await(s.T, seen, "a leader")) }
		expect("first")
		require.NoError(s, election.Proclaim(first.Context(), []byte("second")))
		expect("second")
		next := s.waits(s.path, 1, func(ctx context.Context) (*zklock.Hold, error) {
			return s.client().Election(s.path, nil).Campaign(ctx, []byte("third"))
		})
		s.unlock(first)
		expect("third")
		s.unlock(await(s.T, next, "the second leader"))
	}},
	{"a token is the transaction that created the node, even while others write", func(s *scene) {
		ctx, cancel := context.WithCancel(s.ctx)
		var writers sync.WaitGroup
		defer writers.Wait()
		defer cancel()
		for range 4 {
			busy := s.client()
			// Owned by the scenario, which waits for it; ends when ctx is canceled.
			writers.Go(func() {
				for ctx.Err() == nil {
					if hold, err := busy.Mutex(s.path + "/other").Lock(ctx); err == nil {
						hold.Unlock(ctx)
					}
				}
			})
		}
		m := s.client().Mutex(s.path)
		for range 100 {
			hold := s.held(m.Lock(s.ctx))
			_, stat, err := s.raw.Exists(hold.Node())
			require.NoError(s, err)
			require.Equal(s, stat.Czxid, hold.Token())
			s.unlock(hold)
		}
	}},
	{"a vanished directory is created again", func(s *scene) {
		m := s.client().Mutex(s.path)
		s.unlock(s.held(m.Lock(s.ctx)))
		require.NoError(s, s.raw.Delete(s.path, -1))
		s.unlock(s.held(m.Lock(s.ctx)))
	}},
	{"foreign nodes in the queue do not block anyone", func(s *scene) {
		m := s.client().Mutex(s.path)
		s.unlock(s.held(m.Lock(s.ctx)))
		for _, name := range []string{"README", "_c_short", "lock", "-lock-", "0000000000"} {
			_, err := s.raw.Create(s.path+"/"+name, nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(s, err)
		}
		s.unlock(s.held(m.Lock(s.ctx)))
	}},
}

// TestWatchesStayFew cancels many waits one after the other. By the server's count, they must not leave their watches behind.
//
//zklock:promise P6.2
func TestWatchesStayFew(t *testing.T) {
	part(t)
	server := one(t).Members[0]
	path, ctx := root(t), soon(t)
	hold, err := connect(t, nil, server.Addr).Mutex(path).Lock(ctx)
	require.NoError(t, err)
	waiter := connect(t, nil, server.Addr).Mutex(path)
	before, err := server.Watches(ctx)
	require.NoError(t, err)
	conn, _ := dial(t, 10*time.Second, server.Addr)
	for range 200 {
		giveUp, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		// Owned by this test: ends when giveUp is canceled.
		go func() {
			_, err := waiter.Lock(giveUp)
			done <- err
		}()
		untilChildren(t, conn, path, 2)
		cancel()
		require.ErrorIs(t, await(t, done, "the end of the wait"), context.Canceled)
		untilChildren(t, conn, path, 1)
	}
	after, err := server.Watches(ctx)
	require.NoError(t, err)
	t.Logf("watches on the server before 200 waits: %d, after: %d", before, after)
	assert.LessOrEqual(t, after-before, 3)
	require.NoError(t, hold.Unlock(ctx))
}
