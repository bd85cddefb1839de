// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// A server throttles everything except pings. A client that holds nothing repeats its heartbeats ever more rarely, and is granted a lock soon
// after the server has recovered.
//
//zklock:promise P9.12
func TestAnIdleClientDoesNotBurdenAServerThatThrottles(t *testing.T) {
	for _, timeout := range []time.Duration{4 * time.Second, 10 * time.Second, 30 * time.Second} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			c := connect(t, srv, "a", timeout)
			time.Sleep(2 * timeout)
			stop := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if r.Op == zktest.OpPing {
					return zktest.Pass
				}
				return zktest.Answer(-127)
			})
			time.Sleep(2 * timeout)
			resetCounts(srv)
			time.Sleep(timeout)
			sent := 0
			for op, n := range srv.Requests() {
				if op != zktest.OpPing {
					sent += n
				}
			}
			require.LessOrEqual(t, sent, 60, "in a session timeout of %v: %v", timeout, srv.Requests())
			stop()
			began := time.Now()
			hold := grantedSoon(t, asMutex(c))
			require.Less(t, time.Since(began), timeout)
			unlock(t, hold)
		})
	}
}
