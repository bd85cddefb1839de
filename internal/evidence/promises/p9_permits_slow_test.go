// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// TestManyPermitsAreGrantedAsFastAsOne acquires permits with replies so slow that the lease must be proven again before each
// grant. This is done once for all nodes. They are watched meanwhile, and read just before the grant.
//
//zklock:promise P9.5
func TestManyPermitsAreGrantedAsFastAsOne(t *testing.T) {
	for latency := 80 * time.Millisecond; latency <= 130*time.Millisecond; latency += 10 * time.Millisecond {
		var alone time.Duration // how long it took at most for one permit
		for _, k := range []int{1, 2, 20} {
			t.Run(fmt.Sprint(k, " after ", latency), func(t *testing.T) {
				virtual(t, zktest.Options{TickTime: 500 * time.Millisecond, Latency: fixed(latency)}, func(t *testing.T, srv *zktest.Server) {
					c := connect(t, srv, "a", 3*time.Second)
					time.Sleep(time.Second)                                 // until the client knows the servers: the order of replies at one moment would decide what it asks
					other, err := c.Mutex("/locks/other").Lock(t.Context()) // heartbeats look at its node as well
					require.NoError(t, err)
					looks := 0
					srv.Intercept(func(r *zktest.Request) zktest.Verdict {
						isOther := func(node string) bool { return !strings.HasPrefix(node, path+"/leases/") }
						if r.Op == zktest.OpMulti && r.Ops[0] == zktest.OpCheck && !slices.ContainsFunc(r.Paths, isOther) {
							looks++
						}
						return zktest.Pass
					})
					most := time.Duration(0)
					for i := range 20 {
						looks = 0
						began := time.Now()
						hold, err := acquire(c, 20, k)(t.Context())
						require.NoError(t, err)
						most = max(most, time.Since(began))
						require.LessOrEqual(t, looks, 1, "acquire %d", i)
						unlock(t, hold)
						time.Sleep(137 * time.Millisecond)
					}
					if k == 1 {
						alone = most
					}
					require.LessOrEqual(t, most, alone)
					unlock(t, other)
				})
			})
		}
	}
}
