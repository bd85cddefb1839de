// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

const (
	mbits = 1_000_000 / 8 // bytes per second
	large = 900 << 10     // bytes of a large write

	// lessAtOnce is the minimum of Remaining if replies suddenly take longer: the replies of one heartbeat may take T/50 longer
	// in total.
	lessAtOnce = term*4/10 - term/50
)

// A client sends much more than its link can carry. Its heartbeats do not wait until all of it is sent.
//
//zklock:promise P2.14
func TestLargeTransactionsCostNoHold(t *testing.T) {
	type load struct {
		rate, writers int
		after         time.Duration // when the writes begin
		least         time.Duration // left of the lease at any time
	}
	loads := map[string]load{"10 Mbit/s": {10 * mbits, 30, 0, term / 6}}
	for n := range 10 / oneIn(5) { // at different times between two heartbeats
		after := time.Duration(n) * 293 * time.Millisecond
		loads[fmt.Sprint("100 Mbit/s after ", after)] = load{100 * mbits, 150, after, lessAtOnce}
	}
	for name, c := range loads {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.PutNode("/data", nil))
				client := connect(t, srv, "a", term)
				hold, err := client.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				time.Sleep(term + c.after)
				lab.LimitUpload(srv, "a", c.rate)
				var all sync.WaitGroup
				data := make([]byte, large)
				for range c.writers {
					all.Go(func() {
						_, err := hold.Multi(&zk.SetDataRequest{Path: "/data", Data: data, Version: -1})
						assert.NoError(t, err)
					})
				}
				least := lowest(hold, 3*term)
				all.Wait()
				t.Log("least", least)
				require.GreaterOrEqual(t, least, c.least)
				unlock(t, hold)
			})
		})
	}
}

// Writes of the program on its own connection do not delay an attached client's heartbeats.
//
//zklock:promise P2.14 P18.5
func TestLargeWritesOfTheProgramCostNoAttachedHold(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/data", nil))
		conn, client := attached(t, srv)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(term)
		lab.LimitUpload(srv, "attached", 100*mbits)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				_, err := conn.Set("/data", make([]byte, large), -1)
				assert.NoError(t, err)
			})
		}
		least := lowest(hold, 2*term)
		all.Wait()
		t.Log("least", least)
		require.GreaterOrEqual(t, least, lessAtOnce)
		unlock(t, hold)
	})
}
