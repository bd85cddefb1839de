package integration

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
)

// TestRemainingAfterAWait samples how long a hold is certain, from its grant on after waits of different length: on a healthy
// network 0.35 of a session timeout remain at every moment where that may be two ticks, as far as the client knows. Healthy is
// what answers a bare client in time: where that takes long, the machine is busy with other things, which the test tells, and
// the round is no evidence.
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

// roundTrips asks the server again and again for a while and returns how long the slowest round trip took.
func roundTrips(t *testing.T, conn *zk.Conn, path string, during time.Duration) (slowest time.Duration) {
	for begin := time.Now(); time.Since(begin) < during; time.Sleep(5 * time.Millisecond) {
		sent := time.Now()
		_, err := conn.Sync(path)
		require.NoError(t, err)
		slowest = max(slowest, time.Since(sent))
	}
	return slowest
}
