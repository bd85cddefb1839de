package zktest

import (
	"math/rand/v2"
	"time"
)

// router takes what comes from clients to where it is decided about: requests
// and the touches of sessions.
type router struct {
	opts     *Options
	clock    *clock
	rng      *rand.Rand // of touches that are lost
	peers    *membership
	courier  *courier
	proposer *proposer
}

// arrive is the leader's end of a stream from a follower.
func (rt *router) arrive(f upFrame, now time.Duration) {
	if f.request != nil {
		rt.proposer.arrive(f.request)
		return
	}
	for sess, timeout := range f.touched {
		sess.touch(timeout, now)
	}
}

// submit sends a request on its way to the leader.
func (rt *router) submit(e *entry) {
	rt.note(e)
	switch r := rt.peers.members[e.by.member]; {
	case r.former != nil:
		rt.submitToFormer(r, e)
	case r == rt.peers.leader:
		rt.proposer.arrive(e)
	default:
		rt.forward(r, e, rt.clock.now())
	}
}

// note keeps a request among those whose commits a follower awaits. A leader has everybody's requests in one row, and mixes
// up none.
func (rt *router) note(e *entry) {
	r := rt.peers.members[e.by.member]
	if rt.opts.Flavor != Keeper && rt.peers.follows(r) && !rt.proposer.takesBack(e) {
		r.asked = append(r.asked, e)
	}
}

// submitToFormer answers a request that would need the leader, as far as a
// former leader does so by itself.
func (rt *router) submitToFormer(r *replica, e *entry) {
	switch f := r.former; {
	case rt.proposer.takesBack(e):
		f.takeBack(e, rt.clock.now())
	case e.syncs() && !rt.opts.orders(OpSync):
		e.decide(0, CodeOK)
	default:
		return
	}
	r.awaitCommits(e.c)
}

// forward sends a request of a follower's client up to the leader.
func (rt *router) forward(r *replica, e *entry, now time.Duration) {
	if rt.proposer.takesBack(e) {
		r.link.ask(e)
	}
	if !r.link.keep(e, rt.proposer.takesBack(e)) {
		rt.courier.sendUp(r, e, now)
	}
}

// unhold ends a hold of the requests of a follower's clients.
func (rt *router) unhold(r *replica, now time.Duration) {
	for _, e := range r.link.unhold() {
		rt.forward(r, e, now)
	}
}

// touch notes that a client with a session was heard of: at once where its
// server leads, else in the server's touch table. False means that the server
// leads and has begun to close the session: it drops the request unanswered.
func (rt *router) touch(r *replica, c client, op Op, now time.Duration) bool {
	sess, timeout := c.session()
	switch {
	case sess == nil:
	case rt.opts.Flavor == Keeper:
		if r == rt.peers.leader && !op.writes() && op != OpPing && op != OpSync {
			r.hear(sess.id, 0, now)
			sess.touch(sess.timeout, now)
		}
	case r.former != nil:
		return r.former.touch(sess.id, timeout, now)
	case r == rt.peers.leader:
		return sess.touch(timeout, now)
	default:
		rt.courier.pump(now) // PINGs that were answered before this do not have it
		r.link.touch(sess, timeout, rt.losesTouch)
	}
	return true
}

// losesTouch draws whether a touch is lost.
func (rt *router) losesTouch() bool {
	return rt.opts.LoseTouches > 0 && rt.rng.Float64() < rt.opts.LoseTouches
}
