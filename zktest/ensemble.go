// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"math/rand/v2"
	"time"
)

// electionTime is how long members take to elect a leader.
const electionTime = 200 * time.Millisecond

// ensemble is the members and the state they agree on: the leader, the sessions, and
// the order of transactions. Everything in it is guarded by Server.mu.
type ensemble struct {
	opts       *Options
	clock      *clock
	journal    *journal
	bell       bell
	hooks      txnHooks
	rng        *rand.Rand // for passwords, nonces and the order of children
	touchRng   *rand.Rand
	peers      membership
	sessions   *sessions
	courier    courier
	proposer   proposer
	router     router
	electAt    time.Duration // when the current election ends, or never
	aloneSince time.Duration // when the leader lost its quorum, or never
}

func newEnsemble(opts *Options, k *clock) *ensemble {
	e := &ensemble{
		opts: opts, clock: k, journal: &journal{log: opts.Logger, wake: k.wake},
		rng:      rand.New(rand.NewPCG(opts.Seed, 2)),
		touchRng: rand.New(rand.NewPCG(opts.Seed, 3)),
		sessions: newSessions(opts, k),
	}
	for i := range opts.Servers {
		e.peers.members = append(e.peers.members, newReplica(i, opts, k, &e.bell, e.rng))
	}
	e.courier = courier{peers: &e.peers, clock: k}
	e.proposer = proposer{
		opts: opts, clock: k, rng: e.rng, peers: &e.peers, sessions: e.sessions,
		courier: &e.courier, hooks: &e.hooks, reaper: reaper{every: opts.lab.ContainerCheck},
	}
	e.router = router{opts: opts, clock: k, rng: e.touchRng, peers: &e.peers, courier: &e.courier, proposer: &e.proposer}
	e.courier.arrive = e.router.arrive
	return e
}

// reset starts over with an empty ensemble or with one restored from a snapshot. All
// clients must have been disconnected.
func (e *ensemble) reset(snap *Snapshot, now time.Duration) {
	for _, r := range e.peers.members {
		r.clear()
	}
	e.sessions.clear()
	e.proposer.outstanding, e.proposer.zxid = nil, 0
	e.peers.leader, e.peers.longest, e.peers.epoch = nil, nil, 0
	e.electAt, e.aloneSince = never, never
	if snap != nil {
		e.load(snap)
	}
	if first := e.peers.members[0]; first.reachable() && e.peers.candidate() != nil {
		e.lead(first, now)
	}
}

// load makes the snapshot the state of every member.
func (e *ensemble) load(snap *Snapshot) {
	e.peers.epoch, e.proposer.zxid = snap.Zxid>>32, snap.Zxid
	for _, r := range e.peers.members {
		r.load(snap)
	}
	for _, saved := range snap.Sessions {
		e.sessions.load(saved)
	}
}

// snapshot is the inverse of load.
func (e *ensemble) snapshot() Snapshot {
	t := e.peers.truth()
	snap := Snapshot{Zxid: t.zxid, Nodes: t.public()}
	for _, sess := range e.sessions.all() {
		snap.Sessions = append(snap.Sessions, sess.saved())
	}
	return snap
}

// alter changes the members or their connectivity, and applies the consequences.
func (e *ensemble) alter(fn func(now time.Duration)) {
	now := e.clock.now()
	e.courier.pump(now)
	fn(now)
	e.reconcile(now)
	e.armNext()
}

// runDue handles what is due, if the alarm has gone off.
func (e *ensemble) runDue(now time.Duration) {
	if e.clock.rings(now) {
		e.reconcile(now)
		e.proposer.reap(now)
		e.armNext()
	}
}

// armNext sets the alarm for events that reconcile does not set it for.
func (e *ensemble) armNext() {
	if e.peers.leader != nil && !e.peers.leader.frozen {
		e.clock.arm(e.sessions.queue.next())
	}
	if e.peers.canCommit() {
		e.proposer.armReaper()
	}
}

// reconcile updates the ensemble according to which members can reach each other. It
// runs after every change of that, and at every resulting deadline.
func (e *ensemble) reconcile(now time.Duration) {
	for _, r := range e.peers.members {
		e.checkContact(r, now)
	}
	e.checkLeader(now)
	if e.peers.leader == nil {
		e.elect(now)
	}
	if e.peers.leader != nil {
		e.joinAll()
	}
	e.peers.openLinks(now)
	e.courier.pump(now)
	for _, r := range e.peers.members {
		r.deliver(now)
	}
	e.expireDue(now)
	e.proposer.proposeOutstanding()
}

// checkContact records whether a follower has lost or regained contact with its
// leader, and shuts it if it has had none for syncLimit of its ticks.
func (e *ensemble) checkContact(r *replica, now time.Duration) {
	switch {
	case r == e.peers.leader || !r.serving:
	case e.peers.inTouch(r):
		r.regain()
	case r.lostAt == never:
		r.lostAt = now
		e.clock.arm(now + e.opts.syncLimit(r.id))
	case now >= r.lostAt+e.opts.syncLimit(r.id):
		e.journal.note("member gave up its leader", "member", r.id)
		r.shut()
	case e.peers.missesNews(r):
		r.shut() // it must start over
	default:
		e.clock.arm(r.lostAt + e.opts.syncLimit(r.id))
	}
}

// patience returns how long a leader stays leader without a quorum. The connection to a stopped member ends at once, and the
// leader checks its quorum every tick. It assumes for syncLimit ticks that a silent member is still there.
func (e *ensemble) patience() time.Duration {
	if e.peers.running() < e.peers.quorum() {
		return e.opts.ticks[e.peers.leader.id]
	}
	return e.opts.syncLimit(e.peers.leader.id)
}

// checkLeader deposes a leader that is stopped or has had no quorum for too long.
func (e *ensemble) checkLeader(now time.Duration) {
	switch l := e.peers.leader; {
	case l == nil:
	case l.stopped:
		e.depose()
	case e.peers.alone():
		// A single server keeps its role, however long it was frozen.
	case e.peers.canCommit():
		e.aloneSince = never
	case e.aloneSince == never:
		e.aloneSince = now
		e.clock.arm(now + e.patience())
	case now >= e.aloneSince+e.patience():
		e.depose()
	default:
		e.clock.arm(e.aloneSince + e.patience())
	}
}

// depose ends a leadership. Followers that are connected to the leader notice at
// once, the others at their own deadline.
func (e *ensemble) depose() {
	e.dismissFollowers()
	e.peers.leader.shut()
	e.vacate()
}

// usurp ends the leadership of a member that is cut off and does not notice. It keeps
// serving its clients for as long as any other member that has lost its leader.
func (e *ensemble) usurp() {
	e.dismissFollowers()
	e.peers.leader.former = &former{sessions: e.sessions.copied()}
	e.vacate()
}

// vacate leaves the ensemble without a leader. Proposals that the last leader made without a quorum stay in its log.
func (e *ensemble) vacate() {
	e.peers.longest = nil
	if len(e.proposer.outstanding) > 0 || len(e.sessions.closings) > 0 {
		e.peers.longest = e.peers.leader
	}
	e.peers.leader, e.aloneSince = nil, never
}

func (e *ensemble) dismissFollowers() {
	e.journal.note("leader deposed", "member", e.peers.leader.id)
	for _, r := range e.peers.members {
		if e.peers.follows(r) && r.reachable() && !r.deaf {
			r.shut()
		}
	}
}

// elect makes a quorum of members that can reach each other elect a leader, which
// takes electionTime.
func (e *ensemble) elect(now time.Duration) {
	best := e.peers.candidate()
	switch {
	case best == nil:
		e.electAt = never
	case e.peers.alone():
		e.lead(best, now)
	case e.electAt == never:
		e.electAt = now + electionTime
		e.clock.arm(e.electAt)
	case now >= e.electAt:
		e.lead(best, now)
	default:
		e.clock.arm(e.electAt)
	}
}

// lead makes a member the leader of a new epoch. The member commits what is in its log, as if there had been a quorum. Every
// session gets a full timeout again, whichever member owns it.
func (e *ensemble) lead(r *replica, now time.Duration) {
	e.peers.leader = r
	if r == e.peers.longest {
		e.proposer.commitLogged()
	}
	e.peers.longest = nil
	e.peers.epoch++
	e.electAt, e.aloneSince = never, never
	r.lead(e.peers.epoch, e.proposer.beginEpoch(e.peers.epoch, now))
	e.courier.startPings(e.opts.ticks[r.id]/2, now)
	e.sessions.tick = e.opts.ticks[r.id]
	e.sessions.startOver(r.heard, now)
	e.journal.note("leader elected", "member", r.id, "epoch", e.peers.epoch)
}

// joinAll copies the leader's data to each member that is out of service and can
// reach the leader. The member loses data that the leader does not have.
func (e *ensemble) joinAll() {
	for _, r := range e.peers.members {
		if e.peers.mayJoin(r) {
			r.follow(e.peers.leader)
		}
	}
	if e.peers.canCommit() {
		e.aloneSince = never
	}
}

// replaceLeader makes r the leader. r must be electable.
func (e *ensemble) replaceLeader(r *replica, now time.Duration) {
	switch l := e.peers.leader; {
	case l == nil:
	case l.cut && l != r:
		e.usurp()
	default:
		e.depose()
	}
	if best := e.peers.candidate(); r.logged < best.logged {
		r.copyFrom(best) // it receives what it has missed before it leads
	}
	e.lead(r, now)
}

// restart restarts all running members.
func (e *ensemble) restart(now time.Duration) {
	for _, r := range e.peers.members {
		r.shut()
	}
	e.electAt = never
	if e.peers.leader != nil {
		e.vacate()
	}
	if best := e.peers.candidate(); best != nil {
		e.lead(best, now)
	}
}

// stop stops a member. If it leads, its leadership ends at the next checkLeader.
func (e *ensemble) stop(r *replica) {
	r.stopped = true
	r.dropClients()
	if r != e.peers.leader {
		r.shut()
	}
}

// thaw ends a member's freeze. If the member leads, it expires the sessions that are
// due before it receives touches from their servers, and sends its overdue PINGs a
// moment later.
func (e *ensemble) thaw(r *replica, now time.Duration) {
	r.thaw()
	if r == e.peers.leader {
		e.courier.latePings(func() time.Duration {
			return 1 + time.Duration(e.touchRng.Float64()*float64(e.opts.lab.LatePing))
		}, now)
		e.expireDue(now)
	}
}

// resume ends a member's freeze, in which its clock stood still for d.
func (e *ensemble) resume(r *replica, d time.Duration) {
	r.thaw()
	if r == e.peers.leader {
		e.courier.pingAt += d
		e.sessions.standStill(d)
	}
}

// expireDue runs the leader's expirer.
func (e *ensemble) expireDue(now time.Duration) {
	if !e.peers.leaderRuns() {
		return
	}
	e.courier.pump(now)
	e.sessions.expire(now)
	e.proposer.closeExpired(func(sess *session) {
		e.journal.note("session expired", "session", hex(sess.id), "client", sess.client)
	})
}

// listSessions returns the live sessions, ordered by ID, according to the leader's
// current knowledge.
func (e *ensemble) listSessions() []*session {
	e.courier.pump(e.clock.now())
	return e.sessions.all()
}
