// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"math/rand/v2"
	"slices"
	"time"
)

// reaper says when the leader looks for containers and TTL nodes to delete: at a
// fixed interval from the start of its leadership.
type reaper struct {
	every, began, looked time.Duration
}

// start starts the interval of a new leader.
func (r *reaper) start(now time.Duration) { r.began, r.looked = now, now }

func (r *reaper) next() time.Duration { return r.began + ((r.looked-r.began)/r.every+1)*r.every }

// proposer is the part of the leader that handles requests: it checks the session,
// orders the request as a transaction and commits that with a quorum. It must not be
// used while there is no leader.
type proposer struct {
	opts        *Options
	clock       *clock
	rng         *rand.Rand // for passwords and the order of deletes
	peers       *membership
	sessions    *sessions
	courier     *courier
	hooks       *txnHooks
	reaper      reaper
	zxid        int64    // the last zxid assigned
	outstanding []*entry // requests that reached the leader and wait for a quorum
}

// begin starts a transaction with the next zxid. A write takes its zxid before its
// checks, so a failed write uses one as well.
func (p *proposer) begin(op Op, session int64, origin *entry) *txn {
	p.zxid++
	return &txn{zxid: p.zxid, ms: p.clock.wall().UnixMilli(), op: op, session: session, origin: origin}
}

// beginEpoch starts the epoch of a new leader. It returns the epoch's first zxid.
func (p *proposer) beginEpoch(epoch int64, now time.Duration) int64 {
	if !p.peers.alone() {
		p.zxid = epoch << 32
	}
	p.outstanding = nil
	p.reaper.start(now)
	return p.zxid
}

// commit applies a transaction on the leader and sends it to the followers.
func (p *proposer) commit(t *txn) *txn {
	if t.origin != nil && !t.origin.mixedUp {
		t.origin.txn = t
	}
	p.hooks.tell(t) // first, so that no client sees an effect before the hooks do
	now := p.clock.now()
	p.peers.leader.commit(t, now)
	if sess := p.sessions.get(t.session); p.opts.Flavor == Keeper && sess != nil {
		sess.touch(sess.timeout, now)
	}
	p.armReaper()
	p.courier.replicate(t, now)
	return t
}

// armReaper sets the alarm for the reaper if there are containers or TTL nodes.
func (p *proposer) armReaper() {
	if len(p.peers.leader.latest().reapable) > 0 {
		p.clock.arm(p.reaper.next())
	}
}

// commitCode commits a transaction that changes nothing.
func (p *proposer) commitCode(op Op, session int64, origin *entry, code int32) *txn {
	t := p.begin(op, session, origin)
	t.code = code
	return p.commit(t)
}

// execute checks a write against the leader's tree, and commits it or its failure. A
// multi is one transaction with all its steps.
func (p *proposer) execute(r *call, by requester, origin *entry) *txn {
	switch {
	case r.bad:
		return p.commitCode(r.op, by.id(), origin, CodeMarshalling)
	case r.op == OpMulti:
		return p.executeMulti(r, by, origin)
	}
	t := p.begin(r.op, by.id(), origin)
	v := view{t: p.peers.leader.latest(), opts: p.opts}
	if ch, code := v.prepare(r, by.id(), by.ids); code != CodeOK {
		t.fail(r, code)
	} else {
		t.add(r.op, ch)
	}
	return p.commit(t)
}

func (p *proposer) executeMulti(r *call, by requester, origin *entry) *txn {
	t := p.begin(OpMulti, by.id(), origin)
	v := view{t: p.peers.leader.latest(), opts: p.opts, pending: make(map[string]record)}
	for i := range r.subs {
		sub := &r.subs[i]
		ch, code := v.prepare(sub, by.id(), by.ids)
		if code != CodeOK {
			t.refuse(r.subs, i, code)
			break
		}
		t.add(sub.op, ch)
	}
	return p.commit(t)
}

func (p *proposer) refuseMulti(e *entry, code int32) {
	t := p.begin(OpMulti, e.by.id(), e)
	t.refuse(e.call.subs, 0, code)
	p.commit(t)
}

// endSession commits the end of a session: one transaction that deletes all its ephemeral nodes, in random order.
func (p *proposer) endSession(sess *session, origin *entry) {
	t := p.begin(OpCloseSession, sess.id, origin)
	paths := p.peers.leader.latest().ephemeralsOf(sess.id, "")
	p.rng.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	for _, path := range paths {
		t.changes = append(t.changes, change{kind: changeDelete, path: path})
	}
	p.sessions.end(sess)
	p.commit(t)
}

// arrive handles a request that arrives at the leader. A re-attach and a sync need no
// quorum, but a follower's sync waits for the proposals before it. A sync from one of the
// leader's own clients waits for nothing, like a read.
func (p *proposer) arrive(e *entry) {
	unordered := e.syncs() && !p.opts.orders(OpSync) && (len(p.outstanding) == 0 || p.isOwn(e))
	if p.peers.canCommit() || p.takesBack(e) || unordered {
		p.propose(e)
		return
	}
	p.outstanding = append(p.outstanding, e)
}

// isOwn reports whether a request came from a client of the leader itself.
func (p *proposer) isOwn(e *entry) bool { return e.by.member == p.peers.leader.id }

// takesBack reports whether a request re-attaches to an existing session.
func (p *proposer) takesBack(e *entry) bool { return e.reattaches() && !p.opts.forgets() }

// proposeOutstanding handles the requests that have waited for a quorum, in order of arrival.
func (p *proposer) proposeOutstanding() {
	if !p.peers.canCommit() {
		return
	}
	waiting := p.outstanding
	p.outstanding = nil
	for _, e := range waiting {
		p.propose(e)
	}
}

// commitLogged commits the proposals that a re-elected leader made without a quorum. Their clients no longer wait for them.
func (p *proposer) commitLogged() {
	lag := p.peers.leader.lag
	p.peers.leader.lag = 0 // a server has applied its whole log before it leads
	for sess := p.sessions.nextClosed(); sess != nil; sess = p.sessions.nextClosed() {
		p.endSession(sess, nil)
	}
	for _, e := range p.outstanding {
		if !e.syncs() {
			p.propose(e)
		}
	}
	p.peers.leader.lag = lag
}

// propose handles a request and sends the result to the member it came from.
func (p *proposer) propose(e *entry) {
	switch {
	case e.connect != nil:
		p.proposeConnect(e)
	case e.call.op == OpCloseSession:
		p.proposeClose(e)
	default:
		p.proposeRequest(e)
	}
	r := p.peers.members[e.by.member]
	switch {
	case e.txn != nil: // the commit informs the member
		e.need, e.decided = e.txn.zxid, true
		e.c.drain()
	case r == p.peers.leader:
		e.decided = true
		r.awaitCommits(e.c)
	default:
		p.courier.sendDown(r, downFrame{answer: e})
	}
}

func (p *proposer) proposeConnect(e *entry) {
	now := p.clock.now()
	if p.takesBack(e) {
		e.sess, e.timeout = p.sessions.reattach(e.connect, e.by.member, now)
		return
	}
	sess := p.sessions.create(e.connect, e.by.name, e.by.member, p.rng)
	p.sessions.add(sess, now)
	e.sess, e.timeout = sess, sess.created
	p.commit(p.begin(OpCreateSession, sess.id, e))
}

func (p *proposer) proposeClose(e *entry) {
	sess := e.by.session
	if sess.ended {
		p.commitCode(OpCloseSession, sess.id, e, CodeOK)
		return
	}
	p.endSession(sess, e)
}

func (p *proposer) proposeRequest(e *entry) {
	r, code := e.call, p.check(e)
	switch {
	case r.op == OpSync && !p.opts.orders(OpSync):
		e.code = code
		if !p.isOwn(e) {
			e.need = p.peers.leader.latest().zxid
		}
	case code == CodeOK && r.bad && r.op.creates() && p.opts.Flavor == ZooKeeper39:
		e.need, e.code = p.peers.leader.latest().zxid, CodeMarshalling
	case code != CodeOK && r.op == OpMulti && !r.bad:
		p.refuseMulti(e, code)
	case code != CodeOK:
		p.commitCode(r.op, e.by.id(), e, code)
	case r.op == OpPing || r.op == OpSync: // a Keeper commits them
		p.commitCode(r.op, e.by.id(), e, CodeOK)
	case r.op == OpReconfig:
		p.commitCode(r.op, e.by.id(), e, CodeReconfigDisabled)
	default:
		p.execute(r, e.by, e)
	}
}

// check returns the error code if a request's session cannot write, and otherwise CodeOK.
func (p *proposer) check(e *entry) int32 {
	switch sess := e.by.session; {
	case sess.over():
		return CodeSessionExpired
	case sess.owner != e.by.member:
		return CodeSessionMoved
	}
	return CodeOK
}

// closeExpired commits the ends of the sessions that the expirer has closed, and calls tell for each.
func (p *proposer) closeExpired(tell func(*session)) {
	for p.peers.canCommit() {
		sess := p.sessions.nextClosed()
		if sess == nil {
			return
		}
		tell(sess)
		p.endSession(sess, nil)
	}
}

// reap deletes the containers that were used and are empty, those that were not used
// in time, and the empty TTL nodes that have expired, if the reaper's time has come.
func (p *proposer) reap(now time.Duration) {
	if !p.peers.canCommit() || len(p.peers.leader.latest().reapable) == 0 || now < p.reaper.next() {
		return
	}
	p.reaper.looked = now
	for _, path := range p.peers.leader.latest().overdue(p.clock.wall(), p.opts.lab.UnusedContainers) {
		p.execute(&call{op: OpDeleteContainer, path: path, version: -1}, requester{}, nil)
	}
}

// intrude commits steps without regard to ACLs.
func (p *proposer) intrude(steps []Step) *txn {
	by := requester{ids: superuser}
	if len(steps) == 1 {
		r := steps[0].call()
		return p.execute(&r, by, nil)
	}
	m := &call{op: OpMulti}
	for _, step := range steps {
		m.subs = append(m.subs, step.call())
	}
	return p.execute(m, by, nil)
}

// missing returns the first Owner of steps that is not a session, or 0 if there is none.
func (p *proposer) missing(steps []Step) int64 {
	i := slices.IndexFunc(steps, func(s Step) bool { return s.Owner != 0 && p.sessions.get(s.Owner) == nil })
	if i < 0 {
		return 0
	}
	return steps[i].Owner
}
