// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/bubble"
	"github.com/zklock-go/zklock/zktest"
)

const (
	path = "/locks/orders/42"
	term = 10 * time.Second
)

var three = zktest.Options{Servers: 3}

func unlockSoon(t *testing.T, client *zklock.Client) {
	t.Helper()
	hold, err := client.Mutex(path).Lock(t.Context())
	require.NoError(t, err)
	unlock(t, hold)
}

// faults are the faults that can happen at any single request.
var faults = []struct {
	name    string
	verdict faultVerdict
}{
	{"the caller gives up before it is processed", func(_ *zktest.Server, _ *zktest.Request, cancel func()) zktest.Verdict {
		cancel()
		return zktest.Delay(time.Second)
	}},
	{"the caller gives up and the reply is lost", func(_ *zktest.Server, _ *zktest.Request, cancel func()) zktest.Verdict {
		cancel()
		return zktest.LoseReply
	}},
	{"the reply is lost", func(*zktest.Server, *zktest.Request, func()) zktest.Verdict { return zktest.LoseReply }},
	{"the request is lost", func(*zktest.Server, *zktest.Request, func()) zktest.Verdict { return zktest.DropBefore }},
	{"there is no reply", func(*zktest.Server, *zktest.Request, func()) zktest.Verdict { return zktest.DropReply }},
	{"the session ends before", func(srv *zktest.Server, r *zktest.Request, _ func()) zktest.Verdict {
		srv.ExpireSession(r.Session)
		return zktest.Pass
	}},
	{"the server calls it throttled", func(*zktest.Server, *zktest.Request, func()) zktest.Verdict { return zktest.Answer(-127) }},
}

// faultVerdict returns the verdict of a fault for one request. cancel cancels the caller's context.
type faultVerdict func(srv *zktest.Server, r *zktest.Request, cancel func()) zktest.Verdict

// oneIn returns the step for a test that iterates over similar cases: 1, or n with -short.
func oneIn(n int) int {
	if testing.Short() {
		return n
	}
	return 1
}

// throughEveryFault calls strike for every fault and every n. strike runs a scenario with the fault at the n-th request, and
// returns false if there was no such request. There must be more than least requests. With -short, every twentieth n is tested,
// different ones for each fault.
func throughEveryFault(t *testing.T, least int, strike func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool) {
	for i, f := range faults {
		step := oneIn(20)
		first := i % step
		t.Run(f.name, func(t *testing.T) {
			for n, struck := first, true; struck; n += step {
				t.Run(fmt.Sprint("request ", n), func(t *testing.T) {
					virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) { struck = strike(t, srv, n, f.verdict) })
				})
				require.False(t, t.Failed(), "request %d", n)
				require.True(t, struck || n > least, "too few requests were struck")
			}
		})
	}
}

// way is one of the ways to take the lock at path.
type way func(c *zklock.Client) func(context.Context) (*zklock.Hold, error)

var (
	asMutex  way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Mutex(path).Lock }
	asWriter way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.RWMutex(path).Lock }
	asReader way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.RWMutex(path).RLock }
	asBoth   way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return func(ctx context.Context) (*zklock.Hold, error) {
			return c.LockAll(ctx, c.Mutex(path), c.Mutex(path+"/also"))
		}
	}
	forTwo way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return c.Semaphore(path, 3).Permits(2).Lock
	}
)

// exclusion is a pair of ways that exclude each other.
type exclusion struct {
	recipe        string // the method of Client that at least one way uses
	name          string
	first, second way
}

// excluding has at least one pair of each recipe.
var excluding = []exclusion{
	{"Mutex", "a mutex", asMutex, asMutex},
	{"RWMutex", "a writer after a writer", asWriter, asWriter},
	{"RWMutex", "a writer after a reader", asReader, asWriter},
	{"RWMutex", "a reader after a writer", asWriter, asReader},
	{"RWMutex", "a mutex after a reader", asReader, asMutex},
	{"Semaphore", "two permits of three", forTwo, forTwo},
	{"Cohort", "a mutex after a goroutine of a cohort", asCohort, asMutex},
	{"Cohort", "a goroutine of a cohort after a mutex", asMutex, asCohort},
	{"Reentrant", "a reentrant after a mutex", asMutex, asReentrant},
	{"Election", "a leader after a leader", asLeader, asLeader},
	{"LockAll", "two locks after the same two", asBoth, asBoth},
}

// longest limits the virtual time of a test. Clients send heartbeats forever, so without a limit, a wait that never ends would
// last until the test binary's timeout.
const longest = 30 * time.Hour

// virtual runs a test in virtual time against an in-process ensemble. A goroutine that
// is left when it ends fails the test.
func virtual(t *testing.T, opts zktest.Options, fn func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	bubble.Run(t, longest, func(t *testing.T) { fn(t, zktest.Start(t, opts)) })
}

// connect returns a client that is closed at the end of the test. label is the name of its connections for Partition. The client
// knows only the given members, or all if there are none.
func connect(t *testing.T, srv *zktest.Server, label string, timeout time.Duration, members ...int) *zklock.Client {
	t.Helper()
	return connectWith(t, srv, &zklock.Options{Label: label, SessionTimeout: timeout}, members...)
}

func connectWith(t *testing.T, srv *zktest.Server, opts *zklock.Options, members ...int) *zklock.Client {
	t.Helper()
	servers := srv.Addrs()
	if len(members) > 0 {
		servers = nil
		for _, i := range members {
			servers = append(servers, srv.Member(i).Addr())
		}
	}
	if opts.Dialer == nil && opts.HostProvider == nil && opts.TLS == nil {
		if connect := manners[*manner]; connect != nil {
			return connect(t, srv, servers, opts)
		}
	}
	if opts.Dialer == nil {
		opts.Dialer = srv.DialFrom(opts.Label)
	}
	return connectFrom(t.Context(), t, servers, opts)
}

func connectFrom(ctx context.Context, t *testing.T, servers []string, opts *zklock.Options) *zklock.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := zklock.Connect(ctx, servers, opts)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// attempt is a Lock that runs in the background.
type attempt struct {
	hold *zklock.Hold
	err  error
	at   time.Time // when it returned
	done chan struct{}
}

func lockLater(ctx context.Context, lock func(context.Context) (*zklock.Hold, error)) *attempt {
	a := &attempt{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.hold, a.err = lock(ctx)
		a.at = time.Now()
	}()
	return a
}

func (a *attempt) returned() bool {
	synctest.Wait()
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// ending is when and why a hold's context ended.
type ending struct {
	at    time.Time
	cause error
	done  chan struct{}
}

func endOf(h *zklock.Hold) *ending {
	e := &ending{done: make(chan struct{})}
	go func() {
		defer close(e.done)
		<-h.Context().Done()
		e.at, e.cause = time.Now(), context.Cause(h.Context())
	}()
	return e
}

// queue returns the names of the nodes in a lock's queue on the server, or in both directories of a semaphore.
func queue(srv *zktest.Server, path string) []string {
	var names []string
	for _, dir := range []string{path, path + "/leases", path + "/locks"} {
		for _, name := range srv.Children(dir) {
			if strings.HasPrefix(name, "_c_") {
				names = append(names, name)
			}
		}
	}
	return names
}

// noGhost fails the test if a node remains in the queue after the time for clean-up.
func noGhost(t *testing.T, srv *zktest.Server, path string) {
	t.Helper()
	time.Sleep(5 * time.Second)
	require.Empty(t, queue(srv, path), "nodes left in the queue of %s", path)
}

func unlock(t *testing.T, h *zklock.Hold) {
	t.Helper()
	require.NoError(t, h.Unlock(t.Context()))
}

// unlockThroughFault unlocks after a fault, in which the lock or the reply may have been lost.
func unlockThroughFault(t *testing.T, h *zklock.Hold) {
	t.Helper()
	if err := h.Unlock(t.Context()); !errors.Is(err, zklock.ErrUncertain) && !errors.Is(err, zklock.ErrLost) {
		require.NoError(t, err)
	}
}

// rawClient returns a connection of the client library, for the actions of a third party.
func rawClient(t testing.TB, srv *zktest.Server, timeout time.Duration, servers ...string) *zk.Conn {
	t.Helper()
	if len(servers) == 0 {
		servers = srv.Addrs()
	}
	conn, _, err := zk.Connect(servers, timeout, zk.WithDialer(srv.Dial), zk.WithLogInfo(false),
		zk.WithHostProvider(&oneRound{}), zk.WithLogger(silent{}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// oneRound is a host provider that does not use DNS, which is not available in a bubble.
type oneRound struct {
	servers []string
	next    int
}

func (p *oneRound) Init(servers []string) error { p.servers = servers; return nil }
func (p *oneRound) Len() int                    { return len(p.servers) }
func (p *oneRound) Connected()                  {}
func (p *oneRound) Next() (string, bool) {
	p.next++
	return p.servers[p.next%len(p.servers)], p.next > 1 && (p.next-1)%len(p.servers) == 0
}

// resetCounts resets the server's counts of requests, after waiting for requests in flight: a new client's first heartbeat is
// sent at the same time as its caller's requests.
func resetCounts(srv *zktest.Server) {
	synctest.Wait()
	srv.ResetCounts()
}

var (
	inBubble = regexp.MustCompile(`^goroutine \d+ .*(synctest bubble \d+)`)
	resting  = regexp.MustCompile(`session\.\(\*Tasks\)\.rest\((0x[0-9a-f]+)`) // for whom
)

// goroutines returns the number of goroutines in the caller's bubble. It does not count goroutines that the process has for other
// purposes, and the up to four that a client keeps for its next requests.
func goroutines(t *testing.T) int {
	t.Helper()
	synctest.Wait()
	stacks := make([]byte, 1<<16)
	for {
		n := runtime.Stack(stacks, true)
		if n < len(stacks) {
			stacks = stacks[:n]
			break
		}
		stacks = make([]byte, 2*len(stacks))
	}
	counts, rest, own := map[string]int{}, map[string]int{}, ""
	for i, stack := range strings.Split(string(stacks), "\n\n") { // the first is the caller's
		m := inBubble.FindStringSubmatch(stack)
		if r := resting.FindStringSubmatch(stack); r != nil {
			rest[r[1]]++
			require.LessOrEqual(t, rest[r[1]], 4, "of one client")
		} else if m != nil {
			counts[m[1]]++
			if i == 0 {
				own = m[1]
			}
		}
	}
	require.NotEmpty(t, own, "only a bubble's goroutines can be told from those of the process")
	return counts[own]
}

// levelsOf returns the number of levels of a hold that are not unlocked, according to its String.
func levelsOf(h *zklock.Hold) (levels int) {
	_, shown, _ := strings.Cut(h.String(), "levels=")
	fmt.Sscan(shown, &levels) // zero if there are none
	return levels
}

// grantedSoon acquires the lock, and fails the test if that takes more than a minute.
func grantedSoon(t *testing.T, lock lockFunc) *zklock.Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	hold, err := lock(ctx)
	require.NoError(t, err)
	return hold
}
