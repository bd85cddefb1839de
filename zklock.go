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
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/wall"
)

// What an error can be asked for with errors.Is. Each error names the operation and
// the path as well; one of a wait that was cancelled wraps the context's error and the
// last trouble that the wait has seen.
var (
	ErrLost         = errors.New("lock was lost")
	ErrReleased     = errors.New("lock was released")
	ErrNotHeld      = errors.New("not held")
	ErrLocked       = errors.New("locked by another")
	ErrDeadlock     = errors.New("already held by this context")
	ErrClosed       = errors.New("client is closed")
	ErrNotConnected = errors.New("no connection to a server")
	ErrUncertain    = errors.New("answer was lost, it may have been done")
	ErrInvalid      = errors.New("invalid argument")
	ErrLimit        = errors.New("not within the semaphore's permits")
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
	// Auth is presented to every server, on each connection.
	Auth []Auth
	// Dialer connects to a server: with a tls.Dialer's DialContext behind it, over TLS. Default TCP.
	Dialer zk.Dialer
	// HostProvider picks the next server. Default: in turn, from a random one on,
	// resolving its name anew each time.
	HostProvider zk.HostProvider
	// Label tells operators what the owner of a node is. Default none.
	Label string
	// Logger gets what the client does on its own. Default silent.
	Logger *slog.Logger
	// Observer is told of every acquire, release and loss. Default none.
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
	identity []byte // owner data
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

	noContainers bool // guarded by mu: the server has no container nodes
}

// Connect returns a client that has a session, or an error when ctx ends before a
// server has granted one. ctx governs nothing else.
func Connect(ctx context.Context, servers []string, opts *Options) (*Client, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("zklock: connect: %w", err)
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("zklock: connect: %w: no servers given", ErrInvalid)
	}
	c := newClient(ctx, newLink(), o)
	c.link.handshake = max(o.SessionTimeout/3, time.Second)
	conn, events, err := zk.Connect(servers, o.SessionTimeout,
		zk.WithDialer(c.link.dialer(o.Dialer)),
		zk.WithHostProvider(hosts{o.HostProvider, c.link}),
		zk.WithLogger(libraryLog{c.log}), zk.WithLogInfo(false))
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
	return h.dial(network, address, timeout)
}

// Attach returns a client on a connection that your program has made and goes on
// owning: Close leaves it open. hooks must be those whose Dial the connection was made
// with (by zk.WithDialer); then every promise holds as with Connect.
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
	}
	if err := c.begin(ctx, o.Auth); err != nil {
		c.Close()
		return nil, fmt.Errorf("zklock: attach: %w", c.explain(ctx, err))
	}
	return c, nil
}

func newClient(ctx context.Context, l *link, o *Options) *Client {
	c := &Client{
		link: l, root: o.Root, acl: o.ACL, identity: ownerData(o.Label), log: o.Logger, observer: o.Observer,
		patience: min(o.SessionTimeout, 5*time.Second),
		acquires: newTasks(), removals: newTasks(), calls: newTasks(), kick: make(chan struct{}, 1),
		kept: map[*contender]struct{}{}, holds: map[*holding]struct{}{},
	}
	c.life, c.endLife = context.WithCancelCause(context.Background())
	c.afterlife, c.endAfter = context.WithCancelCause(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.tick = clockFrom(wall.From(ctx)), o.TickTime
	return c
}

// begin waits for a session and presents the credentials.
func (c *Client) begin(ctx context.Context, auth []Auth) error {
	if _, err := c.link.attached(ctx); err != nil {
		return err
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
	c.link.mu.Lock()
	s := c.link.session
	c.link.mu.Unlock()
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
	case len(o.ACL) == 0:
		return fmt.Errorf("%w: empty ACL", ErrInvalid)
	case len(o.Label) > 1024:
		return fmt.Errorf("%w: label of %d bytes, the limit is 1024", ErrInvalid, len(o.Label))
	case o.Root != "":
		return checkPath(o.Root)
	}
	return nil
}

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
	case !utf8.ValidString(path):
		return bad("is not UTF-8")
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
	return m.c.lock(ctx, mutexRecipe, m.path, m.c.identity)
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
		// The release must not fail because the work used ctx up.
		err = errors.Join(err, h.Unlock(context.WithoutCancel(ctx)))
	}()
	return fn(inside)
}

// lock acquires by any recipe that stands in the queue at path.
func (c *Client) lock(ctx context.Context, r *recipe, path string, data []byte) (*Hold, error) {
	dir, err := c.admit(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("zklock: lock %s: %w", path, err)
	}
	defer c.acquires.leave()
	inside, stop := either(ctx, c.life)
	defer stop()
	start := time.Now()
	t, err := c.acquire(inside, r, dir, path, data)
	if err != nil {
		return nil, fmt.Errorf("zklock: lock %s: %w", path, c.explain(inside, err))
	}
	h := c.newHold(ctx, r.name, path, t)
	ev := h.event(Acquired, nil)
	ev.Elapsed = time.Since(start)
	c.observe(ev)
	return h, nil
}

// admit checks what can be known without a server and returns the full path. If there
// is no error the caller must call acquires.leave.
func (c *Client) admit(ctx context.Context, path string) (string, error) {
	if err := checkPath(path); err != nil {
		return "", err
	}
	if ctx.Err() != nil {
		return "", causeOf(ctx, ctx.Err())
	}
	deadlock := false
	around(ctx, func(g *holding) bool {
		deadlock = g.c == c && g.path == path && g.ctx.Err() == nil
		return !deadlock
	})
	if deadlock {
		return "", ErrDeadlock
	}
	if !c.acquires.enter() {
		return "", ErrClosed
	}
	return c.root + path, nil
}

// acquire queues until a contender is granted. One that lost its place, with its
// session or because somebody deleted its node, is followed by another.
func (c *Client) acquire(ctx context.Context, r *recipe, dir, path string, data []byte) (*contender, error) {
	for {
		s, err := c.link.attached(ctx)
		if err != nil {
			return nil, err
		}
		t := c.newContender(r, dir, data)
		if err = t.enter(ctx, s); err == nil {
			c.observe(Event{Kind: Queued, Recipe: r.name, Path: path, Node: t.name, Behind: len(t.ahead)})
			if err = t.wait(ctx); err == nil {
				err = t.grant(ctx)
			}
		}
		if err == nil {
			return t, nil
		}
		c.discard(ctx, err, t)
		if ctx.Err() != nil || !errors.Is(err, errSessionOver) && !errors.Is(err, errGone) {
			return nil, err
		}
		c.log.Info("zklock: queueing again", "path", path, "why", err)
	}
}

// tryLock is lock without the waiting.
func (c *Client) tryLock(ctx context.Context, r *recipe, path string, data []byte) (*Hold, error) {
	dir, err := c.admit(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("zklock: try %s: %w", path, err)
	}
	defer c.acquires.leave()
	inside, stop := either(ctx, c.life)
	defer stop()
	t, err := c.tryAcquire(inside, r, dir, data)
	if err != nil {
		return nil, fmt.Errorf("zklock: try %s: %w", path, c.explain(inside, err))
	}
	h := c.newHold(ctx, r.name, path, t)
	c.observe(h.event(Acquired, nil))
	return h, nil
}

func (c *Client) tryAcquire(ctx context.Context, r *recipe, dir string, data []byte) (*contender, error) {
	s, _ := c.link.state()
	if s == nil {
		return nil, ErrNotConnected
	}
	free, err := c.looksFree(ctx, s, r, dir)
	if err != nil {
		return nil, notConnected(err)
	}
	if !free {
		return nil, ErrLocked
	}
	t := c.newContender(r, dir, data)
	if err = t.enter(ctx, s); err == nil {
		var i int
		switch i, err = c.obstacle(ctx, s, r, dir, t.ahead); {
		case err != nil:
		case i >= 0:
			err = ErrLocked
		default:
			if err = t.grant(ctx); err == nil {
				return t, nil
			}
		}
	}
	c.discard(ctx, err, t)
	return nil, notConnected(err)
}

// discard has contenders removed that came to nothing because of err. Who asked without
// waiting gets its answer when nothing is left of them.
func (c *Client) discard(ctx context.Context, err error, parts ...*contender) {
	var outcomes []<-chan error
	for _, t := range parts {
		outcomes = append(outcomes, c.remove(t))
	}
	if !errors.Is(err, ErrLocked) {
		return
	}
	for _, removed := range outcomes {
		select {
		case <-removed:
		case <-ctx.Done():
		}
	}
}

// looksFree says whether a newcomer would have nobody to wait for.
func (c *Client) looksFree(ctx context.Context, s *session, r *recipe, dir string) (bool, error) {
	l, err := c.list(ctx, s, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	i, err := c.obstacle(ctx, s, r, dir, parseEntries(l.names))
	return i < 0, err
}

// notConnected marks what a lost connection does to a call that does not wait for another.
func notConnected(err error) error {
	if isTransient(err) || errors.Is(err, errSessionOver) || errors.Is(err, errGone) {
		return fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	return err
}

// makeDir makes the directory of a queue and what is above it: containers, which
// ZooKeeper removes when they have become empty, or where it knows none, nodes that stay.
func (c *Client) makeDir(ctx context.Context, s *session, dir string) error {
	var p pace
	for {
		err := c.makeNode(ctx, s, dir)
		switch {
		case err == nil || errors.Is(err, zk.ErrNodeExists):
			return nil
		case errors.Is(err, zk.ErrNoNode):
			if parent := dir[:strings.LastIndexByte(dir, '/')]; parent != "" {
				err = c.makeDir(ctx, s, parent)
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

func (c *Client) makeNode(ctx context.Context, s *session, dir string) error {
	c.mu.Lock()
	plain := c.noContainers
	c.mu.Unlock()
	_, err := ask(ctx, c, s, isWrite, func(conn *zk.Conn) (string, error) {
		if plain {
			return conn.Create(dir, nil, zk.FlagPersistent, c.acl)
		}
		return conn.CreateContainer(dir, nil, zk.FlagContainer, c.acl)
	})
	if !plain && isUnimplemented(err) {
		c.mu.Lock()
		c.noContainers = true
		c.mu.Unlock()
		c.log.Info("zklock: the server has no container nodes, directories of locks will stay")
	}
	return err
}

// isUnimplemented recognises a code for which the client library has no error.
func isUnimplemented(err error) bool {
	return err != nil && err.Error() == "unknown error: -6"
}

// libraryLog hands the client library's complaints on.
type libraryLog struct{ *slog.Logger }

func (l libraryLog) Printf(format string, args ...any) {
	l.Debug("zklock: client library: " + fmt.Sprintf(format, args...))
}
