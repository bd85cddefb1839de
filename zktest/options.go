// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zklock-go/zklock/internal/lab/wiring"
)

// Options configure a Server. The zero value is a single server with ZooKeeper's
// default settings.
type Options struct {
	// Servers is the size of the ensemble; 0 means 1. Member 0 is the first leader.
	Servers int
	// Observers is the number of members that are observers. They are the last ones.
	// Observers serve clients but have no vote, neither on writes nor on the leader.
	Observers int
	// TickTime is ZooKeeper's unit of time; 0 means 2s. Session timeouts are
	// clamped to 2..20 ticks and expire on a tick.
	TickTime time.Duration
	// TickTimes overrides TickTime for individual members, by index; 0 means no
	// override. The member that a client connects to clamps the timeout by its own
	// tick. The leader sends PINGs twice per tick of the leader, and expires sessions on
	// its own ticks.
	TickTimes []time.Duration
	// SyncLimit is the number of ticks for which a member that lost its leader keeps
	// answering its own clients; 0 means 5.
	SyncLimit int
	// MinSessionTimeout and MaxSessionTimeout bound the session timeouts; 0 means 2
	// and 20 ticks of the member that the client connects to.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// Seed makes the order of children and the latencies reproducible. 0 is also a
	// fixed seed.
	Seed uint64
	// Latency returns the one-way delay of each request and each piece of a reply, and
	// half of the time that Dial takes; nil means none. It must not block or call the server.
	Latency func(r *rand.Rand) time.Duration
	// Super is a super user, in the form user:password. A client that authenticates
	// as this user with the digest scheme passes all ACLs. Empty means none.
	Super string
	// SASL contains the users of SASL's DIGEST-MD5 with their passwords. A client that
	// authenticates as one has the ACL id sasl:user. Empty means that SASL is not
	// supported.
	SASL map[string]string
	// RequireSASL rejects every request except auth and sasl with CodeRequiresSASL,
	// and closes the connection, if the client has not authenticated with SASL.
	RequireSASL bool
	// Flavor is the implementation that the servers imitate. The default is
	// ZooKeeper 3.8.
	Flavor Flavor
	// UnknownOps are request types on which the server closes the connection, even
	// if they are a step of a multi.
	UnknownOps []Op
	// NoContainers rejects every createContainer with CodeUnimplemented, as
	// compatible servers without container nodes do.
	NoContainers bool
	// Logger receives messages about bad input, expiries and elections. nil means no
	// logging.
	Logger *slog.Logger

	ticks []time.Duration // the members' ticks, set by complete; afterwards guarded by Server.mu

	lab wiring.Options // set by package lab
}

// leastTick is the shortest tick that a member can have.
const leastTick = 2 * time.Millisecond

func (o *Options) complete() error {
	if o.outOfRange() {
		return fmt.Errorf("zktest: option out of range: %+v", *o)
	}
	o.Servers = max(o.Servers, 1)
	if o.Observers < 0 || o.Observers >= o.Servers {
		return fmt.Errorf("zktest: %d of %d servers cannot be observers: at least one must vote", o.Observers, o.Servers)
	}
	setDefault(&o.TickTime, 2*time.Second)
	setDefault(&o.SyncLimit, 5)
	setDefault(&o.lab.ContainerCheck, time.Minute)
	o.ticks = make([]time.Duration, o.Servers)
	for i := range o.Servers {
		o.ticks[i] = o.TickTime
		if i < len(o.TickTimes) {
			o.ticks[i] = cmp.Or(o.TickTimes[i], o.TickTime)
		}
		if least, most := o.minSession(i), o.maxSession(i); least > most {
			return fmt.Errorf("zktest: the shortest session timeout, %v, is longer than the longest, %v", least, most)
		}
	}
	if slices.Min(o.ticks) < leastTick {
		return errors.New("zktest: TickTime must be at least two milliseconds")
	}
	if o.RequireSASL && len(o.SASL) == 0 {
		return errors.New("zktest: RequireSASL is set but SASL has no users")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

func (o *Options) outOfRange() bool {
	return o.Servers < 0 || o.Servers > 200 || o.SyncLimit < 0 || o.lab.LoseTouches < 0 || o.lab.LoseTouches > 1 ||
		min(o.TickTime, o.lab.ContainerCheck, o.lab.UnusedContainers, o.MinSessionTimeout, o.MaxSessionTimeout, o.lab.ExpiryGap, o.lab.ExpiryTogether, o.lab.LatePing) < 0 ||
		slices.ContainsFunc(slices.Concat(o.lab.MinSessionTimeouts, o.TickTimes), func(d time.Duration) bool { return d < 0 })
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Flavor is the implementation that the servers imitate.
type Flavor uint8

const (
	// ZooKeeper38 is ZooKeeper 3.8.
	ZooKeeper38 Flavor = iota
	// ZooKeeper39 is ZooKeeper 3.9, which differs on the wire: an event carries the zxid of
	// its cause, and the reply to a create2 in a multi contains the node's stat. A create that
	// cannot be decoded takes no zxid, and exists requires READ.
	ZooKeeper39
	// Keeper behaves like ClickHouse Keeper. A reconnecting client gets a new session
	// without being told that its old one continues until it times out. Request types from
	// later versions of ZooKeeper close the connection. Pings and syncs are committed by the
	// quorum, like writes. A session is kept alive by the transactions that are committed for
	// it, which each replica records by itself, and by reads on the leader. A new leader uses
	// its own records and does not extend any session. A member without a leader replies to a
	// connect request with the protocol version 42 and the session -1. The system's nodes are
	// /keeper and /keeper/api_version, and clients cannot change them.
	Keeper
)

// String returns the flavor's name.
func (f Flavor) String() string {
	return map[Flavor]string{ZooKeeper38: "ZooKeeper 3.8", ZooKeeper39: "ZooKeeper 3.9", Keeper: "Keeper"}[f]
}

// version returns the version that a server of the options' flavor reports.
func (o *Options) version() string {
	number := "3.8.0"
	if o.Flavor == ZooKeeper39 {
		number = "3.9.3"
	}
	return number + "-zktest, built on 01/01/2000 00:00 UTC"
}

// notInKeeper are the request types that a Keeper does not support.
var notInKeeper = []Op{
	OpCreate2, OpCheckWatches, OpRemoveWatches, OpCreateContainer, OpDeleteContainer, OpCreateTTL, OpSetWatches, OpSASL,
	OpGetEphemerals, OpGetAllChildrenNumber, OpSetWatches2, OpAddWatch, OpWhoAmI,
}

// closesOn reports whether the server closes the connection of a request because it does not know its type.
func (o *Options) closesOn(r *call) bool {
	if o.unknown(r.op) {
		return true
	}
	return slices.ContainsFunc(r.subs, func(sub call) bool { return o.unknown(sub.op) })
}

func (o *Options) unknown(op Op) bool {
	return slices.Contains(o.UnknownOps, op) || o.Flavor == Keeper && slices.Contains(notInKeeper, op)
}

// servesSASL reports whether there are SASL users.
func (o *Options) servesSASL() bool { return len(o.SASL) > 0 }

// saslRefusal returns the error code for a failed SASL authentication.
func (o *Options) saslRefusal() int32 {
	if o.RequireSASL {
		return CodeRequiresSASL
	}
	return CodeAuthFailed
}

// forgets reports whether reconnecting clients get a new session.
func (o *Options) forgets() bool { return o.lab.ForgetSessions || o.Flavor == Keeper }

// orders reports whether the leader orders a request as a transaction.
func (o *Options) orders(op Op) bool {
	return op.writes() || o.Flavor == Keeper && (op == OpPing || op == OpSync)
}

// notServed reports whether the options disable a request's type.
func (o *Options) notServed(r *call) bool {
	return r.op == OpCreateContainer && o.NoContainers || r.op == OpCreateTTL && o.lab.NoTTL
}

// latency returns a function for the sum of both delays between a client and a member, or nil if there are none.
func (o *Options) latency() func(r *rand.Rand, client string, member int) time.Duration {
	switch {
	case o.Latency == nil:
		return o.lab.LatencyOf
	case o.lab.LatencyOf == nil:
		return func(r *rand.Rand, _ string, _ int) time.Duration { return o.Latency(r) }
	}
	return func(r *rand.Rand, client string, member int) time.Duration {
		return o.Latency(r) + o.lab.LatencyOf(r, client, member)
	}
}

// negotiate clamps the timeout that a client requests from a member, in milliseconds.
func (o *Options) negotiate(member int, ms int32) time.Duration {
	asked := time.Duration(ms) * time.Millisecond
	return min(max(asked, o.minSession(member)), o.maxSession(member))
}

// minSession returns the shortest session timeout of a member.
func (o *Options) minSession(member int) time.Duration {
	if member < len(o.lab.MinSessionTimeouts) && o.lab.MinSessionTimeouts[member] > 0 {
		return o.lab.MinSessionTimeouts[member]
	}
	return cmp.Or(o.MinSessionTimeout, 2*o.ticks[member])
}

// maxSession returns the longest session timeout of a member.
func (o *Options) maxSession(member int) time.Duration {
	return cmp.Or(o.MaxSessionTimeout, max(20*o.ticks[member], o.MinSessionTimeout))
}

// syncLimit returns how long a member keeps serving its clients without its leader, or as a leader without a quorum.
func (o *Options) syncLimit(member int) time.Duration {
	return time.Duration(o.SyncLimit) * o.ticks[member]
}

// voters returns the number of members that have a vote.
func (o *Options) voters() int { return o.Servers - o.Observers }

// needsLeader reports whether a member cannot answer a request by itself.
func (o *Options) needsLeader(r *call) bool { return o.orders(r.op) || r.op == OpSync && !r.bad }
