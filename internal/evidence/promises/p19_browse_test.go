// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

func pathsOf(queues []*operate.Queue) []string {
	var paths []string
	for _, q := range queues {
		paths = append(paths, q.Path)
	}
	return paths
}

//zklock:promise P19.2
func TestQueuesFindsTheLocksBelowAPath(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Root: "/app"})
		_, err := operate.Queues(t.Context(), c, "/locks")
		require.ErrorIs(t, err, zk.ErrNoNode)
		_, err = operate.Queues(t.Context(), c, "locks")
		require.ErrorIs(t, err, zklock.ErrInvalid)
		var holds []*zklock.Hold
		for _, lock := range []zklock.Locker{
			c.Mutex("/locks/b"), c.Mutex("/locks/b/inner"), c.RWMutex("/locks/a/deep/rw"), c.Semaphore("/locks/sem", 3).Permits(2), c.Mutex("/elsewhere"),
		} {
			h, err := lock.Lock(t.Context())
			require.NoError(t, err)
			holds = append(holds, h)
		}
		require.NoError(t, srv.PutNode("/app/locks/notes/x", []byte("foreign")))
		queues, err := operate.Queues(t.Context(), c, "/locks")
		require.NoError(t, err)
		require.Equal(t, []string{"/locks/a/deep/rw", "/locks/b", "/locks/b/inner", "/locks/sem"}, pathsOf(queues))
		require.Len(t, queues[3].Contenders, 2)
		require.Equal(t, 3, queues[3].Permits)
		queues, err = operate.Queues(t.Context(), c, "/")
		require.NoError(t, err)
		require.Len(t, queues, 5)
		for _, h := range holds {
			unlock(t, h)
		}
		synctest.Wait() // the place in the semaphore's queue is deleted in the background
		queues, err = operate.Queues(t.Context(), c, "/locks")
		require.NoError(t, err)
		require.Empty(t, queues)
	})
}

// Otherwise each of many locks would cost a write on the disks of all servers.
//
//zklock:promise P19.2
func TestQueuesCostsARequestForEachNodeAndOneWrite(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		const locks = 50
		c, looks := connect(t, srv, "a", term), connect(t, srv, "operator", term)
		for i := range locks {
			_, err := c.Mutex(fmt.Sprintf("/locks/%d", i)).Lock(t.Context())
			require.NoError(t, err)
		}
		resetCounts(srv)
		queues, err := operate.Queues(t.Context(), looks, "/locks")
		require.NoError(t, err)
		require.Len(t, queues, locks)
		const directories, contenders = 1 + locks, locks
		require.Equal(t, map[zktest.Op]int{zktest.OpMulti: 1, zktest.OpGetChildren2: directories, zktest.OpGetData: contenders}, srv.Requests())
	})
}

//zklock:promise P19.2
func TestUnreadableQueuesAreLeftOut(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		opts := &zklock.Options{Label: "owner", SessionTimeout: term, ACL: zk.DigestACL(zk.PermAll, "u", "p"), Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("u:p")}}}
		require.NoError(t, srv.PutNode("/locks", nil))
		owner, other := connectWith(t, srv, opts), connect(t, srv, "other", term)
		hidden, err := owner.Mutex("/locks/hidden").Lock(t.Context())
		require.NoError(t, err)
		open, err := other.Mutex("/locks/open").Lock(t.Context())
		require.NoError(t, err)
		queues, err := operate.Queues(t.Context(), other, "/locks")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err, "/locks/hidden")
		require.Equal(t, []string{"/locks/open"}, pathsOf(queues))
		queues, err = operate.Queues(t.Context(), owner, "/locks")
		require.NoError(t, err)
		require.Len(t, queues, 2)
		ctx, cancel := context.WithCancel(t.Context())
		w := watchQueues(ctx, other, "/locks")
		require.Equal(t, map[string]int{"/locks/open": 1}, w.soon())
		unlock(t, open)
		require.Empty(t, w.soon())
		cancel()
		<-w.done
		unlock(t, hidden)
	})
}

// watched has the last result of a Watch, by path.
type watched struct {
	mu    sync.Mutex
	now   map[string]int
	shown int
	gaps  operate.Incomplete
	err   error
	done  chan struct{}
}

func watchQueues(ctx context.Context, c *zklock.Client, path string) *watched {
	w := &watched{now: map[string]int{}, done: make(chan struct{})}
	// Owned by the test; ends with ctx.
	go func() {
		defer close(w.done)
		for q, err := range operate.Watch(ctx, c, path) {
			w.mu.Lock()
			var gaps *operate.Incomplete
			switch {
			case errors.As(err, &gaps):
				w.gaps = *gaps
			case err != nil:
				w.err = err
			default:
				w.now[q.Path] = len(q.Contenders)
				w.shown++
			}
			w.mu.Unlock()
		}
	}()
	return w
}

// soon waits for changes to arrive and returns the result.
func (w *watched) soon() map[string]int {
	time.Sleep(3 * time.Second)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := map[string]int{}
	for path, n := range w.now {
		if n > 0 {
			now[path] = n
		}
	}
	return now
}

//zklock:promise P19.2
func TestWatchShowsQueuesAsTheyChange(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		ctx, cancel := context.WithCancel(t.Context())
		w := watchQueues(ctx, connect(t, srv, "watcher", term), "/locks")
		require.Empty(t, w.soon(), "nothing is there yet")
		first, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]int{path: 1}, w.soon())
		second := lockLater(t.Context(), c.Mutex(path).Lock)
		permit, err := c.Semaphore("/locks/sem", 3).Acquire(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, map[string]int{path: 2, "/locks/sem": 2}, w.soon())

		srv.DropConnections()
		for _, s := range srv.Sessions() {
			if s.Client == "watcher" {
				srv.ExpireSession(s.ID)
			}
		}
		unlock(t, permit)
		unlock(t, first)
		<-second.done
		require.NoError(t, second.err)
		require.Equal(t, map[string]int{path: 1}, w.soon())
		unlock(t, second.hold)
		time.Sleep(time.Hour) // the directories are cleaned away
		require.Empty(t, w.soon())
		third, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]int{path: 1}, w.soon())

		w.mu.Lock()
		before := w.shown
		w.mu.Unlock()
		var asked atomic.Int64
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Path != "/" && r.Op != zktest.OpPing && r.Op != zktest.OpMulti {
				asked.Add(1)
			}
			return zktest.Pass
		})
		time.Sleep(time.Hour)
		require.LessOrEqual(t, asked.Load(), int64(3*time.Hour/term), "in addition to heartbeats and pings, each of three watches is compared once per session timeout")
		require.Equal(t, before, w.shown)
		unlock(t, third)
		cancel()
		<-w.done
		require.ErrorIs(t, w.err, context.Canceled)
	})
}

//zklock:promise P19.2
func TestWatchOfABusyQueueIsCheap(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		var writes, listings atomic.Int32
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			switch {
			case r.Client != "watcher":
			case r.Op == zktest.OpMulti:
				writes.Add(1)
			case r.Op == zktest.OpGetChildren2:
				listings.Add(1)
			}
			return zktest.Pass
		})
		w := watchQueues(ctx, connect(t, srv, "watcher", term), "/locks")
		c := connect(t, srv, "a", term)
		for range 2000 {
			require.NoError(t, c.Mutex(path).Do(t.Context(), func(context.Context) error {
				time.Sleep(5 * time.Millisecond)
				return nil
			}))
		}
		cancel()
		<-w.done
		require.Less(t, w.shown, 100)
		require.Positive(t, w.shown)
		require.Zero(t, writes.Load(), "who only looks on writes nothing")
		require.Less(t, listings.Load(), int32(100), "what is watched was listed for that")
	})
}

// The directories of a semaphore are watched, too: without changes, they are not listed.
//
//zklock:promise P19.2
func TestWatchOfASemaphoreSendsNothingWhileNothingChanges(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, looks := connect(t, srv, "worker", term), connect(t, srv, "operator", term)
		seen := make(chan *operate.Queue, 16)
		ctx, stop := context.WithCancel(t.Context())
		watched := make(chan error, 1)
		// Owned by the test, which waits; ends with ctx.
		go func() {
			for q, err := range operate.Watch(ctx, looks, "/sem") {
				if err != nil {
					watched <- err
					return
				}
				seen <- q
			}
		}()
		shows := func(holders, waiters int) {
			t.Helper()
			for {
				q := <-seen
				held := len(slices.DeleteFunc(slices.Clone(q.Contenders), func(who zklock.Contender) bool { return !who.Holds }))
				if held == holders && len(q.Contenders)-held == waiters {
					return
				}
			}
		}
		first, err := c.Semaphore("/sem", 1).Acquire(t.Context(), 1)
		require.NoError(t, err)
		shows(1, 0)
		second := make(chan *zklock.Hold, 1)
		// Owned by the test, which waits; ends with the grant.
		go func() {
			hold, err := c.Semaphore("/sem", 1).Acquire(t.Context(), 1)
			assert.NoError(t, err)
			second <- hold
		}()
		shows(1, 1)
		time.Sleep(time.Minute)
		before := srv.Requests()
		time.Sleep(time.Hour)
		for _, op := range []zktest.Op{zktest.OpGetChildren, zktest.OpGetChildren2, zktest.OpGetData} {
			assert.Equal(t, before[op], srv.Requests()[op], "%v", op)
		}
		unlock(t, first)
		shows(1, 0)
		unlock(t, <-second)
		shows(0, 0)
		stop()
		require.ErrorIs(t, <-watched, context.Canceled)
	})
}

//zklock:promise P19.2
func TestWatchOfManyLocksLeavesNothingBehind(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		var holds []*zklock.Hold
		for i := range 50 {
			h, err := c.Mutex(fmt.Sprintf("/locks/%02d", i)).Lock(t.Context())
			require.NoError(t, err)
			holds = append(holds, h)
		}
		watcher := connect(t, srv, "watcher", term)
		time.Sleep(time.Second)
		before := goroutines(t)
		seen := 0
		for _, err := range operate.Watch(t.Context(), watcher, "/locks") {
			require.NoError(t, err)
			if seen++; seen == 50 {
				break
			}
		}
		for _, h := range holds {
			unlock(t, h)
		}
		time.Sleep(time.Hour)
		require.LessOrEqual(t, goroutines(t), before)
		require.False(t, errors.Is(watcher.Close(), zklock.ErrClosed))
	})
}

// TestQueuesNamesALockWhoseNodesCannotBeRead denies reading a contender's node, but not its directory.
//
//zklock:promise P19.2
func TestQueuesNamesALockWhoseNodesCannotBeRead(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		owner, other := connect(t, srv, "owner", term), connect(t, srv, "other", term)
		raw := rawClient(t, srv, term)
		hidden, err := owner.Mutex("/locks/hidden").Lock(t.Context())
		require.NoError(t, err)
		open, err := owner.Mutex("/locks/open").Lock(t.Context())
		require.NoError(t, err)
		_, err = raw.SetACL(hidden.Node(), zk.DigestACL(zk.PermAll, "u", "p"), -1)
		require.NoError(t, err)
		queues, err := operate.Queues(t.Context(), other, "/locks")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err, "/locks/hidden")
		require.Equal(t, []string{"/locks/open"}, pathsOf(queues), "the rest is returned with the error")
		_, err = operate.Inspect(t.Context(), other, "/locks/hidden")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		_ = hidden.Unlock(t.Context())
		unlock(t, open)
	})
}

// TestAWatchWithoutReadPermissionEnds checks that a refusal at the path itself ends the sequence, which would otherwise never yield
// anything.
//
//zklock:promise P19.2
func TestAWatchWithoutReadPermissionEnds(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, raw := connect(t, srv, "a", term), rawClient(t, srv, term)
		require.NoError(t, srv.PutNode("/locks", nil))
		_, err := raw.SetACL("/locks", zk.DigestACL(zk.PermAll, "u", "p"), -1)
		require.NoError(t, err)
		w := watchQueues(t.Context(), c, "/locks")
		<-w.done
		require.ErrorIs(t, w.err, zk.ErrNoAuth)
		require.NotErrorIs(t, w.err, context.Canceled, "its context has not ended")
		require.ErrorContains(t, w.err, "/locks")
	})
}

// TestAWatchOfTooManyDirectoriesReturnsAnError checks that a Watch watches a limited number of directories and reports the number of the
// others.
//
//zklock:promise P19.2
func TestAWatchOfTooManyDirectoriesReturnsAnError(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		for i := range 10_001 {
			require.NoError(t, srv.PutNode(fmt.Sprintf("/locks/%d", i), nil))
		}
		ctx, cancel := context.WithCancel(t.Context())
		w := watchQueues(ctx, c, "/locks")
		require.Empty(t, w.soon())
		require.Equal(t, operate.Incomplete{Empty: 9001}, w.gaps)
		hold, err := connect(t, srv, "b", term).Mutex("/locks/10000").Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(11 * term)
		require.Equal(t, map[string]int{"/locks/10000": 1}, w.soon(), "a thousand are looked at in each session timeout")
		unlock(t, hold)
		cancel()
		<-w.done
		unlockSoon(t, c)
	})
}
