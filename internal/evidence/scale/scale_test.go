// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

var (
	size     = flag.Int("clients", 60, "how many clients the fleet has")
	timeline = flag.Bool("timeline", false, "print what happens in each second")
	over     = flag.Duration("over", 0, "the time in which all processes start again")
	load     = flag.Int("load", 1, "how many clients each client stands for: a request occupies the servers this many times as long")
)

const (
	members = 5
	term    = 10 * time.Second
	waits   = 10 // how many locks of others each client waits for
	most    = 20 * term
)

// A fleet is a number of clients. Each wants a lock of its own and the locks of the next ten clients,
// and keeps a lock until it loses it.
type fleet struct {
	srv     *zktest.Server
	servers *Servers
	clients []*zklock.Client
	stop    context.CancelFunc
	wg      sync.WaitGroup

	mu    sync.Mutex
	holds map[string]*zklock.Hold // guarded by mu; by path
	lost  map[string]int          // guarded by mu: how often, by path
}

// startFleet starts a fleet of n clients, each of which stands for load clients. They hold their own locks and wait for the others.
func startFleet(t *testing.T, n, load int) *fleet {
	srv := zktest.Start(t, zktest.Options{Servers: members, Latency: func(*rand.Rand) time.Duration { return time.Millisecond / 2 }})
	ctx, cancel := context.WithCancel(t.Context())
	f := &fleet{srv: srv, servers: NewServers(srv, members, Measured.Times(load)), stop: cancel, holds: map[string]*zklock.Hold{}, lost: map[string]int{}}
	f.clients = make([]*zklock.Client, n)
	for i := range n {
		f.connect(ctx, i)
		f.want(ctx, i, i)
		time.Sleep(term / time.Duration(n)) // so that heartbeats do not coincide
	}
	synctest.Wait()
	for k := 1; k <= waits; k++ {
		for i := range n {
			f.want(ctx, i, (i+k)%n)
			if i%100 == 99 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		time.Sleep(time.Second)
	}
	time.Sleep(2 * term)
	require.Equal(t, n, f.held(0))
	return f
}

// connect connects a client. It reports false if ctx is done first.
func (f *fleet) connect(ctx context.Context, i int) bool {
	name := fmt.Sprint("c", i)
	c, err := zklock.Connect(ctx, f.srv.Addrs(), &zklock.Options{Label: name, SessionTimeout: term, Dialer: f.srv.DialFrom(name)})
	if ctx.Err() == nil && err != nil {
		panic(err)
	}
	if err == nil {
		f.clients[i] = c
	}
	return err == nil
}

// want starts a goroutine that wants the lock of one client for another. It ends with ctx.
func (f *fleet) want(ctx context.Context, client, lock int) {
	path := fmt.Sprint("/locks/", lock)
	mutex := f.clients[client].Mutex(path)
	f.wg.Go(func() {
		for {
			hold, err := mutex.Lock(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				continue
			}
			f.keep(path, hold)
			select {
			case <-hold.Context().Done():
				if *timeline {
					fmt.Println("LOST", path, context.Cause(hold.Context()))
				}
				f.lose(path, hold)
			case <-ctx.Done():
				return
			}
		}
	})
}

func (f *fleet) keep(path string, hold *zklock.Hold) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holds[path] = hold
}

func (f *fleet) lose(path string, hold *zklock.Hold) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost[path]++
	if f.holds[path] == hold {
		delete(f.holds, path)
	}
}

// losses returns how many holds were lost.
func (f *fleet) losses() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range f.lost {
		n += of
	}
	return n
}

// held returns how many locks are held with more than d left.
func (f *fleet) held(d time.Duration) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, hold := range f.holds {
		if hold.Remaining() > d {
			n++
		}
	}
	return n
}

// least returns the least that is left of a hold.
func (f *fleet) least() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	least := term
	for _, hold := range f.holds {
		least = min(least, hold.Remaining())
	}
	return least
}

// A finding is what one event costs a fleet.
type finding struct {
	load  Load
	lost  int           // holds
	twice int           // locks whose hold was lost more than once
	least time.Duration // the least that was left of a hold that was not lost
	took  time.Duration // until every lock is held again with as much left as in a minute without an event
}

// during runs an event and watches the fleet for at least a minute, until every lock is held again.
func (f *fleet) during(event func()) finding {
	f.servers.Begin()
	f.mu.Lock()
	clear(f.lost)
	f.mu.Unlock()
	began := time.Now()
	found := finding{least: term}
	ended := make(chan struct{})
	go func() { // during waits for it below
		defer close(ended)
		event()
	}()
	healthySince := began
	for time.Since(began) < 6*term || time.Since(healthySince) < term && time.Since(began) < most {
		time.Sleep(100 * time.Millisecond)
		if now := time.Since(began); *timeline && now%time.Second == 0 {
			counts, leader, follower := f.servers.Recent()
			fmt.Printf("%v held %d, ample %d, lost %d, queues %v %v, %v\n", now, f.held(0), f.held(term/4), f.losses(), leader.Round(time.Millisecond), follower.Round(time.Millisecond), counts)
		}
		if f.held(term/4) < len(f.clients) {
			healthySince = time.Now()
		}
		found.least = min(found.least, f.least())
	}
	<-ended
	f.mu.Lock()
	for _, n := range f.lost {
		found.lost += n
		if n > 1 {
			found.twice++
		}
	}
	f.mu.Unlock()
	found.load, found.took = f.servers.Loads(), healthySince.Sub(began)
	return found
}

// events are what happens to the fleet, in the order of the page.
var events = []struct {
	name string
	ends bool // sessions end
	do   func(f *fleet)
}{
	{"nothing happens", false, func(*fleet) {}},
	{"a follower restarts within 5 s", false, func(f *fleet) { restart(f.srv.Member(follower(f.srv))) }},
	{"the leader restarts within 5 s", false, func(f *fleet) { restart(f.srv.Leader()) }},
	{"the network is down for 1.5 T", true, outage},
	{"all processes end, and start again", false, func(f *fleet) { f.startAgain(*over) }},
}

// outage cuts all clients off for one and a half session timeouts.
func outage(f *fleet) {
	for i := range f.clients {
		f.srv.Partition(fmt.Sprint("c", i))
	}
	time.Sleep(term * 3 / 2)
	for i := range f.clients {
		f.srv.HealClient(fmt.Sprint("c", i))
	}
}

// startAgain replaces all clients, and the new ones start within a time. They do not know how far away the servers are.
func (f *fleet) startAgain(over time.Duration) {
	f.stop()
	for i, c := range f.clients {
		f.srv.Partition(fmt.Sprint("c", i))
		f.wg.Go(func() { c.Close() })
	}
	f.wg.Wait()
	time.Sleep(term * 3 / 2)
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	for i := range f.clients {
		f.srv.HealClient(fmt.Sprint("c", i))
		f.wg.Go(func() {
			if !f.connect(ctx, i) {
				return
			}
			for k := range waits + 1 {
				f.want(ctx, i, (i+k)%len(f.clients))
			}
		})
		time.Sleep(over / time.Duration(len(f.clients)))
	}
}

func restart(m *zktest.Member) {
	m.Stop()
	time.Sleep(5 * time.Second)
	m.Start()
}

// follower returns the index of a server that does not lead.
func follower(srv *zktest.Server) int {
	if srv.Member(0) == srv.Leader() {
		return 1
	}
	return 0
}

// Whatever happens, every lock is held again in the end, and only clients that were cut off for longer
// than the session timeout have lost holds.
func TestEveryLockOfAFleetIsHeldAgain(t *testing.T) {
	for _, event := range events {
		t.Run(event.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := startFleet(t, *size, *load)
				defer f.close()
				found := f.during(func() { event.do(f) })
				t.Log(found.row(*size, *load, event.name))
				require.Equal(t, *size, f.held(0), "every lock is held")
				require.Equal(t, event.ends, found.lost > 0)
			})
		})
	}
}

// A queue at the servers does not make heartbeats more frequent: they would make it longer. The fleet stands for 6,000 clients, whose
// heartbeats occupy the leader for half of the time, and whose requests wait for each other after the restart.
//
//zklock:promise P9.12
func TestARestartUnderLoadCostsNoHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFleet(t, 60, 100)
		defer f.close()
		found := f.during(func() { restart(f.srv.Leader()) })
		t.Log(found.row(60, 100, "the leader restarts within 5 s"))
		require.Zero(t, found.lost)
		require.Equal(t, 60, f.held(0), "every lock is held")
		require.Greater(t, found.load.Longest, 100*time.Millisecond, "requests have waited")
	})
}

// A fleet that has lost its sessions in an outage holds its locks again, although the queues at the servers last for longer than the
// outage. It stands for 8,000 clients, and each holds one lock and waits for ten.
//
//zklock:promise P9.12 P7.6
func TestAFleetComesBackAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFleet(t, 80, 100)
		defer f.close()
		found := f.during(func() { outage(f) })
		t.Log(found.row(80, 100, "the network is down for 1.5 T"))
		require.Equal(t, 80, f.held(0), "every lock is held")
		require.Less(t, found.took, 15*time.Second+4*term)
		require.Less(t, found.twice, 80/10, "an outage ends each hold once, and a second loss is an exception")
	})
}

// A fleet that has lost its sessions because the leader was frozen holds its locks again before that server is back. It stands for 8,000
// clients, which come back one after another.
//
//zklock:promise P9.12
func TestAFleetComesBackAfterItsLeaderWasFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFleet(t, 80, 100)
		defer f.close()
		found := f.during(func() {
			frozen := f.srv.Leader()
			frozen.Freeze()
			time.Sleep(4 * term)
			frozen.Thaw()
		})
		t.Log(found.row(80, 100, "the leader freezes for 4 T"))
		require.Equal(t, 80, f.held(0), "every lock is held")
		require.Less(t, found.took, 4*term)
		require.Zero(t, found.twice)
	})
}

// Processes that all start at the same moment, and have never seen the servers without a queue, do not keep it up. They stand for 8,000.
//
//zklock:promise P9.12
func TestAFleetThatStartsAtOnceGetsItsLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFleet(t, 80, 100)
		defer f.close()
		found := f.during(func() { f.startAgain(0) })
		t.Log(found.row(80, 100, "all processes end, and start again"))
		require.Equal(t, 80, f.held(0), "every lock is held")
		require.Less(t, found.took, 15*time.Second+6*term)
		require.Zero(t, found.twice, "no lock is lost twice")
	})
}

// close ends the fleet's goroutines and clients.
func (f *fleet) close() {
	f.stop()
	f.wg.Wait()
	for _, c := range f.clients {
		c.Close()
	}
}

// row returns a finding as a row of the table in docs/maintainers/measurements.md.
func (found finding) row(size, load int, event string) string {
	l := found.load
	return fmt.Sprintf("| %d | %s | %d | %d %% | %d %% | %v | %d | %d | %v | %v |", size*load, event, l.Requests/size, int(100*l.Leader), int(100*l.Follower),
		l.Longest.Round(time.Millisecond), found.lost, found.twice, found.least.Round(10*time.Millisecond), found.took.Round(100*time.Millisecond))
}
