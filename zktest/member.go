// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"fmt"
	"time"
)

// CutOff cuts the member off from the other members. For SyncLimit ticks, it keeps
// answering its own clients' reads and pings from its own data, while writes get no
// reply. After that it disconnects its clients, and closes new connections.
func (m *Member) CutOff() { m.s.alter(func(time.Duration) { m.r.cut = true }) }

// Rejoin ends CutOff: the member is in contact with the others again.
func (m *Member) Rejoin() { m.s.alter(func(time.Duration) { m.r.cut = false }) }

// Lag makes the member apply each commit with a delay of d; 0 makes it catch up at
// once. A lagging leader orders and commits as before, and its followers do not wait
// for it. But it answers its own clients' writes late, its watches fire late, and its
// clients read old data, even after a sync, which waits for nothing on a leader. A
// single server does not lag.
func (m *Member) Lag(d time.Duration) {
	m.s.alter(func(now time.Duration) {
		if !m.s.ens.peers.alone() {
			m.r.setLag(d, now)
		}
	})
}

// Freeze stops the member as SIGSTOP does: it accepts connections and data, but does
// not process them. The other members lose contact with it.
func (m *Member) Freeze() {
	m.s.alter(func(time.Duration) { m.s.freeze(m.r) })
}

// Thaw ends Freeze: the member processes what has arrived in the meantime, unless it was frozen for so long
// that it closes its connections.
func (m *Member) Thaw() {
	m.s.alter(func(now time.Duration) { m.s.thaw(m.r, now) })
}

// standStill is lab.StandStill.
func (m *Member) standStill() (resume func()) {
	var from time.Duration
	m.s.alter(func(now time.Duration) {
		from = now
		m.s.freeze(m.r)
	})
	return func() {
		m.s.alter(func(now time.Duration) {
			if m.r.frozen {
				m.s.ens.resume(m.r, now-from)
				m.s.gates.openMember(m.r.id)
			}
		})
	}
}

// Stop kills the member: its connections are closed and dials are refused. It keeps
// its committed data.
func (m *Member) Stop() {
	m.s.alter(func(now time.Duration) {
		m.s.thaw(m.r, now)
		m.s.ens.stop(m.r)
	})
	m.syncListener()
}

// Start starts a member that was stopped, with the data that it has kept.
func (m *Member) Start() {
	m.s.alter(func(time.Duration) { m.r.stopped = false })
	m.syncListener()
}

// setTickTime is lab.SetTickTime.
func (m *Member) setTickTime(d time.Duration) {
	m.s.alter(func(time.Duration) {
		if !m.r.stopped || d < leastTick {
			panic(fmt.Sprintf("zktest: member %d cannot have a tick of %v now: it must be stopped, and the tick at least %v", m.r.id, d, leastTick))
		}
		m.s.opts.ticks[m.r.id] = d
	})
}

// Refuse makes the member refuse new connections, or accept them again. Existing
// connections are not affected.
func (m *Member) Refuse(refuse bool) {
	m.s.alter(func(time.Duration) { m.r.refusing = refuse })
	m.syncListener()
}

// delayStreams is lab.DelayStreams.
func (m *Member) delayStreams(down, up time.Duration) {
	m.s.alter(func(now time.Duration) { m.r.link.slow(down, up, now) })
}

// cutStreams is lab.CutStreams.
func (m *Member) cutStreams(down, up bool) {
	m.s.alter(func(time.Duration) { m.r.deaf, m.r.mute = down, up })
}

// holdForwards is lab.HoldForwards.
func (m *Member) holdForwards() (release func()) {
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
