// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// Tests with a third party that has all permissions on the nodes of a queue.

// deleteInOrder deletes nodes one after the other, or all in one transaction.
func deleteInOrder(t *testing.T, conn *zk.Conn, together bool, nodes ...string) {
	t.Helper()
	var ops []any
	for _, node := range nodes {
		if !together {
			require.NoError(t, conn.Delete(node, -1))
		}
		ops = append(ops, &zk.DeleteRequest{Path: node, Version: -1})
	}
	if together {
		_, err := conn.Multi(ops...)
		require.NoError(t, err)
	}
}

// inQueue returns the full paths of a queue in its order.
func inQueue(t *testing.T, c *zklock.Client, path string) []string {
	t.Helper()
	q, err := operate.Inspect(t.Context(), c, path)
	require.NoError(t, err)
	var nodes []string
	for _, who := range q.Contenders {
		nodes = append(nodes, who.Node)
	}
	return nodes
}

// TestAWaiterWhoseOwnNodeWasDeletedFirstIsNotGranted deletes a waiter's node and then its predecessor's, many times: two
// goroutines are notified of the two deletions, in any order.
//
//zklock:promise P2.4
func TestAWaiterWhoseOwnNodeWasDeletedFirstIsNotGranted(t *testing.T) {
	for name, lock := range map[string]func(c *zklock.Client) lockFunc{
		"mutex":    func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock },
		"reader":   func(c *zklock.Client) lockFunc { return c.RWMutex(path).RLock },
		"election": func(c *zklock.Client) lockFunc { return campaign(c.Election(path, nil)) },
		"all of several": func(c *zklock.Client) lockFunc {
			return func(ctx context.Context) (*zklock.Hold, error) { return c.LockAll(ctx, c.Mutex(path)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				holder, waiter, third := connect(t, srv, "holder", term), connect(t, srv, "waiter", term), rawClient(t, srv, term)
				for range 50 {
					for _, together := range []bool{false, true} {
						hold, err := holder.RWMutex(path).Lock(t.Context())
						require.NoError(t, err)
						time.Sleep(time.Second)
						next := lockLater(t.Context(), lock(waiter))
						time.Sleep(time.Second)
						nodes := inQueue(t, holder, path)
						require.Len(t, nodes, 2)
						deleteInOrder(t, third, together, nodes[1], nodes[0])
						require.True(t, next.returned())
						require.NoError(t, next.err)
						require.NotEqual(t, nodes[1], next.hold.Node(), "granted by a node that was gone before its turn")
						require.ErrorIs(t, hold.Check(), zklock.ErrLost)
						unlock(t, next.hold)
					}
				}
			})
		})
	}
}

//zklock:promise P7.1
func TestAWaiterWhoseNodeWasDeletedQueuesAgainAtOnce(t *testing.T) {
	for name, lock := range map[string]func(c *zklock.Client) lockFunc{
		"next in line":             func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock },
		"a reader, which may hold": func(c *zklock.Client) lockFunc { return c.RWMutex(path).RLock },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				holder, waiter, third := connect(t, srv, "holder", term), connect(t, srv, "waiter", term), rawClient(t, srv, term)
				hold, err := holder.RWMutex(path).Lock(t.Context())
				require.NoError(t, err)
				next := lockLater(t.Context(), lock(waiter))
				time.Sleep(time.Second)
				node := inQueue(t, holder, path)[1]
				require.NoError(t, third.Delete(node, -1))
				time.Sleep(term)
				require.Len(t, inQueue(t, holder, path), 2, "while the lock is held")
				unlock(t, hold)
				time.Sleep(time.Second)
				require.True(t, next.returned())
				require.NoError(t, next.err)
				require.NotEqual(t, node, next.hold.Node())
			})
		})
	}
}

func campaign(e *zklock.Election) lockFunc {
	return func(ctx context.Context) (*zklock.Hold, error) { return e.Campaign(ctx, nil) }
}

// TestAWaiterWhoseNodeWasDeletedWhileItWasDisconnectedIsNotGranted reports both deletions after a reconnect, in any order.
//
//zklock:promise P2.4
func TestAWaiterWhoseNodeWasDeletedWhileItWasDisconnectedIsNotGranted(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		holder, waiter, third := connect(t, srv, "holder", term), connect(t, srv, "waiter", term), rawClient(t, srv, term)
		for range 50 {
			hold, err := holder.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			next := lockLater(t.Context(), waiter.Mutex(path).Lock)
			time.Sleep(time.Second)
			nodes := inQueue(t, holder, path)
			require.Len(t, nodes, 2)
			srv.DropConnections()
			_, err = third.Multi(
				&zk.DeleteRequest{Path: nodes[1], Version: -1},
				&zk.DeleteRequest{Path: nodes[0], Version: -1})
			for err != nil { // its connection was broken as well
				_, err = third.Multi(
					&zk.DeleteRequest{Path: nodes[1], Version: -1},
					&zk.DeleteRequest{Path: nodes[0], Version: -1})
			}
			<-next.done
			require.NoError(t, next.err)
			require.NotEqual(t, nodes[1], next.hold.Node(), "granted by a node that was gone before its turn")
			synctest.Wait()
			require.ErrorIs(t, hold.Check(), zklock.ErrLost)
			unlock(t, next.hold)
		}
	})
}

// TestATryWhoseOwnNodeIsGoneIsNotGranted deletes a reader's node, and then a writer leaves between the reader's listing and its
// read of that writer.
//
//zklock:promise P2.4
func TestATryWhoseOwnNodeIsGoneIsNotGranted(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		writer, c, third := connect(t, srv, "writer", term), connect(t, srv, "try", term), rawClient(t, srv, term)
		hold, err := writer.RWMutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Downgrade(t.Context()))
		gets := 0
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client != "try" || r.Op != zktest.OpGetData || r.Path != hold.Node() {
				return zktest.Pass
			}
			if gets++; gets == 2 { // the look that lets it pass; the first was before it wrote anything
				for _, name := range queue(srv, path) {
					if node := path + "/" + name; node != hold.Node() {
						assert.NoError(t, third.Delete(node, -1))
					}
				}
			}
			return zktest.Pass
		})
		_, err = c.RWMutex(path).TryRLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrNotConnected, "its node was gone")
		require.Equal(t, 2, gets)
		unlock(t, hold)
	})
}

// A slow read of another node must not let the last read of our own nodes become too old.
//
//zklock:promise P1.6
func TestPermitsThatVanishBeforeTheGrantAreNotGranted(t *testing.T) {
	for i := range 3 {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			taker := connect(t, srv, "taker", term)
			made, slow := false, false
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				made = made || r.Client == "taker" && makesContender(r) && r.Op == zktest.OpMulti
				if made && !slow && r.Client == "taker" && r.Op == zktest.OpGetData && r.Path == path+"/leases" {
					slow = true
					return zktest.Delay(200 * time.Millisecond)
				}
				return zktest.Pass
			})
			taken := lockLater(t.Context(), acquire(taker, 3, 3))
			time.Sleep(100 * time.Millisecond)
			require.False(t, taken.returned())
			permits := srv.Children(path + "/leases")
			require.Len(t, permits, 3)
			require.NoError(t, srv.DeleteNode(path+"/leases/"+permits[i]))
			<-taken.done
			require.NoError(t, taken.err)
			for _, g := range taken.hold.Guard() {
				check := g.(*zk.CheckVersionRequest)
				_, there := srv.Node(check.Path)
				require.True(t, there, "%s was deleted before the grant", check.Path)
			}
			unlock(t, taken.hold)
		})
	}
}

// Verifying that one of several nodes exists can take as long as a reconnect and the retries at a throttling server. The other
// nodes may be deleted meanwhile.
//
//zklock:promise P2.4
func TestNodesThatWereCheckedFirstAreCheckedAgain(t *testing.T) {
	for name, slow := range map[string]func(srv *zktest.Server) string{
		"another permit":                func(srv *zktest.Server) string { return path + "/leases/" + inOrder(srv, path+"/leases")[2] },
		"the place among those who ask": func(srv *zktest.Server) string { return path + "/locks/" + srv.Children(path + "/locks")[0] },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
				holder, taker := connect(t, srv, "holder", term), connect(t, srv, "taker", term)
				held, err := acquire(holder, 2, 2)(t.Context())
				require.NoError(t, err)
				taken := lockLater(t.Context(), acquire(taker, 2, 2))
				time.Sleep(time.Second)
				permits := inOrder(srv, path+"/leases")
				require.Len(t, permits, 4)
				one := slow(srv)
				var refused atomic.Int32
				heal := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Client == "taker" && (r.Path == one || r.Op == zktest.OpSetWatches) {
						refused.Add(1)
						return zktest.Answer(-127) // the server is throttling
					}
					return zktest.Pass
				})
				srv.DropConnections()
				time.Sleep(100 * time.Millisecond)
				unlock(t, held)
				time.Sleep(50 * time.Millisecond)
				require.False(t, taken.returned(), "nothing was slow")
				require.NoError(t, srv.DeleteNode(path+"/leases/"+permits[3]))
				time.Sleep(50 * time.Millisecond)
				require.Positive(t, refused.Load())
				heal()
				<-taken.done
				require.NoError(t, taken.err)
				for _, g := range taken.hold.Guard() {
					check := g.(*zk.CheckVersionRequest)
					_, there := srv.Node(check.Path)
					require.True(t, there, "%s was deleted before the grant", check.Path)
				}
				unlock(t, taken.hold)
			})
		})
	}
}

// inOrder returns the names of a directory's nodes in the order of their numbers.
func inOrder(srv *zktest.Server, dir string) []string {
	return slices.SortedFunc(slices.Values(srv.Children(dir)), func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
}
