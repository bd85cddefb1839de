// SPDX-License-Identifier: Apache-2.0

// Package everystep is for tests of adapters. It runs a scenario once for each request of a client, with a fault at that request.
package everystep

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock-go/zklock/zktest"
)

// Client is the name of the client whose requests are affected: see zktest.Server.DialFrom.
const Client = "struck"

// faults are the faults that can happen to a request.
var faults = []struct {
	name  string
	fault func(srv *zktest.Server, r *zktest.Request) zktest.Verdict
}{
	{"the request is lost", func(*zktest.Server, *zktest.Request) zktest.Verdict { return zktest.DropBefore }},
	{"the answer is lost", func(*zktest.Server, *zktest.Request) zktest.Verdict { return zktest.LoseReply }},
	{"the session ends", func(srv *zktest.Server, r *zktest.Request) zktest.Verdict {
		srv.ExpireSession(r.Session)
		return zktest.Pass
	}},
	{"the client is cut off until its session has ended", func(srv *zktest.Server, _ *zktest.Request) zktest.Verdict {
		time.AfterFunc(time.Microsecond, func() { srv.Partition(Client) })
		time.AfterFunc(time.Minute, func() { srv.HealClient(Client) })
		return zktest.Pass
	}},
}

// A scenario uses a client named Client. It calls over before the first request that must not be affected.
type scenario func(t *testing.T, srv *zktest.Server, over func())

// Through runs a scenario in virtual time for every fault and every request that Client sends after
// it has connected, each time with a new server. It fails if there are fewer than least requests.
func Through(t *testing.T, least int, play scenario) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			n, struck := 0, true
			for ; struck && !t.Failed(); n++ {
				t.Run(fmt.Sprint("request ", n), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { struck = broken(t, n, f.fault, play) })
				})
			}
			if !t.Failed() && n <= least {
				t.Errorf("only %d requests", n-1)
			}
		})
	}
}

// broken runs the scenario with a fault at the n-th request. It reports whether there was such a request.
func broken(t *testing.T, n int, fault func(*zktest.Server, *zktest.Request) zktest.Verdict, play scenario) bool {
	srv := zktest.Start(t)
	var count atomic.Int32
	var over atomic.Bool
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if r.Client != Client || r.Op == zktest.OpCreateSession || r.Op == zktest.OpPing || over.Load() || int(count.Add(1)) != n+1 {
			return zktest.Pass
		}
		return fault(srv, r)
	})
	play(t, srv, func() { over.Store(true) })
	return int(count.Load()) > n
}
