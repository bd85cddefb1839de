// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/operate"
)

// TestDowngradedReaderOfCurator downgrades a writer of Curator to a reader while a writer of zklock waits behind it. Curator
// creates the reader's node with the number of the writer's node, and then deletes the latter. The waiter must not take this
// deletion for its turn, or it would hold together with the reader. A bare client plays Curator, which does this since
// CURATOR-621. Debian's Curator 5.4 is older, and gives the reader a new number behind the waiter.
//
//zklock:promise P1.5
func TestDowngradedReaderOfCurator(t *testing.T) {
	part(t)
	ours := connect(t, nil, servers(t)...)
	conn, _ := dial(t, 10*time.Second, servers(t)...)
	for name, between := range map[string]bool{"right behind": false, "behind a canceled waiter": true} {
		t.Run(name, func(t *testing.T) {
			dir, ctx := root(t), soon(t)
			lock := ours.RWMutex(dir)
			first, err := lock.Lock(ctx)
			require.NoError(t, err)
			everybody := zk.WorldACL(zk.PermAll)
			writer, err := conn.Create(dir+"/_c_63c2ca62-9df0-4ddd-8984-a8deb7587f76-__WRIT__", nil, zk.FlagEphemeralSequential, everybody)
			require.NoError(t, err)

			giveUp, cancel := context.WithCancel(ctx)
			defer cancel()
			gone := make(chan error, 1)
			if between {
				// Owned by this test: ends when giveUp is canceled.
				go func() {
					_, err := lock.Lock(giveUp)
					gone <- err
				}()
				untilChildren(t, conn, dir, 3)
			}
			var released atomic.Bool
			granted := make(chan error, 1)
			// Owned by this test: ends with the grant or with ctx.
			go func() {
				hold, err := lock.Lock(ctx)
				if err == nil {
					assert.True(t, released.Load(), "granted together with a reader")
					err = hold.Unlock(ctx)
				}
				granted <- err
			}()
			if between {
				untilChildren(t, conn, dir, 4)
				cancel()
				require.ErrorIs(t, await(t, gone, "the end of the wait"), context.Canceled)
			}
			untilChildren(t, conn, dir, 3)
			require.NoError(t, first.Unlock(ctx))

			number := path.Base(writer)[strings.LastIndex(path.Base(writer), "__")+2:]
			reader, err := conn.Create(dir+"/_c_f9e36521-e357-4fcd-bbab-9d07b4b79389-__READ__"+number, nil, zk.FlagEphemeral, everybody)
			require.NoError(t, err)
			require.NoError(t, conn.Delete(writer, -1))
			for range 50 { // each one is a round trip on the connection that receives the event of the writer's deletion
				_, err := operate.Inspect(ctx, ours, dir)
				require.NoError(t, err)
			}
			require.Empty(t, granted, "granted together with a reader")
			released.Store(true)
			require.NoError(t, conn.Delete(reader, -1))
			require.NoError(t, await(t, granted, "the writer's grant"))
		})
	}
}
