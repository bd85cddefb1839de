// SPDX-License-Identifier: Apache-2.0

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

// TestTheTickOfARunningEnsembleIsChanged follows docs/servers.md, "Changing tickTime": it restarts the followers first and
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
		restartWithTick(t, m, long)
		require.NoError(t, ensemble.WaitHealthy(t.Context()))
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

// restartWithTick kills a member and starts it with another tickTime.
func restartWithTick(t *testing.T, m *zkcontainer.Member, tick time.Duration) {
	t.Helper()
	_, err := m.Exec(t.Context(), "sed", "-i", fmt.Sprintf("s/^tickTime=.*/tickTime=%d/", tick.Milliseconds()), "/conf/zoo.cfg")
	require.NoError(t, err)
	require.NoError(t, m.Stop(t.Context()))
	require.NoError(t, m.Start(t.Context()))
}

// TestStaleFollowerOfASlowLeader cuts a follower with a short tick off from a leader with a long one, as it can happen while
// tickTime is being changed. The leader's pings are half its tick apart, and the follower grants timeouts by its own. With
// the leader's tick in the options, or at most half the session timeout without it, each hold ends before the next grant.
// The cut comes at any phase of the leader's ticks: the tests in virtual time look for the worst one.
//
//zklock:promise P2.1 A4
func TestStaleFollowerOfASlowLeader(t *testing.T) {
	t.Parallel()
	part(t)
	const short, long, session = 2 * time.Second, 8 * time.Second, 16 * time.Second
	ensemble := start(t, zkcontainer.Options{Servers: 3, TickTime: short})
	needsNetworks(t, ensemble)
	slow := ensemble.Members[2] // the member with the highest number wins an election
	restartWithTick(t, slow, long)
	require.NoError(t, ensemble.WaitHealthy(t.Context()))
	leader, err := ensemble.Leader(t.Context())
	require.NoError(t, err)
	if leader != slow {
		require.NoError(t, leader.Stop(t.Context()))
		next, err := ensemble.Leader(t.Context(), leader)
		require.NoError(t, err)
		require.Same(t, slow, next)
		require.NoError(t, leader.Start(t.Context()))
		require.NoError(t, ensemble.WaitHealthy(t.Context()))
	}
	stale, path := ensemble.Members[0], root(t)
	var pairs []*stalePair
	for i := range 4 { // their heartbeats begin at different times
		for name, tick := range map[string]time.Duration{"tick unknown": 0, "tick known": long} {
			p := &stalePair{name: fmt.Sprintf("%s, %d", name, i)}
			p.first = connect(t, &zklock.Options{SessionTimeout: session, TickTime: tick}, stale.Addr)
			p.next = connect(t, &zklock.Options{SessionTimeout: session, TickTime: tick}, slow.Addr)
			p.lock(t, fmt.Sprint(path, "/", len(pairs)))
			pairs = append(pairs, p)
		}
		time.Sleep(session / 10)
	}
	for i := range pairs {
		waitForChildren(t, slow.Addr, fmt.Sprint(path, "/", i), 2)
	}
	require.NoError(t, stale.CutOff(t.Context()))
	t.Cleanup(func() { require.NoError(t, stale.Rejoin(context.Background())) })
	cut := time.Now()
	for _, p := range pairs {
		t.Run(p.name, func(t *testing.T) { p.judge(t, cut) })
	}
}
