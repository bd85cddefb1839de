// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/zktest"
)

// inMemoryServer runs a test with a server in virtual time.
func inMemoryServer(t *testing.T, opts zktest.Options, fn func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { fn(t, zktest.Start(t, opts)) })
}

func TestADirectConnectionHasASessionOfItsOwn(t *testing.T) {
	inMemoryServer(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/a", []byte("data")))
		d, hello, err := DialDirect(t.Context(), srv.Dial, srv.Addrs()[0], Hello{Timeout: term})
		require.NoError(t, err)
		require.NotZero(t, hello.Session)
		require.Len(t, hello.Password, 16)
		require.Equal(t, term, hello.Timeout)
		for range 2 {
			r, err := d.Ask(frames.Get("/a", true))
			require.NoError(t, err)
			require.Equal(t, int32(frames.CodeOK), r.Code)
			a := r.Answer()
			require.Equal(t, "data", string(a.Data()))
		}
		require.NoError(t, srv.PutNode("/a", []byte("more"))) // an event comes before the next reply
		r, err := d.Ask(frames.Get("/none", false))
		require.NoError(t, err)
		require.Equal(t, int32(frames.CodeNoNode), r.Code)
		d.Leave()
		require.Len(t, srv.Sessions(), 1, "it lives on")

		again, resumed, err := DialDirect(t.Context(), srv.Dial, srv.Addrs()[0], Hello{hello.Session, hello.Password, term})
		require.NoError(t, err)
		require.Equal(t, hello.Session, resumed.Session)
		again.End()
		require.Empty(t, srv.Sessions())
		gone, expired, err := DialDirect(t.Context(), srv.Dial, srv.Addrs()[0], Hello{hello.Session, hello.Password, term})
		require.NoError(t, err)
		require.Zero(t, expired.Session)
		gone.Leave()
	})
}

// TestADirectConnectionFails has each way not to get one, and each way in which one ends.
func TestADirectConnectionFails(t *testing.T) {
	inMemoryServer(t, zktest.Options{Servers: 3}, func(t *testing.T, srv *zktest.Server) {
		dial := func(ctx context.Context, d zk.Dialer) error {
			_, _, err := DialDirect(ctx, d, srv.Addrs()[0], Hello{Timeout: term})
			return err
		}
		ended, end := context.WithCancel(t.Context())
		end()
		require.ErrorIs(t, dial(ended, func(string, string, time.Duration) (net.Conn, error) { return nil, errors.New("was dialed") }), context.Canceled)
		require.ErrorContains(t, dial(t.Context(), failing), "nobody there")

		ctx, cut := context.WithCancel(t.Context())
		d, _, err := DialDirect(ctx, srv.Dial, srv.Addrs()[0], Hello{Timeout: term})
		require.NoError(t, err)
		cut()
		synctest.Wait()
		_, err = d.Ask(frames.Sync("/"))
		require.Error(t, err, "the context has ended")
		d.Leave()

		d, _, err = DialDirect(t.Context(), srv.DialFrom("silent"), srv.Addrs()[0], Hello{Timeout: term})
		require.NoError(t, err)
		srv.Partition("silent")
		began := time.Now()
		_, err = d.Ask(frames.Sync("/"))
		require.Error(t, err)
		require.Equal(t, patience, time.Since(began))
		d.Leave()
		began = time.Now()
		_, _, err = DialDirect(t.Context(), srv.DialFrom("silent"), srv.Addrs()[0], Hello{Timeout: term})
		require.Error(t, err)
		require.LessOrEqual(t, time.Since(began), patience)

		srv.Member(1).Stop()
		srv.Member(2).Stop()
		time.Sleep(time.Minute)
		require.ErrorContains(t, dial(t.Context(), srv.Dial), "without creating a session (no quorum")
	})
	for name, c := range map[string]struct {
		reply []byte
		is    error
	}{
		"malformed": {words(1, 2, 3), frames.ErrMalformed}, "no leader": {append(words(42, 10_000, -1, -1, 16), make([]byte, 16)...), frames.ErrNoLeader},
	} {
		if name == "no leader" {
			c.reply[3] += 16
		}
		ours, theirs := net.Pipe()
		go func() { // ends when the client has read the reply or closed the connection
			_, _ = theirs.Read(make([]byte, 100))
			_, _ = theirs.Write(c.reply)
		}()
		_, _, err := DialDirect(t.Context(), func(string, string, time.Duration) (net.Conn, error) { return ours, nil }, "server", Hello{})
		require.ErrorIs(t, err, c.is, name)
		_, err = theirs.Write([]byte("x"))
		require.Error(t, err, "%s: it is closed", name)
	}
}

func TestADirectConnectionPresentsCredentials(t *testing.T) {
	inMemoryServer(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		d, _, err := DialDirect(t.Context(), srv.Dial, srv.Addrs()[0], Hello{Timeout: term})
		require.NoError(t, err)
		require.NoError(t, d.LogIn(t.Context(), nil, []frames.Request{frames.Auth("digest", []byte("joe:secret"))}))
		acl := zk.ACL{Perms: zk.PermAll, Scheme: "auth"}
		r, err := d.Ask(frames.Create("/mine", nil, 0, []zk.ACL{acl}))
		require.NoError(t, err)
		require.Equal(t, int32(frames.CodeOK), r.Code, "servers accept it after authentication only")
		require.Error(t, d.LogIn(t.Context(), nil, []frames.Request{frames.Auth("unknown", nil)}))
		d.End()
	})
}

func TestAFourLetterWordIsAnswered(t *testing.T) {
	inMemoryServer(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		reply, err := AskWord(t.Context(), srv.Dial, srv.Addrs()[0], "ruok")
		require.NoError(t, err)
		require.Equal(t, "imok", reply)
		_, err = AskWord(t.Context(), failing, srv.Addrs()[0], "ruok")
		require.ErrorContains(t, err, "nobody there")
		ended, end := context.WithCancel(t.Context())
		end()
		_, err = AskWord(ended, srv.Dial, srv.Addrs()[0], "ruok")
		require.ErrorIs(t, err, context.Canceled)
		srv.Partition("silent")
		began := time.Now()
		reply, _ = AskWord(t.Context(), srv.DialFrom("silent"), srv.Addrs()[0], "ruok")
		require.Empty(t, reply)
		require.LessOrEqual(t, time.Since(began), patience)
	})
}

func TestNoSocketReachesAServerInMemory(t *testing.T) {
	require.NoError(t, CheckReachable([]string{"zk1:2181", "127.0.0.1:2181", "[::1]:2181"}))
	require.ErrorContains(t, CheckReachable([]string{"zk1:2181", "233.252.0.1:2181"}), "exists only in memory")
	_, err := DialTCP("tcp", "233.252.0.1:2181", time.Second)
	require.ErrorContains(t, err, "exists only in memory")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	c, err := DialTCP("tcp", listener.Addr().String(), time.Second)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// TestASessionKnowsWhetherItHasEndedEarly has a node of ours deleted, with the session or before.
func TestASessionKnowsWhetherItHasEndedEarly(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(s *Session)
		expired bool
		early   bool
	}{
		"it expires at once":           {func(*Session) {}, true, true},
		"it is closed":                 {func(*Session) {}, false, false},
		"its lease has run out":        {func(*Session) { time.Sleep(term) }, true, false},
		"it ended with its node":       {func(s *Session) { s.NodeDeleted(); s.disconnected(); time.Sleep(term) }, true, true},
		"a moment after its node":      {func(s *Session) { s.NodeDeleted(); time.Sleep(farewell); s.disconnected(); time.Sleep(term) }, true, true},
		"its node was deleted before":  {func(s *Session) { s.NodeDeleted(); time.Sleep(farewell + 1); s.disconnected(); time.Sleep(term) }, true, false},
		"a reply came after its node":  {func(s *Session) { s.NodeDeleted(); s.replied(); s.disconnected(); time.Sleep(term) }, true, false},
		"a reply came before its node": {func(s *Session) { s.replied(); s.NodeDeleted(); s.disconnected(); time.Sleep(term) }, true, true},
	} {
		virtual(t, func(t *testing.T) {
			s := NewSession(7, fresh(t, NewLink()))
			c.happens(s)
			require.Zero(t, s.EndedEarly(), "%s: it has not ended", name)
			s.end(c.expired)
			require.Equal(t, c.early, s.EndedEarly() > 0, "%s: %v", name, s.EndedEarly())
			require.True(t, s.IsOver())
			require.Equal(t, c.expired, s.HasExpired())
		})
	}
}

// A server's word counts for the session and the connection that it is about.
func TestOnlyTheNewestConnectionAndSessionCount(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, old := attached(t)
		first := l.Latest()
		now := wire(t, l)
		require.Nil(t, l.Carried(), "another connection was made")
		l.closes(old.proxy)
		require.False(t, first.IsOver())
		l.lost(old.proxy, errors.New("late"), true)
		require.NoError(t, l.LastError())
		now.greet(t, 7, 7)
		require.Equal(t, first, l.Carried())
		l.expire(NewSession(8, nil))
		require.False(t, first.IsOver())
		_, changed := l.State()
		l.expire(first)
		require.True(t, first.HasExpired())
		require.True(t, closed(changed))
		require.Nil(t, l.Carried())
		_, changed = l.State()
		l.expire(first)
		l.closes(now.proxy)
		require.False(t, closed(changed), "nothing has changed")
	})
}
