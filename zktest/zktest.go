package zktest

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Options say what to simulate. The zero value is a single server with
// ZooKeeper's usual settings.
type Options struct {
	// Servers is the size of the ensemble, 1 if 0. Member 0 is the first leader.
	Servers int
	// TickTime is ZooKeeper's unit of time, 2s if 0. Session timeouts are
	// clamped to 2..20 ticks and expire on a tick.
	TickTime time.Duration
	// SyncLimit is for how many ticks a member that lost its leader goes on
	// answering its own clients, 5 if 0.
	SyncLimit int
	// Seed makes the order of children and the latencies repeatable. 0 is a
	// fixed seed too.
	Seed uint64
	// Latency is the one-way delay of each request and each piece of reply;
	// nil means none. It must not block or call the server.
	Latency func(r *rand.Rand) time.Duration
	// WrapCounter brings back the sequence counter of ZooKeeper before 3.6,
	// which runs over into negative numbers. The newer one sticks at 2147483647.
	WrapCounter bool
	// NoContainers answers every createContainer with CodeUnimplemented, as
	// compatible servers without container nodes do.
	NoContainers bool
	// ForgetSessions gives each reconnecting client a new session without
	// telling it that the old one is gone, as ClickHouse Keeper does.
	ForgetSessions bool
	// ContainerCheck is how often empty containers and expired TTL nodes are
	// looked for, 60s if 0.
	ContainerCheck time.Duration
	// Logger hears of bad input, expiries and elections. nil is silent.
	Logger *slog.Logger
}

// TB is the part of testing.TB that Run needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// Server is a whole ensemble of one or more members over one replicated state.
// Its methods may be called from any goroutine, but not from inside OnTxn.
type Server struct {
	opts    Options
	log     *slog.Logger
	base    time.Time // moments are counted from here
	started time.Time

	wg    sync.WaitGroup
	done  chan struct{} // closed by Close
	wake  chan struct{} // tells the clock that arm set an earlier moment
	gates atomic.Int32  // how many freezes and partitions there are

	bytesIn, bytesOut atomic.Int64
	interceptors      atomic.Pointer[[]*interceptor]

	latencyMu  sync.Mutex
	latencyRng *rand.Rand // guarded by latencyMu

	listenMu sync.Mutex // held while sockets are opened and closed, never with mu

	mu sync.Mutex // held for moments only: never across a wait or I/O
	// All of the following is guarded by mu.
	closed      bool
	members     []*Member
	live        map[*conn]struct{} // every connection that still has goroutines
	leader      *Member            // nil while there is none
	leaderSince time.Duration
	aloneSince  time.Duration // since when the leader has had no quorum, or never
	reapedAt    time.Duration // when the reaper last looked
	electAt     time.Duration // when the election under way ends, or never
	epoch       int64
	zxid        int64 // the last one given out
	sessions    map[int64]*session
	sessionSeq  int64
	expiries    expiryQueue
	stuck       []*entry // requests that wait for the way to a leader with a quorum
	partitions  map[string]chan struct{}
	dialed      int
	alarm       time.Duration // when the clock looks next, or never
	rng         *rand.Rand
	scratch     encoder
	notes       []func() // log lines that wait to be written without mu
	counts      map[Op]int
	txnHooks    []*txnHook
}

// Run starts a server that listens on loopback and ends with the test.
func Run(t TB, opts ...Options) *Server {
	t.Helper()
	s := Start(t, opts...)
	if err := s.Listen("127.0.0.1:0"); err != nil {
		t.Fatalf("zktest: %v", err)
	}
	return s
}

// Start is Run without any real socket: clients connect through Dial. Inside a
// testing/synctest bubble, where a real socket would stop the clock, this is
// the one to use.
func Start(t TB, opts ...Options) *Server {
	t.Helper()
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	s, err := New(o)
	if err != nil {
		t.Fatalf("zktest: %v", err)
		return nil
	}
	t.Cleanup(s.Close)
	return s
}

// New makes a running server without sockets. Close must end it.
func New(opts Options) (*Server, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	s := &Server{
		opts: opts, log: opts.Logger, base: time.Now(), started: time.Now(),
		done: make(chan struct{}), wake: make(chan struct{}, 1),
		latencyRng: rand.New(rand.NewPCG(opts.Seed, 1)),
		rng:        rand.New(rand.NewPCG(opts.Seed, 2)),
		live:       make(map[*conn]struct{}),
		partitions: make(map[string]chan struct{}),
		alarm:      never,
	}
	s.counts, s.members = make(map[Op]int), make([]*Member, opts.Servers)
	for i := range s.members {
		s.members[i] = newMember(s, i)
	}
	s.alter(s.reset)
	s.wg.Add(1)
	// Owned by the server; Close stops it and waits for it.
	go s.clock()
	return s, nil
}

func (o *Options) complete() error {
	if o.Servers < 0 || o.Servers > 200 || o.TickTime < 0 || o.SyncLimit < 0 || o.ContainerCheck < 0 {
		return fmt.Errorf("zktest: option out of range: %+v", *o)
	}
	o.Servers = max(o.Servers, 1)
	setDefault(&o.TickTime, 2*time.Second)
	setDefault(&o.SyncLimit, 5)
	setDefault(&o.ContainerCheck, time.Minute)
	if o.TickTime < 2*time.Millisecond {
		return errors.New("zktest: a tick below two milliseconds cannot be told to clients")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// reset begins with an empty ensemble. The caller holds mu and has dropped all
// connections.
func (s *Server) reset(now time.Duration) {
	for _, m := range s.members {
		m.tree, m.watches = newTree(s.opts.WrapCounter), newWatches()
		m.serving, m.lostAt, m.logged, m.backlog, m.syncs = false, never, 0, nil, nil
	}
	s.sessions, s.expiries, s.stuck = make(map[int64]*session), nil, nil
	s.leader, s.electAt, s.aloneSince = nil, never, never
	s.epoch, s.zxid = 0, 0
	if first := s.members[0]; first.reachable() && s.candidate() != nil {
		s.lead(first, now)
	}
}

// Listen opens one socket per member: the first at addr, the others at the same
// host with the port counted up, or any free port if addr's is 0.
func (s *Server) Listen(addr string) error {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("zktest: listen: %w", err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return fmt.Errorf("zktest: listen: %w", err)
	}
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	for i, m := range s.allMembers() {
		p := port
		if p != 0 {
			p += i
		}
		if err := s.listenOne(m, net.JoinHostPort(host, strconv.Itoa(p))); err != nil {
			return err
		}
	}
	return nil
}

// listenOne opens a member's socket. The caller holds listenMu.
func (s *Server) listenOne(m *Member, addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("zktest: listen: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = l.Close()
		return net.ErrClosed
	}
	m.listener, m.address = l, l.Addr().String()
	s.wg.Add(1)
	// Owned by the member; closing the listener stops it, Close waits for it.
	go s.accept(m, l)
	return nil
}

func (s *Server) accept(m *Member, l net.Listener) {
	defer s.wg.Done()
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		remote := nc.RemoteAddr().String()
		if err := s.admit(m, nc, remote, remote); err != nil {
			_ = nc.Close()
		}
	}
}

// admit starts to serve a new connection, unless the member takes none.
func (s *Server) admit(m *Member, nc net.Conn, client, remote string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || m.stopped || m.refusing || !m.serving && !m.frozen {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	s.newConn(m, nc, client, remote).start()
	return nil
}

// Close ends the server: its connections, sockets and goroutines. It returns
// when all of them are gone. More calls do nothing.
func (s *Server) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	var conns []*conn
	for c := range s.live {
		c.abort()
		conns = append(conns, c)
	}
	s.mu.Unlock()
	if first {
		close(s.done)
	}
	for _, c := range conns {
		_ = c.net.Close()
	}
	s.listenMu.Lock()
	for _, m := range s.allMembers() {
		s.closeListener(m)
	}
	s.listenMu.Unlock()
	s.wg.Wait()
}

// closeListener closes a member's socket, if it has one, and keeps its
// address. The caller holds listenMu.
func (s *Server) closeListener(m *Member) {
	s.mu.Lock()
	l := m.listener
	m.listener = nil
	s.mu.Unlock()
	if l != nil {
		_ = l.Close()
	}
}

// syncListener opens or closes a member's real socket according to whether the
// member takes connections, at the address it had.
func (s *Server) syncListener(m *Member) {
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	s.mu.Lock()
	open, wanted := m.listener != nil, !m.stopped && !m.refusing && !s.closed
	addr, real := m.address, m.address != m.virtual
	s.mu.Unlock()
	switch {
	case !real || open == wanted:
	case wanted:
		if err := s.listenOne(m, addr); err != nil {
			s.log.Error("cannot listen again", "member", m.id, "error", err)
		}
	default:
		s.closeListener(m)
	}
}

// Addr is the first member's address.
func (s *Server) Addr() string { return s.Member(0).Addr() }

// Addrs are the addresses of all members: of their sockets, or where there are
// none, ones that Dial knows.
func (s *Server) Addrs() []string {
	var list []string
	for _, m := range s.allMembers() {
		list = append(list, m.Addr())
	}
	return list
}

// Addr is the member's address.
func (m *Member) Addr() string {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.address
}

// Dial connects to a member without any socket, over net.Pipe. It has the shape
// that go-zookeeper's WithDialer wants. Besides the members' addresses it knows
// zk1:2181, zk2:2181 and so on; any other address leads to member 0.
func (s *Server) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	return s.dial("", address, timeout)
}

// DialFrom is Dial with a name for the client, by which it can be partitioned.
func (s *Server) DialFrom(clientName string) func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		return s.dial(clientName, address, timeout)
	}
}

func (s *Server) dial(client, address string, timeout time.Duration) (net.Conn, error) {
	if err := s.awaitLink(client, timeout); err != nil {
		return nil, err
	}
	m, remote := s.route(address)
	near, far := net.Pipe()
	if err := s.admit(m, far, client, remote); err != nil {
		return nil, err
	}
	return near, nil
}

// awaitLink waits while a client is partitioned, at most for timeout.
func (s *Server) awaitLink(client string, timeout time.Duration) error {
	s.mu.Lock()
	gate := s.partitions[client]
	s.mu.Unlock()
	if gate == nil {
		return nil
	}
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-gate:
		return s.awaitLink(client, timeout)
	case <-late:
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	case <-s.done:
		return net.ErrClosed
	}
}

// route finds the member at an address and makes up an address for the client.
func (s *Server) route(address string) (m *Member, remote string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialed++
	remote = fmt.Sprintf("127.0.0.1:%d", 30000+s.dialed%30000)
	for i, m := range s.members {
		if address == m.address || address == m.virtual || address == fmt.Sprintf("zk%d:2181", i+1) {
			return m, remote
		}
	}
	return s.members[0], remote
}

// Member answers one server of the ensemble, from 0 on.
func (s *Server) Member(i int) *Member { return s.allMembers()[i] }

func (s *Server) allMembers() []*Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members
}

// Leader answers the leading member, nil while there is none.
func (s *Server) Leader() *Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leader
}

// now is the time since the server began, by the monotonic clock.
func (s *Server) now() time.Duration { return time.Since(s.base) }

// latency draws one delay and answers when it is over, 0 for no delay.
func (s *Server) latency() time.Duration {
	if s.opts.Latency == nil {
		return 0
	}
	s.latencyMu.Lock()
	defer s.latencyMu.Unlock()
	return s.now() + max(1, s.opts.Latency(s.latencyRng))
}

// drop closes a connection from one of its own goroutines.
func (s *Server) drop(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.close()
}

// forget notes that a connection's socket is closed.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, c)
}

// gateOf answers what a connection has to wait for, nil if nothing.
func (s *Server) gateOf(c *conn) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gate := s.partitions[c.client]; gate != nil {
		return gate
	}
	if c.member.frozen {
		return c.member.thawed
	}
	return nil
}

func hex(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }
