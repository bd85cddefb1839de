// SPDX-License-Identifier: Apache-2.0

// Package zklock provides fair, fenced locks on ZooKeeper. A holder learns that its lock is lost
// before anyone else can acquire it.
//
//	client, err := zklock.Connect(ctx, []string{"zk1:2181", "zk2:2181"}, nil)
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//
//	hold, err := client.Mutex("/locks/orders/42").Lock(ctx)
//	if err != nil {
//		return err
//	}
//	defer hold.Unlock(ctx)
//	return charge(hold.Context(), hold.Token())
//
// # Recipes
//
//   - [Mutex] has one holder at a time. Start here.
//   - [Cohort] is a mutex for many goroutines of one process. They share one place in the queue, so
//     passing the lock from one goroutine to the next takes one request.
//   - [Reentrant] is a mutex for call chains in which a function that locks calls another function
//     that locks the same path.
//   - [RWMutex] has many readers or one writer. [Hold.Downgrade] turns a writer into a reader, and
//     no other writer can acquire the lock in between.
//   - [Semaphore] has a number of permits. A holder can take several at once.
//   - [Client.LockAll] acquires several of the locks above, all or none, in an order that cannot
//     deadlock.
//   - [Election] has one leader at a time. Every client can find and follow the leader, and read
//     the value that it publishes.
//
// Packages shards and slots build on these recipes. Package shards spreads pieces of work evenly over
// the members of a fleet. Package slots is for work that a fleet does once, such as one run of a cron
// job.
//
// Every lock is named by a path. Each acquire creates an ephemeral sequential node below that path
// and waits for the node ahead of it. Locks are therefore granted first come, first served, and a
// release wakes one waiter.
//
// # Holding
//
// A successful acquire returns a [Hold]. The documentation uses five terms for what a hold
// guarantees:
//
//   - The lease is the time for which the client can prove that its session, and therefore the
//     hold, still exists on the servers. Heartbeats extend it. [Hold.Remaining] returns how much of
//     it is left.
//   - A loss is the end of a hold without an unlock: the lease ran out, the session expired, or the
//     node was deleted. [Hold.Context] is then canceled with a cause that wraps [ErrLost], before
//     the servers can grant the lock to anyone else.
//   - The token is a number that increases with every grant of a path: [Hold.Token]. A store that
//     rejects tokens smaller than the largest it has seen is safe even from a process that was
//     stopped and has not noticed its loss yet.
//   - The guard is a check inside a ZooKeeper transaction: [Hold.Guard]. The transaction commits
//     only while the lock is held. [Hold.Multi] adds the guard automatically.
//   - A release is the end of a hold by [Hold.Unlock].
//
// # Other terms
//
//   - An acquire is a call that returns a hold or an error: Lock, RLock, TryLock, Acquire, Campaign,
//     LockAll.
//   - A contender is a node in the queue of a lock, whether it holds the lock or waits for it, and
//     whichever library created it. A grant is the moment at which it begins to hold the lock.
//   - The session is the state that the servers keep for a client across connections. It expires
//     when its timeout, [Client.SessionTimeout], passes without a sign of life, and all its nodes are
//     removed with it.
//   - To fence is to reject a write of an earlier holder by comparing tokens.
//   - The lock-delay, [Options.LockDelay], is how long a lock stays free after a holder that did not
//     release it.
//   - To revoke a hold is to ask its holder to release the lock: the holder decides. To evict a
//     contender is to remove it from the queue, whatever it is doing. Both are for operators.
//
// A [Client] outlives ZooKeeper sessions. When a session expires, its holds are lost, its waiters
// queue again under the next session, and later calls use that session.
//
// # For operators
//
// Package operate shows who holds and who waits for a lock, including users of Curator, kazoo and
// go-zookeeper. It can also ask a holder to release the lock, or remove a contender. Package
// observe defines the events of locks, for metrics.
package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/bridge"
	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/internal/lease"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/internal/testclock"
	"github.com/zklock-go/zklock/internal/testnet"
	"github.com/zklock-go/zklock/observe"
)

// Client is a connection to a ZooKeeper ensemble, together with everything that is held through it.
// It is safe for concurrent use by multiple goroutines. Locks exclude goroutines of one client from
// each other in the same way as they exclude processes.
type Client struct {
	engine *queue.Engine

	owned            <-chan zk.Event // closed when the connection has ended; nil if the client does not own it
	root             string
	identity         []byte        // owner data
	shared           []byte        // owner data of cohorts
	requestedTimeout time.Duration // the requested session timeout
	tickTime         time.Duration // see Options.TickTime
	joined           *session.Shared
	begun            bool // its tickTime counts; set before Connect or Attach returns

	cancelLife    context.CancelCauseFunc
	cancelCleanup context.CancelCauseFunc
	acquires      *session.Tasks // calls that may create nodes
	closing       atomic.Bool    // Close was called
	hurried       session.Latch  // a limit of Close or Shutdown was reached: removal stops
	closed        session.Latch  // Close has finished
	cut           bool           // set before closed: nodes were left when a limit was reached
	waiting       atomic.Int64   // calls that have not acquired a lock yet: see Stats

	holds   holdings
	cohorts sync.Map // the local queues of cohorts, by cohortKey
}

// Connect waits until a server grants a session, and returns a client that uses it. If ctx ends
// first, Connect returns an error; if ctx has no deadline, it waits for 30 s. Meanwhile
// Options.Logger gets a warning for each server that cannot be reached, and one per session timeout
// if there is still no session. Once Connect has returned, ctx has no effect on the client.
//
// Each server is host:port; the port defaults to 2181. The connection strings of other ZooKeeper
// clients work as well: several servers separated by commas, with a chroot after the last one
// (zk1:2181,zk2:2181/app). The chroot is prepended to Options.Root. If a server is malformed,
// Connect returns ErrInvalid.
func Connect(ctx context.Context, servers []string, opts *Options) (*Client, error) {
	servers, o, _, err := complete(servers, opts)
	if err != nil {
		return nil, fmt.Errorf("zklock: connect: %w", err)
	}
	c := newClient(ctx, queue.NewHub(conn.NewLink()), o)
	if login := o.login(); login != nil {
		c.engine.Requests.Link.SetLogin(*login, len(servers))
	}
	dialing := o.dialing()
	if n := testnet.From(ctx); n != nil {
		dialing.Dial, dialing.Resolve = n.Dial, n.Resolve
	}
	dialing.Failed = c.warnOfFailures()
	conn, events, err := zk.Connect(servers, o.SessionTimeout,
		zk.WithDialer(c.engine.Requests.Link.Dialer(dialing)),
		zk.WithHostProvider(c.engine.Requests.Link.Hosts(o.HostProvider)),
		zk.WithMaxBufferSize(maxLibraryFrame), zk.WithLogger(libraryLog{c.engine.Requests.Log}), zk.WithLogInfo(false))
	if err != nil {
		c.engine.Requests.Link.Close()
		return nil, fmt.Errorf("zklock: connect: %w", err)
	}
	c.engine.Requests.Library, c.owned = conn, events
	ctx, cancel := limited(ctx)
	defer cancel()
	if err := c.begin(ctx, o.Auth); err != nil {
		err = c.engine.Requests.Explain(ctx, err) // before Close causes further errors
		c.Close()
		return nil, fmt.Errorf("zklock: connect to %s: %w", strings.Join(servers, ","), err)
	}
	o.prepareLogin(servers)
	if s := c.engine.Requests.Link.Latest(); s != nil {
		// Owned by the client; ends with the request; Close waits for it.
		c.engine.Requests.Calls.Run(func() { c.engine.Watches.Probe(s) })
	}
	return c, nil
}

// complete returns the servers' addresses, the options with their defaults, and the chroot that follows
// the servers, which is then a part of Root.
func complete(list []string, opts *Options) (servers []string, o *Options, chroot string, err error) {
	if servers, chroot, err = parseServers(list); err != nil {
		return nil, nil, "", err
	}
	if opts == nil || opts.Dialer == nil {
		if err := conn.CheckReachable(servers); err != nil {
			return nil, nil, "", fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	if o, err = opts.withDefaults(); err != nil {
		return nil, nil, "", err
	}
	o.Root = chroot + o.Root
	return servers, o, chroot, nil
}

// maxLibraryFrame limits the frames that the client library reads, and the memory that it allocates
// for them on each connection. zklock itself reads long replies and events.
const maxLibraryFrame = 64 << 10

// parseServers returns the servers' addresses and the chroot that follows them, if any.
func parseServers(list []string) (servers []string, chroot string, err error) {
	servers, chroot, err = conn.ParseServers(list)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if chroot != "" {
		if err := node.CheckPath(chroot); err != nil {
			return nil, "", fmt.Errorf("chroot of the servers: %w", err)
		}
	}
	return servers, chroot, nil
}

// Hooks let a client see the traffic of a zk.Conn that your program creates itself: see Attach.
type Hooks struct {
	hub   *queue.Hub
	dial  zk.Dialer
	hosts conn.Rotation
}

// NewHooks returns hooks for one connection, and sends nothing. dial connects to a server; nil means
// TCP.
func NewHooks(dial zk.Dialer) *Hooks {
	l := conn.NewLink()
	return &Hooks{hub: queue.NewHub(l), dial: l.Dialer((&Options{Dialer: dial}).dialing())}
}

// Dial connects to a server. Pass it to zk.WithDialer when you create the connection. Dial returns
// ErrInvalid if another connection that was created with these hooks is connected.
func (h *Hooks) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if h.dial == nil {
		return nil, fmt.Errorf("zklock: dial: %w: Hooks must be created by NewHooks", ErrInvalid)
	}
	if h.hub.Link.IsTaken() {
		return nil, fmt.Errorf("zklock: dial: %w: another connection was created with these hooks", ErrInvalid)
	}
	return h.dial(network, address, timeout)
}

// HostProvider returns a provider that cycles through the servers by name, in random order. Pass it
// to zk.WithHostProvider if the names of servers matter: for Kerberos (adapters/kerberos), for TLS,
// or because their addresses change. go-zookeeper's own provider looks the names up once, and Dial
// then gets addresses.
func (h *Hooks) HostProvider() zk.HostProvider { return &h.hosts }

// Attach waits until the connection has a session, and returns a client that uses it. Your program
// created the connection and still owns it: Close leaves it open. If ctx ends first, Attach returns
// an error; if ctx has no deadline, it waits for 30 s. Once it has returned, ctx has no effect on
// the client. The connection must have been created with the Dial method of hooks (by
// zk.WithDialer); otherwise Attach returns ErrInvalid. All guarantees are the same as with Connect.
//
// If Options.Auth contains a credential with the scheme "sasl", Attach closes the connection once;
// the client logs in when it reconnects. The same applies to Options.Login, which gets the server's
// name only if the connection uses HostProvider. If the connection has logged in with an equal
// credential or Login, Attach keeps it. Attach returns zk.ErrAuthFailed if the first server rejects
// the login; the connection then reconnects as it did before.
func Attach(ctx context.Context, conn *zk.Conn, hooks *Hooks, opts *Options) (*Client, error) {
	o, err := opts.withDefaults()
	switch {
	case err != nil:
		return nil, fmt.Errorf("zklock: attach: %w", err)
	case conn == nil:
		return nil, fmt.Errorf("zklock: attach: %w: no connection given", ErrInvalid)
	case hooks == nil || hooks.hub == nil:
		return nil, fmt.Errorf("zklock: attach: %w: the connection must be created with hooks from NewHooks", ErrInvalid)
	case opts != nil && (opts.Dialer != nil || opts.HostProvider != nil || opts.TLS != nil):
		return nil, fmt.Errorf("zklock: attach: %w: set the dialer, TLS or the host provider on the connection instead", ErrInvalid)
	}
	c := newClient(ctx, hooks.hub, o)
	c.engine.Requests.Library = conn
	ctx, cancel := limited(ctx)
	defer cancel()
	undo := func() {}
	err = c.matchHooks(ctx)
	if login := o.login(); login != nil && err == nil {
		undo = c.engine.Requests.Link.SetLogin(*login, 1)
	}
	if err == nil {
		err = c.begin(ctx, o.Auth)
	}
	if err != nil {
		err = c.engine.Requests.Explain(ctx, err) // before undo forgets the refusal
		undo()
		c.Close()
		return nil, fmt.Errorf("zklock: attach: %w", err)
	}
	o.prepareLogin(hooks.hosts.Servers())
	return c, nil
}

// matchHooks waits until the hooks see the session that the connection has. It returns ErrInvalid
// if they keep seeing a different one: then the hooks belong to another connection.
func (c *Client) matchHooks(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for apart, without := 0, 0; ; {
		s, changed := c.engine.Requests.Link.State()
		id, has := c.engine.Requests.Library.SessionID(), c.engine.Requests.Library.State() == zk.StateHasSession
		switch {
		case has && s != nil && s.ID == id:
			return nil
		case has && id != 0:
			apart++ // it may also be reconnecting right now
		case s != nil:
			apart, without = 0, without+1 // the hooks have refused it, or it is about to notice its session
		default:
			apart, without = 0, 0
		}
		if apart == 4 || without == 20 {
			return fmt.Errorf("%w: the connection was not created with these hooks", ErrInvalid)
		}
		if apart+without > 0 {
			changed = nil
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func newClient(ctx context.Context, hub *queue.Hub, o *Options) *Client {
	l, shared := hub.Link, hub.Join()
	notices := session.NewNotices()
	log := slog.New(clientLog{o.Logger.Handler(), l, notices})
	notices.Report = func(s session.Slowness) {
		args := append(sessionOf(l), "duration", s.Longest, "backlog", s.Waiting, "dropped", s.Dropped)
		o.Logger.Warn("zklock: observer or log handler is slow", args...)
	}
	r := &session.Requests{Link: l, Root: o.Root, Log: log, Calls: session.NewTasks()}
	e := &queue.Engine{
		Hub: hub, Requests: r, Watches: session.NewWatches(r, shared), Directories: &session.Directories{Requests: r, ACL: o.ACL, Parents: o.ParentACL},
		Unnoted: queue.NewUnnoted(o.Untrusted), Reporter: queue.Reporter{Events: log, To: o.Observer, Notices: notices}, Removals: session.NewTasks(), FailStop: o.FailStop, Delay: o.LockDelay,
	}
	c := &Client{
		engine: e, root: o.Root, identity: node.OwnerData(o.Label, o.Anonymous), requestedTimeout: o.SessionTimeout,
		acquires: session.NewTasks(), joined: shared, tickTime: o.TickTime,
	}
	c.shared = node.OfCohort(c.identity)
	e.Heart = session.NewHeart(r, shared, c.missedHeartbeat, c.expiredEarly)
	r.Life, c.cancelLife = context.WithCancelCause(context.Background())
	r.CleanupCtx, c.cancelCleanup = context.WithCancelCause(context.Background())
	l.SetClock(lease.Clock(testclock.From(ctx)))
	return c
}

// begin waits for a session, presents the credentials, and takes part in the heartbeats. If another client of the connection
// assumes shorter ticks, begin waits until the session is proven with this client's.
func (c *Client) begin(ctx context.Context, auth []Auth) error {
	link := c.engine.Requests.Link
	s, err := c.firstSession(ctx)
	if err != nil {
		return err
	}
	if !link.CanProve(c.tickTime) {
		return fmt.Errorf("%w: a session timeout of %v is too short for a tickTime of %v; use at least two ticks", ErrInvalid, s.Lease.Term(), c.tickTime)
	}
	for _, a := range auth {
		if a.Scheme == schemeSASL {
			continue // the link has already logged in
		}
		if err := c.engine.Requests.Authenticate(ctx, a.Scheme, a.Data); err != nil {
			return fmt.Errorf("credential with the scheme %s: %w", escape.Text(a.Scheme), err)
		}
	}
	link.AddTick(c.tickTime)
	c.begun = true
	c.engine.Heart.Begin()
	return c.engine.Heart.Prove(ctx)
}

// connectLimit limits Connect and Attach if their context has no deadline: a program that has a wrong
// address would otherwise hang.
const connectLimit = 30 * time.Second

var errNoReply = errors.New("no server has replied")

var errNoSession = fmt.Errorf("no session within %v: %w", connectLimit, context.DeadlineExceeded)

// limited returns ctx with a deadline.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, connectLimit, errNoSession)
}

// firstSession waits for a session, and logs that it waits once per requested session timeout.
func (c *Client) firstSession(ctx context.Context) (*session.Session, error) {
	r := c.engine.Requests
	for start := time.Now(); ; {
		wait, cancel := context.WithTimeout(ctx, c.requestedTimeout)
		s, err := r.Link.Attached(wait)
		again := wait.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !again {
			return s, err
		}
		r.Log.Warn("zklock: no session yet", "duration", time.Since(start), "err", cmp.Or(r.Link.LastError(), errNoReply))
	}
}

// warnOfFailures returns a function that logs the first failure of each server, until there is a session.
func (c *Client) warnOfFailures() func(server string, err error) {
	var warned sync.Map
	return func(server string, err error) {
		if c.engine.Requests.Link.Latest() != nil {
			return
		}
		if _, again := warned.LoadOrStore(server, true); !again {
			c.engine.Requests.Log.Warn("zklock: server cannot be reached", "server", server, "err", escape.Text(err.Error()))
		}
	}
}

// SessionTimeout returns the session timeout that the server granted, or zero before the first
// session.
func (c *Client) SessionTimeout() time.Duration { return c.engine.Requests.Term() }

// Stats describes a client at one moment, for metrics.
type Stats struct {
	// Connected reports whether the client is connected to a server. It says nothing about a hold,
	// which stays valid without a connection until Remaining is zero.
	Connected bool
	// Remaining is how long the client's session, and therefore every hold, is guaranteed to last if
	// nothing more is received from the servers; see Hold.Remaining.
	Remaining time.Duration
	// Waiting is the number of calls that are acquiring a lock: they wait for other contenders, for
	// other goroutines of a Cohort, for a connection or for a reply.
	Waiting int
}

// Stats returns the client's statistics. It sends no request.
func (c *Client) Stats() Stats {
	attached, _ := c.engine.Requests.Link.State()
	stats := Stats{Connected: attached != nil, Waiting: int(c.waiting.Load())}
	if s := c.engine.Requests.Link.Latest(); s != nil && !s.IsOver() {
		stats.Remaining = max(0, s.Lease.Remaining())
	}
	return stats
}

// String describes what the client is doing: its session, and one line for each hold, for each wait
// with its reason, and for each node that the servers refuse to delete. It helps to debug a
// program that hangs. The format may change.
func (c *Client) String() string {
	lines := []string{"no session"}
	if s, _ := c.engine.Requests.Link.State(); s != nil {
		lines[0] = fmt.Sprintf("session 0x%x %v", s.ID, s.Lease)
	}
	var holds []string
	for _, g := range c.holds.all() {
		holds = append(holds, g.String())
	}
	slices.Sort(holds)
	all := slices.Concat(lines, holds, c.engine.Status(), c.waitingGoroutines())
	if slow := c.engine.Reporter.Notices.Slowness().String(); slow != "" {
		all = append(all, slow)
	}
	return strings.Join(all, "\n")
}

// waitingGoroutines returns a line for each cohort that has some.
func (c *Client) waitingGoroutines() (lines []string) {
	c.cohorts.Range(func(_, q any) bool {
		line := q.(interface{ status() string }).status()
		if line != "" {
			lines = append(lines, line)
		}
		return true
	})
	slices.Sort(lines)
	return lines
}

// Close releases all holds and ends the session. Waiting calls return ErrClosed. Close waits until
// the client has no node left in any queue, but no longer than the session timeout or 5 s,
// whichever is less; use Shutdown to set another limit. Ending the session may take up to a second
// more. If the limit stopped releases, Close also waits until the observer has seen their events,
// for up to 100 ms more. When Close returns, every goroutine of the client has ended. If no server
// can be reached, the session and its holds end on the servers after the session timeout. On a
// connection that was given to Attach, the session does not end, and the removal of the nodes
// continues after Close until they are gone. The error is always nil.
func (c *Client) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), min(cmp.Or(c.SessionTimeout(), c.requestedTimeout), 5*time.Second))
	defer cancel()
	_ = c.Shutdown(ctx) // its error only says that the limit was reached
	return nil
}

// Shutdown is like Close, but waits until ctx is done instead of for at most 5 s. If ctx is done
// first, Shutdown still ends the session and waits for the observer, which may take as long as in
// Close, and returns the cause of ctx: nodes that were not removed are removed with their session, or
// after Close on a connection that was given to Attach.
//
// If several goroutines call Close or Shutdown, each call waits until the client is closed, and the
// call whose limit is reached first stops the removal.
func (c *Client) Shutdown(ctx context.Context) error {
	// Owned by the call; starts when ctx is done and ends at once.
	stop := context.AfterFunc(ctx, func() { c.hurried.Set() })
	defer stop()
	if !c.closing.Swap(true) {
		c.close()
	}
	<-c.closed.Done() // a sync.Once would block on a mutex, which stops a test's virtual time
	if c.cut {
		remain := "nodes remain until their session ends"
		if c.owned == nil {
			remain = "removal of nodes continues on the connection"
		}
		return fmt.Errorf("zklock: shutdown: %s: %w", remain, cmp.Or(context.Cause(ctx), ErrClosed))
	}
	return nil
}

// close ends the holds before it waits for anything: from then on nobody watches their lease. It ends the waits before it releases a lock,
// which would grant that lock to the next of them. The nodes of holds and waiters are removed under heartbeats.
func (c *Client) close() {
	defer c.closed.Set()
	acquired := c.acquires.Close() // no more begin
	ended := c.endHolds()
	c.cancelLife(ErrClosed)
	settleAll(ended)
	c.engine.Watches.WakeAll()
	c.engine.Recall()
	limit := c.hurried.Done()
	select {
	case <-acquired: // they return at once; Removals, below, deletes their nodes
	case <-limit: // an observer has not returned
	}
	settleAll(c.endHolds()) // granted meanwhile
	cleared := c.engine.Removals.Close()
	select {
	case <-cleared:
	case <-limit:
		c.cut = !session.IsClosed(cleared) // both may have happened
	}
	if c.cut {
		c.warnOfRemaining()
	}
	c.cancelCleanup(ErrClosed)
	c.leave()
	if c.owned != nil {
		c.hangUp()
	}
	<-cleared
	<-c.engine.Requests.Calls.Close()
	if c.cut {
		ctx, cancel := context.WithTimeout(context.Background(), lastEvents)
		defer cancel()
		limit = ctx.Done()
	}
	c.engine.Reporter.Notices.Close(limit)
}

// lastEvents is how long Close waits for the observer after its limit, if releases have failed because of the limit: these have events.
const lastEvents = 100 * time.Millisecond

// warnOfRemaining logs that a limit was reached before all nodes were removed.
func (c *Client) warnOfRemaining() {
	if c.owned == nil {
		c.engine.Requests.Log.Warn("zklock: closed before all nodes were removed; removal continues on the connection")
		return
	}
	c.engine.Requests.Log.Warn("zklock: closed before all nodes were removed; they end with the session")
}

// endHolds ends all holds of the client, and returns those that had not ended. The caller must pass these to settleAll.
func (c *Client) endHolds() (ended []*holding) {
	for _, g := range c.holds.all() {
		if last, _ := g.end(ErrClosed); last {
			ended = append(ended, g)
		}
	}
	return ended
}

func settleAll(ended []*holding) {
	for _, g := range ended {
		g.settle()
	}
}

// leave ends the client's part in what the clients of the connection share.
func (c *Client) leave() {
	c.engine.Heart.End()
	if c.begun {
		c.engine.Requests.Link.RemoveTick(c.tickTime)
	}
	c.joined.Leave()
}

// hangUp ends the session if a server is reachable, and always closes the connection.
func (c *Client) hangUp() {
	if s, _ := c.engine.Requests.Link.State(); s == nil {
		c.engine.Requests.Link.Close() // first, because the client library would wait for a connection
	}
	c.engine.Requests.Library.Close()
	c.engine.Requests.Link.Close()
	for range c.owned { // until the client library has stopped
	}
	c.engine.Hub.Close()
}

// clientLog passes log records to the program's handler without waiting for it. It adds the session
// to each record, in the form in which servers' logs have it.
type clientLog struct {
	slog.Handler
	link    *conn.Link
	notices *session.Notices
}

// Enabled implements slog.Handler. The program's handler is asked when the record is passed to it.
func (h clientLog) Enabled(context.Context, slog.Level) bool { return h.Handler != slog.DiscardHandler }

// Handle implements slog.Handler.
func (h clientLog) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	r.Add(sessionOf(h.link)...)
	h.notices.Put(func() {
		if h.Handler.Enabled(ctx, r.Level) {
			_ = h.Handler.Handle(ctx, r) // as package slog does with its error
		}
	})
	return nil
}

// sessionOf returns the key of the current session and its value, or nothing if there was no session
// yet.
func sessionOf(l *conn.Link) []any {
	s := l.Latest()
	if s == nil {
		return nil
	}
	return []any{"session", fmt.Sprintf("%#x", uint64(s.ID))}
}

// WithAttrs implements slog.Handler.
func (h clientLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return clientLog{h.Handler.WithAttrs(attrs), h.link, h.notices}
}

// WithGroup implements slog.Handler.
func (h clientLog) WithGroup(name string) slog.Handler {
	return clientLog{h.Handler.WithGroup(name), h.link, h.notices}
}

// libraryLog writes the client library's messages to the client's logger.
type libraryLog struct{ *slog.Logger }

func (l libraryLog) Printf(format string, args ...any) {
	l.Debug("zklock: client library: " + escape.Text(fmt.Sprintf(format, args...)))
}

// expiredEarly reports to the observer that the servers ended a session too early.
func (c *Client) expiredEarly(why error) {
	c.engine.Reporter.Observe(observe.Event{Kind: observe.ExpiredEarly, Err: why})
}

// missedHeartbeat reports to the observer that no quorum answered a heartbeat in time.
func (c *Client) missedHeartbeat(why error) {
	if c.engine.Requests.Life.Err() == nil {
		c.engine.Reporter.Observe(observe.Event{Kind: observe.HeartbeatMissed, Err: why})
	}
}

// none is the client of locks that were not created by a client, such as a zero Mutex. It is
// closed, with the cause errNotMade.
var none = newNone()

var errNotMade = fmt.Errorf("%w: lock was not created by a Client method", ErrInvalid)

func newNone() *Client {
	o, _ := (*Options)(nil).withDefaults()
	c := newClient(context.Background(), queue.NewHub(conn.NewLink()), o)
	c.cancelLife(errNotMade)
	c.acquires.Close()
	c.engine.Requests.Calls.Close()
	return c
}

// orNone returns c, or none if c was not created by Connect or Attach.
func (c *Client) orNone() *Client {
	if c == nil || c.engine == nil {
		return none
	}
	return c
}

// owner holds the client that created a lock, or nil for a zero lock.
type owner struct{ made *Client }

func (o owner) client() *Client { return o.made.orNone() }

func (o owner) engine() *queue.Engine { return o.client().engine }

func init() {
	bridge.ClientOf = func(client any) bridge.Client {
		c := client.(*Client).orNone()
		return bridge.Client{Engine: c.engine, Root: c.root, Identity: c.identity}
	}
	bridge.TargetOf = func(servers []string, opts any) (bridge.Target, error) {
		servers, o, chroot, err := complete(servers, opts.(*Options))
		if err != nil {
			return bridge.Target{}, err
		}
		return bridge.Target{
			Servers: servers, Chroot: chroot, Root: o.Root, Dial: o.dialOne(), Login: o.login(), Credentials: o.credentials(),
			SessionTimeout: o.SessionTimeout, TickTime: o.TickTime, ACL: o.ACL,
		}, nil
	}
}
