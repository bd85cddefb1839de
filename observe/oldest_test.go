// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// oldest groups by recipe.
type oldest struct{ observe.Oldest[string] }

func (o *oldest) Observe(e observe.Event) { o.Oldest.Observe(e.Recipe, e) }

//zklock:promise P19.7
func TestTheOldestHoldOfEachGroupIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		o := new(oldest)
		require.Empty(t, o.Ages())
		client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom("client"), Observer: o})
		require.NoError(t, err)
		var holds []*zklock.Hold
		add := func(h *zklock.Hold, err error) {
			require.NoError(t, err)
			holds = append(holds, h)
			time.Sleep(time.Second)
		}
		add(client.Mutex("/a").Lock(t.Context()))
		add(client.Mutex("/b").Lock(t.Context()))
		add(client.RWMutex("/rw").RLock(t.Context()))
		add(client.Semaphore("/s", 5).Acquire(t.Context(), 3))
		add(client.Semaphore("/s", 5).Acquire(t.Context(), 2))
		add(client.LockAll(t.Context(), client.Mutex("/c"), client.RWMutex("/d")))
		synctest.Wait()
		ages := o.Ages()
		require.Equal(t, 6*time.Second, ages["mutex"].Round(time.Millisecond))
		require.Equal(t, 3*time.Second, ages["semaphore"].Round(time.Millisecond))
		require.NoError(t, holds[0].Unlock(t.Context()))
		require.NoError(t, holds[3].Unlock(t.Context()))
		ages = o.Ages()
		require.Equal(t, 5*time.Second, ages["mutex"].Round(time.Millisecond), "the second")
		require.Equal(t, 2*time.Second, ages["semaphore"].Round(time.Millisecond), "the second")
		for _, h := range append(holds[1:3:3], holds[4:]...) {
			require.NoError(t, h.Unlock(context.Background()))
		}
		require.NoError(t, client.Close())
		for group, age := range o.Ages() {
			require.Zero(t, age, group)
		}
	})
}

// A hold that is lost at once can be reported as lost first.
func TestALossBeforeTheGrantLeavesNoHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := new(oldest)
		for _, kind := range []observe.Kind{observe.Lost, observe.Queued, observe.Acquired, observe.GivenUp} {
			o.Observe(observe.Event{Kind: kind, Recipe: "mutex", Path: "/l", Node: "n"})
			time.Sleep(time.Second)
			require.Equal(t, map[string]time.Duration{"mutex": 0}, o.Ages())
		}
		o.Observe(observe.Event{Kind: observe.Acquired, Recipe: "mutex", Path: "/l", Node: "n"})
		time.Sleep(time.Second)
		require.Equal(t, map[string]time.Duration{"mutex": time.Second}, o.Ages())
	})
}
