package zktest

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"
)

// Options describe what to simulate. The zero value is a single server with
// ZooKeeper's usual settings.
type Options struct {
	// Servers is the size of the ensemble, 1 if 0. Member 0 is the first leader.
	Servers int
	// Observers is how many of the members, the last ones, are observers: they
	// serve clients and have no vote, neither on writes nor on the leader.
	Observers int
	// TickTime is ZooKeeper's unit of time, 2s if 0. Session timeouts are
	// clamped to 2..20 ticks and expire on a tick.
	TickTime time.Duration
	// SyncLimit is for how many ticks a member that lost its leader goes on
	// answering its own clients, 5 if 0.
	SyncLimit int
	// MinSessionTimeout and MaxSessionTimeout bound the session timeouts, 2 and
	// 20 ticks if 0.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// MinSessionTimeouts are the shortest session timeouts of members that do not
	// agree with MinSessionTimeout, by their numbers; 0 for one that does. The member
	// that a client comes to bounds what it asks for.
	MinSessionTimeouts []time.Duration
	// ExpiryGap is how long the leader takes from one session to the next of
	// those that expire on the same tick. One that is heard of before its turn
	// comes is served, and closed all the same.
	ExpiryGap time.Duration
	// LatePing is how late at most, drawn from the seed, the leader sends the
	// PINGs that were due while it was frozen. What the requests that waited for
	// it cause is sent before them.
	LatePing time.Duration
	// LoseTouches is the probability with which a touch that a follower notes
	// never reaches the leader, never two in a row for one session: what comes
	// into the touch table while it is being sent is lost.
	LoseTouches float64
	// Seed makes the order of children and the latencies repeatable. 0 is a
	// fixed seed too.
	Seed uint64
	// Latency is the one-way delay of each request and each piece of reply;
	// nil means none. It must not block or call the server.
	Latency func(r *rand.Rand) time.Duration
	// LatencyOf is Latency for each client, by its DialFrom name (its address
	// over a socket), and member. Both delays add up.
	LatencyOf func(r *rand.Rand, client string, member int) time.Duration
	// Super is a super user, as user:password: a client that authenticates so
	// by the digest scheme passes all access lists. Empty means none.
	Super string
	// SASL has the users of SASL's DIGEST-MD5 with their passwords. A client that
	// proves one has the ACL id sasl:user. Empty means that SASL is not served.
	SASL map[string]string
	// RequireSASL refuses every request but auth and sasl on a connection that has
	// not proved a user of SASL, with CodeRequiresSASL, and closes it.
	RequireSASL bool
	// NoTTL answers every createTTL with CodeUnimplemented, as ZooKeeper does
	// unless it was told to allow TTL nodes.
	NoTTL bool
	// WrapCounter brings back the sequence counter of ZooKeeper before 3.6,
	// which runs over into negative numbers. The newer one sticks at 2147483647.
	WrapCounter bool
	// Flavor is the make of the servers, ZooKeeper 3.8 if not set.
	Flavor Flavor
	// UnknownOps are request types that close the connection they come on, also
	// as a step of a multi.
	UnknownOps []Op
	// OverQuota reports whether what a create or a setData writes to a node exceeds a
	// quota that the servers enforce; nil means none. It must not block or call the
	// server.
	OverQuota func(path string, data []byte) bool
	// NoContainers answers every createContainer with CodeUnimplemented, as
	// compatible servers without container nodes do.
	NoContainers bool
	// ForgetSessions gives each reconnecting client a new session without
	// telling it that the old one is gone, as ClickHouse Keeper does.
	ForgetSessions bool
	// LoseLastEvents has the end of a session that its client has not asked for close its
	// connection at once. What the server has just written there, as the events of the
	// session's own nodes, is lost: so do ZooKeeper's default connections, most times.
	// Those over Netty send it.
	LoseLastEvents bool
	// ContainerCheck is how often empty containers and expired TTL nodes are
	// looked for, 60s if 0.
	ContainerCheck time.Duration
	// Logger hears of bad input, expiries and elections. nil is silent.
	Logger *slog.Logger
}

func (o *Options) complete() error {
	if o.outOfRange() {
		return fmt.Errorf("zktest: option out of range: %+v", *o)
	}
	o.Servers = max(o.Servers, 1)
	if o.Observers < 0 || o.Observers >= o.Servers {
		return fmt.Errorf("zktest: %d of %d servers cannot be observers: one at least must vote", o.Observers, o.Servers)
	}
	setDefault(&o.TickTime, 2*time.Second)
	setDefault(&o.SyncLimit, 5)
	setDefault(&o.ContainerCheck, time.Minute)
	setDefault(&o.MinSessionTimeout, 2*o.TickTime)
	setDefault(&o.MaxSessionTimeout, max(20*o.TickTime, o.MinSessionTimeout))
	for i := range o.Servers {
		if least := o.minSession(i); least > o.MaxSessionTimeout {
			return fmt.Errorf("zktest: the shortest session timeout, %v, is longer than the longest, %v", least, o.MaxSessionTimeout)
		}
	}
	if o.TickTime < 2*time.Millisecond {
		return errors.New("zktest: a tick below two milliseconds cannot be told to clients")
	}
	if o.RequireSASL && len(o.SASL) == 0 {
		return errors.New("zktest: SASL is required, and there are no users")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

func (o *Options) outOfRange() bool {
	return o.Servers < 0 || o.Servers > 200 || o.SyncLimit < 0 || o.LoseTouches < 0 || o.LoseTouches > 1 ||
		min(o.TickTime, o.ContainerCheck, o.MinSessionTimeout, o.MaxSessionTimeout, o.ExpiryGap, o.LatePing) < 0 ||
		slices.ContainsFunc(o.MinSessionTimeouts, func(d time.Duration) bool { return d < 0 })
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Flavor is the make of the servers.
type Flavor uint8

const (
	// ZooKeeper38 is ZooKeeper 3.8.
	ZooKeeper38 Flavor = iota
	// ZooKeeper39 is ZooKeeper 3.9, which differs on the wire: an event carries the zxid of
	// what caused it, and a create2 in a multi is answered with the node's stat. A create that
	// cannot be decoded takes no zxid, and exists needs READ.
	ZooKeeper39
	// Keeper is a server of another make, with the habits of ClickHouse Keeper: a
	// client that comes back gets another session without being told that its old
	// one goes on (and ends by its timeout). Request types from later versions of ZooKeeper
	// close the connection. Pings and syncs are committed by the quorum as writes are, and what
	// keeps a session alive is what is committed for it: each replica notes that by itself, and
	// reads on the leader alone. A new leader goes by its own notes and gives nobody a new
	// timeout.
	Keeper
)

// String returns the flavor's name.
func (f Flavor) String() string {
	return map[Flavor]string{ZooKeeper38: "ZooKeeper 3.8", ZooKeeper39: "ZooKeeper 3.9", Keeper: "Keeper"}[f]
}

// version is what a server of the options' flavor says it is.
func (o *Options) version() string {
	number := "3.8.0"
	if o.Flavor == ZooKeeper39 {
		number = "3.9.3"
	}
	return number + "-zktest, built on 01/01/2000 00:00 UTC"
}

// notInKeeper are the request types that a Keeper does not know.
var notInKeeper = []Op{
	OpCreate2, OpCheckWatches, OpRemoveWatches, OpCreateContainer, OpDeleteContainer, OpCreateTTL, OpSetWatches, OpSASL,
	OpGetEphemerals, OpGetAllChildrenNumber, OpSetWatches2, OpAddWatch, OpWhoAmI,
}

// closesOn reports whether the server closes the connection that a request came on.
func (o *Options) closesOn(r *call) bool {
	if o.unknown(r.op) {
		return true
	}
	return slices.ContainsFunc(r.subs, func(sub call) bool { return o.unknown(sub.op) })
}

func (o *Options) unknown(op Op) bool {
	return slices.Contains(o.UnknownOps, op) || o.Flavor == Keeper && slices.Contains(notInKeeper, op)
}

// servesSASL reports whether there are users for SASL.
func (o *Options) servesSASL() bool { return len(o.SASL) > 0 }

// saslRefusal is the answer to a client that could not prove a user.
func (o *Options) saslRefusal() int32 {
	if o.RequireSASL {
		return CodeRequiresSASL
	}
	return CodeAuthFailed
}

// forgets reports whether clients that come back get another session.
func (o *Options) forgets() bool { return o.ForgetSessions || o.Flavor == Keeper }

// orders reports whether the leader orders a request as a transaction.
func (o *Options) orders(op Op) bool {
	return op.writes() || o.Flavor == Keeper && (op == OpPing || op == OpSync)
}

// notServed reports whether the options refuse a request's type.
func (o *Options) notServed(r *call) bool {
	return r.op == OpCreateContainer && o.NoContainers || r.op == OpCreateTTL && o.NoTTL
}

// latency returns both of the delays between a client and a member, added up; nil for none.
func (o *Options) latency() func(r *rand.Rand, client string, member int) time.Duration {
	switch {
	case o.Latency == nil:
		return o.LatencyOf
	case o.LatencyOf == nil:
		return func(r *rand.Rand, _ string, _ int) time.Duration { return o.Latency(r) }
	}
	return func(r *rand.Rand, client string, member int) time.Duration {
		return o.Latency(r) + o.LatencyOf(r, client, member)
	}
}

// negotiate clamps the timeout that a client asks a member for, in milliseconds.
func (o *Options) negotiate(member int, ms int32) time.Duration {
	asked := time.Duration(ms) * time.Millisecond
	return min(max(asked, o.minSession(member)), o.MaxSessionTimeout)
}

// minSession is the shortest session timeout of a member.
func (o *Options) minSession(member int) time.Duration {
	if member < len(o.MinSessionTimeouts) && o.MinSessionTimeouts[member] > 0 {
		return o.MinSessionTimeouts[member]
	}
	return o.MinSessionTimeout
}

// voters is how many of the members have a vote.
func (o *Options) voters() int { return o.Servers - o.Observers }

// needsLeader reports whether a request cannot be answered by one member alone.
func (o *Options) needsLeader(r *call) bool { return o.orders(r.op) || r.op == OpSync && !r.bad }
