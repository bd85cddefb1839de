// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// watching is what a watch has shown last.
type watching struct {
	mu   sync.Mutex
	now  map[string]int // contenders by path
	gaps Incomplete
	err  error
}

func watchWithin(t *testing.T, srv *zktest.Server, path string, most limits) *watching {
	w := &watching{now: map[string]int{}}
	c := connectTo(t, srv)
	// Owned by the test; ends with its context.
	go func() {
		for q, err := range of(c).watch(t.Context(), path, most) {
			w.mu.Lock()
			var gaps *Incomplete
			switch {
			case errors.As(err, &gaps):
				w.gaps = *gaps
			case err != nil:
				w.err = err
			case len(q.Contenders) == 0:
				delete(w.now, q.Path)
			default:
				w.now[q.Path] = len(q.Contenders)
			}
			w.mu.Unlock()
		}
	}()
	return w
}

// after returns what is shown some time later.
func (w *watching) after(d time.Duration) (map[string]int, Incomplete) {
	time.Sleep(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := map[string]int{}
	for path, n := range w.now {
		now[path] = n
	}
	return now, w.gaps
}

const timeout = 10 * time.Second

func connectTo(t *testing.T, srv *zktest.Server) *zklock.Client {
	c, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{SessionTimeout: timeout, Dialer: srv.Dial})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func virtually(t *testing.T, fn func(t *testing.T, srv *zktest.Server)) {
	synctest.Test(t, func(t *testing.T) { fn(t, zktest.Start(t, zktest.Options{})) })
}

func put(t *testing.T, srv *zktest.Server, format string, args ...any) {
	require.NoError(t, srv.PutNode(fmt.Sprintf(format, args...), nil))
}

// A neighbor that makes directories without end neither ends a watch nor hides others' locks.
//
//zklock:promise P19.2
func TestANeighborWithManyDirectoriesHidesNoLocks(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		for i := range 60 {
			put(t, srv, "/a-neighbor/%d/x", i)
			put(t, srv, "/a-neighbor/%d/y", i)
		}
		c := connectTo(t, srv)
		hold, err := c.Mutex("/locks/early").Lock(t.Context())
		require.NoError(t, err)
		w := watchWithin(t, srv, "/", limits{inUse: 20, empty: 10})
		now, gaps := w.after(3 * time.Second)
		require.Equal(t, map[string]int{"/locks/early": 1}, now)
		require.Positive(t, gaps.Unwatched)
		require.Positive(t, gaps.Empty)
		require.Equal(t, "directories are not watched: there are too many", gaps.Error()[3:50])
		for i := range 5 {
			_, err := c.Mutex(fmt.Sprintf("/locks/late/%d", i)).Lock(t.Context())
			require.NoError(t, err)
		}
		put(t, srv, "/locks/free")
		now, _ = w.after(3 * time.Second)
		require.Len(t, now, 6, "new locks get places of the neighbor: %v", now)
		_, err = c.Mutex("/locks/free").Lock(t.Context())
		require.NoError(t, err)
		now, _ = w.after(3 * time.Second)
		require.Len(t, now, 7, "an empty directory that is new is watched")
		for i := range 60 {
			for _, child := range []string{"/x", "/y", ""} {
				require.NoError(t, srv.DeleteNode(fmt.Sprintf("/a-neighbor/%d%s", i, child)))
			}
		}
		require.NoError(t, hold.Unlock(t.Context()))
		now, gaps = w.after(2 * timeout)
		require.Len(t, now, 6)
		require.Equal(t, Incomplete{}, gaps, "there is room for all of them now")
		require.NoError(t, w.err)
	})
}

// Directories that have been empty for long are looked at once in a session timeout.
//
//zklock:promise P19.2
func TestALockInADirectoryThatIsNotWatchedIsFound(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		for i := range 30 {
			put(t, srv, "/locks/%02d", i)
		}
		w := watchWithin(t, srv, "/locks", limits{inUse: 20, empty: 10})
		now, gaps := w.after(3 * time.Second)
		require.Empty(t, now)
		require.Equal(t, Incomplete{Empty: 20}, gaps)
		c := connectTo(t, srv)
		for i := range 20 {
			_, err := c.Mutex(fmt.Sprintf("/locks/%02d", i)).Lock(t.Context())
			require.NoError(t, err)
		}
		now, gaps = w.after(timeout + 2*time.Second)
		require.Len(t, now, 20)
		require.Equal(t, Incomplete{}, gaps)
		_, err := c.Mutex("/locks/29").Lock(t.Context())
		require.NoError(t, err)
		now, gaps = w.after(3 * time.Second)
		require.Len(t, now, 20)
		require.Equal(t, Incomplete{Unwatched: 1}, gaps)
	})
}

// A directory that cannot be read is looked at each time, however many others are not watched: it waited for its turn among
// thousands.
//
//zklock:promise P19.2
func TestADirectoryThatCouldNotBeReadDoesNotWaitForOthers(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		for i := range 4500 {
			put(t, srv, "/locks/%04d", i)
		}
		c := connectTo(t, srv)
		hold, err := c.Mutex("/locks/hidden").Lock(t.Context())
		require.NoError(t, err)
		set := func(id string) {
			require.NoError(t, srv.Apply(zktest.Step{Op: zktest.OpSetACL, Path: "/locks/hidden", ACL: []zktest.ACL{{Perms: zktest.PermAll, Scheme: "world", ID: id}}}))
		}
		for range 2 {
			require.NoError(t, srv.Apply(zktest.Step{Op: zktest.OpSetACL, Path: "/locks/hidden", ACL: []zktest.ACL{{Perms: zktest.PermAll, Scheme: "digest", ID: "nobody:x"}}}))
			w := watchWithin(t, srv, "/locks", limits{inUse: 20, empty: 10})
			_, gaps := w.after(3*timeout + 3*time.Second)
			require.Equal(t, Incomplete{Unreadable: 1, Empty: 4490}, gaps)
			set("anyone")
			now, gaps := w.after(timeout + 2*time.Second)
			require.Equal(t, map[string]int{"/locks/hidden": 1}, now)
			require.Equal(t, Incomplete{Empty: 4490}, gaps)
		}
		require.NoError(t, hold.Unlock(t.Context()))
	})
}

// A directory that cannot be read is counted, and shown as soon as it can be read.
//
//zklock:promise P19.2
func TestADirectoryThatCouldNotBeReadIsShownLater(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := connectTo(t, srv)
		open, err := c.Mutex("/locks/open").Lock(t.Context())
		require.NoError(t, err)
		raw, events, err := zk.Connect(srv.Addrs(), timeout, zk.WithDialer(srv.Dial), zk.WithLogInfo(false))
		require.NoError(t, err)
		defer func() {
			raw.Close()
			for range events {
			}
		}()
		put(t, srv, "/locks/hidden")
		holder, err := raw.Create("/locks/hidden/_c_00000000000000000000000000000000-lock-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		private, public := zk.DigestACL(zk.PermAll, "u", "p"), zk.WorldACL(zk.PermAll)
		set := func(path string, acl []zk.ACL) {
			require.NoError(t, raw.AddAuth("digest", []byte("u:p")))
			_, err := raw.SetACL(path, acl, -1)
			require.NoError(t, err)
		}
		for _, path := range []string{"/locks/hidden", holder} {
			set(path, private)
			w := watchWithin(t, srv, "/", usual)
			now, gaps := w.after(3 * time.Second)
			require.Equal(t, map[string]int{"/locks/open": 1}, now)
			require.Equal(t, Incomplete{Unreadable: 1}, gaps)
			require.EqualError(t, &gaps, "1 directory could not be read")
			_, gaps = w.after(time.Minute)
			require.Equal(t, Incomplete{Unreadable: 1}, gaps)
			set(path, public)
			now, gaps = w.after(timeout + 2*time.Second)
			require.Equal(t, map[string]int{"/locks/open": 1, "/locks/hidden": 1}, now)
			require.Equal(t, Incomplete{}, gaps)
			require.NoError(t, w.err)
			set(path, private)
			extra, err := raw.Create("/locks/hidden/extra", nil, 0, public)
			require.NoError(t, err)
			now, gaps = w.after(timeout + 2*time.Second)
			require.NotContains(t, now, "/locks/hidden", "what cannot be read any more is not shown as it was")
			require.Equal(t, Incomplete{Unreadable: 1}, gaps)
			require.NoError(t, raw.Delete(extra, -1))
			set(path, public)
		}
		require.NoError(t, open.Unlock(t.Context()))
	})
}
