// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// seen returns the numbers of holders and waiters that Inspect shows.
func seen(t *testing.T, c *zklock.Client) (holds, waits int) {
	t.Helper()
	q, err := operate.Inspect(t.Context(), c, path)
	require.NoError(t, err)
	for _, who := range q.Contenders {
		if who.Holds {
			holds++
		} else {
			waits++
		}
	}
	return holds, waits
}

//zklock:promise P19.1
func TestInspectShowsAllHoldersAfterAResize(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		all := inTurn(t, acquire(a, 3, 2), acquire(b, 3, 1))
		time.Sleep(time.Second)
		require.NoError(t, a.Semaphore(path, 3).Resize(t.Context(), 1))
		all = append(all, inTurn(t, acquire(b, 1, 1))...)
		time.Sleep(time.Second)
		holds, waits := seen(t, a)
		require.Equal(t, []int{3, 1}, []int{holds, waits})
		for _, x := range all {
			<-x.done
			unlock(t, x.hold)
		}
	})
}

//zklock:promise P19.1
func TestInspectShowsAWaiterForPermitsOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		all := inTurn(t, acquire(a, 3, 2), acquire(b, 3, 3))
		time.Sleep(time.Second)
		require.Len(t, srv.Children(path+"/leases"), 5)
		holds, waits := seen(t, a)
		require.Equal(t, []int{2, 1}, []int{holds, waits}, "the one permit that is free is not held")
		unlock(t, all[0].hold)
		<-all[1].done
		time.Sleep(time.Second)
		holds, waits = seen(t, a)
		require.Equal(t, []int{3, 0}, []int{holds, waits})
		unlock(t, all[1].hold)
	})
}

// Operators see, revoke and evict a contender by its place in the queue.
//
//zklock:promise P19.5
func TestARevokedWaiterForPermitsIsNotifiedWhenItHolds(t *testing.T) {
	for name, curators := range map[string]bool{"our request": false, "Curator's": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				a, b, raw := connect(t, srv, "a", term), connect(t, srv, "b", term), rawClient(t, srv, term)
				all := inTurn(t, acquire(a, 2, 1), acquire(b, 2, 2), acquire(b, 2, 1))
				time.Sleep(time.Second)
				for i := range 2 { // both wait: the first one with its nodes, the second one for its turn
					who := contenderAt(t, a, 1+i)
					require.False(t, who.Holds)
					if curators {
						_, err := raw.Set(who.Node, []byte("__REVOKE__"), -1)
						require.NoError(t, err)
					} else {
						require.NoError(t, operate.Revoke(t.Context(), a, who))
					}
				}
				for i, x := range all {
					<-x.done
					require.NoError(t, x.err)
					require.Equal(t, i > 0, isRevoked(x.hold))
					unlock(t, x.hold)
				}
				noGhost(t, srv, path)
			})
		})
	}
}

// The request arrives when the place has been read and is just being deleted.
//
//zklock:promise P19.5
func TestARevocationIsNotLostBetweenQueueNodeAndPermits(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, raw := connect(t, srv, "a", term), rawClient(t, srv, term)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "a" && r.Op == zktest.OpDelete {
				raw.Set(r.Path, []byte("__REVOKE__"), 0)
			}
			return zktest.Pass
		})
		hold, err := a.Semaphore(path, 2).Acquire(t.Context(), 2)
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.True(t, isRevoked(hold))
		require.Empty(t, srv.Children(path+"/locks"))
		unlock(t, hold)
	})
}

// A request to release remains valid if the contender queues again.
//
//zklock:promise P19.5 P7.1
func TestARevocationSurvivesQueueingAgain(t *testing.T) {
	for name, ask := range map[string]way{
		"mutex":   func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Mutex(path).Lock },
		"permits": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return acquire(c, 2, 2) },
		"election": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
			return func(ctx context.Context) (*zklock.Hold, error) {
				return c.Election(path, nil).Campaign(ctx, []byte("v"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				a, b, operator := connect(t, srv, "a", term), connect(t, srv, "b", term), connect(t, srv, "operator", term)
				all := inTurn(t, ask(a), ask(b))
				time.Sleep(time.Second)
				q, err := operate.Inspect(t.Context(), operator, path)
				require.NoError(t, err)
				who := q.Contenders[len(q.Contenders)-1]
				require.False(t, who.Holds)
				require.NoError(t, operate.Revoke(t.Context(), operator, who))
				time.Sleep(time.Second)
				srv.ExpireSession(who.Session)
				time.Sleep(5 * time.Second)
				q, err = operate.Inspect(t.Context(), operator, path)
				require.NoError(t, err)
				again := q.Contenders[len(q.Contenders)-1]
				require.NotEqual(t, who.Session, again.Session)
				require.True(t, again.Revoked, "it is shown as asked")
				require.False(t, all[1].returned())
				unlock(t, all[0].hold)
				<-all[1].done
				require.NoError(t, all[1].err)
				require.True(t, isRevoked(all[1].hold))
				unlock(t, all[1].hold)
			})
		})
	}
}

// Inspect reads many nodes at the same time.
//
//zklock:promise P9.6
func TestInspectOfAThousandIsNotAThousandRoundTrips(t *testing.T) {
	slow := zktest.Options{Latency: func(*rand.Rand) time.Duration { return 10 * time.Millisecond }}
	virtual(t, slow, func(t *testing.T, srv *zktest.Server) {
		c, raw := connect(t, srv, "a", 40*time.Second), rawClient(t, srv, 40*time.Second)
		require.NoError(t, srv.PutNode(path, nil))
		for range 10 {
			var ops []any
			for range 100 {
				ops = append(ops, &zk.CreateRequest{Path: path + "/" + goName, Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeralSequential})
			}
			_, err := raw.Multi(ops...)
			require.NoError(t, err)
		}
		start := time.Now()
		q, err := operate.Inspect(t.Context(), c, path)
		require.NoError(t, err)
		require.Len(t, q.Contenders, 1000)
		require.Less(t, time.Since(start), 100*20*time.Millisecond, "of 1,002 round trips")
		require.True(t, q.Contenders[0].Holds)
		require.False(t, q.Contenders[999].Holds)
		for i := range 999 {
			require.Less(t, q.Contenders[i].Node, q.Contenders[i+1].Node, "in order")
		}
	})
}

//zklock:promise P9.6
func TestInspectKeepsTheBeginningOfLongData(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		value := make([]byte, 100_000)
		copy(value, "begin")
		hold, err := c.Election(path, nil).Campaign(t.Context(), value)
		require.NoError(t, err)
		who := contenderAt(t, c, 0)
		require.Equal(t, value[:4096], who.Data)
		require.Equal(t, 100_000-4096, who.Omitted)
		leader, err := c.Election(path, nil).Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, value, leader.Data, "a leader's value is whole")
		unlock(t, hold)
	})
}
