// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// A client that acquires and releases locks all the time sends as many transactions for its heartbeats as one that holds and does nothing
// else: each is sent in the moment in which it can prove more, and what was sent before cannot.
//
//zklock:promise P9.7
func TestABusyClientSendsNoMoreTransactionsForHeartbeatsThanOneThatHolds(t *testing.T) {
	for _, pause := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond} {
		virtual(t, zktest.Options{Servers: 3, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
			c := connect(t, srv, "a", term)
			var checks, writes atomic.Int64
			defer srv.Intercept(func(q *zktest.Request) zktest.Verdict {
				switch {
				case q.Op == zktest.OpMulti && !slices.ContainsFunc(q.Ops, func(op zktest.Op) bool { return op != zktest.OpCheck }):
					checks.Add(1)
				case q.Op == zktest.OpMulti || q.Op == zktest.OpCreate || q.Op == zktest.OpCreate2 || q.Op == zktest.OpDelete || q.Op == zktest.OpSetData:
					writes.Add(1)
				}
				return zktest.Pass
			})()
			held, err := c.Mutex("/other").Lock(t.Context())
			require.NoError(t, err)
			const during = 10 * term
			checks.Store(0)
			least := term
			for begin := time.Now(); time.Since(begin) < during; time.Sleep(pause) {
				hold, err := c.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				least = min(least, held.Remaining())
				time.Sleep(pause)
				unlock(t, hold)
			}
			require.InDelta(t, 22.5*during.Minutes(), checks.Load(), 2, "next to %d writes", writes.Load())
			require.GreaterOrEqual(t, least, term*2/5)
			unlock(t, held)
		})
	}
}
