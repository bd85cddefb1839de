// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/lab/wiring"
)

// inEnsemble runs a test on an ensemble without connections, in virtual time.
func inEnsemble(t *testing.T, opts Options, fn func(t *testing.T, e *ensemble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, opts.complete())
		e := newEnsemble(&opts, newClock())
		e.alter(func(now time.Duration) { e.reset(nil, now) })
		fn(t, e)
	})
}

// spend lets time pass, and everything that is due in it happen.
func spend(e *ensemble, d time.Duration) {
	for end := e.clock.now() + d; ; {
		next := min(e.clock.alarm, end)
		if wait := next - e.clock.now(); wait > 0 {
			time.Sleep(wait)
		}
		e.runDue(e.clock.now())
		if next == end {
			return
		}
	}
}

// do changes something of the ensemble.
func do(e *ensemble, fn func()) { e.alter(func(time.Duration) { fn() }) }

// login opens a session at a member.
func login(t *testing.T, e *ensemble, member int) *fakeConn {
	r := e.peers.members[member]
	g := &fakeConn{r: r, ready: true}
	r.admit(g)
	ask := &entry{c: g, connect: &connectCall{timeout: int32(term.Milliseconds())}, call: &call{}, by: requester{member: member, name: "a"}}
	e.router.submit(ask)
	require.NotNil(t, ask.sess)
	g.sess, g.ear.id = ask.sess, ask.sess.id
	r.attach(g.ear.id, g)
	return g
}

// write submits a create at the connection's member.
func (g *fakeConn) write(e *ensemble, path string) *entry {
	w := &entry{c: g, call: create(path), by: requester{session: g.sess, member: g.r.id}}
	e.router.submit(w)
	return w
}

// knows reports whether a member has a node.
func knows(e *ensemble, member int, path string) bool {
	return e.peers.members[member].tree.get(path) != nil
}

func TestTheFirstMemberLeadsAtOnce(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		assert.Same(t, e.peers.members[0], e.peers.leader)
		assert.Equal(t, int64(1), e.peers.epoch)
		assert.Equal(t, int64(1)<<32, e.proposer.zxid)
		for _, r := range e.peers.members {
			assert.True(t, r.serving)
		}
	})
}

func TestAWriteIsOnAllMembersThatFollow(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 1)
		do(e, func() { e.peers.members[2].cut = true })
		w := g.write(e, "/a")
		require.NotNil(t, w.txn)
		assert.Equal(t, CodeOK, w.txn.code)
		assert.True(t, w.ready(e.peers.members[1].tree.zxid), "its own member has applied it")
		assert.Equal(t, []bool{true, true, false}, []bool{knows(e, 0, "/a"), knows(e, 1, "/a"), knows(e, 2, "/a")})
		do(e, func() { e.peers.members[2].cut = false })
		assert.True(t, knows(e, 2, "/a"), "what was on the way arrives")
	})
}

func TestAWriteWithoutAQuorumWaitsForOne(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 0)
		do(e, func() { e.peers.members[1].cut, e.peers.members[2].cut = true, true })
		w := g.write(e, "/a")
		assert.Nil(t, w.txn)
		assert.Len(t, e.proposer.outstanding, 1)
		do(e, func() { e.peers.members[1].cut = false })
		require.NotNil(t, w.txn)
		assert.True(t, knows(e, 1, "/a"))
	})
}

func TestALeaderWithoutAQuorumIsDeposedAndItsProposalsAreLost(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 0)
		do(e, func() { e.peers.members[0].cut = true })
		w := g.write(e, "/a")
		spend(e, e.opts.syncLimit(0)-time.Millisecond)
		assert.Same(t, e.peers.members[0], e.peers.leader)
		spend(e, time.Millisecond+electionTime)
		require.Same(t, e.peers.members[2], e.peers.leader, "the others have elected one")
		assert.Equal(t, "aborted", g.ended)
		assert.Nil(t, w.txn)
		assert.Equal(t, int64(2), e.peers.epoch)
		do(e, func() { e.peers.members[0].cut = false })
		assert.True(t, e.peers.members[0].serving, "it joins again")
		assert.False(t, knows(e, 0, "/a"))
	})
}

func TestAStoppedLeaderIsReplacedAfterAnElection(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		do(e, func() { e.stop(e.peers.leader) })
		assert.Nil(t, e.peers.leader)
		spend(e, electionTime-1)
		assert.Nil(t, e.peers.leader)
		spend(e, 1)
		assert.Same(t, e.peers.members[2], e.peers.leader)
	})
}

func TestAFollowerGivesUpItsLeaderAfterSyncLimit(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		r := e.peers.members[1]
		do(e, func() { r.deaf = true })
		spend(e, e.opts.syncLimit(0)-1)
		assert.True(t, r.serving, "it serves old data until then")
		spend(e, 1)
		assert.False(t, r.serving)
		do(e, func() { r.deaf = false })
		assert.True(t, r.serving)
	})
}

func TestTwoShortLossesOfTheLeaderAreNotOneLongLoss(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		r := e.peers.members[1]
		for range 2 {
			do(e, func() { r.deaf = true })
			spend(e, e.opts.syncLimit(0)-1)
			assert.True(t, r.serving)
			do(e, func() { r.deaf = false })
			spend(e, time.Second)
		}
		assert.True(t, r.serving)
	})
}

func TestTransactionsLoggedByAQuorumAreNotLost(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 0)
		slow, away := e.peers.members[1], e.peers.members[2]
		e.alter(func(now time.Duration) {
			slow.link.slow(time.Hour, 0, now)
			away.cut = true
		})
		require.NotNil(t, g.write(e, "/a").txn)
		assert.False(t, knows(e, 1, "/a"), "the commit is under way")
		do(e, func() {
			e.stop(e.peers.leader)
			away.cut = false
		})
		spend(e, electionTime)
		assert.Same(t, slow, e.peers.leader, "it has it in its log")
		assert.True(t, knows(e, 1, "/a"))
		assert.True(t, knows(e, 2, "/a"))
	})
}

func TestAMemberThatBecomesLeaderFirstAppliesWhatItMissed(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 0)
		away := e.peers.members[2]
		do(e, func() { e.stop(away) })
		g.write(e, "/a")
		do(e, func() { e.stop(e.peers.leader) })
		e.alter(func(now time.Duration) {
			away.stopped = false
			e.replaceLeader(away, now)
		})
		assert.Same(t, away, e.peers.leader)
		assert.True(t, knows(e, 2, "/a"))
	})
}

func TestASessionEndsForAllAtOnce(t *testing.T) {
	inEnsemble(t, Options{Servers: 3, TickTime: tick}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 1)
		c := create("/e")
		c.flags = flagEphemeral
		e.router.submit(&entry{c: g, call: c, by: requester{session: g.sess, member: 1}})
		require.True(t, knows(e, 2, "/e"))
		spend(e, e.sessions.expiryOf(g.sess)-e.clock.now())
		assert.True(t, g.sess.ended)
		assert.Equal(t, "closed", g.ended)
		assert.False(t, knows(e, 2, "/e"))
		assert.Empty(t, e.sessions.all())
	})
}

func TestAFollowersTouchesReachTheLeaderWithThePings(t *testing.T) {
	inEnsemble(t, Options{Servers: 3, TickTime: tick}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 1)
		spend(e, 3*time.Second)
		e.router.touch(g.r, g, OpPing, e.clock.now())
		assert.Equal(t, 5*time.Second, e.sessions.expiryOf(g.sess), "the leader has not heard of it")
		spend(e, tick/2)
		e.listSessions()
		assert.Equal(t, 3500*time.Millisecond, g.sess.touched, "with the answer to a PING")
		spend(e, 4*time.Second)
		assert.False(t, g.sess.ended)
	})
}

func TestEachMemberHasItsOwnTick(t *testing.T) {
	inEnsemble(t, Options{Servers: 3, TickTimes: []time.Duration{4 * time.Second, 0, 500 * time.Millisecond}}, func(t *testing.T, e *ensemble) {
		for member, want := range map[int]time.Duration{0: 8 * time.Second, 1: 4 * time.Second, 2: time.Second} {
			assert.Equal(t, want, e.opts.negotiate(member, 1), "the shortest timeout is two ticks of the member")
			assert.Equal(t, 10*want, e.opts.negotiate(member, math.MaxInt32), "and the longest twenty")
		}
		g := login(t, e, 2)
		assert.Equal(t, 8*time.Second, e.sessions.expiryOf(g.sess), "sessions expire on the leader's ticks")
		spend(e, 3*time.Second)
		e.router.touch(g.r, g, OpPing, e.clock.now())
		spend(e, 900*time.Millisecond)
		e.listSessions()
		assert.Zero(t, g.sess.touched)
		spend(e, 100*time.Millisecond)
		e.listSessions()
		assert.Equal(t, 4*time.Second, g.sess.touched, "the leader sends a PING twice per tick of its own")
		do(e, func() { e.peers.members[0].cut = true })
		e.alter(func(now time.Duration) { e.replaceLeader(e.peers.members[2], now) })
		assert.Equal(t, 250*time.Millisecond, e.courier.half)
		assert.Equal(t, 500*time.Millisecond, e.sessions.tick)
		assert.Equal(t, 4*time.Second, e.peers.members[0].former.sessions.tick, "a former leader has its own")
	})
}

func TestASessionThatMovedMayNotWriteWhereItWas(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 1)
		back := &entry{c: g, connect: &connectCall{session: g.sess.id, passwd: g.sess.passwd}, by: requester{member: 2}}
		e.router.submit(back)
		require.Same(t, g.sess, back.sess)
		w := g.write(e, "/a")
		require.NotNil(t, w.txn)
		assert.Equal(t, CodeSessionMoved, w.txn.code)
		assert.True(t, w.moved())
	})
}

func TestAFormerLeaderAnswersSyncsAndNoWrites(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 0)
		do(e, func() { e.peers.members[0].cut = true })
		e.alter(func(now time.Duration) { e.replaceLeader(e.peers.members[1], now) })
		sync := &entry{c: g, call: &call{op: OpSync}, by: requester{session: g.sess, member: 0}}
		e.router.submit(sync)
		assert.True(t, sync.decided, "it believes that it leads")
		w := g.write(e, "/a")
		late := &entry{c: g, call: &call{op: OpSync}, by: requester{session: g.sess, member: 0}}
		e.router.submit(late)
		assert.False(t, w.decided)
		assert.True(t, late.ready(0), "to another's sync a write that waits is nothing")
	})
}

// sync submits a sync at the connection's member.
func (g *fakeConn) sync(e *ensemble) *entry {
	s := &entry{c: g, call: &call{op: OpSync}, by: requester{session: g.sess, member: g.r.id}}
	e.router.submit(s)
	return s
}

func TestALeaderThatLagsIsBehindItsFollowers(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		leader, far := login(t, e, 0), login(t, e, 1)
		do(e, func() { leader.r.setLag(time.Second, e.clock.now()) })
		w := leader.write(e, "/a")
		assert.Equal(t, []bool{false, true, true}, []bool{knows(e, 0, "/a"), knows(e, 1, "/a"), knows(e, 2, "/a")})
		assert.False(t, w.ready(leader.r.tree.zxid), "its client waits")
		assert.True(t, leader.sync(e).ready(leader.r.tree.zxid), "its clients' syncs are as reads")
		assert.True(t, far.sync(e).ready(far.r.tree.zxid), "those of others are behind what they have")
		assert.Equal(t, CodeNodeExists, far.write(e, "/a").txn.code, "it decides by what it has committed")
		assert.NotNil(t, e.peers.truth().get("/a"))
		do(e, func() { leader.r.setLag(0, e.clock.now()) })
		assert.True(t, w.ready(leader.r.tree.zxid))
		assert.Nil(t, leader.r.ahead)
	})
}

func TestALeaderThatNoLongerLagsAppliesInOrder(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 0)
		r := g.r
		r.setLag(2*time.Second, e.clock.now())
		g.write(e, "/a")
		time.Sleep(time.Second)
		r.lag = 0
		g.write(e, "/b")
		assert.False(t, knows(e, 0, "/b"), "not before what came first")
		spend(e, time.Second)
		assert.True(t, knows(e, 0, "/a") && knows(e, 0, "/b"))
		assert.Nil(t, r.ahead)
		g.write(e, "/c")
		assert.True(t, knows(e, 0, "/c"), "at once, as ever")
	})
}

func TestTransactionsThatALeaderHasNotAppliedAreNotLost(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 0)
		do(e, func() {
			g.r.setLag(time.Hour, e.clock.now())
			e.stop(e.peers.members[2])
		})
		g.write(e, "/a")
		do(e, func() { e.peers.members[2].stopped = false })
		assert.True(t, knows(e, 2, "/a"), "who joins gets it as well")
		do(e, func() { e.stop(g.r) })
		spend(e, electionTime)
		require.NotSame(t, g.r, e.peers.leader)
		assert.NotNil(t, e.peers.leader.tree.get("/a"))
		assert.True(t, knows(e, 0, "/a"), "it was in its log")
	})
}

func TestCommittedTransactionsAreInTheLeadersOwnLog(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 0)
		do(e, func() { e.peers.members[2].cut = true })
		g.write(e, "/a")
		spend(e, e.opts.syncLimit(0))
		do(e, func() { e.stop(e.peers.members[0]); e.stop(e.peers.members[1]) })
		do(e, func() { e.peers.members[2].cut, e.peers.members[0].stopped = false, false })
		spend(e, electionTime)
		require.Same(t, e.peers.members[0], e.peers.leader, "the other has not seen all")
		assert.True(t, knows(e, 2, "/a"))
	})
}

func TestAFormerLeaderStillAppliesLate(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 0)
		g.r.setLag(time.Second, e.clock.now())
		w := g.write(e, "/a")
		do(e, func() { g.r.cut = true })
		e.alter(func(now time.Duration) { e.replaceLeader(e.peers.members[1], now) })
		assert.False(t, knows(e, 0, "/a"))
		spend(e, time.Second)
		assert.True(t, w.ready(g.r.tree.zxid), "it was committed")
	})
}

func TestASyncOfALeadersOwnClientNeedsNoQuorum(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		leader, far := login(t, e, 0), login(t, e, 1)
		do(e, func() { e.peers.members[1].mute, e.peers.members[2].cut = true, true })
		leader.write(e, "/a")
		require.Len(t, e.proposer.outstanding, 1)
		e.proposer.arrive(&entry{c: far, call: &call{op: OpSync}, by: requester{session: far.sess, member: 1}})
		assert.Len(t, e.proposer.outstanding, 2, "a follower's waits for what was proposed before")
		assert.True(t, leader.sync(e).ready(leader.r.tree.zxid))
	})
}

func TestContainersAreReapedByTheLeader(t *testing.T) {
	inEnsemble(t, Options{lab: wiring.Options{ContainerCheck: time.Minute}}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 0)
		c := create("/c")
		c.op, c.flags = OpCreateContainer, flagContainer
		e.router.submit(&entry{c: g, call: c, by: requester{session: g.sess, member: 0}})
		g.write(e, "/c/x")
		do(e, func() { e.proposer.intrude([]Step{{Op: OpDelete, Path: "/c/x"}}) })
		spend(e, time.Minute-1)
		assert.True(t, knows(e, 0, "/c"))
		spend(e, 1)
		assert.False(t, knows(e, 0, "/c"))
	})
}

func TestContainersThatNobodyUsesAreReaped(t *testing.T) {
	inEnsemble(t, Options{lab: wiring.Options{ContainerCheck: time.Minute, UnusedContainers: 5 * time.Minute}}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 0)
		c := create("/c")
		c.op, c.flags = OpCreateContainer, flagContainer
		e.router.submit(&entry{c: g, call: c, by: requester{session: g.sess, member: 0}})
		spend(e, 5*time.Minute)
		assert.True(t, knows(e, 0, "/c"))
		spend(e, time.Minute)
		assert.False(t, knows(e, 0, "/c"))
	})
}

func TestASnapshotIsTheStateOfEveryMember(t *testing.T) {
	inEnsemble(t, Options{Servers: 3}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 1)
		g.write(e, "/a")
		snap := e.snapshot()
		g.write(e, "/b")
		e.alter(func(now time.Duration) {
			e.peers.dropClients()
			e.reset(&snap, now)
		})
		for i := range 3 {
			assert.True(t, knows(e, i, "/a"))
			assert.False(t, knows(e, i, "/b"))
		}
		require.Len(t, e.sessions.all(), 1)
		assert.Equal(t, g.sess.id, e.sessions.all()[0].id)
		assert.Equal(t, int64(2), e.peers.epoch, "an epoch after the snapshot's")
	})
}

func TestFourLetterWordsDescribeEachMember(t *testing.T) {
	inEnsemble(t, Options{Servers: 3, Observers: 1}, func(t *testing.T, e *ensemble) {
		word := func(member int, name string) string {
			w := wordReport{opts: e.opts, ens: e, r: e.peers.members[member], address: "127.0.0.1:7"}
			return w.answer(name)
		}
		for member, mode := range []string{"leader", "follower", "observer"} {
			assert.Contains(t, word(member, "srvr"), "Mode: "+mode+"\n")
		}
		assert.Contains(t, word(0, "mntr"), "zk_synced_followers\t1\n")
		assert.Contains(t, word(0, "mntr"), "zk_learners\t2\n")
		assert.Contains(t, word(0, "conf"), "clientPort=7\n")
		do(e, func() { e.stop(e.peers.members[1]) })
		assert.Contains(t, word(1, "srvr"), "not currently serving")
		assert.Equal(t, "imok", word(1, "ruok"))
	})
}
