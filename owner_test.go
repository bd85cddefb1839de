package zklock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// A holder watches its node from a moment after the grant, or after a reconnect. Another goroutine of its client can see
// sooner that somebody has deleted that node. It is granted nothing before the hold has ended.
func TestNobodyOfAClientHoldsBesideOneWhoseNodeIsGone(t *testing.T) {
	asCohort := func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Cohort(path, nil).Lock }
	try := func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return func(ctx context.Context) (*zklock.Hold, error) {
			for { // until nobody is there
				if hold, err := c.Mutex(path).TryLock(ctx); err == nil {
					return hold, err
				}
				time.Sleep(time.Millisecond)
			}
		}
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
							unlockSoon(t, c) // the first hold of a client is watched from the beginning
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

// deleteNodesOf deletes the nodes of a hold as a third party, and cuts all connections if told so.
func deleteNodesOf(srv *zktest.Server, hold *zklock.Hold, cut bool) {
	for _, check := range hold.Guard() {
		_ = srv.DeleteNode(check.(*zk.CheckVersionRequest).Path) // gone already, if its session has ended
	}
	if cut {
		srv.DropConnections()
	}
}
