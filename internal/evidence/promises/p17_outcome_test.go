// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// A guarded transaction commits, and the hold ends before the reply arrives. The error must not say that nothing was done.
//
//zklock:promise P3.3
func TestAGuardedTransactionIsUncertainHoweverTheHoldEnds(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, srv *zktest.Server, c *zklock.Client, h *zklock.Hold){
		"its node is deleted": func(t *testing.T, srv *zktest.Server, _ *zklock.Client, h *zklock.Hold) {
			require.NoError(t, srv.DeleteNode(h.Node()))
		},
		"its session expires": func(t *testing.T, srv *zktest.Server, _ *zklock.Client, _ *zklock.Hold) {
			srv.ExpireSession(srv.Sessions()[0].ID)
		},
		"its lease runs out":    func(_ *testing.T, srv *zktest.Server, _ *zklock.Client, _ *zklock.Hold) { srv.Partition("a") },
		"it is released":        func(t *testing.T, _ *zktest.Server, _ *zklock.Client, h *zklock.Hold) { unlock(t, h) },
		"its client is closed":  func(_ *testing.T, _ *zktest.Server, c *zklock.Client, _ *zklock.Hold) { c.Close() },
		"its connection breaks": func(_ *testing.T, srv *zktest.Server, _ *zklock.Client, _ *zklock.Hold) { srv.DropConnections() },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.PutNode("/balance", []byte("0")))
				c := connect(t, srv, "a", term)
				hold, err := c.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				time.Sleep(time.Second)
				var once sync.Once
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					verdict := zktest.Pass
					if r.Op == zktest.OpMulti && len(r.Paths) == 2 && r.Paths[1] == "/balance" {
						once.Do(func() { verdict = zktest.DropReply })
					}
					return verdict
				})
				done := make(chan error, 1)
				go func() {
					_, err := hold.Multi(&zk.SetDataRequest{Path: "/balance", Data: []byte("1"), Version: -1})
					done <- err
				}()
				time.Sleep(time.Second)
				end(t, srv, c, hold)
				err = <-done
				node, _ := srv.Node("/balance")
				require.Equal(t, "1", string(node.Data), "it was done")
				require.ErrorIs(t, err, zklock.ErrUncertain)
				for _, nothingDone := range []error{zklock.ErrLost, zklock.ErrReleased, zklock.ErrClosed} {
					require.NotErrorIs(t, err, nothingDone)
				}
			})
		})
	}
}

// After several concurrent calls, the node and the client have the last call's value.
//
//zklock:promise P17.9
func TestConcurrentProclaimsLeaveNodeAndClientEqual(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, raw := connect(t, srv, "a", term), rawClient(t, srv, term)
		e := c.Election(path, nil)
		hold, err := e.Campaign(t.Context(), []byte("first"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		for round := range 10 {
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					if err := e.Proclaim(hold.Context(), fmt.Append(nil, round, " ", i)); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			before, err := e.Leader(t.Context())
			require.NoError(t, err)
			_, err = raw.Set(hold.Node(), []byte("__REVOKE__"), -1) // the holder puts its value back
			require.NoError(t, err)
			time.Sleep(time.Second)
			after, err := e.Leader(t.Context())
			require.NoError(t, err)
			require.Equal(t, string(before.Data), string(after.Data))
		}
		unlock(t, hold)
	})
}

// A call that is refused during another one does not remove that one's value from the client.
//
//zklock:promise P17.9
func TestARefusedProclaimLeavesTheValueOfTheNext(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		c, raw := connect(t, srv, "a", term), rawClient(t, srv, term)
		e := c.Election(path, nil)
		hold, err := e.Campaign(t.Context(), []byte("first"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		var writes atomic.Int32
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpSetData && r.Client == "a" && writes.Add(1) == 1 {
				return zktest.Answer(zktest.CodeNoAuth)
			}
			return zktest.Pass
		})
		refused := make(chan error, 1)
		go func() { refused <- e.Proclaim(hold.Context(), []byte("refused")) }()
		time.Sleep(time.Microsecond)
		require.NoError(t, e.Proclaim(hold.Context(), []byte("next")))
		require.ErrorIs(t, <-refused, zk.ErrNoAuth)
		_, err = raw.Set(hold.Node(), []byte("__REVOKE__"), -1) // the holder puts its value back
		require.NoError(t, err)
		time.Sleep(time.Second)
		leader, err := e.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, "next", string(leader.Data))
		unlock(t, hold)
	})
}

// A holder restores its value when Curator's Revoker overwrites it. A value that a server has refused is not restored.
//
//zklock:promise P17.9
func TestARefusedProclaimIsNotTheValueThatIsRestored(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, raw := connect(t, srv, "a", term), rawClient(t, srv, term)
		e := c.Election(path, nil)
		hold, err := e.Campaign(t.Context(), []byte("first"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		pass := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpSetData && r.Client == "a" {
				return zktest.Answer(zktest.CodeNoAuth)
			}
			return zktest.Pass
		})
		require.ErrorIs(t, e.Proclaim(hold.Context(), []byte("refused")), zk.ErrNoAuth)
		pass()
		_, err = raw.Set(hold.Node(), []byte("__REVOKE__"), -1)
		require.NoError(t, err)
		time.Sleep(time.Second)
		leader, err := e.Leader(t.Context())
		require.NoError(t, err)
		require.True(t, leader.Revoked)
		require.Equal(t, "first", string(leader.Data))
		unlock(t, hold)
	})
}

// A call does not wait for another call's turn longer than its context allows.
//
//zklock:promise P17.9
func TestAProclaimThatWaitsForAnotherEndsWithItsContext(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := connect(t, srv, "a", term).Election(path, nil)
		hold, err := e.Campaign(t.Context(), []byte("first"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		var once sync.Once
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			verdict := zktest.Pass
			if r.Op == zktest.OpSetData {
				once.Do(func() { verdict = zktest.Delay(2 * time.Second) })
			}
			return verdict
		})
		slow := make(chan error, 1)
		go func() { slow <- e.Proclaim(hold.Context(), []byte("slow")) }()
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(hold.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, e.Proclaim(ctx, []byte("impatient")), context.DeadlineExceeded)
		require.NoError(t, <-slow)
		leader, err := e.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, "slow", string(leader.Data))
		unlock(t, hold)
	})
}

// Downgrade and Proclaim keep a request to release in the data that they overwrite.
//
//zklock:promise P19.5
func TestWritingTheOwnDataKeepsARevocation(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, operator := connect(t, srv, "a", term), connect(t, srv, "operator", term)
		writer, err := c.RWMutex(path).Lock(t.Context())
		require.NoError(t, err)
		reader := lockLater(t.Context(), operator.RWMutex(path).RLock)
		require.False(t, reader.returned())
		require.NoError(t, operate.Revoke(t.Context(), operator, contenderAt(t, operator, 0)))
		require.NoError(t, writer.Downgrade(t.Context()))
		require.True(t, isRevoked(writer))
		who := contenderAt(t, operator, 0)
		require.True(t, who.Revoked)
		require.True(t, who.Holds)
		require.Equal(t, operate.KindRead, who.Kind)
		<-reader.done
		require.NoError(t, reader.err, "it is a reader's to all others as well")
		unlock(t, reader.hold)
		unlock(t, writer)
	})
}
