// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"math/rand/v2"
	"time"
)

// replica is one server of the ensemble: a copy of the data with its own connections
// and watches, and the faults that separate it from the others.
type replica struct {
	id    int
	opts  *Options
	clock *clock
	bell  *bell
	rng   *rand.Rand // for the order of children

	tree     *tree
	watches  *watches
	clients  map[client]struct{}
	attached map[int64]client // by session
	syncs    []client         // connections whose next reply waits for a commit caused by another one
	asked    []*entry         // requests of clients, in order, that wait for the leader; see answerOf
	received int64            // packets, for the four-letter words
	sent     int64

	serving  bool // it has data that a quorum has confirmed, and serves clients
	observer bool // it applies commits but has no vote
	stopped  bool
	cut      bool // it is cut off from all other members
	deaf     bool // it receives nothing from its leader; the other direction works
	mute     bool // its leader receives nothing from it; the other direction works
	frozen   bool
	refusing bool          // it refuses new connections
	lag      time.Duration // delay between logging and applying a commit
	lostAt   time.Duration // when it lost contact with its leader, or never
	former   *former       // set on a leader that was replaced and has not noticed
	epoch    int64         // the epoch of the leader it follows
	logged   int64         // the last zxid in its log
	link     link          // the connection to its leader
	backlog  []delivery    // commits that have arrived but are not applied yet
	ahead    *tree         // on a leader with a backlog, the tree with the backlog applied; otherwise nil

	heard map[int64]sign // on a Keeper, the latest sign of life of each session, as recorded here
}

// delivery is a committed transaction that is applied with a lag.
type delivery struct {
	t   *txn
	due time.Duration
}

func newReplica(id int, opts *Options, k *clock, b *bell, rng *rand.Rand) *replica {
	return &replica{
		id: id, opts: opts, clock: k, bell: b, rng: rng, observer: id >= opts.voters(),
		clients: make(map[client]struct{}), attached: make(map[int64]client),
	}
}

// clear resets the replica to its first start, without data. The faults that separate
// it from the others stay.
func (r *replica) clear() {
	r.tree, r.watches = newTree(r.opts.lab.WrapCounter, r.opts.Flavor), newWatches()
	r.serving, r.lostAt, r.logged, r.backlog, r.ahead, r.syncs, r.former = false, never, 0, nil, nil, nil, nil
	r.asked = nil
	r.link.reset()
}

// load adds the nodes of a snapshot to an empty replica.
func (r *replica) load(snap *Snapshot) {
	r.tree.load(snap.Nodes)
	r.tree.zxid, r.logged = snap.Zxid, snap.Zxid
}

// copyFrom copies another replica's data.
func (r *replica) copyFrom(other *replica) {
	r.hearMissed(other)
	r.tree, r.logged = other.tree.clone(), other.logged
}

// lead puts the replica into service as the leader of an epoch that starts at zxid.
func (r *replica) lead(epoch, zxid int64) {
	r.serving, r.lostAt, r.epoch, r.logged, r.tree.zxid = true, never, epoch, zxid, zxid
	r.asked = nil
	r.link.reset()
}

// follow puts the replica into service with the leader's data.
func (r *replica) follow(leader *replica) {
	r.link.reset()
	r.hearMissed(leader)
	r.tree = leader.latest().clone()
	r.serving, r.lostAt, r.epoch, r.logged, r.backlog = true, never, leader.epoch, r.tree.zxid, nil
}

// negotiate clamps the timeout that a client requests, in milliseconds.
func (r *replica) negotiate(ms int32) time.Duration { return r.opts.negotiate(r.id, ms) }

// reachable reports whether other members can reach the replica.
func (r *replica) reachable() bool { return !r.stopped && !r.cut && !r.frozen }

// takesConns reports whether the replica accepts new connections. One that serves no clients does too: it closes the
// connection after reading the connect request.
func (r *replica) takesConns() bool { return !r.stopped && !r.refusing }

// regain ends a short loss of contact: frames on the streams arrive now, and what the
// leader committed in the meantime is logged.
func (r *replica) regain() {
	if r.lostAt == never {
		return
	}
	r.lostAt = never
	r.logged = max(r.logged, r.link.newest())
}

// shut takes the replica out of service: its clients are disconnected, and their
// uncommitted requests are lost. A frozen replica disconnects them when it is thawed.
func (r *replica) shut() {
	r.serving, r.lostAt, r.syncs, r.asked, r.former = false, never, nil, nil, nil
	if !r.frozen {
		r.dropClients()
	}
	// Transactions in its log are not lost.
	committed, coming := r.backlog, r.link.inLog(r.logged)
	r.backlog, r.ahead = nil, nil
	r.link.reset()
	for _, d := range committed {
		r.apply(d.t)
	}
	for _, t := range coming {
		r.apply(t)
	}
}

// thaw ends a freeze.
func (r *replica) thaw() {
	if !r.serving {
		r.dropClients() // it has lost its leadership or its leader in the meantime
	}
	r.frozen = false
}

// dropClients closes all connections, like a killed process.
func (r *replica) dropClients() {
	for c := range r.clients {
		c.abort()
	}
}

// admit records a new connection.
func (r *replica) admit(c client) { r.clients[c] = struct{}{} }

// attach records the connection of a session. The previous one must be closed.
func (r *replica) attach(id int64, c client) { r.attached[id] = c }

// dismiss removes a closed connection and its watches.
func (r *replica) dismiss(c client) {
	delete(r.clients, c)
	r.watches.dropWatcher(c)
	r.bell.ring()
	if id := c.sessionID(); id != 0 && r.attached[id] == c {
		delete(r.attached, id)
	}
}

// loseEvents closes the connection of the session that t ends before the events of the session's nodes
// are sent there, if they are to be lost.
func (r *replica) loseEvents(t *txn) {
	if r.opts.lab.LoseLastEvents {
		r.endConnection(t)
	}
}

// endConnection closes the connection of the session that t ends, unless the client has closed the session.
func (r *replica) endConnection(t *txn) {
	if t.op == OpCloseSession && (t.origin == nil || t.origin.c != r.attached[t.session]) {
		r.closeSession(t.session)
	}
}

// closeSession closes a session's connection if it is on this replica.
func (r *replica) closeSession(id int64) {
	switch c := r.attached[id]; {
	case c == nil:
	case r.opts.lab.LoseLastEvents:
		c.abort()
	default:
		c.close()
	}
}

// hearAll touches the sessions of all connections.
func (r *replica) hearAll(now time.Duration) {
	for c := range r.clients {
		if sess, timeout := c.session(); sess != nil {
			sess.touch(timeout, now)
		}
	}
}

// hear records on a Keeper that a session is alive. zxid is that of the transaction committed for it, or 0 for a read.
func (r *replica) hear(id, zxid int64, now time.Duration) {
	if r.heard == nil {
		r.heard = make(map[int64]sign)
	}
	r.heard[id] = sign{now, max(zxid, r.heard[id].zxid)}
}

// hearMissed records on a Keeper the sessions for which another replica has applied transactions that this one receives only
// now.
func (r *replica) hearMissed(other *replica) {
	for id, s := range other.heard {
		if s.zxid > r.tree.zxid {
			r.hear(id, s.zxid, r.clock.now())
		}
	}
}

// latest returns the tree with everything that a leader has committed, even if it has not applied it yet.
func (r *replica) latest() *tree {
	if r.ahead != nil {
		return r.ahead
	}
	return r.tree
}

// commit applies a transaction on the leader and fills in its results. On a lagging
// leader, clients and watches see it later; followers do not wait for that.
func (r *replica) commit(t *txn, now time.Duration) {
	r.logged = t.zxid
	if r.lag == 0 && len(r.backlog) == 0 {
		r.loseEvents(t)
		r.carryOut(t, r.tree, r.watches)
		r.applied(t)
		return
	}
	if r.ahead == nil {
		r.ahead = r.tree.clone()
	}
	r.carryOut(t, r.ahead, nobody{})
	r.ahead.zxid = t.zxid
	r.backlog = append(r.backlog, delivery{t, now + r.lag})
	r.deliver(now)
	r.bell.ring()
}

// carryOut applies a transaction's changes to a tree and fills in its results.
func (r *replica) carryOut(t *txn, on *tree, seen events) {
	for i := range t.changes {
		t.setStat(i, on.apply(&t.changes[i], t.zxid, t.ms, seen))
	}
}

// apply applies a transaction whose results are already known.
func (r *replica) apply(t *txn) {
	r.loseEvents(t)
	for i := range t.changes {
		r.tree.apply(&t.changes[i], t.zxid, t.ms, r.watches)
	}
	r.applied(t)
}

// applied handles what follows the changes of the tree and their events: it closes the
// connection of a session that ended, and sends replies that have waited.
func (r *replica) applied(t *txn) {
	mixedUp := r.answerOf(t)
	r.tree.zxid = t.zxid
	if mixedUp != nil {
		mixedUp.mixUp(t)
		mixedUp.c.drain()
	}
	if r.opts.Flavor == Keeper && t.session != 0 {
		r.hear(t.session, t.zxid, r.clock.now())
	}
	if t.op == OpCloseSession {
		delete(r.heard, t.session)
	}
	r.endConnection(t)
	if t.origin != nil && t.origin.by.member == r.id {
		t.origin.c.drain()
	}
	r.releaseSyncs()
	r.bell.ring()
}

// answerOf returns the request that is wrongly matched with t, the commit of another request, or nil if there is none. A
// follower compares only session and xid, with those of the first waiting request. A client that uses an xid twice in one
// session may therefore get the outcome of a request that it sent to another member before.
func (r *replica) answerOf(t *txn) *entry {
	for len(r.asked) > 0 && r.asked[0].isSettled(r.tree.zxid) {
		r.asked[0] = nil
		r.asked = r.asked[1:]
	}
	if len(r.asked) == 0 || r.asked[0] == t.origin || !r.asked[0].takes(t) {
		return nil
	}
	return r.asked[0]
}

// log logs a commit that has arrived from the leader. It is applied now, or after the
// replica's lag.
func (r *replica) log(t *txn, now time.Duration) {
	r.logged = max(r.logged, t.zxid)
	r.backlog = append(r.backlog, delivery{t, now + r.lag})
	r.deliver(now)
}

// deliver applies the commits that are due, in order.
func (r *replica) deliver(now time.Duration) {
	for len(r.backlog) > 0 && !r.frozen {
		d := r.backlog[0]
		if d.due > now {
			r.clock.arm(d.due)
			return
		}
		r.backlog = r.backlog[1:]
		r.apply(d.t)
	}
	if len(r.backlog) == 0 {
		r.backlog = nil
		r.catchUp()
	}
}

// catchUp is called when a leader has applied everything it has committed. It replaces the tree with the one that is ahead,
// which also has the counters that were set in the meantime.
func (r *replica) catchUp() {
	if r.ahead != nil {
		r.tree, r.ahead = r.ahead, nil
	}
}

// setLag sets the delay with which commits are applied. With 0, the replica catches up at the next deliver.
func (r *replica) setLag(d, now time.Duration) {
	r.lag = d
	if d > 0 {
		return
	}
	for i := range r.backlog {
		r.backlog[i].due = now
	}
}

// setCounter sets a node's count of created children if the replica is up to date with
// zxid, the leader's. Otherwise, creates that it has yet to receive or apply would carry an
// older count.
func (r *replica) setCounter(path string, creates int32, zxid int64) {
	if n := r.latest().get(path); n != nil && r.latest().zxid == zxid {
		n.creates = creates
	}
}

// awaitCommits answers the pending requests of a connection as far as possible. The
// rest waits for commits caused by other connections.
func (r *replica) awaitCommits(c client) {
	if !c.drain() {
		r.syncs = append(r.syncs, c)
	}
}

// releaseSyncs answers connections that have waited for commits caused by others.
func (r *replica) releaseSyncs() {
	if len(r.syncs) == 0 {
		return
	}
	waiting := r.syncs
	r.syncs = nil
	for _, c := range waiting {
		r.awaitCommits(c)
	}
}

// receive handles a frame at the follower's end of the stream from the leader.
func (r *replica) receive(f downFrame, now time.Duration) {
	switch {
	case f.txn != nil:
		r.log(f.txn, now)
	case f.answer != nil:
		if e := r.link.ends(f.answer, r.negotiate); e != nil {
			e.decided = true
			r.awaitCommits(e.c)
		}
	default:
		r.link.answerPing(now)
	}
}
