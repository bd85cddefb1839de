// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/lab/wiring"
)

func TestAGateHoldsBackOneClientOrOneMember(t *testing.T) {
	g := newGates()
	assert.Nil(t, g.between("a", 0))
	g.shutClient("a")
	g.shutClient("a")
	client := g.between("a", 0)
	require.NotNil(t, client)
	assert.Equal(t, client, g.ofClient("a"))
	assert.Nil(t, g.between("b", 0))
	g.shutMember(0)
	member := g.between("b", 0)
	require.NotNil(t, member)
	assert.Nil(t, g.between("b", 1))
	g.openClient("a")
	<-client
	assert.Equal(t, member, g.between("a", 0), "the member is still frozen")
	g.openMember(0)
	g.openMember(0)
	<-member
	assert.Zero(t, g.count.Load())
}

func TestClientsAndMembersHaveAddresses(t *testing.T) {
	opts := Options{Servers: 3}
	require.NoError(t, opts.complete())
	n := newNetwork(&opts)
	n.setAddress(2, "127.0.0.1:4711")
	for address, want := range map[string]int{
		"233.252.0.1:2181": 0, "233.252.0.2:2181": 1, "zk2:2181": 1, "127.0.0.1:4711": 2, "233.252.0.3:2181": 2, "zk3:2181": 2, "elsewhere:1": 0,
	} {
		member, _ := n.route("a", address)
		assert.Equal(t, want, member, address)
	}
	assert.Equal(t, "127.0.0.1", n.hostOf(""))
	a, b := n.hostOf("a"), n.hostOf("b")
	assert.NotEqual(t, a, b)
	assert.Equal(t, a, n.hostOf("a"))
	_, first := n.route("a", "zk1:2181")
	_, second := n.route("a", "zk1:2181")
	assert.NotEqual(t, first, second, "each connection has a port of its own")
}

func TestLatenciesAddUpAndAreRepeatable(t *testing.T) {
	jitter := func(r *rand.Rand) time.Duration { return time.Duration(r.IntN(1000)) }
	far := func(_ *rand.Rand, client string, member int) time.Duration {
		return map[string]time.Duration{"a": time.Hour}[client] + time.Duration(member)*time.Minute
	}
	drawn := func(opts Options) []time.Duration {
		require.NoError(t, opts.complete())
		n := newNetwork(&opts)
		return []time.Duration{n.delay("a", 0), n.delay("b", 1), n.delay("b", 0)}
	}
	assert.Equal(t, []time.Duration{0, 0, 0}, drawn(Options{}))
	assert.Equal(t, []time.Duration{time.Hour, time.Minute, 1}, drawn(Options{lab: wiring.Options{LatencyOf: far}}), "never nothing at all")
	first := drawn(Options{Latency: jitter, lab: wiring.Options{LatencyOf: far}})
	assert.Equal(t, first, drawn(Options{Latency: jitter, lab: wiring.Options{LatencyOf: far}}))
	assert.NotEqual(t, first, drawn(Options{Latency: jitter, Seed: 1, lab: wiring.Options{LatencyOf: far}}))
	assert.Greater(t, first[0], time.Hour)
}

func TestTheClockFiresAtTheEarliestTime(t *testing.T) {
	k := newClock()
	assert.False(t, k.rings(time.Hour))
	k.arm(5)
	k.arm(3)
	k.arm(4)
	<-k.wake
	assert.False(t, k.rings(2))
	assert.True(t, k.rings(3))
	assert.False(t, k.rings(time.Hour), "until it is set again")
	before := k.now()
	k.skip(time.Hour)
	assert.GreaterOrEqual(t, k.now()-before, time.Hour)
	assert.WithinDuration(t, time.Now().Add(time.Hour), k.wall(), time.Minute)
}

func TestABellWakesAllItsWaiters(t *testing.T) {
	var b bell
	b.ring()
	first, second := b.next(), b.next()
	assert.Equal(t, first, second)
	b.ring()
	<-first
	assert.NotEqual(t, first, b.next())
}

func TestTheJournalKeepsLinesForLater(t *testing.T) {
	j := journal{wake: make(chan struct{}, 1)}
	j.note("a")
	j.note("b")
	<-j.wake
	assert.Len(t, j.takeAll(), 2)
	assert.Empty(t, j.takeAll())
}

func TestTrafficIsCountedByType(t *testing.T) {
	c := newTraffic()
	c.count(OpPing)
	c.count(OpPing)
	c.count(OpSync)
	c.in.Add(7)
	counts := c.counts()
	assert.Equal(t, map[Op]int{OpPing: 2, OpSync: 1}, counts)
	c.reset()
	assert.Len(t, counts, 2, "what was returned is the caller's")
	assert.Empty(t, c.counts())
	assert.Zero(t, c.in.Load())
}

func TestTheFirstVerdictCountsAndAllInterceptorsSeeTheRequest(t *testing.T) {
	var in interceptors
	asked := 0
	show := func() *Request { asked++; return &Request{Op: OpCreate} }
	assert.Equal(t, Pass, in.judge(show))
	assert.Zero(t, asked, "nothing is shown to nobody")
	saw := 0
	verdict := func(v Verdict) func() {
		return in.add(func(*Request) Verdict { saw++; return v })
	}
	verdict(Pass)
	remove := verdict(LoseReply)
	verdict(DropBefore)
	assert.Equal(t, LoseReply, in.judge(show))
	assert.Equal(t, 3, saw)
	remove()
	remove()
	assert.Equal(t, DropBefore, in.judge(show))
}

func TestConsecutiveRequestsOfATypeCanFail(t *testing.T) {
	var in interceptors
	judge := func(r Request) Verdict { return in.judge(func() *Request { return &r }) }
	left := in.next(2, LoseReply, []Op{OpCreate, OpDelete})
	assert.Equal(t, Pass, judge(Request{Op: OpSetData}))
	assert.Equal(t, LoseReply, judge(Request{Op: OpDelete}))
	assert.Equal(t, 1, left())
	assert.Equal(t, LoseReply, judge(Request{Op: OpMulti, Ops: []Op{OpCheck, OpCreate}}))
	assert.Zero(t, left())
	assert.Equal(t, Pass, judge(Request{Op: OpCreate}))
	assert.Empty(t, in.current(), "nothing is left of it")
	any := in.next(1, DropReply, nil)
	assert.Equal(t, Pass, judge(Request{Op: OpPing}))
	assert.Equal(t, 1, any())
	assert.Equal(t, DropReply, judge(Request{Op: OpSync}))
}

func TestAHookSeesTransactionsUntilItIsRemoved(t *testing.T) {
	var h txnHooks
	var saw []int64
	h.tell(&txn{zxid: 1})
	hook := h.add(func(shown Txn) { saw = append(saw, shown.Zxid) })
	h.tell(&txn{zxid: 2})
	h.remove(hook)
	h.tell(&txn{zxid: 3})
	assert.Equal(t, []int64{2}, saw)
}
