package zktest

import (
	"math/rand/v2"
	"time"
)

// electionTime is how long members without a leader take to agree on one.
const electionTime = 200 * time.Millisecond

// ensemble is the members with what they agree on: who leads, which sessions
// there are, and the order of transactions. Everything in it is guarded by
// Server.mu.
type ensemble struct {
	opts       *Options
	clock      *clock
	journal    *journal
	bell       bell
	hooks      txnHooks
	rng        *rand.Rand // of passwords, nonces and the order of children
	touchRng   *rand.Rand
	peers      membership
	sessions   *sessions
	courier    courier
	proposer   proposer
	router     router
	electAt    time.Duration // when the election under way ends, or never
	aloneSince time.Duration // since when the leader has had no quorum, or never
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
	e.courier = courier{peers: &e.peers, clock: k, half: opts.TickTime / 2}
	e.proposer = proposer{
		opts: opts, clock: k, rng: e.rng, peers: &e.peers, sessions: e.sessions,
		courier: &e.courier, hooks: &e.hooks, reaper: reaper{every: opts.ContainerCheck},
	}
	e.router = router{opts: opts, clock: k, rng: e.touchRng, peers: &e.peers, courier: &e.courier, proposer: &e.proposer}
	e.courier.arrive = e.router.arrive
	return e
}

// reset begins anew, with an empty ensemble or one restored from a snapshot. All
// clients must have been dropped.
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

// alter carries out a change of the members or of what they reach, and its consequences.
func (e *ensemble) alter(fn func(now time.Duration)) {
	now := e.clock.now()
	e.courier.pump(now)
	fn(now)
	e.reconcile(now)
	e.armNext()
}

// runDue does what is due, if the alarm rings.
func (e *ensemble) runDue(now time.Duration) {
	if e.clock.rings(now) {
		e.reconcile(now)
		e.proposer.reap(now)
		e.armNext()
	}
}

// armNext sets the alarm for what reconcile does not arm by itself.
func (e *ensemble) armNext() {
	if e.peers.leader != nil && !e.peers.leader.frozen {
		e.clock.arm(e.sessions.queue.next())
	}
	if e.peers.canCommit() {
		e.proposer.armReaper()
	}
}

// reconcile brings the ensemble in line with which members reach each other. It runs
// after every change of that and at every deadline that comes of it.
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

func (e *ensemble) syncLimit() time.Duration {
	return time.Duration(e.opts.SyncLimit) * e.opts.TickTime
}

// checkContact notes whether a follower has lost or regained its leader, and
// shuts one that has been without for syncLimit ticks.
func (e *ensemble) checkContact(r *replica, now time.Duration) {
	switch {
	case r == e.peers.leader || !r.serving:
	case e.peers.inTouch(r):
		r.regain()
	case r.lostAt == never:
		r.lostAt = now
		e.clock.arm(now + e.syncLimit())
	case now >= r.lostAt+e.syncLimit():
		e.journal.note("member gave up its leader", "member", r.id)
		r.shut()
	case e.peers.missesNews(r):
		r.shut() // it must start over
	default:
		e.clock.arm(r.lostAt + e.syncLimit())
	}
}

// patience is how long a leader leads without a quorum. It hears at once of the end of a member that is stopped, and looks
// every tick; of one that is silent it believes for syncLimit ticks that it is there.
func (e *ensemble) patience() time.Duration {
	if e.peers.running() < e.peers.quorum() {
		return e.opts.TickTime
	}
	return e.syncLimit()
}

// checkLeader deposes a leader that is dead, or that has had no quorum for too long.
func (e *ensemble) checkLeader(now time.Duration) {
	switch l := e.peers.leader; {
	case l == nil:
	case l.stopped:
		e.depose()
	case e.peers.alone():
		// however long it was frozen
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

// depose ends a leadership. The followers that are linked to the leader notice
// at once; the others by their own deadline.
func (e *ensemble) depose() {
	e.dismissFollowers()
	e.peers.leader.shut()
	e.vacate()
}

// usurp ends the leadership of a member that is cut off and does not know: for
// as long as any other that has lost its leader it goes on serving its clients.
func (e *ensemble) usurp() {
	e.dismissFollowers()
	e.peers.leader.former = &former{sessions: e.sessions.copied()}
	e.vacate()
}

// vacate leaves the ensemble without a leader. What the last one has proposed without a quorum stays in its log.
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

// elect lets a quorum of members that can talk to each other choose a leader,
// which takes them a moment.
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

// lead makes a member the leader of a new epoch. What it has in its log it commits, as if there had been a quorum. Every
// session gets a full timeout again, through whichever member it writes.
func (e *ensemble) lead(r *replica, now time.Duration) {
	e.peers.leader = r
	if r == e.peers.longest {
		e.proposer.commitLogged()
	}
	e.peers.longest = nil
	e.peers.epoch++
	e.electAt, e.aloneSince = never, never
	r.lead(e.peers.epoch, e.proposer.beginEpoch(e.peers.epoch, now))
	e.courier.startPings(now)
	e.sessions.startOver(r.heard, now)
	e.journal.note("leader elected", "member", r.id, "epoch", e.peers.epoch)
}

// joinAll gives each member that can reach the leader the leader's data. What
// it had of its own is gone, if the leader does not have it.
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

// replaceLeader moves the leadership to a member that can be elected.
func (e *ensemble) replaceLeader(r *replica, now time.Duration) {
	switch l := e.peers.leader; {
	case l == nil:
	case l.cut && l != r:
		e.usurp()
	default:
		e.depose()
	}
	if best := e.peers.candidate(); r.logged < best.logged {
		r.copyFrom(best) // it hears of what it missed before it leads
	}
	e.lead(r, now)
}

// restart restarts all members that run.
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

// stop ends a member. Its leadership ends with the next check of the leader.
func (e *ensemble) stop(r *replica) {
	r.stopped = true
	r.dropClients()
	if r != e.peers.leader {
		r.shut()
	}
}

// thaw ends a member's freeze. What a leader does then: the sessions whose time
// is up end before it has heard what their servers would say, and its overdue
// PINGs go out a moment later.
func (e *ensemble) thaw(r *replica, now time.Duration) {
	r.thaw()
	if r == e.peers.leader {
		e.courier.latePings(func() time.Duration {
			return 1 + time.Duration(e.touchRng.Float64()*float64(e.opts.LatePing))
		}, now)
		e.expireDue(now)
	}
}

// expireDue is the leader's expirer.
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

// listSessions returns the live sessions in the order of their ids, as the
// leader knows them by now.
func (e *ensemble) listSessions() []*session {
	e.courier.pump(e.clock.now())
	return e.sessions.all()
}
