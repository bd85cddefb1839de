// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
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
	loads := map[string]load{"10 Mbit/s": {10 * mbits, 30, 0, term / 3}}
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

// A large write takes as long as several replies may take together on a slow link. It waits until enough of the lease remains.
//
//zklock:promise P2.14
func TestLargeTransactionsOverASlowLinkCostNoHold(t *testing.T) {
	for _, c := range []struct {
		session       time.Duration
		rate, writers int
		size          int
	}{
		{4 * time.Second, 10 * mbits, 5, large},
		{4 * time.Second, 10 * mbits, 100, 60 << 10},
		{4 * time.Second, 8 * mbits, 1, large},
		{term, 4 * mbits, 5, large},
		{term, 3 * mbits, 1, large},
		{30 * time.Second, 2 * mbits, 5, large},
	} {
		lost, failed, lowestEver := 0, atomic.Int32{}, 1.0
		const phases = 8
		for phase := range time.Duration(phases) {
			virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.PutNode("/data", nil))
				client := connect(t, srv, "a", c.session)
				hold, err := client.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				time.Sleep(2*c.session + phase*c.session/phases/3)
				lab.LimitUpload(srv, "a", c.rate)
				var all sync.WaitGroup
				for range c.writers {
					all.Go(func() {
						if _, err := hold.Multi(&zk.SetDataRequest{Path: "/data", Data: make([]byte, c.size), Version: -1}); err != nil {
							failed.Add(1)
						}
					})
				}
				least := lowest(hold, 3*c.session)
				all.Wait()
				lowestEver = min(lowestEver, float64(least)/float64(c.session))
				if hold.Check() != nil {
					lost++
				}
				_ = hold.Unlock(t.Context())
			})
		}
		t.Logf("%+v: %d of %d holds lost, %d writes failed, least %.2f T", c, lost, phases, failed.Load(), lowestEver)
		assert.Zero(t, lost, "%+v", c)
		assert.Zero(t, failed.Load(), "%+v", c)
	}
}

// The first heartbeats of a session wait for large writes. Their replies do not show how far away the servers are.
//
//zklock:promise P2.14
func TestLargeTransactionsOfANewSessionCostNoHold(t *testing.T) {
	const session, phases = 4 * time.Second, 8
	for phase := range time.Duration(phases) {
		virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
			require.NoError(t, srv.PutNode("/data", nil))
			lab.LimitUpload(srv, "a", 10*mbits)
			hold, err := connect(t, srv, "a", session).Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			time.Sleep(phase * session / phases / 3)
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					_, err := hold.Multi(&zk.SetDataRequest{Path: "/data", Data: make([]byte, large), Version: -1})
					assert.NoError(t, err)
				})
			}
			least := lowest(hold, 3*session)
			all.Wait()
			assert.Positive(t, least, "phase %d", phase)
			unlock(t, hold)
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

// A client far back in a queue does not ask the quorum, so its lease runs out. The program's writes do not wait for that, and the client's
// requests do not wait for those writes.
//
//zklock:promise P18.5
func TestALargeWriteOfTheProgramDoesNotWaitForALeaseThatNobodyNeeds(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/data", nil))
		var queue sync.WaitGroup
		defer queue.Wait()
		lock := func(c *zklock.Client, d time.Duration) {
			queue.Go(func() {
				hold, err := c.Mutex(path).Lock(t.Context())
				assert.NoError(t, err)
				time.Sleep(d)
				assert.NoError(t, hold.Unlock(t.Context()))
			})
			time.Sleep(term / 10)
		}
		lock(connect(t, srv, "a", term), 2*term)
		lock(connect(t, srv, "b", term), 0)
		lock(connect(t, srv, "c", term), 0)
		conn, client := attached(t, srv)
		lock(client, 0)
		time.Sleep(term / 2)
		lab.LimitUpload(srv, "attached", 100*mbits)
		asked := time.Now()
		_, err := conn.Set("/data", make([]byte, large), -1)
		require.NoError(t, err)
		assert.Less(t, time.Since(asked), term/20)
	})
}
