// SPDX-License-Identifier: Apache-2.0

// Package lab has the faults and views of a zktest.Server that only this project's tests need: they
// show what the guarantees assume of a server's inside. Package zktest does not promise them.
package lab

import (
	"time"

	"github.com/zklock-go/zklock/internal/lab/wiring"
	"github.com/zklock-go/zklock/zktest"
)

// Options are the options that package zktest does not have.
type Options = wiring.Options

// With returns o with the options l.
func With(o zktest.Options, l Options) zktest.Options {
	*Of(&o) = l
	return o
}

// Of returns the options in o that package zktest does not have, to be changed.
func Of(o *zktest.Options) *Options { return wiring.OptionsOf(o) }

// CutStreams interrupts or restores each direction between the member and its leader:
// while down is set, nothing arrives that the leader sends; while up is set, nothing
// that the member sends. The connection ends SyncLimit ticks later, as with CutOff. If
// a direction is restored before that, what was sent arrives late.
func CutStreams(m *zktest.Member, down, up bool) {
	wiring.CutStreams(m, down, up)
}

// DelayStreams makes the member's connection to its leader slow. Messages from the leader
// (commits, PINGs, replies to syncs) arrive after down; messages from the member (its
// clients' writes and syncs, and replies to PINGs) arrive after up. Only the replies to
// PINGs tell the leader that the clients' sessions are active. The order of messages does
// not change. Logging and quorum agreement are not delayed. A leader has no such
// connection: while the member leads, DelayStreams has no effect.
func DelayStreams(m *zktest.Member, down, up time.Duration) {
	wiring.DelayStreams(m, down, up)
}

// HoldForwards holds back the requests of a follower's clients until release is called:
// writes, syncs and new sessions wait in the follower's queue instead of going to the
// leader. Replies to the leader's PINGs and requests to re-attach a session overtake them.
// Waiting requests outlive the connection they came on.
func HoldForwards(m *zktest.Member) (release func()) {
	return wiring.HoldForwards(m)
}

// SetTickTime changes the member's tick, as a new zoo.cfg does: see Options.TickTimes. The
// member must be stopped, and uses the new tick from Start on. SetTickTime panics if the member
// is running, or if d is below two milliseconds.
func SetTickTime(m *zktest.Member, d time.Duration) {
	wiring.SetTickTime(m, d)
}

// StandStill stops the member together with its clock, as a virtual machine that is moved or snapshotted, until resume is
// called. To a leader, no time has passed then: its pings and the ends of sessions come later by as much, and none is overdue.
func StandStill(m *zktest.Member) (resume func()) {
	return wiring.StandStill(m)
}

// Shows reports whether clients of the member can no longer read a state from before the transaction zxid. This also holds
// for a member that serves no clients: it starts again with its leader's data.
func Shows(m *zktest.Member, zxid int64) bool {
	return wiring.Shows(m, zxid)
}

// StopExpirer stops the leader's expirer between collecting the sessions that have
// expired and closing them, until resume is called. Collected sessions are still
// served, and reconnecting clients get them back, but they are closed nevertheless.
// A new leader starts without collected sessions.
func StopExpirer(s *zktest.Server) (resume func()) {
	return wiring.StopExpirer(s)
}

// LimitUpload sets how many bytes per second the client with that name (see DialFrom) can send to the
// servers. Some megabytes more are on the way, as in the buffers of a kernel; beyond that the client
// has to wait. Zero means no limit, which is the default.
func LimitUpload(s *zktest.Server, clientName string, bytesPerSecond int) {
	wiring.LimitUpload(s, clientName, bytesPerSecond)
}

// SetChildCounter sets a node's internal count of created children, which is the
// next sequence number below it. It sets the counter without a transaction, on the
// leader and on all members that are up to date; the others learn it from the next
// create. SetChildCounter panics if the node does not exist.
func SetChildCounter(s *zktest.Server, path string, creates int32) {
	wiring.SetChildCounter(s, path, creates)
}

// HostOf returns the address from which the client with this DialFrom name connects, in 127.1.0.0/16. Clients that use Dial
// connect from 127.0.0.1.
func HostOf(s *zktest.Server, clientName string) string {
	return wiring.HostOf(s, clientName)
}

// Waited returns how long a request had waited for the earlier requests of its connection when an interceptor was called, on a server
// whose messages have a latency.
func Waited(r *zktest.Request) time.Duration {
	return wiring.Waited(r)
}
