// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// hooked returns a connection and its hooks.
func hooked(t *testing.T, srv *zktest.Server) (*zk.Conn, *zklock.Hooks) {
	t.Helper()
	hooks := zklock.NewHooks(srv.DialFrom("attached"))
	conn, _, err := zk.Connect(srv.Addrs(), term, zk.WithDialer(hooks.Dial), zk.WithLogInfo(false),
		zk.WithHostProvider(&oneRound{}), zk.WithLogger(silent{}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn, hooks
}

// attached returns a connection and a client that uses it.
func attached(t *testing.T, srv *zktest.Server) (*zk.Conn, *zklock.Client) {
	t.Helper()
	conn, hooks := hooked(t, srv)
	client, err := zklock.Attach(t.Context(), conn, hooks, nil)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return conn, client
}

//zklock:promise P18.5 A29
func TestHooksOfAnotherConnectionAreRefused(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		conn, _ := hooked(t, srv)
		_, others := hooked(t, srv)
		for name, hooks := range map[string]*zklock.Hooks{
			"of another": others,
			"never used": zklock.NewHooks(nil),
			"zero":       {},
			"none":       nil,
		} {
			_, err := zklock.Attach(t.Context(), conn, hooks, nil)
			require.ErrorIs(t, err, zklock.ErrInvalid, name)
		}
		_, err := (&zklock.Hooks{}).Dial("tcp", "127.0.0.1:1", time.Second)
		require.ErrorIs(t, err, zklock.ErrInvalid)
	})
}

// Attach can come long after the connection has its session.
//
//zklock:promise P2.1 A3
func TestATickTimeAppliesToAnExistingConnection(t *testing.T) {
	virtual(t, zktest.Options{Servers: 3, TickTime: 2 * time.Second, MinSessionTimeout: 500 * time.Millisecond}, func(t *testing.T, srv *zktest.Server) {
		hooks := zklock.NewHooks(srv.Dial)
		conn, _, err := zk.Connect(srv.Addrs(), time.Second, zk.WithDialer(hooks.Dial), zk.WithLogInfo(false),
			zk.WithHostProvider(&oneRound{}), zk.WithLogger(silent{}))
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		for conn.State() != zk.StateHasSession {
			time.Sleep(10 * time.Millisecond)
		}
		_, err = zklock.Attach(t.Context(), conn, hooks, &zklock.Options{TickTime: 2 * time.Second})
		require.ErrorIs(t, err, zklock.ErrInvalid)
		require.ErrorContains(t, err, "tick")
	})
}

// Until there is a session, an attached client does not know the timeout that the program requests.
//
//zklock:promise P2.7 P18.5
func TestAnAttachedHoldOutlivesItsServerAndAFrozenOne(t *testing.T) {
	for _, timeout := range []time.Duration{4 * time.Second, 6 * time.Second, term} {
		for i := range time.Duration(10) {
			virtual(t, zktest.Options{Servers: 5}, func(t *testing.T, srv *zktest.Server) {
				hooks, hosts := zklock.NewHooks(srv.DialFrom("attached")), &oneRound{}
				conn, _, err := zk.Connect(srv.Addrs()[1:], timeout, zk.WithDialer(hooks.Dial),
					zk.WithLogInfo(false), zk.WithHostProvider(hosts), zk.WithLogger(silent{}))
				require.NoError(t, err)
				t.Cleanup(conn.Close)
				client, err := zklock.Attach(t.Context(), conn, hooks, nil)
				require.NoError(t, err)
				t.Cleanup(func() { client.Close() })
				hold, err := client.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				time.Sleep(3*timeout + i*timeout/10)
				next := hosts.servers[(hosts.next+1)%len(hosts.servers)]
				for i := range 5 {
					if member := srv.Member(i); member.Addr() == next {
						member.Freeze()
						time.AfterFunc(timeout, member.Thaw)
					}
				}
				srv.DropConnections()
				time.Sleep(2 * timeout)
				require.NoError(t, hold.Check(), "%v", timeout)
			})
		}
	}
}

// A refusal by a single server is not evidence of a quorum.
//
//zklock:promise P2.12
func TestARefusalByOneServerIsNotProofOfAQuorum(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		conn, client := attached(t, srv)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpMulti || r.Op == zktest.OpCreate {
				return zktest.Answer(-102) // NoAuth, which a server checks without a quorum
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*term)
		defer cancel()
		for ctx.Err() == nil && hold.Check() == nil {
			_, _ = conn.Create("/x", nil, 0, zk.WorldACL(zk.PermAll))
			time.Sleep(time.Second)
		}
		require.NoError(t, ctx.Err(), "the hold continued without a reply of the quorum")
	})
}

// All clients that share a connection are notified of changes to their nodes, even when some of them have closed.
//
//zklock:promise P2.2 A8
func TestClientsOfOneConnectionAllLearnOfALoss(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		conn, hooks := hooked(t, srv)
		var clients []*zklock.Client
		for range 3 {
			client, err := zklock.Attach(t.Context(), conn, hooks, nil)
			require.NoError(t, err)
			t.Cleanup(func() { client.Close() })
			clients = append(clients, client)
		}
		isLost := func(client *zklock.Client) {
			hold, err := client.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			time.Sleep(100 * time.Millisecond) // the node is watched
			require.NoError(t, srv.DeleteNode(hold.Node()))
			time.Sleep(10 * time.Millisecond) // no heartbeat is due
			require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrLost)
		}
		for _, client := range clients {
			isLost(client)
		}
		require.NoError(t, clients[1].Close())
		isLost(clients[0])
		isLost(clients[2])
	})
}

// The program that owns the connection closes it, which frees its locks at once.
//
//zklock:promise P2.3
func TestAHoldEndsBeforeItsConnectionIsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		after  time.Duration
		strike zktest.Verdict
	}{
		"soon after the grant":                     {0, zktest.Pass},
		"and it breaks at once":                    {0, zktest.LoseReply},
		"and it breaks before the answer has come": {time.Second, zktest.LoseReply},
		"and the server does not answer":           {time.Second, zktest.DropReply},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				conn, client := attached(t, srv)
				other := connect(t, srv, "next", term)
				time.Sleep(3 * term)
				unlockSoon(t, client)
				hold, err := client.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				next := lockLater(t.Context(), other.Mutex(path).Lock)
				time.Sleep(c.after)
				synctest.Wait()
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Op == zktest.OpCloseSession {
						return c.strike
					}
					return zktest.Pass
				})
				end := endOf(hold)
				closed := make(chan struct{})
				go func() {
					defer close(closed)
					conn.Close()
				}()
				<-next.done
				require.NoError(t, next.err)
				<-end.done
				require.False(t, end.at.After(next.at))
				<-closed
				unlock(t, next.hold)
			})
		})
	}
}

// knownAs is a login that every server accepts. It records the servers that it is used for.
type knownAs struct {
	name     string
	mu       sync.Mutex
	servers  []string
	prepared [][]string
}

func (l *knownAs) String() string { return l.name }

func (l *knownAs) LogIn(_ context.Context, server string, _ func([]byte) ([]byte, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers = append(l.servers, server)
	return nil
}

func (l *knownAs) Prepare(servers []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prepared = append(l.prepared, servers)
}

var _ zklock.PreparedLogin = (*knownAs)(nil)

//zklock:promise P18.14
func TestALoginLearnsTheServersByName(t *testing.T) {
	virtual(t, zktest.Options{Servers: 3}, func(t *testing.T, srv *zktest.Server) {
		mine := &knownAs{name: "joe"}
		connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Login: mine, Dialer: srv.DialFrom("a")})
		require.Equal(t, [][]string{srv.Addrs()}, mine.prepared)
		require.Subset(t, srv.Addrs(), mine.servers)

		hooks := zklock.NewHooks(srv.DialFrom("attached"))
		conn, events, err := zk.Connect(srv.Addrs(), term, zk.WithDialer(hooks.Dial), zk.WithHostProvider(hooks.HostProvider()), zk.WithLogInfo(false))
		require.NoError(t, err)
		defer func() {
			conn.Close()
			for range events {
			}
		}()
		attached := &knownAs{name: "joe"}
		c, err := zklock.Attach(t.Context(), conn, hooks, &zklock.Options{Login: attached})
		require.NoError(t, err)
		defer c.Close()
		unlockSoon(t, c)
		require.Len(t, attached.prepared, 1)
		require.ElementsMatch(t, srv.Addrs(), attached.prepared[0])
		require.Subset(t, srv.Addrs(), attached.servers)
		srv.DropConnections()
		unlockSoon(t, c)
	})
}

//zklock:promise P18.15
func TestARefusedAttachLeavesTheConnectionAsItWas(t *testing.T) {
	for name, required := range map[string]bool{"without a login": false, "with a former login": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{SASL: map[string]string{"joe": "secret"}, RequireSASL: required}, func(t *testing.T, srv *zktest.Server) {
				var dials atomic.Int32
				dial := srv.DialFrom("attached")
				hooks := zklock.NewHooks(func(network, address string, timeout time.Duration) (net.Conn, error) {
					dials.Add(1)
					return dial(network, address, timeout)
				})
				conn, events, err := zk.Connect(srv.Addrs(), term, zk.WithDialer(hooks.Dial), zk.WithHostProvider(hooks.HostProvider()), zk.WithLogInfo(false))
				require.NoError(t, err)
				defer func() {
					conn.Close()
					for range events {
					}
				}()
				if required {
					c, err := zklock.Attach(t.Context(), conn, hooks, loggedInAs("joe:secret", ""))
					require.NoError(t, err)
					require.NoError(t, c.Close())
				}
				_, err = conn.Create("/mine", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
				require.NoError(t, err)
				session := conn.SessionID()

				_, err = zklock.Attach(t.Context(), conn, hooks, loggedInAs("joe:guess", ""))
				require.ErrorIs(t, err, zk.ErrAuthFailed)

				before := dials.Load()
				exists, _, err := conn.Exists("/mine")
				require.NoError(t, err)
				require.True(t, exists)
				time.Sleep(10 * term)
				require.LessOrEqual(t, dials.Load(), before+1, "it reconnects once, without the login that was refused")
				exists, _, err = conn.Exists("/mine")
				require.NoError(t, err)
				require.True(t, exists)
				require.Equal(t, session, conn.SessionID())
			})
		})
	}
}
