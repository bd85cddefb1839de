package zktest

import "time"

// DelayStreams makes the member's connection to its leader slow: what the
// leader sends (commits, PINGs, the answers to syncs) arrives after down, what
// the member sends (its clients' writes and syncs, and the answers to PINGs, by
// which alone the leader hears that their sessions live) after up. Neither way
// changes the order. What is logged is not delayed, nor what a quorum agrees on.
// A leader has no such connection: for as long as the member leads, nothing is slow.
func (m *Member) DelayStreams(down, up time.Duration) {
	m.s.alter(func(now time.Duration) {
		m.link.down.setDelay(down, now)
		m.link.up.setDelay(up, now)
	})
}

// CutStreams breaks the ways between the member and its leader, each by itself,
// or mends them: with down, nothing arrives that the leader sends; with up,
// nothing that the member sends. The end of the connection comes SyncLimit ticks
// later, as with CutOff; until then what is mended arrives late.
func (m *Member) CutStreams(down, up bool) {
	m.s.alter(func(time.Duration) { m.deaf, m.mute = down, up })
}

// HoldForwards keeps the requests of a follower's clients from the leader, until
// release is called: writes, syncs and new sessions wait in the follower's queue,
// while the answers to the leader's PINGs overtake them, and so do the sessions
// that the follower takes back for their clients. What waits outlives the
// connection that it came on.
func (m *Member) HoldForwards() (release func()) {
	m.s.alter(func(time.Duration) { m.link.holds++ })
	released := false
	return func() {
		m.s.alter(func(now time.Duration) {
			if released {
				return
			}
			released = true
			if m.link.holds--; m.link.holds == 0 {
				m.release(now)
			}
		})
	}
}
