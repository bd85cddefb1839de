package zklock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// hooked returns a connection made with hooks of its own.
func hooked(t *testing.T, srv *zktest.Server) (*zk.Conn, *zklock.Hooks) {
	t.Helper()
	hooks := zklock.NewHooks(srv.DialFrom("attached"))
	conn, _, err := zk.Connect(srv.Addrs(), term, zk.WithDialer(hooks.Dial), zk.WithLogInfo(false),
		zk.WithHostProvider(&oneRound{}), zk.WithLogger(silent{}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn, hooks
}

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
func TestATickTimeCountsForAConnectionThatIsThereAlready(t *testing.T) {
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

// An attached client keeps its promise when its server is cut off, as any other.
func TestAnAttachedHoldEndsInTime(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		conn, hooks := hooked(t, srv)
		client, err := zklock.Attach(t.Context(), conn, hooks, nil)
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, lowest(hold, 3*term), term*4/10)
		end := endOf(hold)
		next := lockLater(t.Context(), connect(t, srv, "next", term).Mutex(path).Lock)
		srv.Partition("attached")
		<-next.done
		<-end.done
		require.NoError(t, next.err)
		require.False(t, end.at.After(next.at))
		require.ErrorIs(t, end.cause, zklock.ErrLost)
		unlock(t, next.hold)
		srv.HealClient("attached")
	})
}

// A refusal by one server alone is no evidence of a quorum.
func TestARefusalByOneServerIsNoQuorums(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		conn, hooks := hooked(t, srv)
		client, err := zklock.Attach(t.Context(), conn, hooks, nil)
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpMulti || r.Op == zktest.OpCreate {
				return zktest.Answer(-102) // NoAuth, as a server checks it by itself
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*term)
		defer cancel()
		for ctx.Err() == nil && hold.Check() == nil {
			_, _ = conn.Create("/x", nil, 0, zk.WorldACL(zk.PermAll))
			time.Sleep(time.Second)
		}
		require.NoError(t, ctx.Err(), "the hold went on without a word of the quorum")
	})
}

// Clients that share a connection all learn what happens to their nodes, also when others of them have closed.
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
				conn, hooks := hooked(t, srv)
				client, err := zklock.Attach(t.Context(), conn, hooks, nil)
				require.NoError(t, err)
				t.Cleanup(func() { client.Close() })
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
