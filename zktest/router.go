// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"math/rand/v2"
	"time"
)

// router takes requests and touches from clients to the place that handles them.
type router struct {
	opts     *Options
	clock    *clock
	rng      *rand.Rand // for lost touches
	peers    *membership
	courier  *courier
	proposer *proposer
}

// arrive handles a frame at the leader's end of a stream from a follower.
func (rt *router) arrive(f upFrame, now time.Duration) {
	if f.request != nil {
		rt.proposer.arrive(f.request)
		return
	}
	for sess, timeout := range f.touched {
		sess.touch(timeout, now)
	}
}

// submit sends a request to the leader.
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

// note adds a request to those whose commits a follower is waiting for. A leader has the requests of all members in one queue
// and never confuses them.
func (rt *router) note(e *entry) {
	r := rt.peers.members[e.by.member]
	if rt.opts.Flavor != Keeper && rt.peers.follows(r) && !rt.proposer.takesBack(e) {
		r.asked = append(r.asked, e)
	}
}

// submitToFormer handles a request that needs the leader, on a former leader. It
// answers those that a former leader can answer by itself.
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

// forward sends a request of a follower's client to the leader.
func (rt *router) forward(r *replica, e *entry, now time.Duration) {
	if rt.proposer.takesBack(e) {
		r.link.ask(e)
	}
	if !r.link.keep(e, rt.proposer.takesBack(e)) {
		rt.courier.sendUp(r, e, now)
	}
}

// unhold ends a hold of a follower's requests, and forwards them if it was the last one.
func (rt *router) unhold(r *replica, now time.Duration) {
	for _, e := range r.link.unhold() {
		rt.forward(r, e, now)
	}
}

// touch records that a client with a session is active: at once if its server leads,
// and otherwise in the server's touch table. It returns false if the server leads and
// has started to close the session. The request is then dropped without a reply.
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
		rt.courier.pump(now) // first the replies to earlier PINGs, which do not contain this touch
		r.link.touch(sess, timeout, rt.losesTouch)
	}
	return true
}

// losesTouch decides at random whether a touch is lost.
func (rt *router) losesTouch() bool {
	return rt.opts.lab.LoseTouches > 0 && rt.rng.Float64() < rt.opts.lab.LoseTouches
}
