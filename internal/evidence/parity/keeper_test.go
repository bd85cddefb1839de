// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"context"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// TestLocksOnClickHouseKeeper checks docs/clickhouse.md with zktest's imitation, and with a real Keeper if ZKLOCK_TEST_KEEPER has the
// addresses of its servers.
//
//zklock:promise P18.8
func TestLocksOnClickHouseKeeper(t *testing.T) {
	t.Run("imitation", func(t *testing.T) {
		locksOnKeeper(t, zktest.Run(t, zktest.Options{Flavor: zktest.Keeper, TickTime: 500 * time.Millisecond}).Addrs())
	})
	t.Run("real", func(t *testing.T) {
		servers := os.Getenv("ZKLOCK_TEST_KEEPER")
		if servers == "" {
			t.Skip("no ClickHouse Keeper: ZKLOCK_TEST_KEEPER is not set")
		}
		locksOnKeeper(t, strings.Split(servers, ","))
	})
}

// lines dials, and can cut all connections that it has made.
type lines struct {
	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

func (l *lines) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	c, err := net.DialTimeout(network, address, timeout)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns = append(l.conns, c)
	}
	return c, err
}

func (l *lines) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
}

func locksOnKeeper(t *testing.T, servers []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	connect := func(l *lines) *zklock.Client {
		c, err := zklock.Connect(ctx, servers, &zklock.Options{SessionTimeout: 4 * time.Second, Root: "/zklock-keeper-test", Dialer: l.dial})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	cuttable := new(lines)
	a, b := connect(cuttable), connect(new(lines))

	first, err := a.Mutex("/mutex").Lock(ctx)
	require.NoError(t, err)
	_, err = b.Mutex("/mutex").TryLock(ctx)
	require.ErrorIs(t, err, zklock.ErrLocked)
	require.NoError(t, first.Unlock(ctx))
	second, err := b.Mutex("/mutex").Lock(ctx)
	require.NoError(t, err)
	require.Greater(t, second.Token(), first.Token())
	require.NoError(t, second.Unlock(ctx))

	for name, lock := range map[string]func(*zklock.Client) (*zklock.Hold, error){
		"reader":  func(c *zklock.Client) (*zklock.Hold, error) { return c.RWMutex("/rw").RLock(ctx) },
		"writer":  func(c *zklock.Client) (*zklock.Hold, error) { return c.RWMutex("/rw").Lock(ctx) },
		"permits": func(c *zklock.Client) (*zklock.Hold, error) { return c.Semaphore("/permits", 2).Acquire(ctx, 2) },
		"cohort":  func(c *zklock.Client) (*zklock.Hold, error) { return c.Cohort("/cohort").Lock(ctx) },
		"election": func(c *zklock.Client) (*zklock.Hold, error) {
			return c.Election("/election").Campaign(ctx, []byte("a"))
		},
	} {
		for _, c := range []*zklock.Client{a, b} {
			hold, err := lock(c)
			require.NoError(t, err, name)
			require.NoError(t, hold.Unlock(ctx), name)
		}
	}

	// A lost connection costs the hold, and the next contender gets the lock.
	lost, err := a.Mutex("/lost").Lock(ctx)
	require.NoError(t, err)
	cuttable.cut()
	<-lost.Context().Done()
	require.ErrorIs(t, context.Cause(lost.Context()), zklock.ErrLost)
	next, err := b.Mutex("/lost").Lock(ctx)
	require.NoError(t, err)
	require.ErrorIs(t, lost.Check(), zklock.ErrLost)
	require.Greater(t, next.Token(), lost.Token())
	require.NoError(t, next.Unlock(ctx))
}
