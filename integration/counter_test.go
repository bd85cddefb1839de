// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

// TestExhaustedCounter uses a directory whose sequence counter is exhausted: from 2^31-1 on, the server gives every contender
// the same number. The data directory was prepared with the server's own classes.
//
//zklock:promise P1.3
func TestExhaustedCounter(t *testing.T) {
	t.Parallel()
	part(t)
	const contenders = 50
	server := startFull(t, "/full/peers",
		"/full/mutex", "/full/selector", "/full/latch", "/full/write",
		"/full/crowd-mutex", "/full/crowd-selector", "/full/crowd-reentrant", "/full/crowd-write", "/full/crowd-all",
		"/full/crowd-semaphore/leases", "/full/crowd-semaphore/locks")
	conn, _ := dial(t, 10*time.Second, server.Addr)
	ours := connect(t, nil, server.Addr)

	t.Run("go-zookeeper grants the lock to everyone", func(t *testing.T) {
		pastTheEdge(t, conn, "/full/peers")
		user := goZookeeperUsers([]string{server.Addr})
		require.NoError(t, user(t, "mutex", "/full/peers").acquire(soon(t)))
		require.NoError(t, user(t, "mutex", "/full/peers").acquire(soon(t)))
	})
	for _, kind := range []string{"mutex", "selector", "latch", "write"} {
		t.Run("zklock still grants in order: "+kind, func(t *testing.T) {
			queue := slices.Repeat([]place{{zklockUsers(ours), kind}}, contenders)
			if kind == "write" { // add readers, which hold together
				for i := range queue {
					queue[i].kind = []string{"write", "read", "read"}[i%3]
				}
			}
			takeTurns(t, conn, "/full/"+kind, queue)
		})
	}
	for kind, c := range map[string]struct {
		limit int64
		take  func(path string) func(context.Context) (*zklock.Hold, error)
	}{
		"mutex": {1, func(path string) func(context.Context) (*zklock.Hold, error) { return ours.Mutex(path).Lock }},
		"selector": {1, func(path string) func(context.Context) (*zklock.Hold, error) {
			return recipeOf(t, ours, "selector", path)
		}},
		"reentrant": {1, func(path string) func(context.Context) (*zklock.Hold, error) { return ours.Reentrant(path).Lock }},
		"write":     {1, func(path string) func(context.Context) (*zklock.Hold, error) { return ours.RWMutex(path).Lock }},
		"all": {1, func(path string) func(context.Context) (*zklock.Hold, error) {
			return func(ctx context.Context) (*zklock.Hold, error) {
				return ours.LockAll(ctx, ours.Mutex(path), ours.Mutex("/full/other"))
			}
		}},
		"semaphore": {permits, func(path string) func(context.Context) (*zklock.Hold, error) {
			return recipeOf(t, ours, "semaphore", path)
		}},
	} {
		t.Run("zklock does not exceed the limit: "+kind, func(t *testing.T) {
			crowd(t, contenders, c.limit, c.take("/full/crowd-"+kind))
		})
	}
}

// startFull starts a server on which the sequence counters of some paths are nearly exhausted.
func startFull(t *testing.T, paths ...string) *zkcontainer.Member {
	needsOwn(t)
	h, data := host(t), "/tmp/counter-"+lab.run
	_, err := h.Run(soon(t), append([]string{"java", "Counter", data, "2147483640"}, paths...)...)
	require.NoError(t, err)
	listed, err := h.Run(soon(t), "sh", "-c", "ls "+data+"/version-2")
	require.NoError(t, err)
	snapshot := regexp.MustCompile(`snapshot\.[0-9a-f]+`).FindString(listed)
	content, err := h.Read(soon(t), path.Join(data, "version-2", snapshot))
	require.NoError(t, err)
	return start(t, zkcontainer.Options{Files: map[string][]byte{path.Join("/data/version-2", snapshot): content}}).Members[0]
}

// pastTheEdge creates and deletes children until the counter has reached its maximum.
func pastTheEdge(t *testing.T, conn *zk.Conn, path string) {
	for range 20 {
		name, err := conn.Create(path+"/x", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		require.NoError(t, conn.Delete(name, -1))
		if strings.HasSuffix(name, "2147483647") {
			return
		}
	}
	require.FailNow(t, "the counter has not reached its maximum", path)
}

// crowd runs contenders that acquire and release, and checks that no more than limit hold at the same time. If limit is one,
// it also checks that tokens grow with the grants.
func crowd(t *testing.T, contenders int, limit int64, take func(context.Context) (*zklock.Hold, error)) {
	ctx := soon(t)
	var inside atomic.Int64
	var mu sync.Mutex
	var tokens []int64 // guarded by mu
	var wg sync.WaitGroup
	for range contenders {
		wg.Add(1)
		// Owned by this test, which waits for it: ends after its grant, or with ctx.
		go func() {
			defer wg.Done()
			hold, err := take(ctx)
			if !assert.NoError(t, err) {
				return
			}
			assert.LessOrEqual(t, inside.Add(1), limit, "holders at the same time")
			mu.Lock()
			tokens = append(tokens, hold.Token())
			mu.Unlock()
			assert.NoError(t, hold.Confirm(ctx)) // takes long enough for another one to be granted the lock
			inside.Add(-1)
			assert.NoError(t, hold.Unlock(ctx))
		}()
	}
	wg.Wait()
	assert.Len(t, tokens, contenders)
	assert.True(t, limit > 1 || slices.IsSorted(tokens), "tokens grow with the grants: %v", tokens)
}
