package zklock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// A grant that comes right after a reconnect waits until it is proven that the session lives on the
// new connection, and says for how long. One on a connection that has stood for a while does not.
func TestAGrantTellsHowLongItWaitedForTheProof(t *testing.T) {
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
