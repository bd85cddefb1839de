// Package zklock provides locks on ZooKeeper that are fair and fenced, and whose holder
// learns that its lock is lost before anybody else can hold it.
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
//   - [Mutex] has one holder at a time. Begin here.
//   - [Cohort] is a mutex for many goroutines of one process, which share a place in the
//     queue: the lock goes from one to the next with one request or with none.
//   - [Reentrant] is a mutex for call chains in which a function that locks calls another
//     that locks the same path.
//   - [RWMutex] has many readers or one writer. A writer can become a reader without
//     letting another writer in between: [Hold.Downgrade].
//   - [Semaphore] has a number of permits, of which a holder can take several at once.
//   - [Client.LockAll] takes several of the above, all or none, in an order that cannot
//     deadlock.
//   - [Election] has one leader at a time, which everybody can find and follow, and a value
//     that the leader publishes.
//
// Package slots builds on them: work that a fleet does once, such as one run of a cron job.
//
// Each is named by a path. Every acquire creates an ephemeral sequential node below that path
// and waits for the node before its own. So grants follow the order of asking, and a release
// wakes one waiter.
//
// # Holding
//
// A successful acquire returns a [Hold]. Five words describe what it is worth:
//
//   - The lease is the time for which the client can prove that its session, and so the
//     hold, still exists on the servers. Heartbeats prolong it; [Hold.Remaining] returns
//     what is left of it.
//   - A loss is the end of a hold that nobody asked for: the lease has run out, the session
//     has expired, or the node was deleted. [Hold.Context] is cancelled then, with a cause
//     that wraps [ErrLost], and before the servers can grant the lock to anybody else.
//   - The token is a number that grows with every grant of a path: [Hold.Token]. A store
//     that refuses a smaller token than it has seen is safe even from a process that was
//     stopped and has not noticed its loss yet.
//   - The guard is a check inside a ZooKeeper transaction, [Hold.Guard]: the transaction
//     commits only while the lock is held. [Hold.Multi] adds it by itself.
//   - A release is the end that was asked for, by [Hold.Unlock].
//
// A [Client] outlives ZooKeeper sessions. When a session expires, its holds are lost,
// waiters queue again under the next session, and later calls use that one.
//
// # For operators
//
// Package operate shows who holds and who waits, also among users of Curator, kazoo and
// go-zookeeper, asks a holder to let go, and removes a contender. Package observe has the
// events of locks, for metrics.
package zklock

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/lease"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/plain"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/internal/wall"
	"github.com/zklock-go/zklock/observe"
)

// Options configures a client. A nil *Options means the defaults.
type Options struct {
	// SessionTimeout is the session timeout that the client asks for. The server may grant
	// another (see Client.SessionTimeout). If a holder crashes, the next one holds after
	// about this time. Default 10 s.
	SessionTimeout time.Duration
	// TickTime is the servers' tickTime. It must be set if their minimum session timeout is
	// below two ticks; otherwise zero is safe.
	TickTime time.Duration
	// Root is put before every path that is given to the client. Default none.
	Root string
	// ACL is the ACL of every node that the client creates. The contenders for a lock must
	// be able to read each other's nodes. Default world:anyone:cdrwa.
	ACL []zk.ACL
	// ParentACL is the ACL of the nodes above a lock's own, those of Root among them, if the
	// client has to create them. Default: ACL, and everybody may create and read there, so
	// that programs with another ACL can have locks beside these.
	ParentACL []zk.ACL
	// Auth lists the credentials that are presented to every server, on each connection.
	// They are sent as they are: without TLS, anybody on the wire can read a digest's user
	// and password, and use them. That of the scheme "sasl" is not sent: see Auth.
	Auth []Auth
	// Dialer connects to a server. For TLS, wrap a tls.Dialer. Default TCP.
	Dialer zk.Dialer
	// HostProvider picks the next server. The default takes them in turn, beginning with a
	// random one, and resolves the name anew each time.
	HostProvider zk.HostProvider
	// Untrusted is for directories to whose data a client that you do not trust may write.
	// The client then neither believes nor leaves notes there about the last holder, and
	// lists the queue instead: a hand-off to a waiter that was not next in line costs more,
	// and an evicted waiter queues again. Default false.
	Untrusted bool
	// Label is written into each node's data, beside the host's name and the process's
	// number, for operators to read. A member of an election has its value there instead. At
	// most 1024 bytes. Default none.
	Label string
	// Anonymous leaves the host's name and the process's number out of each node's data,
	// which everybody whom the ACL admits can read. Default false.
	Anonymous bool
	// Logger receives what the client does on its own: see "Log lines" in
	// docs/operations.md. Default silent.
	Logger *slog.Logger
	// Observer is called with the outcome of every attempt, the end of every hold, and every
	// missed heartbeat: see observe.Kind. Default none.
	Observer observe.Observer
	// LockDelay is how long a lock stays free after a holder that has not released it: one that
	// crashed, was cut off, or was evicted, whose process may still be at work. The next one is
	// granted when this time has passed since it was seen that the holder's node is gone. After
	// a release (Unlock, Do, Close) the next one is granted at once. It is for stores that cannot
	// refuse late writes: see docs/guarantees.md.
	//
	// It applies to Mutex, Reentrant, RWMutex (for its writers' crashes), Election and slots, and
	// not to Semaphore; Cohort cannot be used with it. All clients of a lock must have the same
	// delay; otherwise an acquire returns ErrMismatch. Default none.
	LockDelay time.Duration
	// FailStop makes sure that no function works on without its lock. The context of a function
	// that was given to Do or Election.Run then ends while an eighth of the session timeout is still
	// certain. The lock is not given up before the function has returned. If it has not returned
	// when the hold is lost, FailStop is called with the reason; it should end the process, or the
	// part of it that works. A loss that nothing announces (an eviction, a machine that was asleep)
	// ends the context at once, and FailStop is called that eighth later: meanwhile another may
	// hold. The end of a hold by Close calls nothing. FailStop may call Close. Default none: such a
	// function works on.
	FailStop func(err error)
}

// Client is a connection to a ZooKeeper ensemble and everything that is held through it. It
// is safe for use by several goroutines. Locks exclude goroutines of one client from each
// other just as they exclude processes.
type Client struct {
	engine *queue.Engine

	owned    <-chan zk.Event // closed when conn has ended; nil for a connection that is not ours
	root     string
	identity []byte        // owner data
	shared   []byte        // owner data of cohorts
	asked    time.Duration // the session timeout that was asked for

	endLife  context.CancelCauseFunc
	endAfter context.CancelCauseFunc
	acquires *session.Tasks // calls that may make nodes
	closing  atomic.Bool    // Close was called
	closed   session.Latch  // Close is over

	holds   holdings
	cohorts sync.Map // the local queues of cohorts, by their keys
}

// Connect waits until a server has granted a session, and returns a client that has it. If
// ctx ends first, it returns an error; without a deadline on ctx it waits for a server for
// ever. Once Connect has returned, ctx has no effect on the client.
//
// Each server is host:port; the port defaults to 2181. The connection strings of other
// ZooKeeper clients work as well: several servers separated by commas, and a chroot after
// the last one (zk1:2181,zk2:2181/app), which is put before Options.Root. For anything
// else Connect returns ErrInvalid.
func Connect(ctx context.Context, servers []string, opts *Options) (*Client, error) {
	servers, chroot, err := parseServers(servers)
	if err != nil {
		return nil, fmt.Errorf("zklock: connect: %w", err)
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("zklock: connect: %w", err)
	}
	o.Root = chroot + o.Root
	c := newClient(ctx, conn.NewLink(), o)
	c.engine.Link.SetHandshake(max(o.SessionTimeout/3, time.Second))
	if login := loginOf(o.Auth); login != nil {
		c.engine.Link.SetLogin(*login, len(servers))
	}
	conn, events, err := zk.Connect(servers, o.SessionTimeout,
		zk.WithDialer(c.engine.Link.Dialer(o.Dialer)),
		zk.WithHostProvider(c.engine.Link.Hosts(o.HostProvider)),
		zk.WithMaxBufferSize(maxLibraryFrame), zk.WithLogger(libraryLog{c.engine.Log}), zk.WithLogInfo(false))
	if err != nil {
		c.engine.Link.Close()
		return nil, fmt.Errorf("zklock: connect: %w", err)
	}
	c.engine.Library, c.owned = conn, events
	if err := c.begin(ctx, o.Auth); err != nil {
		err = c.engine.Explain(ctx, err) // before Close makes trouble of its own
		c.Close()
		return nil, fmt.Errorf("zklock: connect to %s: %w", strings.Join(servers, ","), err)
	}
	return c, nil
}

// maxLibraryFrame bounds the frames that the client library reads, and the memory that it has for them on each connection: long
// answers and events are ours.
const maxLibraryFrame = 64 << 10

// parseServers returns the servers' addresses and the chroot behind them.
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

// Hooks let a client see the traffic of a zk.Conn that your program creates itself: see
// Attach.
type Hooks struct {
	link *conn.Link
	dial zk.Dialer
}

// NewHooks returns hooks for one connection. dial connects to a server; nil means TCP.
func NewHooks(dial zk.Dialer) *Hooks {
	if dial == nil {
		dial = net.DialTimeout
	}
	l := conn.NewLink()
	return &Hooks{link: l, dial: l.Dialer(dial)}
}

// Dial connects to a server. Pass it to zk.WithDialer when you create the connection.
func (h *Hooks) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if h.dial == nil {
		return nil, fmt.Errorf("zklock: dial: %w: hooks that NewHooks has not made", ErrInvalid)
	}
	return h.dial(network, address, timeout)
}

// Attach returns a client on a connection that your program has created and still owns:
// Close leaves it open. The connection must have been created with the Dial method of hooks
// (by zk.WithDialer); otherwise Attach returns ErrInvalid. Every promise holds as with
// Connect.
//
// With a credential of the scheme "sasl" the connection is ended once, and logs in
// when it comes back. Attach returns zk.ErrAuthFailed if the first server refuses that.
func Attach(ctx context.Context, conn *zk.Conn, hooks *Hooks, opts *Options) (*Client, error) {
	o, err := opts.withDefaults()
	switch {
	case err != nil:
		return nil, fmt.Errorf("zklock: attach: %w", err)
	case conn == nil:
		return nil, fmt.Errorf("zklock: attach: %w: no connection given", ErrInvalid)
	case hooks == nil || hooks.link == nil:
		return nil, fmt.Errorf("zklock: attach: %w: the connection must be made with hooks of NewHooks", ErrInvalid)
	case opts != nil && (opts.Dialer != nil || opts.HostProvider != nil):
		return nil, fmt.Errorf("zklock: attach: %w: a dialer or host provider must be set on the connection instead", ErrInvalid)
	}
	c := newClient(ctx, hooks.link, o)
	c.engine.Library = conn
	err = c.matchHooks(ctx)
	if login := loginOf(o.Auth); login != nil && err == nil {
		c.engine.Link.SetLogin(*login, 1)
	}
	if err == nil {
		err = c.begin(ctx, o.Auth)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("zklock: attach: %w", c.engine.Explain(ctx, err))
	}
	return c, nil
}

// matchHooks waits until the hooks see the session that the connection has. It returns
// ErrInvalid if they keep seeing another: they are those of another connection.
func (c *Client) matchHooks(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for apart := 0; ; {
		s, changed := c.engine.Link.State()
		id, has := c.engine.Library.SessionID(), c.engine.Library.State() == zk.StateHasSession
		switch {
		case has && s != nil && s.ID == id:
			return nil
		case has && id != 0:
			apart++ // or the connection is just changing
		default:
			apart = 0
		}
		if apart == 4 {
			return fmt.Errorf("%w: the connection was not made with these hooks", ErrInvalid)
		}
		if apart > 0 {
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

func newClient(ctx context.Context, l *conn.Link, o *Options) *Client {
	r := &session.Requests{Link: l, Log: o.Logger, Calls: session.NewTasks()}
	e := &queue.Engine{
		Requests: r, Watches: session.NewWatches(r), Directories: &session.Directories{Requests: r, ACL: o.ACL, Parents: o.ParentACL}, PendingCreates: &session.PendingCreates{Requests: r},
		Unnoted: queue.NewUnnoted(o.Untrusted), Reporter: queue.Reporter{Events: o.Logger, To: o.Observer}, Removals: session.NewTasks(), FailStop: o.FailStop, Delay: o.LockDelay,
	}
	c := &Client{
		engine: e, root: o.Root, identity: node.OwnerData(o.Label, o.Anonymous), asked: o.SessionTimeout,
		acquires: session.NewTasks(),
	}
	c.shared = node.OfCohort(c.identity)
	e.Heart = session.NewHeart(r, c.missedHeartbeat)
	r.Life, c.endLife = context.WithCancelCause(context.Background())
	r.Afterlife, c.endAfter = context.WithCancelCause(context.Background())
	l.SetUp(lease.Clock(wall.From(ctx)), o.TickTime)
	return c
}

// begin waits for a session, presents the credentials, and starts the heartbeat.
func (c *Client) begin(ctx context.Context, auth []Auth) error {
	s, err := c.engine.Link.Attached(ctx)
	if err != nil {
		return err
	}
	if !s.Lease.CanProve() {
		return fmt.Errorf("%w: a session timeout of %v is too short for servers with a tick of %v", ErrInvalid, s.Lease.Term(), s.Lease.Tick())
	}
	for _, a := range auth {
		if a.Scheme == schemeSASL {
			continue // the link has logged in already
		}
		_, err := session.Again(ctx, func() (none struct{}, err error) {
			return none, c.engine.Authenticate(ctx, a.Scheme, a.Data)
		})
		if err != nil {
			return err
		}
	}
	// Owned by the client; ends with life; Close waits for it.
	c.engine.Calls.Run(c.engine.BeatForever)
	return nil
}

// SessionTimeout returns the session timeout that the server has granted, or zero before
// the first session.
func (c *Client) SessionTimeout() time.Duration { return c.engine.Term() }

// String tells what the client does: its session, and a line for each hold and each wait. It is for
// people, who ask a program that hangs what it waits for, and may change.
func (c *Client) String() string {
	lines := []string{"no session"}
	if s, _ := c.engine.Link.State(); s != nil {
		lines[0] = fmt.Sprintf("session 0x%x %v", s.ID, s.Lease)
	}
	var holds []string
	for _, g := range c.holds.all() {
		holds = append(holds, g.String())
	}
	slices.Sort(holds)
	return strings.Join(slices.Concat(lines, holds, c.engine.Waiting()), "\n")
}

// Close releases everything that is still held and ends the session. Waiting calls return
// ErrClosed. Close waits until the client has no node left in any queue, but no longer than the
// session timeout or 5 s, whichever is less. Ending the session may take a second more. It
// returns when every goroutine of the client has ended. If no server can be reached, the session,
// and with it what was held, ends by itself after the session timeout. The error is always nil.
func (c *Client) Close() error {
	if !c.closing.Swap(true) {
		c.close()
	}
	<-c.closed.Done() // a sync.Once would wait at a mutex, where a test's virtual time stands still
	return nil
}

func (c *Client) close() {
	defer c.closed.Set() // also if an observer panics
	c.endLife(ErrClosed)
	<-c.acquires.Close() // they return at once; removals below takes their nodes away
	for _, g := range c.holds.all() {
		g.lose(ErrClosed)
	}
	cleared := c.engine.Removals.Close()
	timer := time.NewTimer(min(cmp.Or(c.SessionTimeout(), c.asked), 5*time.Second))
	select {
	case <-cleared:
	case <-timer.C:
		c.engine.Log.Warn("zklock: closed before all nodes were removed; they end with the session")
	}
	timer.Stop()
	c.endAfter(ErrClosed)
	if c.owned != nil {
		c.hangUp()
	}
	<-cleared
	<-c.engine.Calls.Close()
	c.engine.StopListening()
}

// hangUp ends the session, if a server listens, and the connection in any case.
func (c *Client) hangUp() {
	if s, _ := c.engine.Link.State(); s == nil {
		c.engine.Link.Close() // first: the client library would wait for a connection
	}
	c.engine.Library.Close()
	c.engine.Link.Close()
	for range c.owned { // until the client library has ended
	}
}

func (o *Options) withDefaults() (*Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	if d.SessionTimeout == 0 {
		d.SessionTimeout = 10 * time.Second
	}
	if d.ACL == nil {
		d.ACL = zk.WorldACL(zk.PermAll)
	}
	if d.ParentACL == nil {
		d.ParentACL = openFor(d.ACL)
	}
	if d.Dialer == nil {
		d.Dialer = net.DialTimeout
	}
	if d.HostProvider == nil {
		d.HostProvider = &conn.Rotation{}
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	return &d, d.check()
}

func (o *Options) check() error {
	switch {
	case o.SessionTimeout < 0 || o.SessionTimeout.Milliseconds() > 1<<31-1:
		return fmt.Errorf("%w: session timeout %v", ErrInvalid, o.SessionTimeout)
	case o.SessionTimeout < time.Millisecond:
		return fmt.Errorf("%w: session timeout %v is below a millisecond", ErrInvalid, o.SessionTimeout)
	case o.TickTime < 0:
		return fmt.Errorf("%w: tick time %v", ErrInvalid, o.TickTime)
	case o.LockDelay < 0:
		return fmt.Errorf("%w: lock-delay %v", ErrInvalid, o.LockDelay)
	case len(o.ACL) == 0 || len(o.ParentACL) == 0:
		return fmt.Errorf("%w: empty ACL", ErrInvalid)
	case len(o.Label) > node.MaxLabel:
		return fmt.Errorf("%w: label of %d bytes, the limit is %d", ErrInvalid, len(o.Label), node.MaxLabel)
	}
	if err := checkAuth(o.Auth); err != nil || o.Root == "" {
		return err
	}
	return node.CheckPath(o.Root)
}

// openFor returns an ACL with which everybody may also create and read.
func openFor(acl []zk.ACL) []zk.ACL {
	const open = zk.PermCreate | zk.PermRead
	for _, a := range acl {
		if a.Scheme == "world" && a.Perms&open == open {
			return acl
		}
	}
	return append(slices.Clone(acl), zk.WorldACL(open)...)
}

// libraryLog passes the client library's messages on to our log.
type libraryLog struct{ *slog.Logger }

func (l libraryLog) Printf(format string, args ...any) {
	l.Debug("zklock: client library: " + plain.Text(fmt.Sprintf(format, args...)))
}

// missedHeartbeat reports a heartbeat that no quorum has answered in time.
func (c *Client) missedHeartbeat(why error) {
	if c.engine.Life.Err() == nil {
		c.engine.Observe(observe.Event{Kind: observe.HeartbeatMissed, Err: why})
	}
}
