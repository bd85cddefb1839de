package zklock_test

import (
	"context"
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

// virtual runs a test in virtual time against an in-process ensemble. A goroutine that
// is left when it ends fails the test.
func virtual(t *testing.T, opts zktest.Options, fn func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { fn(t, zktest.Start(t, opts)) })
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

// rawClient is the client library as it comes, for what a third party does.
func rawClient(t *testing.T, srv *zktest.Server, timeout time.Duration, servers ...string) *zk.Conn {
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

// goroutines counts those of the whole process: tests that compare it do not run in parallel.
func goroutines() int {
	synctest.Wait()
	return runtime.NumGoroutine()
}
