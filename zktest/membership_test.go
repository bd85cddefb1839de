// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// peersOf is an ensemble whose first member leads and whose others follow it.
func peersOf(t *testing.T, opts Options) *membership {
	require.NoError(t, opts.complete())
	m := &membership{epoch: 1}
	k := newClock()
	for i := range opts.Servers {
		r := newReplica(i, &opts, k, &bell{}, rand.New(rand.NewPCG(1, 1)))
		r.clear()
		r.serving, r.epoch = true, 1
		m.members = append(m.members, r)
	}
	m.leader = m.members[0]
	return m
}

func TestAQuorumIsAMajorityOfTheVotingMembers(t *testing.T) {
	for _, c := range []struct{ servers, observers, quorum int }{{1, 0, 1}, {2, 0, 2}, {3, 0, 2}, {4, 0, 3}, {5, 0, 3}, {5, 2, 2}, {3, 2, 1}} {
		m := peersOf(t, Options{Servers: c.servers, Observers: c.observers})
		assert.Equal(t, c.quorum, m.quorum(), "%+v", c)
		assert.True(t, m.canCommit())
	}
}

func TestMembersReachEachOtherUnlessCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		hurt               func(leader, follower *replica)
		hears, heard, lead bool // lead: the leader of three can commit with the other follower
	}{
		"all well":                {func(_, _ *replica) {}, true, true, true},
		"a follower cut off":      {func(_, f *replica) { f.cut = true }, false, false, true},
		"a follower frozen":       {func(_, f *replica) { f.frozen = true }, false, false, true},
		"a follower stopped":      {func(_, f *replica) { f.stopped = true }, false, false, true},
		"a deaf follower":         {func(_, f *replica) { f.deaf = true }, false, true, true},
		"a mute follower":         {func(_, f *replica) { f.mute = true }, true, false, true},
		"a follower out of place": {func(_, f *replica) { f.serving = false }, false, false, true},
		"a follower of another":   {func(_, f *replica) { f.epoch = 7 }, false, false, true},
		"the leader cut off":      {func(l, _ *replica) { l.cut = true }, false, false, false},
		"the leader frozen":       {func(l, _ *replica) { l.frozen = true }, true, false, false}, // what is under way still arrives
		"the leader stopped":      {func(l, _ *replica) { l.stopped = true }, false, false, false},
	} {
		m := peersOf(t, Options{Servers: 3})
		l, f := m.members[0], m.members[1]
		c.hurt(l, f)
		assert.Equal(t, c.hears, m.reachedByLeader(f), name)
		assert.Equal(t, c.heard, m.reachesLeader(f), name)
		assert.Equal(t, c.hears && c.heard, m.inTouch(f), name)
		assert.Equal(t, c.lead, m.canCommit(), name)
		m.openLinks(0)
		assert.Equal(t, !c.hears, f.link.down.closed, name)
		assert.Equal(t, !c.heard, f.link.up.closed, name)
	}
}

func TestTheMemberWithTheNewestZxidIsElected(t *testing.T) {
	m := peersOf(t, Options{Servers: 5, Observers: 1})
	m.leader = nil
	a, b, c, d, watching := m.members[0], m.members[1], m.members[2], m.members[3], m.members[4]
	a.logged, b.logged, c.logged, d.logged, watching.logged = 1, 3, 3, 2, 9
	assert.Same(t, c, m.candidate(), "of two that have seen the same the last")
	c.deaf = true
	assert.Same(t, b, m.candidate())
	b.cut = true
	assert.Nil(t, m.candidate(), "two of four with a vote")
	b.cut, b.frozen = false, false
	assert.Same(t, b, m.candidate())
}

func TestAnObserverHasNoVote(t *testing.T) {
	m := peersOf(t, Options{Servers: 3, Observers: 1})
	observer := m.members[2]
	assert.False(t, m.mayVote(observer))
	assert.Equal(t, "observer", m.mode(observer))
	assert.Equal(t, 2, m.votes())
	assert.Equal(t, 2, m.learners())
	observer.stopped = true
	assert.True(t, m.canCommit())
	observer.stopped, m.members[1].stopped = false, true
	assert.False(t, m.canCommit(), "the observer cannot replace a vote")
}

func TestAStandaloneServerNeedsNoVote(t *testing.T) {
	m := peersOf(t, Options{})
	m.members[0].cut, m.members[0].frozen = true, true
	assert.True(t, m.mayVote(m.members[0]))
	m.members[0].stopped = true
	assert.False(t, m.mayVote(m.members[0]))
	assert.Equal(t, "standalone", m.mode(m.members[0]))
}

func TestTheStateShownIsTheLeadersOrTheNewest(t *testing.T) {
	m := peersOf(t, Options{Servers: 3})
	m.members[2].tree.zxid = 9
	assert.Same(t, m.members[0].tree, m.truth())
	m.leader = nil
	assert.Same(t, m.members[2].tree, m.truth())
}

func TestASessionIsFoundAtItsOwnerOrAtItsLastServer(t *testing.T) {
	m := peersOf(t, Options{Servers: 3})
	sess := &session{id: 5, owner: 1}
	assert.Equal(t, -1, m.whereIs(sess))
	m.members[2].attached[5] = &conn{}
	assert.Equal(t, 2, m.whereIs(sess))
	m.members[1].attached[5] = &conn{}
	assert.Equal(t, 1, m.whereIs(sess))
}

func TestStreamsKeepTheirOrderAndLoseNothing(t *testing.T) {
	var s stream[int]
	assert.True(t, s.idle())
	s.setDelay(10, 0)
	s.send(1, 0)
	s.setDelay(2, 1)
	s.send(2, 1)
	assert.Equal(t, time.Duration(3), s.next(), "what is under way is hurried")
	s.setClosed(true, 2)
	assert.Equal(t, never, s.next())
	s.send(3, 4)
	s.setClosed(false, 9)
	assert.Equal(t, time.Duration(9), s.next(), "not before it is open again")
	assert.Equal(t, []int{1, 2, 3}, []int{s.take(), s.take(), s.take()})
	assert.Equal(t, never, s.next())
	s.send(4, 20)
	s.send(5, 21)
	assert.Equal(t, time.Duration(23), s.first(func(n int) bool { return n == 5 }))
	assert.Equal(t, never, s.first(func(n int) bool { return n == 6 }))
}

func TestTheTouchTableIsSentWithTheReplyToAPing(t *testing.T) {
	var l link
	a, b := &session{id: 1}, &session{id: 2}
	l.answerPing(0)
	assert.Equal(t, never, l.up.next(), "nothing to say")
	l.touch(a, 5, func() bool { return false })
	l.touch(b, 6, func() bool { return true })
	assert.True(t, l.wantsPing())
	l.answerPing(1)
	assert.Equal(t, map[*session]time.Duration{a: 5}, l.up.take().touched, "b's touch was lost")
	l.touch(b, 6, func() bool { return true })
	assert.Equal(t, map[*session]time.Duration{b: 6}, l.touched, "but not two in a row")
}

func TestHeldRequestsAreSentInOrderAfterTheLastHold(t *testing.T) {
	var l link
	first, second, back := &entry{}, &entry{}, &entry{}
	assert.False(t, l.keep(first, false), "nothing is held")
	l.hold()
	l.hold()
	assert.True(t, l.keep(first, false))
	assert.False(t, l.keep(back, true), "taking a session back does not wait")
	assert.True(t, l.keep(second, false))
	assert.Empty(t, l.unhold())
	assert.Equal(t, []*entry{first, second}, l.unhold())
	l.hold()
	l.slow(3, 4, 0)
	l.reset()
	assert.Equal(t, 1, l.holds)
	assert.Equal(t, [2]time.Duration{3, 4}, [2]time.Duration{l.down.delay, l.up.delay}, "a new connection is as slow")
}

func TestTheLogOutlivesTheConnection(t *testing.T) {
	var l link
	for zxid := int64(1); zxid <= 3; zxid++ {
		l.down.send(downFrame{txn: &txn{zxid: zxid}}, 0)
	}
	l.down.send(downFrame{}, 0)
	assert.Equal(t, int64(3), l.newest())
	assert.Len(t, l.inLog(2), 2)
	assert.Equal(t, time.Duration(0), l.deadline())
	var pings link
	pings.down.send(downFrame{}, 0)
	pings.up.send(upFrame{}, 0)
	assert.Equal(t, never, pings.deadline(), "nobody is woken for a PING")
	assert.Zero(t, pings.newest())
}
