// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
)

// TestRemainingAfterAWait samples Hold.Remaining from the grant on, after waits of different lengths. On a healthy network, at
// least 0.35 of a session timeout must remain at all times. Healthy means that the servers answer a bare client in time.
// Otherwise the machine is busy with other work, and the test only logs the figures of this round.
//
//zklock:promise P2.5
func TestRemainingAfterAWait(t *testing.T) {
	part(t)
	opts := &zklock.Options{SessionTimeout: 4 * time.Second}
	path, ctx := root(t), soon(t)
	front, behind := connect(t, opts, servers(t)...), connect(t, opts, servers(t)...)
	conn, _ := dial(t, 10*time.Second, servers(t)...)
	session := behind.SessionTimeout()
	healthy := 0
	for _, wait := range []time.Duration{session / 10, session / 4, session / 3, session / 2, 3 * session / 4, 3 * session / 2} {
		first, err := front.Mutex(path).Lock(ctx)
		require.NoError(t, err)
		granted := make(chan *zklock.Hold, 1)
		// Owned by this test: ends with the grant or with ctx.
		go func() {
			hold, err := behind.Mutex(path).Lock(ctx)
			assert.NoError(t, err)
			granted <- hold
		}()
		untilChildren(t, conn, path, 2)
		slowest := roundTrips(t, conn, path, wait)
		require.NoError(t, first.Unlock(ctx))
		hold := await(t, granted, "the grant")
		require.NotNil(t, hold)

		least, samples := session, 0
		for begin := time.Now(); time.Since(begin) < session; samples++ {
			least = min(least, hold.Remaining())
			slowest = max(slowest, roundTrips(t, conn, path, 5*time.Millisecond))
		}
		require.NoError(t, hold.Unlock(ctx))
		t.Logf("after a wait of %v the least of %d samples: %v of %v; slowest round trip of another client: %v",
			wait, samples, least.Round(time.Millisecond), session, slowest.Round(time.Millisecond))
		if slowest < session/80 {
			healthy++
			assert.GreaterOrEqual(t, least, 35*session/100)
		}
	}
	if healthy == 0 {
		t.Skip("this machine is too busy for the servers to answer in time")
	}
}

// roundTrips sends syncs to the server for a while and returns the duration of the slowest round trip.
func roundTrips(t *testing.T, conn *zk.Conn, path string, during time.Duration) (slowest time.Duration) {
	for begin := time.Now(); time.Since(begin) < during; time.Sleep(5 * time.Millisecond) {
		sent := time.Now()
		_, err := conn.Sync(path)
		require.NoError(t, err)
		slowest = max(slowest, time.Since(sent))
	}
	return slowest
}
