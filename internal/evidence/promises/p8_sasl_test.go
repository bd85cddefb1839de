// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// walled has servers that require SASL.
var walled = zktest.Options{Servers: 3, SASL: map[string]string{"joe": `se"cret`, "ann": "pässwörd κ"}, RequireSASL: true}

// saslOnly is an ACL that grants access only to joe.
var saslOnly = []zk.ACL{{Scheme: "sasl", ID: "joe", Perms: zk.PermAll}}

func loggedInAs(user string, label string) *zklock.Options {
	return &zklock.Options{Label: label, SessionTimeout: term, ACL: saslOnly, Auth: []zklock.Auth{{Scheme: "sasl", Data: []byte(user)}}}
}

func tryToConnect(t *testing.T, srv *zktest.Server, opts *zklock.Options, patience time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	opts.Dialer = srv.DialFrom(opts.Label)
	c, err := zklock.Connect(ctx, srv.Addrs(), opts)
	if err == nil {
		c.Close()
	}
	return err
}

//zklock:promise P8.6
func TestASASLLoginHasTheRightsOfItsACL(t *testing.T) {
	virtual(t, walled, func(t *testing.T, srv *zktest.Server) {
		joe, second := connectWith(t, srv, loggedInAs(`joe:se"cret`, "a")), connectWith(t, srv, loggedInAs(`joe:se"cret`, "b"))
		hold, err := joe.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		next := lockLater(t.Context(), second.Mutex(path).Lock)
		require.False(t, next.returned())

		ann := connectWith(t, srv, loggedInAs("ann:pässwörd κ", "ann"))
		_, err = ann.Mutex(path).TryLock(t.Context())
		require.ErrorIs(t, err, zk.ErrNoAuth, "another user")
		require.NoError(t, hold.Check())
		unlock(t, hold)
		require.True(t, next.returned())
		require.NoError(t, next.err)
		unlock(t, next.hold)
		noGhost(t, srv, path)
	})
}

// On servers that require SASL, any request before the login ends the connection.
//
//zklock:promise P18.3
func TestEveryConnectionLogsInFirst(t *testing.T) {
	virtual(t, walled, func(t *testing.T, srv *zktest.Server) {
		var mu sync.Mutex
		first := map[string]bool{} // by client: its newest connection has begun with a login
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			mu.Lock()
			defer mu.Unlock()
			switch r.Op {
			case zktest.OpCreateSession:
				first[r.Client] = false
			case zktest.OpSASL:
				first[r.Client] = true
			default:
				if !first[r.Client] {
					t.Errorf("%v before the login", r.Op)
				}
			}
			return zktest.Pass
		})
		opts := loggedInAs(`joe:se"cret`, "a")
		opts.Auth = append(opts.Auth, zklock.Auth{Scheme: "digest", Data: []byte("u:p")})
		c := connectWith(t, srv, opts)
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		waiting := lockLater(t.Context(), connectWith(t, srv, loggedInAs(`joe:se"cret`, "b")).Mutex(path).Lock) // has watches to set again
		require.False(t, waiting.returned())
		for range 5 {
			srv.DropConnections()
			time.Sleep(term / 2)
			require.NoError(t, hold.Confirm(t.Context()), "the same session, logged in again")
		}
		unlock(t, hold)
		require.True(t, waiting.returned())
		require.NoError(t, waiting.err)
		unlock(t, waiting.hold)

		srv.ExpireSession(srv.Sessions()[0].ID)
		time.Sleep(term)
		hold, err = c.Mutex(path).Lock(t.Context())
		require.NoError(t, err, "a new session logs in as well")
		unlock(t, hold)
	})
}

//zklock:promise P8.6
func TestARefusedLoginIsReportedAtOnce(t *testing.T) {
	wrong := func(auth string) *zklock.Options { return loggedInAs(auth, "a") }
	for name, c := range map[string]struct {
		opts  zktest.Options
		login *zklock.Options
		says  string
	}{
		"another password":                  {zktest.Options{SASL: walled.SASL}, wrong("joe:guess"), "SASL login as joe: zk: client authentication failed: server rejected the user name or password"},
		"another password where it must be": {walled, wrong("joe:guess"), "server rejected the user name or password"},
		"another user":                      {walled, wrong("jim:x"), "SASL login as jim"},
		"servers in FIPS mode":              {lab.With(zktest.Options{SASL: walled.SASL}, lab.Options{FIPS: true}), wrong(`joe:se"cret`), "zookeeper.fips-mode"},
		"servers that must have a login":    {lab.With(zktest.Options{SASL: walled.SASL, RequireSASL: true}, lab.Options{FIPS: true}), wrong(`joe:se"cret`), "zookeeper.fips-mode"},
		"servers without SASL":              {zktest.Options{}, wrong("joe:x"), "server does not support SASL"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, c.opts, func(t *testing.T, srv *zktest.Server) {
				start := time.Now()
				err := tryToConnect(t, srv, c.login, time.Hour)
				require.ErrorIs(t, err, zk.ErrAuthFailed)
				require.ErrorContains(t, err, c.says)
				require.NotContains(t, err.Error(), "guess")
				if lab.Of(&c.opts).FIPS {
					require.NotContains(t, err.Error(), "password", "which is right")
				}
				require.Less(t, time.Since(start), 5*time.Second)
			})
		})
	}
}

// One of three servers does not know the user yet.
//
//zklock:promise P7.7
func TestALoginThatOneServerAcceptsIsEnough(t *testing.T) {
	virtual(t, walled, func(t *testing.T, srv *zktest.Server) {
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpSASL && r.Member != 1 {
				return zktest.Answer(zktest.CodeAuthFailed)
			}
			return zktest.Pass
		})
		for range 5 {
			unlockSoon(t, connectWith(t, srv, loggedInAs(`joe:se"cret`, "a")))
		}
		for first := range 3 {
			unlockSoon(t, connectToName(t, srv, loggedInAs(`joe:se"cret`, "a"), first))
		}
	})
}

// The caller cancels at any step of the client. Servers that require SASL resume its session on each connection.
//
//zklock:promise P8.6
func TestWithoutALoginTheErrorSaysThatItIsRequired(t *testing.T) {
	slow := walled
	slow.Latency = func(*rand.Rand) time.Duration { return 300 * time.Millisecond }
	virtual(t, slow, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		for i := range time.Duration(20) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second+i*100*time.Millisecond)
			_, err := c.Mutex(path).Lock(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, zk.ErrAuthFailed, "%d", i)
			require.ErrorContains(t, err, "requires clients to authenticate")
		}
	})
}

// replaceToken replaces the server's reply to the n-th token of every login.
func replaceToken(srv *zktest.Server, n int, with func(token string) string) zk.Dialer {
	dial := srv.DialFrom("a")
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := dial(network, address, timeout)
		return &liar{Conn: conn, n: n, with: with}, err
	}
}

// liar is a connection that replaces a server's reply to a login. It relies on the server sending each frame in one write.
type liar struct {
	net.Conn
	n    int
	with func(token string) string
	rest []byte
	seen int
}

func (l *liar) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		frame := make([]byte, 64<<10)
		n, err := l.Conn.Read(frame)
		if err != nil {
			return 0, err
		}
		frame = frame[:n]
		if l.seen == l.n && n > 24 {
			token := l.with(string(frame[24:]))
			size := func(n int) []byte { return []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)} }
			frame = append(append(size(20+len(token)), frame[4:20]...), append(size(len(token)), token...)...)
		}
		l.seen++
		l.rest = frame
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// A server that does not know the password could accept any client, and could be an impostor.
//
//zklock:promise P18.6
func TestAServerThatCannotProveThePasswordIsRefused(t *testing.T) {
	const challenge, proof = 1, 2 // the reply to the connect request is the first frame
	for name, lie := range map[string]struct {
		n    int
		with func(token string) string
		says string
	}{
		"another proof":         {proof, func(string) string { return "rspauth=" + strings.Repeat("0", 32) }, "did not prove"},
		"no proof":              {proof, func(string) string { return "" }, "did not prove"},
		"a proof and more":      {proof, func(p string) string { return p + "," }, "did not prove"},
		"another mechanism":     {challenge, func(string) string { return "hello" }, "challenge"},
		"a channel of its own":  {challenge, func(c string) string { return c + `,qop="auth-conf"` }, "protected channel"},
		"one that never stops":  {challenge, func(c string) string { return c + strings.Repeat("x", 8<<10) }, "malformed"},
		"an unended quotation":  {challenge, func(c string) string { return strings.ReplaceAll(c, `"`, "") + `,realm="` }, "challenge"},
		"another one's answers": {challenge, func(c string) string { return strings.ReplaceAll(c, "nonce=\"", "nonce=\"x") }, "rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{SASL: walled.SASL}, func(t *testing.T, srv *zktest.Server) {
				opts := loggedInAs(`joe:se"cret`, "a")
				opts.Dialer = replaceToken(srv, lie.n, lie.with)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := zklock.Connect(ctx, srv.Addrs(), opts)
				require.ErrorContains(t, err, lie.says)
			})
		})
	}
}

// A server that does not reply must not keep the client from the others.
//
//zklock:promise P7.7
func TestAServerThatDoesNotAnswerALoginIsLeft(t *testing.T) {
	virtual(t, walled, func(t *testing.T, srv *zktest.Server) {
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			switch {
			case r.Op != zktest.OpSASL || r.Member == 2:
				return zktest.Pass
			case r.Member == 0:
				return zktest.DropReply
			}
			return zktest.DropBefore
		})
		start := time.Now()
		unlockSoon(t, connectWith(t, srv, loggedInAs(`joe:se"cret`, "a")))
		require.Less(t, time.Since(start), term)
	})
}

// The nodes of such a client would remain in queues for as long as the login is rejected.
//
//zklock:promise P7.7
func TestASessionWhoseLoginIsRefusedEnds(t *testing.T) {
	for name, code := range map[string]zktest.Op{"the login is refused": zktest.OpSASL, "a login has become a must": zktest.OpPing} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{Servers: 3, SASL: walled.SASL}, func(t *testing.T, srv *zktest.Server) {
				opts := &zklock.Options{Label: "a", SessionTimeout: term}
				if code == zktest.OpSASL {
					opts = loggedInAs(`joe:se"cret`, "a")
				}
				opts.ACL = nil
				c, other := connectWith(t, srv, opts), connect(t, srv, "b", term)
				hold, err := c.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				next := lockLater(t.Context(), other.Mutex(path).Lock)
				require.False(t, next.returned())

				forget := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					switch {
					case r.Client != "a" || r.Op == zktest.OpCreateSession || code == zktest.OpPing && r.Op == zktest.OpSASL:
						return zktest.Pass
					case code == zktest.OpSASL && r.Op != zktest.OpSASL:
						return zktest.Pass
					}
					return zktest.Answer(zktest.CodeRequiresSASL)
				})
				srv.DropConnections()
				time.Sleep(term)
				require.ErrorIs(t, hold.Check(), zklock.ErrLost)
				time.Sleep(2 * term)
				require.True(t, next.returned(), "the session has ended: nobody keeps it alive")
				require.NoError(t, next.err)
				unlock(t, next.hold)

				again := lockLater(t.Context(), c.Mutex(path).Lock)
				time.Sleep(2 * term)
				require.False(t, again.returned(), "what was taken once may be taken again")
				forget()
				time.Sleep(term)
				require.True(t, again.returned())
				require.NoError(t, again.err)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err = c.Mutex(path).Lock(ctx)
				require.NotErrorIs(t, err, zk.ErrAuthFailed, "nobody refuses it now")
				unlock(t, again.hold)
			})
		})
	}
}

//zklock:promise P18.3
func TestAnExistingConnectionLogsInWhenItReconnects(t *testing.T) {
	virtual(t, walled, func(t *testing.T, srv *zktest.Server) {
		hooks := zklock.NewHooks(srv.DialFrom("a"))
		conn, events, err := zk.Connect(srv.Addrs(), term, zk.WithDialer(hooks.Dial), zk.WithLogInfo(false))
		require.NoError(t, err)
		defer func() {
			conn.Close()
			for range events {
			}
		}()
		opts := loggedInAs(`joe:se"cret`, "")
		c, err := zklock.Attach(t.Context(), conn, hooks, opts)
		require.NoError(t, err)
		unlockSoon(t, c)
		srv.DropConnections()
		unlockSoon(t, c)
		require.NoError(t, c.Close())

		_, err = zklock.Attach(t.Context(), conn, hooks, loggedInAs("joe:guess", ""))
		require.ErrorIs(t, err, zk.ErrAuthFailed)
	})
}

//zklock:promise P8.6
func TestAnInvalidLoginIsRefused(t *testing.T) {
	login := func(data string) zklock.Auth { return zklock.Auth{Scheme: "sasl", Data: []byte(data)} }
	for name, auth := range map[string][]zklock.Auth{
		"no password":       {login("joe:")},
		"no user":           {login(":secret")},
		"no colon":          {login("secret")},
		"a zero byte":       {login("joe:a\x00b")},
		"not in UTF-8":      {login("joe:\xff")},
		"more than one":     {login("joe:x"), login("ann:x")},
		"an empty one":      {login("")},
		"nothing but colon": {login(":")},
	} {
		_, err := zklock.Connect(t.Context(), []string{"127.0.0.1:1"}, &zklock.Options{Auth: auth})
		require.ErrorIs(t, err, zklock.ErrInvalid, name)
		require.NotContains(t, err.Error(), "secret")
	}
}
