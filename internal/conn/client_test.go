// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// inVirtual runs a test of a link between go-zookeeper's client and an in-process server.
func inVirtual(t *testing.T, opts zktest.Options, fn func(t *testing.T, srv *zktest.Server, l *Link)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		bound := time.AfterFunc(time.Hour, func() { panic(t.Name() + " has not ended after an hour") })
		defer bound.Stop()
		l := NewLink()
		fn(t, zktest.Start(t, opts), l)
		l.Close()
	})
}

// client connects go-zookeeper's client through a link.
func client(t *testing.T, srv *zktest.Server, l *Link) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect(srv.Addrs(), term, zk.WithLogger(quiet{}),
		zk.WithDialer(l.Dialer(Dialing{Dial: srv.DialFrom("a")})), zk.WithHostProvider(l.Hosts(&Rotation{})))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

type quiet struct{}

// Printf writes nothing.
func (quiet) Printf(string, ...any) {}

func cut(text, before, after string) (head, middle string, ok bool) {
	head, rest, ok := strings.Cut(text, before)
	middle, _, end := strings.Cut(rest, after)
	return head, middle, ok && end
}

func TestTheClientLibraryDoesNotNoticeTheLink(t *testing.T) {
	inVirtual(t, zktest.Options{Servers: 3}, func(t *testing.T, srv *zktest.Server, l *Link) {
		conn := client(t, srv, l)
		s, err := l.Attached(t.Context())
		require.NoError(t, err)
		synctest.Wait() // the client library is notified after the link
		assert.Equal(t, conn.SessionID(), s.ID)
		_, err = conn.Create("/a", []byte("x"), 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		_, _, events, err := conn.GetW("/a")
		require.NoError(t, err)
		heard := make(chan string, 1)
		l.Listen(func(_ *Session, e frames.Event) { heard <- e.Path })
		require.NoError(t, srv.DeleteNode("/a"))
		assert.Equal(t, zk.EventNodeDeleted, (<-events).Type)
		assert.Equal(t, "/a", <-heard)
		for range 8 {
			_, err = conn.Sync("/")
			require.NoError(t, err)
			_, err = conn.Set("/", nil, -1)
			require.NoError(t, err)
			time.Sleep(500 * time.Millisecond)
		}
		assert.Positive(t, s.Lease.Remaining())
		assert.Equal(t, int32(srv.Zxid()>>32), s.Epoch())
	})
}

func TestAPartitionIsSurvivedOrExpired(t *testing.T) {
	inVirtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server, l *Link) {
		client(t, srv, l)
		s, err := l.Attached(t.Context())
		require.NoError(t, err)
		again := s.Reattached()
		srv.Partition("a")
		time.Sleep(term * 9 / 10)
		srv.HealClient("a")
		<-again
		assert.True(t, l.Carries(s))

		srv.Partition("a")
		time.Sleep(3 * term)
		assert.False(t, s.IsOver(), "nobody has said so")
		srv.HealClient("a")
		<-s.Over()
		assert.True(t, s.HasExpired())
		next, err := l.Attached(t.Context())
		require.NoError(t, err)
		assert.NotEqual(t, s.ID, next.ID)
	})
}

// ClickHouse Keeper gives a reconnecting client another session without an error.
func TestAServerThatForgetsSessionsEndsThem(t *testing.T) {
	inVirtual(t, lab.With(zktest.Options{}, lab.Options{ForgetSessions: true}), func(t *testing.T, srv *zktest.Server, l *Link) {
		client(t, srv, l)
		s, err := l.Attached(t.Context())
		require.NoError(t, err)
		srv.DropConnections()
		<-s.Over()
		assert.False(t, s.HasExpired())
		next, err := l.Attached(t.Context())
		require.NoError(t, err)
		assert.NotEqual(t, s.ID, next.ID)
	})
}

func TestAnEnsembleRestoredFromABackupIsUsedAgain(t *testing.T) {
	inVirtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server, l *Link) {
		conn := client(t, srv, l)
		old, err := l.Attached(t.Context())
		require.NoError(t, err)
		backup := srv.Dump()
		for range 5 {
			_, err = conn.Set("/", nil, -1)
			require.NoError(t, err)
		}
		srv.Restore(backup)
		<-old.Over()
		_, err = l.Attached(t.Context())
		require.NoError(t, err)
		_, _, err = conn.Exists("/")
		require.NoError(t, err)
	})
}

//zklock:promise P2.7
func TestTheClientLeavesAServerThatAnswersPingsOnly(t *testing.T) {
	inVirtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server, l *Link) {
		conn := client(t, srv, l)
		s, err := l.Attached(t.Context())
		require.NoError(t, err)
		again := s.Reattached()
		srv.Next(1, zktest.DropReply, zktest.OpGetData)
		_, _, err = conn.Get("/")
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		<-again
		assert.ErrorContains(t, l.LastError(), "pings")
	})
}
