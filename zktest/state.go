package zktest

import (
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

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

	skipped           atomic.Int64 // nanoseconds, by FastForward
	bytesIn, bytesOut atomic.Int64
	interceptors      atomic.Pointer[[]*interceptor]

	latencyMu  sync.Mutex
	latencyRng *rand.Rand // guarded by latencyMu

	listenMu sync.Mutex // held while sockets are opened and closed, never with mu

	mu sync.Mutex // held for moments only: never across a wait or I/O
	// All of the following is guarded by mu.
	leadership
	expirer    expirer
	closed     bool
	members    []*Member
	live       map[*conn]struct{} // every connection that still has goroutines
	sessions   map[int64]*session
	sessionSeq int64
	changed    chan struct{} // closed by the next change, nil while nobody waits
	touchRng   *rand.Rand
	partitions map[string]chan struct{}
	hosts      map[string]int // by client: its number among those that have come
	dialed     int
	alarm      time.Duration // when the clock looks next, or never
	rng        *rand.Rand
	scratch    encoder
	notes      []func() // log lines that wait to be written without mu
	counts     map[Op]int
	txnHooks   []*txnHook
}

// leadership is what a leader has and what ends with it, and how the members
// come to the next one.
type leadership struct {
	leader      *Member // nil while there is none
	leaderSince time.Duration
	aloneSince  time.Duration // since when the leader has had no quorum, or never
	reapedAt    time.Duration // when the reaper last looked
	electAt     time.Duration // when the election under way ends, or never
	epoch       int64
	zxid        int64         // the last one given out
	outstanding []*entry      // requests that reached the leader and wait for a quorum
	pingAt      time.Duration // when the leader sends its next PINGs
	pumping     bool
}

// expirer ends the sessions that the leader has not heard of for their timeout.
type expirer struct {
	queue    expiryQueue
	bucket   []*session    // taken from queue: to be closed, one after the other
	closeAt  time.Duration // when the next of the bucket is
	closings []*session    // closed, as soon as there is a quorum
}

// Member is one server of the ensemble: a replica of the data with its own
// connections and watches.
type Member struct {
	s  *Server
	id int

	// All of the following is guarded by Server.mu.
	tree      *tree
	watches   *watches
	conns     map[*conn]struct{}
	bySession map[int64]*conn
	syncs     []*conn // connections whose next reply waits for a commit of somebody else's

	serving  bool // has data that a quorum vouched for, and takes clients
	stopped  bool
	cut      bool
	deaf     bool // hears nothing of its leader, which hears it
	mute     bool // its leader hears nothing of it, but reaches it
	frozen   bool
	refusing bool
	lag      time.Duration
	thawed   chan struct{}           // closed when it is thawed
	lostAt   time.Duration           // when it lost touch with its leader; never if it has not
	former   *former                 // of a leader that was replaced and does not know it
	epoch    int64                   // the leader's epoch it follows
	heard    map[int64]time.Duration // of a Keeper: when each session was heard of here
	logged   int64                   // the last zxid that is in its log
	link     link                    // to its leader
	backlog  []delivery              // commits that reached it, but are not applied yet

	// listen opens the member's socket; nil for one without. Guarded by Server.listenMu.
	listen   func(network, address string) (net.Listener, error)
	listener net.Listener // nil without a real socket, and while it is stopped
	address  string
	virtual  string

	received, sent int64 // packets, for the four-letter words
}

// conn is a client's connection to one member. Three goroutines serve it: read
// takes bytes in, process works on them in order, write sends. The first two
// meet in the inbox, the last two in the outbox, so that a frozen or
// partitioned link neither blocks the client's writes nor loses what it sent.
type conn struct {
	s      *Server
	member *Member
	net    net.Conn
	client string
	remote string // address of the peer, made up for a pipe
	log    *slog.Logger

	in      inbox
	out     outbox
	waiting atomic.Int32  // how many requests are pending
	room    chan struct{} // has a token when something was sent or answered

	dead     chan struct{} // closed when the server is done with the connection
	readDone chan struct{} // closed when the client's side has ended
	attached chan struct{} // closed when the connect request was answered

	// Guarded by Server.mu.
	closed  bool
	sess    *session
	timeout time.Duration // negotiated for this connection
	ids     []identity
	nonce   string   // of the SASL challenge that was sent
	pending []*entry // requests that are not answered yet, in order
	stats   connStats
}

// link is a follower's connection to its leader: two streams, and what the
// follower keeps for the way up.
type link struct {
	down stream[downFrame] // leader to follower
	up   stream[upFrame]   // follower to leader

	// touched is the touch table: the sessions of its clients that were heard
	// since the follower answered the leader's last PING, with their timeouts.
	touched map[*session]time.Duration
	// lostTouch has the sessions whose last touch was lost (Options.LoseTouches).
	lostTouch map[*session]bool

	// requests are its clients' writes and syncs that are not on the stream
	// yet, because holds keeps them back.
	requests []*entry
	holds    int
}

// downFrame is what a leader sends: a commit, an answer (to a sync, or to a
// session that is taken back), or if it is neither, a PING.
type downFrame struct {
	txn    *txn
	answer *entry
}

// upFrame is what a follower sends: a request, or the answer to a PING.
type upFrame struct {
	request *entry
	touched map[*session]time.Duration
}

// isPing reports whether the frame has no effect but the PING's answer. Nobody
// needs to be woken for one: it is looked at when its effect could be seen.
func (f downFrame) isPing() bool { return f.txn == nil && f.answer == nil }

// former is what a leader goes on doing that was cut off when another was
// elected, until it notices: it answers syncs, and takes back the sessions that
// it knew, without asking anybody.
type former struct {
	sessions map[int64]*session // copies: what happens to the sessions elsewhere is not known here
	proposed bool               // a write waits for a quorum that never comes, and syncs behind it
}

// entry is a request whose answer is not out yet. A connection's entries are
// answered in the order they came.
type entry struct {
	c       *conn
	call    *call
	connect *connectCall // set for a connect request
	fate    fate
	remote  bool          // needs the leader: a write, a sync, a connect request
	txn     *txn          // what came of a write
	sess    *session      // connect: the session; nil if it was refused
	timeout time.Duration // connect: what was negotiated
	need    int64         // what this member must have applied before the answer
	decided bool          // the leader has spoken; need is set
	code    int32         // an answer without a transaction
}

// session is the leader's knowledge of one session.
type session struct {
	id      int64
	passwd  []byte
	created time.Duration // the timeout it was created with, which a new leader gives it
	timeout time.Duration // the one it was last touched with
	client  string
	owner   *Member // whose connections may write for it
	ended   bool
	closing bool // the expirer has come to it: its end waits for the quorum
	doomed  bool // ExpireSession: ends as soon as the leader can commit

	touched time.Duration // when the leader last heard of it
	wakeAt  time.Duration // when the expiry queue looks at it next
}

// expiryQueue orders sessions by the moment to look at them. Touches do not
// move a session in it: it is looked at, found alive and pushed again.
type expiryQueue []expiryItem

type expiryItem struct {
	at   time.Duration
	sess *session
}

// txn is a transaction on its way through the members.
type txn struct {
	zxid, ms int64
	op       Op
	session  int64
	changes  []change
	results  []result
	code     int32
	origin   *entry // the request that waits for it, if any
}

// result is what one step of a transaction answers.
type result struct {
	op   Op
	code int32
	path string
	stat Stat
}

// delivery is a committed transaction that a follower applies with a lag.
type delivery struct {
	t   *txn
	due time.Duration
}

// watchSet holds watches of one sort, by path and by connection.
type watchSet struct {
	byPath    map[string]map[*conn]watchMode
	byConn    map[*conn]map[string]struct{}
	recursive int // how many entries have watchRecursive: without any, parents need no look
}

// watches are those of one member's connections. They belong to connections,
// not to sessions: clients re-send them after a reconnect.
type watches struct {
	data     watchSet // data and exists watches
	children watchSet
}

// watchMode is how a watch behaves. A connection can have several modes on
// one path at once.
type watchMode uint8

const (
	watchOnce watchMode = 1 << iota
	watchPersistent
	watchRecursive
)

// connStats are what cons and stat tell of a connection.
type connStats struct {
	established time.Time
	received    int64
	sent        int64
	lastOp      Op
	lastXid     int32
}

// inbox passes packets from read to process.
type inbox struct {
	mu    sync.Mutex
	items []packet
	bytes int
	ready chan struct{} // has a token when there is something new
	room  chan struct{} // has a token when the inbox was emptied
}

// outbox passes bytes from what answers to write. It takes what comes: a reply
// must never make the server wait for a client. When it is full, process waits.
type outbox struct {
	mu     sync.Mutex
	chunks []chunk
	bytes  int // that are not sent yet
	ready  chan struct{}
}

type chunk struct {
	data []byte
	due  time.Duration
}

// packet is one thing that came in: a frame, a four-letter word, or the end.
type packet struct {
	frame []byte
	word  string
	end   bool
	due   time.Duration // simulated latency; 0 for none
}
