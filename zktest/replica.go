package zktest

import (
	"math/rand/v2"
	"time"
)

// replica is one server of the ensemble: a copy of the data, with connections
// and watches of its own, and what separates it from the others.
type replica struct {
	id    int
	opts  *Options
	clock *clock
	bell  *bell
	rng   *rand.Rand // of the order of children

	tree     *tree
	watches  *watches
	clients  map[client]struct{}
	attached map[int64]client // by session
	syncs    []client         // whose next reply waits for a commit of somebody else's
	asked    []*entry         // requests of clients, in order, that wait for the leader's word; see answerOf
	received int64            // packets, for the four-letter words
	sent     int64

	serving  bool // has data that a quorum has confirmed, and takes clients
	observer bool // applies what the others decide and has no vote
	stopped  bool
	cut      bool // from all other members
	deaf     bool // hears nothing of its leader, which hears it
	mute     bool // its leader hears nothing of it, but reaches it
	frozen   bool
	refusing bool          // takes no new connections
	lag      time.Duration // how late it applies what it has logged
	lostAt   time.Duration // when it lost touch with its leader; never if it has not
	former   *former       // of a leader that was replaced and does not know it
	epoch    int64         // the leader's epoch it follows
	logged   int64         // the last zxid that is in its log
	link     link          // to its leader
	backlog  []delivery    // commits that reached it, but are not applied yet
	ahead    *tree         // of a leader with a backlog: what it will have applied; nil for all others

	heard map[int64]sign // of a Keeper: the newest sign of life of each session that came here
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

// clear takes the replica back to its first start, without any data. What
// separates it from others stays.
func (r *replica) clear() {
	r.tree, r.watches = newTree(r.opts.WrapCounter), newWatches()
	r.serving, r.lostAt, r.logged, r.backlog, r.ahead, r.syncs, r.former = false, never, 0, nil, nil, nil, nil
	r.asked = nil
	r.link.reset()
}

// load gives an empty replica the nodes of a snapshot.
func (r *replica) load(snap *Snapshot) {
	r.tree.load(snap.Nodes)
	r.tree.zxid, r.logged = snap.Zxid, snap.Zxid
}

// copyFrom gives the replica another's data.
func (r *replica) copyFrom(other *replica) {
	r.hearMissed(other)
	r.tree, r.logged = other.tree.clone(), other.logged
}

// lead puts the replica into service as the leader of an epoch, whose first zxid is given.
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

// negotiate clamps the timeout that a client asks for, in milliseconds.
func (r *replica) negotiate(ms int32) time.Duration { return r.opts.negotiate(r.id, ms) }

// reachable reports whether other members can talk to it.
func (r *replica) reachable() bool { return !r.stopped && !r.cut && !r.frozen }

// takesConns reports whether it accepts a new connection. One that serves nobody does: it
// hangs up when it has read the connect request.
func (r *replica) takesConns() bool { return !r.stopped && !r.refusing }

// regain ends a loss of contact that was short enough: what was on the
// streams arrives now, and what the leader had committed meanwhile is logged.
func (r *replica) regain() {
	if r.lostAt == never {
		return
	}
	r.lostAt = never
	r.logged = max(r.logged, r.link.newest())
}

// shut takes the replica out of service: its clients are dropped, and what they
// had asked for and was not committed is lost. A frozen one drops them when it
// is thawed.
func (r *replica) shut() {
	r.serving, r.lostAt, r.syncs, r.asked, r.former = false, never, nil, nil, nil
	if !r.frozen {
		r.dropClients()
	}
	// What is in its log is not lost with its memory.
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
		r.dropClients() // its leadership or its leader is long gone
	}
	r.frozen = false
}

// dropClients ends all connections as a killed process does.
func (r *replica) dropClients() {
	for c := range r.clients {
		c.abort()
	}
}

// admit notes a new connection.
func (r *replica) admit(c client) { r.clients[c] = struct{}{} }

// attach notes the connection of a session, whose former one must be closed.
func (r *replica) attach(id int64, c client) { r.attached[id] = c }

// dismiss forgets a connection that is closed, and its watches.
func (r *replica) dismiss(c client) {
	delete(r.clients, c)
	r.watches.dropWatcher(c)
	r.bell.ring()
	if id := c.sessionID(); id != 0 && r.attached[id] == c {
		delete(r.attached, id)
	}
}

// closeSession ends the connection of a session, if it is here.
func (r *replica) closeSession(id int64) {
	switch c := r.attached[id]; {
	case c == nil:
	case r.opts.LoseLastEvents:
		c.abort()
	default:
		c.close()
	}
}

// hearAll notes that the clients of all its connections were heard.
func (r *replica) hearAll(now time.Duration) {
	for c := range r.clients {
		if sess, timeout := c.session(); sess != nil {
			sess.touch(timeout, now)
		}
	}
}

// hear notes on a Keeper that a session lives. Zxid is that of what was committed for it, 0 for a read.
func (r *replica) hear(id, zxid int64, now time.Duration) {
	if r.heard == nil {
		r.heard = make(map[int64]sign)
	}
	r.heard[id] = sign{now, max(zxid, r.heard[id].zxid)}
}

// hearMissed notes on a Keeper the sessions for which another has committed something that is carried out here only now.
func (r *replica) hearMissed(other *replica) {
	for id, s := range other.heard {
		if s.zxid > r.tree.zxid {
			r.hear(id, s.zxid, r.clock.now())
		}
	}
}

// latest is all that a leader has committed, whether it has applied it or not.
func (r *replica) latest() *tree {
	if r.ahead != nil {
		return r.ahead
	}
	return r.tree
}

// commit applies a transaction on the leader and fills in its results. If it lags,
// its clients and watches hear of it later; its followers do not wait for that.
func (r *replica) commit(t *txn, now time.Duration) {
	r.logged = t.zxid
	if r.lag == 0 && len(r.backlog) == 0 {
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

// carryOut makes a transaction's changes and fills in its results.
func (r *replica) carryOut(t *txn, on *tree, seen events) {
	for i := range t.changes {
		t.setStat(i, on.apply(&t.changes[i], t.zxid, t.ms, seen))
	}
}

// apply makes a transaction visible whose results are known.
func (r *replica) apply(t *txn) {
	for i := range t.changes {
		r.tree.apply(&t.changes[i], t.zxid, t.ms, r.watches)
	}
	r.applied(t)
}

// applied is what comes after the changes of the tree and their events: the end
// of a session's connection, and the replies that have waited.
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
		if t.origin == nil || t.origin.c != r.attached[t.session] {
			r.closeSession(t.session)
		}
	}
	if t.origin != nil && t.origin.by.member == r.id {
		t.origin.c.drain()
	}
	r.releaseSyncs()
	r.bell.ring()
}

// answerOf returns the request that takes a commit for its own although it is another's, nil for none. A follower compares
// session and number only, with those of the first request that waits. A client that gives a number twice in one session
// may get the outcome of what it sent to another member before.
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

// log takes a commit of the leader's that has arrived. It is applied now, or
// after the time by which the replica lags.
func (r *replica) log(t *txn, now time.Duration) {
	r.logged = max(r.logged, t.zxid)
	r.backlog = append(r.backlog, delivery{t, now + r.lag})
	r.deliver(now)
}

// deliver applies what is due, in order.
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

// catchUp is called when a leader has applied all that it has committed: the two are one tree again, with the counters that were
// set meanwhile.
func (r *replica) catchUp() {
	if r.ahead != nil {
		r.tree, r.ahead = r.ahead, nil
	}
}

// setLag changes how late commits are applied. With 0 it catches up at once.
func (r *replica) setLag(d, now time.Duration) {
	r.lag = d
	if d > 0 {
		return
	}
	for i := range r.backlog {
		r.backlog[i].due = now
	}
}

// setCounter sets a node's count of created children, unless creates that are
// still to come, or to be applied, would count as older. Zxid is the leader's.
func (r *replica) setCounter(path string, creates int32, zxid int64) {
	if n := r.latest().get(path); n != nil && r.latest().zxid == zxid {
		n.creates = creates
	}
}

// awaitCommits answers what can be answered on a connection by now; the rest
// waits for commits that other connections caused.
func (r *replica) awaitCommits(c client) {
	if !c.drain() {
		r.syncs = append(r.syncs, c)
	}
}

// releaseSyncs answers what has waited for a commit of another's.
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

// receive is the follower's end of the stream from the leader.
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
