package zklock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// acquisitions keeps the events of grants.
type acquisitions struct {
	mu   sync.Mutex
	seen []observe.Event // guarded by mu
}

func (a *acquisitions) Observe(e observe.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.Kind == observe.Acquired {
		a.seen = append(a.seen, e)
	}
}

func (a *acquisitions) last() observe.Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen[len(a.seen)-1]
}

// A grant that comes right after a reconnect waits until it is proven that the session lives on the
// new connection, and says for how long. One on a connection that has stood for a while does not.
func TestAGrantTellsHowLongItWaitedForTheProof(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		var events acquisitions
		c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: &events})
		for _, idle := range []time.Duration{0, term, 100 * term} {
			time.Sleep(idle)
			unlockSoon(t, c)
			require.Less(t, events.last().Proving, 10*time.Millisecond, "idle for %v", idle)
		}
		srv.Partition("a")
		time.Sleep(term * 3 / 4)
		srv.HealClient("a")
		unlockSoon(t, c)
		got := events.last()
		require.Greater(t, got.Proving, 100*time.Millisecond)
		require.LessOrEqual(t, got.Proving, got.Elapsed)
	})
}
