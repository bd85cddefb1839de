package integration

import (
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/integration/internal/zoo"
)

// TestExhaustedCounter meets the end of the sequence counter: from 2^31-1 on the server gives every contender the same
// number. The data directory was prepared with the server's own classes.
func TestExhaustedCounter(t *testing.T) {
	part(t)
	const contenders = 50
	needsOwn(t)
	h := host(t)
	full := []string{"/full/order", "/full/crowd", "/full/peers"}
	data := "/tmp/counter-" + lab.run
	_, err := h.Run(soon(t), append([]string{"java", "Counter", data, "2147483640"}, full...)...)
	require.NoError(t, err)
	snapshot := "version-2/snapshot.4" // one transaction for each of four nodes
	content, err := h.Read(soon(t), path.Join(data, snapshot))
	require.NoError(t, err)
	server := start(t, zoo.Config{Files: map[string][]byte{path.Join("/data", snapshot): content}})
	conn, _ := dial(t, 10*time.Second, server.Addrs()...)
	ours := connect(t, nil, server.Addrs()...)

	t.Run("go-zookeeper lets everybody in", func(t *testing.T) {
		for range 10 { // past the edge
			name, err := conn.Create(full[2]+"/x", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			require.NoError(t, conn.Delete(name, -1))
			if strings.HasSuffix(name, "2147483647") {
				break
			}
		}
		user := goZookeeperUsers(server.Addrs())
		require.NoError(t, user(t, "mutex", full[2]).acquire(soon(t)))
		require.NoError(t, user(t, "mutex", full[2]).acquire(soon(t)))
	})
	t.Run("zklock goes on in order", func(t *testing.T) {
		queue := slices.Repeat([]place{{zklockUsers(ours), "mutex"}}, contenders)
		takeTurns(t, conn, full[0], queue)
	})
	t.Run("zklock lets in one of a crowd at a time", func(t *testing.T) {
		ctx := soon(t)
		var inside atomic.Int64
		var tokens []int64 // guarded by the lock under test
		var wg sync.WaitGroup
		for range contenders {
			wg.Add(1)
			// Owned by this test, which waits for it: ends with its one grant, or with ctx.
			go func() {
				defer wg.Done()
				hold, err := ours.Mutex(full[1]).Lock(ctx)
				if !assert.NoError(t, err) {
					return
				}
				if assert.EqualValues(t, 1, inside.Add(1), "clients inside at once") {
					tokens = append(tokens, hold.Token())
				}
				assert.NoError(t, hold.Confirm(ctx)) // takes the time in which another could come in
				inside.Add(-1)
				assert.NoError(t, hold.Unlock(ctx))
			}()
		}
		wg.Wait()
		assert.Len(t, tokens, contenders)
		assert.True(t, slices.IsSorted(tokens), "tokens grow with the grants: %v", tokens)
		children, stat, err := conn.Children(full[1])
		require.NoError(t, err)
		assert.Empty(t, children)
		t.Logf("the parent's cversion at the end: %d", stat.Cversion)
	})
}
