package integration

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zkcontainer"
)

// TestTheTickOfARunningEnsembleIsChanged follows docs/operations.md, "Changing tickTime": it restarts the followers first and
// the leader last, and uses a session timeout that suits both ticks. No hold is lost, and no session expires early.
//
//zklock:promise P2.1 P2.7 A4
func TestTheTickOfARunningEnsembleIsChanged(t *testing.T) {
	t.Parallel()
	part(t)
	const short, long, session = time.Second, 4 * time.Second, 10 * time.Second
	ensemble := start(t, zkcontainer.Options{Servers: 3, TickTime: short})
	var early atomic.Int32
	opts := &zklock.Options{SessionTimeout: session, TickTime: long, Observer: onEarly{&early}}
	path := root(t)
	var holds []*zklock.Hold
	for i := range 3 {
		c := connect(t, opts, ensemble.Addrs()...)
		require.Equal(t, session, c.SessionTimeout())
		hold, err := c.Mutex(fmt.Sprint(path, "/held/", i)).Lock(t.Context())
		require.NoError(t, err)
		holds = append(holds, hold)
	}
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	var grants, inside atomic.Int32
	for range 2 {
		lock := connect(t, opts, ensemble.Addrs()...).Mutex(path + "/shared")
		// Owned by the test, which waits for it; ends with ctx.
		workers.Go(func() {
			for ctx.Err() == nil {
				_ = lock.Do(ctx, func(context.Context) error { // an election can cost a hold that was just granted
					assert.EqualValues(t, 1, inside.Add(1), "holders")
					grants.Add(1)
					inside.Add(-1)
					return nil
				})
			}
		})
	}

	leader, err := ensemble.Leader(t.Context())
	require.NoError(t, err)
	members, err := ensemble.Followers(t.Context())
	require.NoError(t, err)
	least := session
	for _, m := range append(members, leader) {
		_, err := m.Exec(t.Context(), "sed", "-i", fmt.Sprintf("s/^tickTime=.*/tickTime=%d/", long.Milliseconds()), "/conf/zoo.cfg")
		require.NoError(t, err)
		require.NoError(t, m.Kill(t.Context()))
		require.NoError(t, m.Restart(t.Context()))
		require.NoError(t, ensemble.Healthy(t.Context()))
		for range 20 {
			time.Sleep(session / 20) // in total several heartbeats, and pings of the leader; real servers need real time
			for _, hold := range holds {
				require.NoError(t, hold.Check())
				least = min(least, hold.Remaining())
			}
		}
	}
	stop()
	workers.Wait()
	for _, m := range append(members, leader) {
		conf, err := m.Exec(t.Context(), "grep", "^tickTime", "/conf/zoo.cfg")
		require.NoError(t, err)
		require.Contains(t, conf, "4000")
	}
	c := connect(t, &zklock.Options{SessionTimeout: time.Second, TickTime: time.Second}, ensemble.Addrs()...)
	require.Equal(t, 2*long, c.SessionTimeout(), "the servers have the new tick")
	require.Zero(t, early.Load())
	t.Logf("%d grants, at least %v of %v remained", grants.Load(), least.Round(time.Millisecond), session)
	require.Positive(t, grants.Load())
	for _, hold := range holds {
		require.NoError(t, hold.Unlock(t.Context()))
	}
}

// onEarly counts sessions that expired early.
type onEarly struct{ n *atomic.Int32 }

func (o onEarly) Observe(e observe.Event) {
	if e.Kind == observe.ExpiredEarly {
		o.n.Add(1)
	}
}
