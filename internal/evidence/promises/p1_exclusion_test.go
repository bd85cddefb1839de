// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// P1: one holder at a time, by the server's state.

//zklock:promise P1.1
func TestOnlyOneHoldsAmongGoroutinesInstancesAndClients(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var inside, most, grants atomic.Int32
		var wg sync.WaitGroup
		for c := range 4 {
			client := connect(t, srv, fmt.Sprint("c", c), term)
			for range 5 {
				wg.Go(func() {
					for range 3 {
						err := client.Mutex(path).Do(t.Context(), func(context.Context) error {
							most.Store(max(most.Load(), inside.Add(1)))
							time.Sleep(time.Millisecond)
							inside.Add(-1)
							grants.Add(1)
							return nil
						})
						assert.NoError(t, err)
					}
				})
			}
		}
		wg.Wait()
		require.EqualValues(t, 1, most.Load())
		require.EqualValues(t, 60, grants.Load())
		noGhost(t, srv, path)
	})
}

//zklock:promise P1.2
func TestForeignNodesHarmNoContender(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		for _, name := range []string{
			"_c_short", "_c_", "lock-", "config", "-lock-", "_c_x-lock-", "_c_x-lock-12", "_c_x-lock-99999999999",
			"_c_x-lock-00000000-1", "__lock__", "lock-abc", "_c_x-lock-00000000000000000000000000", "READ", "x__lock__-",
		} {
			require.NoError(t, srv.PutNode(path+"/"+name, nil))
		}
		hold, err := connect(t, srv, "a", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		unlock(t, hold)
	})
}

//zklock:promise P1.2
func TestNodesOfOtherClientsAreHonoured(t *testing.T) {
	for _, name := range []string{
		"_c_0123456789abcdef0123456789abcdef-lock-0000000000", "_c_3f0a9bd4-1f34-4c1a-8ce4-93e2a1c0f0aa-lock-0000000000",
		"lock-0000000000", "0123456789abcdef0123456789abcdef__lock__0000000000", "_c_3f0a9bd4-1f34-4c1a-8ce4-93e2a1c0f0aa-__WRIT__0000000000",
		"_c_3f0a9bd4-1f34-4c1a-8ce4-93e2a1c0f0aa-__READ__0000000000", "0123456789abcdef0123456789abcdef__rlock__0000000000",
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.PutNode(path+"/"+name, nil))
				a := lockLater(t.Context(), connect(t, srv, "a", term).Mutex(path).Lock)
				time.Sleep(time.Minute)
				require.False(t, a.returned())
				require.NoError(t, srv.DeleteNode(path+"/"+name))
				<-a.done
				require.NoError(t, a.err)
				unlock(t, a.hold)
			})
		})
	}
}

//zklock:promise P1.3
func TestAnExhaustedCounterKeepsOrderAndExclusion(t *testing.T) {
	for _, wrap := range []bool{false, true} {
		t.Run(fmt.Sprintf("wrap=%v", wrap), func(t *testing.T) {
			virtual(t, lab.With(zktest.Options{}, lab.Options{WrapCounter: wrap}), func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.PutNode(path, nil))
				lab.SetChildCounter(srv, path, math.MaxInt32-8)
				clients := []*zklock.Client{connect(t, srv, "a", term), connect(t, srv, "b", term), connect(t, srv, "c", term)}
				var inside atomic.Int32
				var wg sync.WaitGroup
				var mu sync.Mutex
				var order []int
				last := int64(0)
				for i := range 100 {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * time.Millisecond)
						hold, err := clients[i%3].Mutex(path).Lock(t.Context())
						if !assert.NoError(t, err) {
							return
						}
						assert.EqualValues(t, 1, inside.Add(1))
						time.Sleep(time.Second)
						mu.Lock()
						order = append(order, i)
						assert.Greater(t, hold.Token(), last)
						last = hold.Token()
						mu.Unlock()
						inside.Add(-1)
						assert.NoError(t, hold.Unlock(t.Context()))
					})
				}
				wg.Wait()
				for i := range order {
					require.Equal(t, i, order[i])
				}
				noGhost(t, srv, path)
			})
		})
	}
}
