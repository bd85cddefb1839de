// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// A holder's watch is set shortly after the grant or after a reconnect. Another goroutine of its client can notice earlier that a
// third party has deleted that node. It is not granted before the hold has ended.
//
//zklock:promise P2.2 A8
func TestNoCallerOfAClientHoldsTogetherWithOneWhoseNodeIsGone(t *testing.T) {
	asCohort := func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Cohort(path, nil).Lock }
	try := func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return untilHeld(c.Mutex(path).TryLock)
	}
	for name, pair := range map[string][2]way{
		"mutex behind mutex":   {asMutex, asMutex},
		"try behind mutex":     {asMutex, try},
		"mutex behind cohort":  {asCohort, asMutex},
		"writer behind reader": {asReader, asWriter},
		"reader behind writer": {asWriter, asReader},
		"permits":              {forTwo, forTwo},
	} {
		for _, cut := range []bool{false, true} {
			for _, age := range []time.Duration{0, time.Second} {
				for n := range 12 {
					t.Run(fmt.Sprint(name, " ", cut, " after ", age, " at ", n), func(t *testing.T) {
						virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
							c := connect(t, srv, "a", term)
							unlockSoon(t, c) // the first hold of a client is watched from its start
							hold, err := pair[0](c)(t.Context())
							require.NoError(t, err)
							time.Sleep(age)
							var seen atomic.Int32
							srv.Intercept(func(r *zktest.Request) zktest.Verdict {
								if r.Op != zktest.OpPing && int(seen.Add(1)) == n+1 {
									go deleteNodesOf(srv, hold, cut) // ends with that
								}
								return zktest.Pass
							})
							together := false
							second := lockLater(t.Context(), func(ctx context.Context) (*zklock.Hold, error) {
								other, err := pair[1](c)(ctx)
								together = err == nil && hold.Check() == nil && other.Check() == nil
								return other, err
							})
							<-second.done
							require.NoError(t, second.err)
							require.False(t, together)
							unlock(t, second.hold)
						})
					})
				}
			}
		}
	}
}

// untilHeld calls try until the lock is free.
func untilHeld(try lockFunc) lockFunc {
	return func(ctx context.Context) (*zklock.Hold, error) {
		for {
			if hold, err := try(ctx); err == nil {
				return hold, err
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// deleteNodesOf deletes the nodes of a hold as a third party. If cut is set, it also breaks all connections.
func deleteNodesOf(srv *zktest.Server, hold *zklock.Hold, cut bool) {
	for _, check := range hold.Guard() {
		_ = srv.DeleteNode(check.(*zk.CheckVersionRequest).Path) // already deleted if its session has ended
	}
	if cut {
		srv.DropConnections()
	}
}

// Numbers do not show the order if the directory was deleted and created again, or if the counter is exhausted.
//
//zklock:promise P2.2 A8
func TestNoCallerOfAClientHoldsTogetherWithOneWhoseNodeIsGoneWithAnyNumbers(t *testing.T) {
	try := func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return untilHeld(c.Mutex(path).TryLock)
	}
	for dir, as := range map[string]way{path: try, path + "/leases": forTwo} {
		for _, exhausted := range []bool{false, true} {
			for n := range 8 {
				t.Run(fmt.Sprint(dir, " ", exhausted, " at ", n), func(t *testing.T) {
					virtual(t, zktest.Options{Latency: fixed(500 * time.Microsecond)}, func(t *testing.T, srv *zktest.Server) {
						c := connect(t, srv, "a", term)
						for range 2 { // the first hold of a client is watched from its start
							unlockSoonAs(t, c, as)
						}
						if exhausted {
							lab.SetChildCounter(srv, dir, math.MaxInt32)
						}
						hold, err := as(c)(t.Context())
						require.NoError(t, err)
						strikeOnce(srv, "a", n, func(*zktest.Request) zktest.Verdict {
							deleteNodesOf(srv, hold, false)
							if !exhausted {
								_ = srv.DeleteNode(dir) // there may be contenders again
							}
							return zktest.Pass
						})
						together := false
						second := lockLater(t.Context(), func(ctx context.Context) (*zklock.Hold, error) {
							other, err := as(c)(ctx)
							together = err == nil && hold.Check() == nil && other.Check() == nil
							return other, err
						})
						<-second.done
						require.NoError(t, second.err)
						require.False(t, together)
						unlock(t, second.hold)
					})
				})
			}
		}
	}
}
