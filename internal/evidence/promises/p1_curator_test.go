// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// curatorWriter is a writer of Curator's InterProcessReadWriteLock.
type curatorWriter struct {
	conn *zk.Conn
	node string
}

func newCuratorWriter(t *testing.T, conn *zk.Conn, path string) *curatorWriter {
	t.Helper()
	const prefix = "/_c_01234567-89ab-cdef-0123-456789abcdef-__WRIT__"
	node, err := conn.Create(path+prefix, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	assert.NoError(t, err) // it may be called from a goroutine of the server
	return &curatorWriter{conn, node}
}

// downgrade downgrades the writer like Curator: it creates a reader's node with the same number, and then deletes the writer's
// node.
func (w *curatorWriter) downgrade(t *testing.T) {
	t.Helper()
	reading := strings.ReplaceAll(w.node, "WRIT", "READ")
	_, err := w.conn.Create(reading, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	assert.NoError(t, err)
	w.leave(t)
	w.node = reading
}

func (w *curatorWriter) leave(t *testing.T) {
	t.Helper()
	assert.NoError(t, w.conn.Delete(w.node, -1))
}

// lockFunc is a Lock.
type lockFunc = func(context.Context) (*zklock.Hold, error)

// withCurator queues a hold of zklock, then Curator's writer, then other contenders of zklock, in that order.
func withCurator(t *testing.T, srv *zktest.Server, waiting ...lockFunc) (*zklock.Hold, *curatorWriter, []*attempt) {
	t.Helper()
	first, err := connect(t, srv, "first", term).RWMutex(path).Lock(t.Context())
	require.NoError(t, err)
	time.Sleep(time.Second)
	curator := newCuratorWriter(t, rawClient(t, srv, term), path)
	attempts := inTurn(t, waiting...)
	time.Sleep(time.Second)
	return first, curator, attempts
}

//zklock:promise P1.5
func TestNoLockIsGrantedTogetherWithCuratorsDowngradedReader(t *testing.T) {
	for name, exclusive := range map[string]func(c *zklock.Client) lockFunc{
		"writer": func(c *zklock.Client) lockFunc { return c.RWMutex(path).Lock },
		"mutex":  func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock },
	} {
		t.Run(name+" that saw two leave", func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				first, curator, next := withCurator(t, srv, exclusive(connect(t, srv, "next", term)))
				unlock(t, first)
				time.Sleep(time.Second)
				curator.downgrade(t)
				require.False(t, next[0].returned(), "Curator's reader holds")
				curator.leave(t)
				require.True(t, next[0].returned())
				unlock(t, next[0].hold)
			})
		})
		t.Run(name+" where the counter has ended", func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.PutNode(path, nil))
				lab.SetChildCounter(srv, path, math.MaxInt32)
				first, curator, next := withCurator(t, srv, exclusive(connect(t, srv, "next", term)), exclusive(connect(t, srv, "last", term)))
				unlock(t, first)
				time.Sleep(time.Second)
				curator.downgrade(t)
				time.Sleep(3 * term)
				require.False(t, next[0].returned(), "Curator's reader holds")
				curator.leave(t)
				require.True(t, next[0].returned())
				unlock(t, next[0].hold)
				require.True(t, next[1].returned())
				unlock(t, next[1].hold)
			})
		})
		t.Run(name+" behind one that gave up", func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				first, curator, _ := withCurator(t, srv)
				unlock(t, first)
				between := connect(t, srv, "between", term)
				both := inTurn(t, exclusive(between), exclusive(connect(t, srv, "last", term)))
				time.Sleep(time.Second)
				curator.downgrade(t)
				require.NoError(t, between.Close())
				require.False(t, both[1].returned(), "Curator's reader holds")
				curator.leave(t)
				require.True(t, both[1].returned())
				unlock(t, both[1].hold)
			})
		})
	}
}

// TestANoteDoesNotCoverCuratorsReaderBehindTheHolder creates a reader of Curator between a holder and a waiter of zklock. The
// holder's note covers only contenders ahead of the holder.
//
//zklock:promise P1.5
func TestANoteDoesNotCoverCuratorsReaderBehindTheHolder(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		first, err := connect(t, srv, "first", term).RWMutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		second := inTurn(t, connect(t, srv, "second", term).RWMutex(path).Lock)
		third := inTurn(t, connect(t, srv, "third", term).RWMutex(path).Lock)
		curator := newCuratorWriter(t, rawClient(t, srv, term), path)
		last := inTurn(t, connect(t, srv, "last", term).RWMutex(path).Lock)
		time.Sleep(time.Second)
		curator.downgrade(t) // too early; Curator does not do that, but no one could notice
		time.Sleep(time.Second)
		unlock(t, first)
		require.True(t, second[0].returned())
		unlock(t, second[0].hold)
		require.True(t, third[0].returned())
		unlock(t, third[0].hold)
		require.False(t, last[0].returned(), "Curator's reader holds")
		curator.leave(t)
		require.True(t, last[0].returned())
		unlock(t, last[0].hold)
	})
}

// TestATryIsRefusedWhereCuratorsWriterBecomesAReader downgrades a writer of Curator between two reads of a try, with a counter
// that no longer shows the order.
//
//zklock:promise P1.5
func TestATryIsRefusedWhereCuratorsWriterBecomesAReader(t *testing.T) {
	for name, try := range map[string]func(c *zklock.Client) lockFunc{
		"writer": func(c *zklock.Client) lockFunc { return c.RWMutex(path).TryLock },
		"mutex":  func(c *zklock.Client) lockFunc { return c.Mutex(path).TryLock },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				client, conn := connect(t, srv, "a", term), rawClient(t, srv, term)
				require.NoError(t, srv.PutNode(path, nil))
				lab.SetChildCounter(srv, path, math.MaxInt32)
				reads, writing := "", ""
				srv.Intercept(func(r *zktest.Request) (pass zktest.Verdict) {
					var err error
					switch {
					case r.Client != "a":
					case writing == "" && makesContender(r):
						const prefix = "/_c_01234567-89ab-cdef-0123-456789abcdef-__WRIT__"
						writing, err = conn.Create(path+prefix, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
					case reads == "" && r.Op == zktest.OpExists && r.Path == writing:
						reads = strings.ReplaceAll(writing, "WRIT", "READ")
						_, err = conn.Multi(&zk.CreateRequest{Path: reads, Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeral},
							&zk.DeleteRequest{Path: writing, Version: -1})
					}
					assert.NoError(t, err)
					return pass
				})
				_, err := try(client)(t.Context())
				require.NotEmpty(t, reads)
				require.ErrorIs(t, err, zklock.ErrLocked)
				require.NoError(t, conn.Delete(reads, -1))
				hold, err := try(client)(t.Context())
				require.NoError(t, err)
				unlock(t, hold)
			})
		})
	}
}
