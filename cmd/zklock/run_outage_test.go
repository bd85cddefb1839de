// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// outage is a server that ends each connection until it is over.
type outage struct {
	addr  string
	over  atomic.Bool
	tried chan struct{} // has a value if a client has tried to connect
}

func startOutage(t *testing.T, srv *zktest.Server) *outage {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	o := &outage{addr: l.Addr().String(), tried: make(chan struct{}, 1000)}
	// Owned by the test; ends when l is closed.
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if !o.over.Load() {
				c.Close()
				o.tried <- struct{}{}
				continue
			}
			to, err := net.Dial("tcp", srv.Addr())
			if err != nil {
				c.Close()
				continue
			}
			// Owned by the test; each ends when either side closes its connection.
			go func() { io.Copy(to, c); to.Close() }()
			go func() { io.Copy(c, to); c.Close() }()
		}
	}()
	return o
}

// The last column of "What happens to a run" in docs/cron.md: after an outage that has lasted for several periods, the newest run
// is done once by the fleet, if the starts keep trying to connect for so long. Those of earlier periods are given up, and a start
// that has stopped trying is done by the next one.
//
//zklock:promise P10.12
func TestAfterAnOutageTheNewestRunOfAJobIsDoneOnce(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	o := startOutage(t, srv)
	start := func(args ...string) *invocation {
		i := zklockCommand(t, o.addr, append([]string{"run"}, args...)...).start()
		select {
		case <-o.tried: // so it has chosen its slot
		case <-time.After(endsWithin):
			require.FailNow(t, "zklock does not connect", i.err.String())
		}
		return i
	}
	early := start("--every", "1s", "--connect-timeout", "2m", "/cron/report", "--", "echo", "early")
	chosen := time.Now()
	code, _, text := run(t, o.addr, "run", "--every", "24h", "--connect-timeout", "300ms", "/cron/impatient", "--", "echo", "ran")
	assert.EqualValues(t, outcome.Unavailable, code, text)
	for len(o.tried) > 0 {
		<-o.tried
	}
	hosts := []*invocation{start("--every", "24h", "--connect-timeout", "2m", "/cron/report", "--", "echo", "newest"), start("--every", "24h", "--connect-timeout", "2m", "/cron/report", "--", "echo", "newest")}
	time.Sleep(time.Until(chosen.Add(time.Second))) // until the slot of the first start is over
	o.over.Store(true)

	assert.EqualValues(t, outcome.NotAcquired, early.code(), early.err.String())
	assert.Contains(t, early.err.String(), "is over, and was not begun by this host")
	assert.Empty(t, early.out.String())
	done := ""
	for _, i := range hosts {
		assert.Zero(t, i.code(), i.err.String())
		done += i.out.String()
	}
	assert.Equal(t, "newest\n", done)
	code, out, text := run(t, o.addr, "run", "--every", "24h", "/cron/impatient", "--", "echo", "ran")
	assert.Zero(t, code, text)
	assert.Equal(t, "ran\n", out, "the next start of the period does it")
}
