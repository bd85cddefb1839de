// Package zklock takes locks in ZooKeeper that are safe to rely on: fair, fenced, and
// with a holder that is told before anybody else can hold.
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
// Each acquire makes an ephemeral sequential node of its own below the path and waits
// for the one before it only. A client outlives ZooKeeper sessions: what is held dies
// with its session, who waits queues again on the next, later calls work on it.
package zklock

import (
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
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/plain"
	"github.com/zklock-go/zklock/internal/wall"
)

// Errors of this package wrap one of these, to be asked for with errors.Is, or an error of
// the client library (zk.ErrNoAuth) where a server refuses. Each names the operation and
// the path as well. One of a wait whose context has ended wraps the context's error and the
// last trouble that the wait has seen.
var (
	// ErrLost is the cause of a hold's end that was not asked for: its session is over, no
	// quorum has answered in time, or its node was deleted. From then on others may hold. It
	// is what every method of the hold returns, and the cause of its context.
	ErrLost = errors.New("lock was lost")
	// ErrReleased is the cause of a hold's end by Unlock, and what its methods return
	// afterwards.
	ErrReleased = errors.New("lock was released")
	// ErrNotHeld is returned by the second Unlock of a hold, by Proclaim under a context
	// that leads nothing, and by Revoke and Evict for a contender that is gone.
	ErrNotHeld = errors.New("not held")
	// ErrLocked is returned by TryLock, TryRLock and TryAcquire when they would have to wait.
	ErrLocked = errors.New("locked by another")
	// ErrDeadlock is returned by an acquire under the context of a hold of the same lock,
	// which would wait for itself.
	ErrDeadlock = errors.New("already held by this context")
	// ErrClosed is returned by calls on a client that is closed, or is closed while they
	// wait, and is the cause of the end of what the client held then.
	ErrClosed = errors.New("client is closed")
	// ErrNotConnected is returned by calls that do not wait (TryLock, TryRLock, TryAcquire)
	// when there is no connection, or when it is lost before they have their answer.
	ErrNotConnected = errors.New("no connection to a server")
	// ErrUncertain is returned by Multi when the transaction was sent and its answer did not
	// come: it was done as a whole, or not at all.
	ErrUncertain = errors.New("answer was lost, it may have been done")
	// ErrInvalid is returned for an argument or option that cannot be right, before anything
	// is sent, and for a path whose nodes show that it is another kind of lock.
	ErrInvalid = errors.New("invalid argument")
	// ErrLimit is returned by a semaphore's methods when the number of permits that they say
	// is not the stored one, and when more are asked for than there are or than can be asked
	// for at once.
	ErrLimit = errors.New("not within the semaphore's permits")
)

// Options are a client's. Nil means the defaults.
type Options struct {
	// SessionTimeout is asked of the server, which may grant another (see
	// Client.SessionTimeout). After a crash of the holder it is about the time until
	// the next one holds. Default 10 s.
	SessionTimeout time.Duration
	// TickTime is the servers' tickTime. It need only be set where their minimum
	// session timeout is below two ticks; otherwise it is safe to leave it zero.
	TickTime time.Duration
	// Root is put before every path that is given to the client. Default none.
	Root string
	// ACL is of every node that is made. Default world:anyone:cdrwa. Those who
	// contend for a lock must be able to read each other's nodes.
	ACL []zk.ACL
	// ParentACL is of the nodes above a lock's own that have to be made, those of Root
	// among them. Default: ACL, and everybody may create and read there, so that programs
	// with another ACL can have locks beside these.
	ParentACL []zk.ACL
	// Auth is presented to every server, on each connection, as it is: without TLS a digest's
	// user and password can be read by whatever stands between, and be used from then on.
	Auth []Auth
	// Dialer connects to a server: with a tls.Dialer's DialContext behind it, over TLS. Default TCP.
	Dialer zk.Dialer
	// HostProvider picks the next server. Default: in turn, from a random one on,
	// resolving its name anew each time.
	HostProvider zk.HostProvider
	// Untrusted is for directories to whose data others may write that this client does not
	// trust. Then it believes no note there of who has held the lock and leaves none, but
	// lists the queue: a hand-off to one that was not next in line costs more. A waiter that
	// is evicted queues again. Default false.
	Untrusted bool
	// Label is put into each node's data, beside the host's name and the process's number,
	// for operators to read. At most 1024 bytes. Default none.
	Label string
	// Anonymous leaves the host's name and the process's number out of each node's data,
	// which all can read whom the ACL lets. Default false.
	Anonymous bool
	// Logger gets what the client does on its own: see "Log lines" in docs/operations.md.
	// Default silent.
	Logger *slog.Logger
	// Observer is told of every attempt and what became of it, of every hold's end and of
	// missed heartbeats: see EventKind. Default none.
	Observer Observer
}

// Auth is a credential, for example {"digest", []byte("user:password")}.
type Auth struct {
	Scheme string
	Data   []byte
}

// Client is a connection to a ZooKeeper ensemble and all that is held through it. It may
// be used by many goroutines; locks exclude these from each other as they do processes.
type Client struct {
	conn     *zk.Conn
	owned    <-chan zk.Event // closed when conn has ended; nil for a connection that is not ours
	link     *link
	root     string
	acl      []zk.ACL
	parents  []zk.ACL // of nodes above a lock's own
	identity []byte   // owner data
	log      *slog.Logger
	observer Observer
	patience time.Duration // how long Close waits for clean-up

	life      context.Context // ends, with ErrClosed, when Close begins
	endLife   context.CancelCauseFunc
	afterlife context.Context // ends, with ErrClosed, when Close gives up cleaning
	endAfter  context.CancelCauseFunc
	acquires  *tasks // calls that may make nodes
	removals  *tasks // of nodes: Close waits for them, for a while
	calls     *tasks // requests and watches: they end when the connection has
	closing   sync.Once
	kick      chan struct{}

	mu    sync.Mutex
	kept  map[*contender]struct{} // guarded by mu: see keep
	holds map[*holding]struct{}   // guarded by mu

	untrusted bool                // see Options
	mute      map[string]struct{} // guarded by mu: directories that take no note from us

	readable atomic.Bool // we have read a node of our own once, so we may: all have one ACL

	ghosts  []*ghost      // guarded by mu
	hunting chan struct{} // guarded by mu: has room for the news of another ghost; nil while none is looked for

	warmUntil time.Time // guarded by mu: until when heartbeats go on though nothing is kept
	hangUps   int       // guarded by mu: connections in a row that ended on a request for a container node
}

// Connect returns a client that has a session, or an error when ctx ends before a
// server has granted one. ctx governs nothing else.
//
// A server is host:port, the port 2181 if it is left out. The strings that other
// ZooKeeper clients take work as well: several servers with commas between them, and
// behind the last one a chroot (zk1:2181,zk2:2181/app), which is put before
// Options.Root. Anything else is ErrInvalid.
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
	c := newClient(ctx, newLink(), o)
	c.link.handshake = max(o.SessionTimeout/3, time.Second)
	conn, events, err := zk.Connect(servers, o.SessionTimeout,
		zk.WithDialer(c.link.dialer(o.Dialer)),
		zk.WithHostProvider(hosts{o.HostProvider, c.link}),
		zk.WithMaxBufferSize(maxFrame), zk.WithLogger(libraryLog{c.log}), zk.WithLogInfo(false))
	if err != nil {
		c.link.close()
		return nil, fmt.Errorf("zklock: connect: %w", err)
	}
	c.conn, c.owned = conn, events
	if err := c.begin(ctx, o.Auth); err != nil {
		c.Close()
		return nil, fmt.Errorf("zklock: connect to %s: %w", strings.Join(servers, ","), c.explain(ctx, err))
	}
	return c, nil
}

// Hooks let a client see what passes on the connection of a zk.Conn that your program makes itself.
type Hooks struct {
	link *link
	dial zk.Dialer
}

// NewHooks returns hooks for one connection. dial connects to a server; nil is TCP.
func NewHooks(dial zk.Dialer) *Hooks {
	if dial == nil {
		dial = net.DialTimeout
	}
	l := newLink()
	return &Hooks{link: l, dial: l.dialer(dial)}
}

// Dial is for zk.WithDialer.
func (h *Hooks) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if h.dial == nil {
		return nil, fmt.Errorf("zklock: dial: %w: hooks that NewHooks has not made", ErrInvalid)
	}
	return h.dial(network, address, timeout)
}

// Attach returns a client on a connection that your program has made and goes on
// owning: Close leaves it open. hooks must be those whose Dial the connection was made
// with (by zk.WithDialer), else the error is ErrInvalid; then every promise holds as with
// Connect.
//
// Without hooks the negotiated session timeout, the end of a session and the time at
// which a request was sent cannot be seen. Then Options.SessionTimeout must be set to
// no more than the servers have granted: if it is more, a hold can outlive the
// server's grant. The client asks the connection for its state several times a second,
// and a server for a sign of life four times a session timeout; a loss may be told that much later.
func Attach(ctx context.Context, conn *zk.Conn, hooks *Hooks, opts *Options) (*Client, error) {
	o, err := opts.withDefaults()
	switch {
	case err != nil:
		return nil, fmt.Errorf("zklock: attach: %w", err)
	case conn == nil:
		return nil, fmt.Errorf("zklock: attach: %w: no connection given", ErrInvalid)
	case hooks != nil && hooks.link == nil:
		return nil, fmt.Errorf("zklock: attach: %w: hooks that NewHooks has not made", ErrInvalid)
	case hooks == nil && (opts == nil || opts.SessionTimeout == 0):
		return nil, fmt.Errorf("zklock: attach: %w: without hooks the session timeout must be given", ErrInvalid)
	case opts != nil && (opts.Dialer != nil || opts.HostProvider != nil):
		return nil, fmt.Errorf("zklock: attach: %w: a dialer or a host provider is the connection's affair", ErrInvalid)
	}
	l := newLink()
	if hooks != nil {
		l = hooks.link
	}
	c := newClient(ctx, l, o)
	c.conn = conn
	if hooks == nil {
		l.bare = conn.SessionID
		c.poll(o.SessionTimeout)
	} else {
		err = c.matchHooks(ctx)
	}
	if err == nil {
		err = c.begin(ctx, o.Auth)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("zklock: attach: %w", c.explain(ctx, err))
	}
	return c, nil
}

// matchHooks waits until the hooks see the session that the connection has. Those of
// another connection never do.
func (c *Client) matchHooks(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for apart := 0; ; {
		s, changed := c.link.state()
		id, has := c.conn.SessionID(), c.conn.State() == zk.StateHasSession
		switch {
		case has && s != nil && s.id == id:
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

func newClient(ctx context.Context, l *link, o *Options) *Client {
	c := &Client{
		link: l, root: o.Root, acl: o.ACL, parents: o.ParentACL, identity: ownerData(o.Label, o.Anonymous), log: o.Logger, observer: o.Observer,
		patience: min(o.SessionTimeout, 5*time.Second),
		acquires: newTasks(), removals: newTasks(), calls: newTasks(), kick: make(chan struct{}, 1),
		untrusted: o.Untrusted,
		kept:      map[*contender]struct{}{}, holds: map[*holding]struct{}{}, mute: map[string]struct{}{},
	}
	c.life, c.endLife = context.WithCancelCause(context.Background())
	c.afterlife, c.endAfter = context.WithCancelCause(context.Background())
	l.setUp(clockFrom(wall.From(ctx)), o.TickTime)
	return c
}

// begin waits for a session and presents the credentials.
func (c *Client) begin(ctx context.Context, auth []Auth) error {
	s, err := c.link.attached(ctx)
	if err != nil {
		return err
	}
	if !s.lease.canProve() {
		return fmt.Errorf("%w: a session timeout of %v is too short for servers with a tick of %v", ErrInvalid, s.lease.term(), s.lease.tick)
	}
	for _, a := range auth {
		if err := c.authenticate(ctx, a); err != nil {
			return err
		}
	}
	// Owned by the client; ends with life; Close waits for it.
	c.calls.run(c.beatForever)
	return nil
}

// authenticate presents a credential. From then on the client library presents it again on each connection, first of all.
func (c *Client) authenticate(ctx context.Context, a Auth) error {
	_, err := again(ctx, func() (struct{}, error) {
		return ask(ctx, c, nil, isRead, func(conn *zk.Conn) (none struct{}, err error) {
			return none, conn.AddAuth(a.Scheme, a.Data)
		})
	})
	return err
}

// SessionTimeout is what the server has granted. Zero before the first session.
func (c *Client) SessionTimeout() time.Duration {
	s := c.link.latest()
	if s == nil {
		return 0
	}
	return s.lease.term()
}

// Close releases what is still held, waits a while (at most the session timeout, and
// 5 s) until no node of ours is left in any queue, ends the session and every goroutine
// of the client. Waiting calls return ErrClosed. Without a server the session, and
// with it what was held, ends by itself after the session timeout.
func (c *Client) Close() error {
	c.closing.Do(c.close)
	return nil
}

func (c *Client) close() {
	c.endLife(ErrClosed)
	<-c.acquires.close() // they return at once, and leave their nodes to be removed
	for _, g := range c.allHolds() {
		g.lose(ErrClosed)
	}
	cleared := c.removals.close()
	timer := time.NewTimer(c.patience)
	select {
	case <-cleared:
	case <-timer.C:
		c.log.Warn("zklock: closed before all nodes were removed; they end with the session")
	}
	timer.Stop()
	c.endAfter(ErrClosed)
	if c.owned != nil {
		c.hangUp()
	}
	<-cleared
	<-c.calls.close()
}

// hangUp ends the session, if a server listens, and the connection in any case.
func (c *Client) hangUp() {
	if s, _ := c.link.state(); s == nil {
		c.link.close() // first: the client library would wait for a connection
	}
	c.conn.Close()
	c.link.close()
	for range c.owned { // until the client library has ended
	}
}

func (c *Client) allHolds() []*holding {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*holding, 0, len(c.holds))
	for g := range c.holds {
		all = append(all, g)
	}
	return all
}

func (c *Client) enlist(g *holding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds[g] = struct{}{}
}

func (c *Client) delist(g *holding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.holds, g)
}

// explain completes the error of a wait under ctx: with the context's own and the last trouble that was seen.
func (c *Client) explain(ctx context.Context, err error) error {
	err = causeOf(ctx, err)
	if trouble := c.link.lastTrouble(); trouble != nil && ctx.Err() != nil {
		if s, _ := c.link.state(); s == nil {
			return fmt.Errorf("%w (last trouble: %w)", err, trouble)
		}
	}
	return err
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
		d.HostProvider = &rotation{}
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
	case len(o.ACL) == 0 || len(o.ParentACL) == 0:
		return fmt.Errorf("%w: empty ACL", ErrInvalid)
	case len(o.Label) > maxLabel:
		return fmt.Errorf("%w: label of %d bytes, the limit is %d", ErrInvalid, len(o.Label), maxLabel)
	case o.Root != "":
		return checkPath(o.Root)
	}
	return nil
}

// maxPath keeps a path, with all else that goes with it, below what a server takes in one request.
const maxPath = 32 << 10

// checkPath says what is wrong with the path of a lock, by ZooKeeper's rules.
func checkPath(path string) error {
	bad := func(what string) error { return fmt.Errorf("%w: path %q %s", ErrInvalid, path, what) }
	switch {
	case path == "":
		return bad("is empty")
	case path[0] != '/':
		return bad("does not start with /")
	case path == "/":
		return bad("is the root")
	case strings.HasSuffix(path, "/"):
		return bad("ends with /")
	case len(path) > maxPath:
		return fmt.Errorf("%w: path %.40q... has %d bytes, the limit is %d", ErrInvalid, path, len(path), maxPath)
	case !utf8.ValidString(path):
		return bad("is not UTF-8")
	}
	if path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/") {
		return bad("is in the tree that ZooKeeper keeps for itself")
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return bad("has a part that is empty or dots")
		}
	}
	for _, r := range path {
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xf000 && r <= 0xf8ff || r >= 0xfff0 {
			return bad("has a character that ZooKeeper does not take")
		}
	}
	return nil
}

// Mutex is a lock that one holder has at a time, granted in the order of asking. It has
// no state of its own: all that are made for one path are the same lock.
type Mutex struct {
	c    *Client
	path string
}

// Mutex returns the lock at path, below which every contender has a node. The path's
// node is made when needed and removed by ZooKeeper when nobody has used it for a while.
func (c *Client) Mutex(path string) *Mutex { return &Mutex{c, path} }

// Lock waits until the lock is held or ctx ends, which gives the place in the queue up.
// If the session expires meanwhile it queues again at the end.
//
// Under the context of a hold on this very lock it returns ErrDeadlock. ctx has no
// bearing on the hold.
func (m *Mutex) Lock(ctx context.Context) (*Hold, error) {
	return m.c.lock(ctx, "lock", mutexRecipe, m.path, m.c.identity)
}

// TryLock returns a hold or, without waiting for anybody, ErrLocked; then it leaves
// nothing behind. It writes only when it sees nobody. Without a connection the error
// is ErrNotConnected.
func (m *Mutex) TryLock(ctx context.Context) (*Hold, error) {
	return m.c.tryLock(ctx, mutexRecipe, m.path, m.c.identity)
}

// Do runs fn while it holds the lock, which it releases when fn returns or panics. fn's
// context is the hold's and ends with ctx as well. An error is fn's, or Lock's or
// Unlock's: if the lock was lost while fn ran, it wraps ErrLost as well as fn's error.
// The release is waited for also when ctx has ended, but at most for the session timeout:
// after that long without a server the lock is free anyway.
func (m *Mutex) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	hold, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	return hold.do(ctx, fn)
}

func (h *Hold) do(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	inside, stop := either(h.Context(), ctx)
	defer func() {
		stop()
		err = errors.Join(err, h.leave(ctx))
	}()
	return fn(inside)
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

// makeDir makes the directory of a queue and what is above it: containers, which
// ZooKeeper removes when they have become empty, or where it knows none, nodes that stay.
// The last of its parts, that many, belong to the lock alone.
func (c *Client) makeDir(ctx context.Context, s *session, dir string, own int) error {
	acl := c.parents
	if own > 0 {
		acl = c.acl
	}
	var p pace
	for {
		err := c.makeNode(ctx, s, dir, acl)
		switch {
		case err == nil || errors.Is(err, zk.ErrNodeExists):
			return nil
		case errors.Is(err, zk.ErrNoNode):
			if parent := dir[:strings.LastIndexByte(dir, '/')]; parent != "" {
				err = c.makeDir(ctx, s, parent, own-1)
			}
			if err != nil {
				return err
			}
		case !isTransient(err) || ctx.Err() != nil:
			return err
		default:
			if err := p.next(ctx); err != nil {
				return err
			}
		}
	}
}

func (c *Client) makeNode(ctx context.Context, s *session, dir string, acl []zk.ACL) error {
	c.mu.Lock()
	plain := c.hangUps >= enoughHangUps
	c.mu.Unlock()
	_, err := ask(ctx, c, s, isWrite, func(conn *zk.Conn) (string, error) {
		if plain {
			return conn.Create(dir, nil, zk.FlagPersistent, acl)
		}
		return conn.CreateContainer(dir, nil, zk.FlagContainer, acl)
	})
	if !plain {
		c.judgeContainers(err)
	}
	return err
}

// enoughHangUps is how many requests for a container in a row may cost the connection: some
// servers do not know the request, and hang up on what they do not know.
const enoughHangUps = 2

// judgeContainers learns from the answer to a request for a container whether the server has them.
func (c *Client) judgeContainers(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case isUnimplemented(err):
		c.hangUps = enoughHangUps
	case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, errSessionOver): // some give out another session as well
		c.hangUps++
	case err == nil || isRefusal(err):
		c.hangUps = 0
	}
	if c.hangUps == enoughHangUps {
		c.log.Info("zklock: the server has no container nodes, directories of locks will stay")
	}
}

// isUnimplemented recognises a code for which the client library has no error.
func isUnimplemented(err error) bool {
	return err != nil && err.Error() == "unknown error: -6"
}

// libraryLog hands the client library's complaints on.
type libraryLog struct{ *slog.Logger }

func (l libraryLog) Printf(format string, args ...any) {
	l.Debug("zklock: client library: " + plain.Text(fmt.Sprintf(format, args...)))
}
