// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// lines collects what a client library logs.
type lines struct {
	mu  sync.Mutex
	all []string // guarded by mu
}

func (l *lines) Printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprintf(format, args...))
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// Two connections that were created with the same hooks would end each other forever. The second is refused, and says why.
//
//zklock:promise P18.5 A29
func TestASecondConnectionWithTheSameHooksIsRefused(t *testing.T) {
	virtual(t, zktest.Options{Servers: 3}, func(t *testing.T, srv *zktest.Server) {
		var dials atomic.Int32
		hooks := zklock.NewHooks(func(network, address string, timeout time.Duration) (net.Conn, error) {
			dials.Add(1)
			return srv.Dial(network, address, timeout)
		})
		connect := func(log zk.Logger) *zk.Conn {
			conn, _, err := zk.Connect(srv.Addrs(), term, zk.WithDialer(hooks.Dial), zk.WithLogInfo(false),
				zk.WithHostProvider(hooks.HostProvider()), zk.WithLogger(log))
			require.NoError(t, err)
			t.Cleanup(conn.Close)
			return conn
		}
		first := connect(silent{})
		client, err := zklock.Attach(t.Context(), first, hooks, nil)
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)

		var log lines
		second := connect(&log)
		_, err = zklock.Attach(t.Context(), second, hooks, nil)
		require.ErrorIs(t, err, zklock.ErrInvalid)
		time.Sleep(10 * time.Minute)
		require.NoError(t, hold.Check())
		require.EqualValues(t, 1, dials.Load())
		require.NotEqual(t, zk.StateHasSession, second.State())
		require.Contains(t, log.text(), "another connection was created with these hooks")
		require.Less(t, strings.Count(log.text(), "\n"), 700, "it tries about once a second")

		srv.DropConnections()
		time.Sleep(term)
		require.NoError(t, hold.Check(), "the first one reconnects")
		unlock(t, hold)
		second.Close()
		time.Sleep(3 * time.Second) // the refused connection ends too
	})
}
