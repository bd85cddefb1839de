package zktest

import "time"

// courier carries the frames on the streams between the leader and its
// followers, and sends the leader's PINGs. PINGs and their answers have no alarm
// of their own: they are made up for before anything that they could have
// changed.
type courier struct {
	peers   *membership
	clock   *clock
	half    time.Duration // of a tick: how often the leader sends PINGs
	pingAt  time.Duration // when it sends the next ones
	pumping bool

	// arrive is the leader's end of a stream.
	arrive func(upFrame, time.Duration)
}

// pump carries what is due to its ends, in the order of the moments it arrives at.
func (c *courier) pump(now time.Duration) {
	if c.pumping {
		return // the loop below goes on with what came of it
	}
	c.pumping = true
	for c.carryOne(now) {
	}
	c.pumping = false
	c.arm()
}

// carryOne carries the frame that is due first, or sends the PINGs that are.
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

// nextPing is when the leader sends its next PINGs: every half tick, if it runs.
func (c *courier) nextPing() time.Duration {
	if !c.peers.leaderRuns() {
		return never
	}
	return c.pingAt
}

// sendPings puts a PING on each stream. If none would have any effect before
// now, it skips those that are due until then.
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

// startPings is for a new leader.
func (c *courier) startPings(now time.Duration) { c.pingAt = now + c.half }

// latePings makes PINGs that are overdue wait for as long as late.
func (c *courier) latePings(late func() time.Duration, now time.Duration) {
	if c.pingAt <= now {
		c.pingAt = now + late()
	}
}

// sendDown puts a frame on the stream to a follower.
func (c *courier) sendDown(r *replica, f downFrame) {
	now := c.clock.now()
	r.link.down.send(f, now)
	c.pump(now)
}

// sendUp puts a request of a follower's client on its stream to the leader.
func (c *courier) sendUp(r *replica, e *entry, now time.Duration) {
	c.pump(now)
	r.link.up.send(upFrame{request: e}, now)
	c.pump(now)
}

// replicate passes a committed transaction on to the followers. One that hears
// the leader has it in its log at once, however late the commit arrives.
func (c *courier) replicate(t *txn, now time.Duration) {
	c.pump(now) // what the leader sent before this
	for _, r := range c.peers.members {
		if !c.peers.follows(r) {
			continue // gets a copy of the whole tree when it joins
		}
		if c.peers.hears(r) {
			r.logged = t.zxid
		}
		r.link.down.send(downFrame{txn: t}, now)
	}
	c.pump(now)
}

// arm sets the alarm for the frames that must be carried on time.
func (c *courier) arm() {
	for _, r := range c.peers.members {
		c.clock.arm(r.link.deadline())
	}
}
