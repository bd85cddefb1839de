package zklock_test

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

// faults are what may happen at any single request.
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

// faultVerdict does what a fault does to one request; cancel is the caller giving up.
type faultVerdict func(srv *zktest.Server, r *zktest.Request, cancel func()) zktest.Verdict

// oneIn is the step with which a test walks through cases that are much alike: all of them, or every n-th in a short test.
func oneIn(n int) int {
	if testing.Short() {
		return n
	}
	return 1
}

// throughEveryFault has strike play a scenario in which the n-th request is struck, for every fault and every n until it
// says that there was none; there must be more than least. A short test takes every twentieth n, each fault other ones.
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
	forTwo   way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return c.Semaphore(path, 3).Permits(2).Lock
	}
)

// exclusion is two ways that wait for each other.
type exclusion struct {
	name          string
	first, second way
}

var excluding = []exclusion{
	{"a mutex", asMutex, asMutex},
	{"a writer after a writer", asWriter, asWriter},
	{"a writer after a reader", asReader, asWriter},
	{"a reader after a writer", asWriter, asReader},
	{"a mutex after a reader", asReader, asMutex},
	{"two permits of three", forTwo, forTwo},
	{"a mutex after a goroutine of a cohort", asCohort, asMutex},
	{"a goroutine of an unfenced cohort after a mutex", asMutex, asUnfenced},
	{"a mutex after one of many in an unfenced cohort", asLaterGuest, asMutex},
	{"a writer after one of many readers of a cohort", asLaterReader, asWriter},
	{"a reader of a cohort after a writer", asWriter, asCohortReader},
}

// longest is the virtual time that a test may take. Clients send heartbeats for ever, so that without
// a bound a wait that nothing ends would last until the binary's real time is over.
const longest = 30 * time.Hour

// virtual runs a test in virtual time against an in-process ensemble. A goroutine that
// is left when it ends fails the test.
func virtual(t *testing.T, opts zktest.Options, fn func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		bound := time.AfterFunc(longest, func() { panic(fmt.Sprintf("%s is not over after %v", t.Name(), longest)) })
		defer bound.Stop()
		fn(t, zktest.Start(t, opts))
	})
}

// connect returns a client that is closed with the test. Its links are named by label,
// to be partitioned; it goes to the given members only, or to all.
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
	if opts.Dialer == nil {
		opts.Dialer = srv.DialFrom(opts.Label)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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

// endOf tells when a hold's context ended and why.
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

// queue is what stands in a lock's queue on the server, or in either of a semaphore's.
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

// noGhost fails if a node stands in the queue once every clean-up had its time.
func noGhost(t *testing.T, srv *zktest.Server, path string) {
	t.Helper()
	time.Sleep(5 * time.Second)
	require.Empty(t, queue(srv, path), "nodes left in the queue of %s", path)
}

func unlock(t *testing.T, h *zklock.Hold) {
	t.Helper()
	require.NoError(t, h.Unlock(t.Context()))
}

// unlockThroughFault unlocks after a fault, which may have cost the lock or the answer.
func unlockThroughFault(t *testing.T, h *zklock.Hold) {
	t.Helper()
	if err := h.Unlock(t.Context()); !errors.Is(err, zklock.ErrUncertain) && !errors.Is(err, zklock.ErrLost) {
		require.NoError(t, err)
	}
}

// rawClient is the client library as it comes, for what a third party does.
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

// oneRound is a host provider without DNS, which a bubble has not.
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

// resetCounts forgets the requests so far, and those that are on their way: a new client's first
// heartbeat is sent beside what its caller does.
func resetCounts(srv *zktest.Server) {
	synctest.Wait()
	srv.ResetCounts()
}

var (
	inBubble = regexp.MustCompile(`^goroutine \d+ .*(synctest bubble \d+)`)
	resting  = regexp.MustCompile(`session\.\(\*Tasks\)\.rest\((0x[0-9a-f]+)`) // for whom
)

// goroutines counts those of the caller's bubble: the process has others that come and go,
// such as the runtime's own for finalizers, and those of tests beside this one. Those that a
// client keeps for its next requests come and go as well: they may be four, and are not counted.
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
