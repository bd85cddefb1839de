package zktest

import "time"

// CutOff cuts the member off from the other members. It goes on answering its
// own clients from what it has, pings too, for SyncLimit ticks; writes get no
// answer. Then it drops its clients, and hangs up on those that come.
func (m *Member) CutOff() { m.s.alter(func(time.Duration) { m.r.cut = true }) }

// Rejoin ends CutOff.
func (m *Member) Rejoin() { m.s.alter(func(time.Duration) { m.r.cut = false }) }

// Lag makes the member apply each commit d late; 0 catches up at once. A leader that
// lags orders and commits as ever, and its followers do not wait for it. But it
// answers its own clients' writes late, its watches are late, and what it shows is
// old, also behind a sync, which waits for nothing there. A server without others
// does not lag.
func (m *Member) Lag(d time.Duration) {
	m.s.alter(func(now time.Duration) {
		if !m.s.ens.peers.alone() {
			m.r.setLag(d, now)
		}
	})
}

// Freeze stops the member as SIGSTOP does: it accepts connections and bytes,
// and does nothing with them. Its peers lose touch with it.
func (m *Member) Freeze() {
	m.s.alter(func(time.Duration) {
		m.r.frozen = true
		m.s.gates.shutMember(m.r.id)
	})
}

// Thaw ends Freeze.
func (m *Member) Thaw() {
	m.s.alter(func(now time.Duration) { m.s.thaw(m.r, now) })
}

// Stop kills the member: its connections are dropped, dials are refused. What
// it had committed is kept.
func (m *Member) Stop() {
	m.s.alter(func(now time.Duration) {
		m.s.thaw(m.r, now)
		m.s.ens.stop(m.r)
	})
	m.syncListener()
}

// Start ends Stop.
func (m *Member) Start() {
	m.s.alter(func(time.Duration) { m.r.stopped = false })
	m.syncListener()
}

// Refuse makes the member refuse new connections, or take them again. Those it
// has stay.
func (m *Member) Refuse(refuse bool) {
	m.s.alter(func(time.Duration) { m.r.refusing = refuse })
	m.syncListener()
}

// DelayStreams makes the member's connection to its leader slow: what the leader sends
// (commits, PINGs, the answers to syncs) arrives after down; what the member sends (its
// clients' writes and syncs, and the answers to PINGs) after up. By those answers alone the
// leader hears that their sessions live. Neither way changes the order. What is logged is not
// delayed, nor what a quorum agrees on. A leader has no such connection: for as long as the
// member leads, nothing is slow.
func (m *Member) DelayStreams(down, up time.Duration) {
	m.s.alter(func(now time.Duration) { m.r.link.slow(down, up, now) })
}

// CutStreams breaks the ways between the member and its leader, each by itself,
// or mends them: with down, nothing arrives that the leader sends; with up,
// nothing that the member sends. The end of the connection comes SyncLimit ticks
// later, as with CutOff; until then what is mended arrives late.
func (m *Member) CutStreams(down, up bool) {
	m.s.alter(func(time.Duration) { m.r.deaf, m.r.mute = down, up })
}

// HoldForwards keeps the requests of a follower's clients from the leader, until
// release is called: writes, syncs and new sessions wait in the follower's queue. The answers
// to the leader's PINGs overtake them, and so do the sessions that the follower takes back for
// their clients. What waits outlives the connection that it came on.
func (m *Member) HoldForwards() (release func()) {
	m.s.alter(func(time.Duration) { m.r.link.hold() })
	released := false
	return func() {
		m.s.alter(func(now time.Duration) {
			if released {
				return
			}
			released = true
			m.s.ens.router.unhold(m.r, now)
		})
	}
}
