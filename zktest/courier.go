// SPDX-License-Identifier: Apache-2.0

package zktest

import "time"

// courier carries the frames on the streams between the leader and its followers,
// and sends the leader's PINGs. PINGs and their replies set no alarm: pump processes
// overdue ones before anything that they could affect.
type courier struct {
	peers   *membership
	clock   *clock
	half    time.Duration // half a tick of the leader: the interval of its PINGs
	pingAt  time.Duration // when the leader sends the next PINGs
	pumping bool

	// arrive receives a frame at the leader's end of a stream.
	arrive func(upFrame, time.Duration)
}

// pump delivers the frames that are due, in order of arrival.
func (c *courier) pump(now time.Duration) {
	if c.pumping {
		return // the loop below handles what was added
	}
	c.pumping = true
	for c.carryOne(now) {
	}
	c.pumping = false
	c.arm()
}

// carryOne delivers the frame that is due first, or sends PINGs that are due before it. It reports whether there was
// anything to do.
func (c *courier) carryOne(now time.Duration) bool {
	first, at, upwards := (*replica)(nil), never, false
	for _, r := range c.peers.members {
		if due := r.link.down.next(); due < at {
			first, at, upwards = r, due, false
		}
		if due := r.link.up.next(); due < at {
			first, at, upwards = r, due, true
		}
	}
	ping := c.nextPing()
	switch {
	case min(ping, at) > now:
		return false
	case ping < at:
		c.sendPings(ping, now)
	case upwards:
		c.arrive(first.link.up.take(), at)
	default:
		first.receive(first.link.down.take(), at)
	}
	return true
}

// nextPing returns when the leader sends its next PINGs: every half tick, if it is running.
func (c *courier) nextPing() time.Duration {
	if !c.peers.leaderRuns() {
		return never
	}
	return c.pingAt
}

// sendPings sends a PING on each stream. If PINGs would have no effect up to now, it
// skips those that are due by then.
func (c *courier) sendPings(at, now time.Duration) {
	c.pingAt = at + c.half
	busy := false
	for _, r := range c.peers.members {
		if c.peers.follows(r) && r.link.wantsPing() {
			r.link.down.send(downFrame{}, at)
			busy = true
		}
	}
	if !busy {
		c.pingAt += (now - at) / c.half * c.half
	}
}

// startPings starts the PINGs of a new leader, which sends them at intervals of half its tick.
func (c *courier) startPings(half, now time.Duration) { c.half, c.pingAt = half, now+half }

// latePings delays overdue PINGs by the time that late returns.
func (c *courier) latePings(late func() time.Duration, now time.Duration) {
	if c.pingAt <= now {
		c.pingAt = now + late()
	}
}

// sendDown sends a frame to a follower.
func (c *courier) sendDown(r *replica, f downFrame) {
	now := c.clock.now()
	r.link.down.send(f, now)
	c.pump(now)
}

// sendUp sends a request of a follower's client to the leader.
func (c *courier) sendUp(r *replica, e *entry, now time.Duration) {
	c.pump(now)
	r.link.up.send(upFrame{request: e}, now)
	c.pump(now)
}

// replicate sends a committed transaction to the followers. A follower that the
// leader can reach has it in its log at once, even if the commit arrives late.
func (c *courier) replicate(t *txn, now time.Duration) {
	c.pump(now) // first deliver what was sent before
	for _, r := range c.peers.members {
		if !c.peers.follows(r) {
			continue // it gets a copy of the whole tree when it joins
		}
		if c.peers.reachedByLeader(r) {
			r.logged = t.zxid
		}
		r.link.down.send(downFrame{txn: t}, now)
	}
	c.pump(now)
}

// arm sets the alarm for the frames that must be delivered on time.
func (c *courier) arm() {
	for _, r := range c.peers.members {
		c.clock.arm(r.link.deadline())
	}
}
