// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// A grant right after a reconnect waits for proof that the session is alive on the new connection, and Event.Proving is the time
// it took. A grant on an older connection does not wait.
//
//zklock:promise P19.7
func TestAGrantReportsHowLongItWaitedForTheProof(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		var last observe.Event
		c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: onEvent{observe.Acquired, func(e observe.Event) { last = e }}})
		for _, idle := range []time.Duration{0, term, 100 * term} {
			time.Sleep(idle)
			unlockSoon(t, c)
			require.Less(t, last.Proving, 10*time.Millisecond, "idle for %v", idle)
		}
		srv.Partition("a")
		time.Sleep(term * 3 / 4)
		srv.HealClient("a")
		unlockSoon(t, c)
		require.Greater(t, last.Proving, 100*time.Millisecond)
		require.LessOrEqual(t, last.Proving, last.Elapsed)
	})
}
