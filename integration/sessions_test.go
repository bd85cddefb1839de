// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

var sessionsFor = flag.Duration("sessions", 0, "how long TestHowShortASessionMayBe runs; 0 skips it")

// shortTick makes sessions of three ticks shorter than any program should have.
const shortTick = 200 * time.Millisecond

var shortSessions = []time.Duration{
	600 * time.Millisecond, time.Second, 1500 * time.Millisecond, 2 * time.Second, 3 * time.Second, 4 * time.Second,
}

// TestHowShortASessionMayBe counts the holds that are lost without a fault of servers or links, only because this machine
// delays processes. Run it together with the load for which you need a figure.
//
//zklock:promise P2.1
func TestHowShortASessionMayBe(t *testing.T) {
	if *sessionsFor == 0 {
		t.Skip("only with -sessions: make sessions")
	}
	part(t)
	needsOwn(t)
	var all sync.WaitGroup
	told := map[*dwellers]int{}
	var ensembles []*zkcontainer.Ensemble
	for _, count := range []int{1, 3} {
		// With the other tests' settings, a server would run out of memory within an hour.
		ensemble := start(t, zkcontainer.Options{Servers: count, TickTime: shortTick, Config: []string{"commitLogCount=500", "snapCount=100000"}})
		ensembles = append(ensembles, ensemble)
		for _, timeout := range shortSessions {
			d := newDwellers(t, timeout, ensemble.Addrs())
			told[d] = count
			all.Go(d.run)
		}
	}
	all.Wait()
	for _, ensemble := range ensembles {
		require.NoError(t, ensemble.WaitHealthy(t.Context()), "the figures count only if the servers have not ended")
	}
	for d, count := range told {
		t.Logf("%d servers, %v", count, d)
	}
}

// dwellers are goroutines that hold locks with one session timeout: some all the time, others for a moment.
type dwellers struct {
	t       *testing.T
	client  *zklock.Client
	timeout time.Duration
	paths   string

	idle, cycles, losses atomic.Int64
	mu                   sync.Mutex
	least                time.Duration // guarded by mu: the lowest Remaining of an idle hold
}

// The number of goroutines of each kind that a client has.
const idlers, contenders = 8, 4

func newDwellers(t *testing.T, timeout time.Duration, addrs []string) *dwellers {
	c := connect(t, &zklock.Options{SessionTimeout: timeout}, addrs...)
	require.Equal(t, timeout, c.SessionTimeout())
	return &dwellers{t: t, client: c, timeout: timeout, paths: fmt.Sprint(root(t), "/", timeout), least: timeout}
}

func (d *dwellers) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprintf("sessions of %v: %d of %d idle holds and %d short ones lost, at least %.2f of the timeout remained",
		d.timeout, d.losses.Load(), d.idle.Load(), d.cycles.Load(), float64(d.least)/float64(d.timeout))
}

// run runs the goroutines for the duration -sessions.
func (d *dwellers) run() {
	ctx, cancel := context.WithTimeout(d.t.Context(), *sessionsFor)
	defer cancel()
	var all sync.WaitGroup
	for i := range idlers {
		all.Go(func() { d.dwell(ctx, fmt.Sprintf("%s/idle-%d", d.paths, i)) })
	}
	for range contenders {
		all.Go(func() { d.contend(ctx, d.paths+"/contended") })
	}
	all.Wait()
}

// dwell holds one lock, and acquires it again if it is lost.
func (d *dwellers) dwell(ctx context.Context, path string) {
	d.repeat(ctx, path, func(hold *zklock.Hold) {
		d.idle.Add(1)
		time.Sleep(d.timeout) // until the heartbeats are regular
		for hold.Check() == nil && ctx.Err() == nil {
			d.sample(hold)
			time.Sleep(20 * time.Millisecond)
		}
		d.end(hold)
	})
}

// contend locks and unlocks about once a second until ctx is done.
func (d *dwellers) contend(ctx context.Context, path string) {
	d.repeat(ctx, path, func(hold *zklock.Hold) {
		d.cycles.Add(1)
		time.Sleep(50 * time.Millisecond)
		d.end(hold)
		time.Sleep(time.Second)
	})
}

// repeat locks in a loop until ctx is done, and calls use with each hold. use must end the hold.
func (d *dwellers) repeat(ctx context.Context, path string, use func(hold *zklock.Hold)) {
	for ctx.Err() == nil {
		hold, err := d.client.Mutex(path).Lock(ctx)
		if err != nil {
			assert.ErrorIs(d.t, err, context.DeadlineExceeded)
			return
		}
		use(hold)
	}
}

// sample updates d.least with the hold's Remaining, unless the hold has ended.
func (d *dwellers) sample(hold *zklock.Hold) {
	left := hold.Remaining()
	if left <= 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.least = min(d.least, left)
}

// end counts a loss if the hold was lost, and unlocks.
func (d *dwellers) end(hold *zklock.Hold) {
	if hold.Check() != nil {
		d.losses.Add(1)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	assert.NotErrorIs(d.t, hold.Unlock(ctx), context.DeadlineExceeded, "no server answered")
}
