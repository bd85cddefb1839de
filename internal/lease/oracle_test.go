// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An oracle is another prover for the same argument. It follows every touch of a session, not only those of heartbeats, through the
// steps of a proof, so it knows at least as much as a Run.
type oracle struct {
	l *Lease // for its times and its proof; its run is not used

	last                    Instant // when the newest touch was sent
	pairs, synced, upstream claims  // touches after two touches, a sync, and another sync
	heard, since            Instant
}

// A claim says that the touch that was sent at a certain time had reached a step at the time by.
type claim struct {
	sent Instant
	by   time.Time
}

// claims are ordered by both of their times.
type claims []claim

func (c *claims) add(sent Instant, by time.Time) {
	if n := len(*c); n == 0 || sent.Mono.After((*c)[n-1].sent.Mono) {
		*c = append(*c, claim{sent, by})
	}
}

// newest returns the newest touch that had reached this step at the time t.
func (c claims) newest(t time.Time) (touch Instant, ok bool) {
	for _, cl := range c {
		if !cl.by.After(t) {
			touch, ok = cl.sent, true
		}
	}
	return touch, ok
}

func (o *oracle) witness(sent, got Instant, of Evidence) {
	l := o.l
	if of != OfServer {
		o.hear(sent, got)
	}
	if of == OfLeader {
		if touch, ok := o.synced.newest(sent.Mono.Add(-l.pause())); ok {
			o.upstream.add(touch, got.Mono)
		}
		if touch, ok := o.pairs.newest(sent.Mono.Add(-l.lag())); ok {
			o.synced.add(touch, got.Mono)
		}
	}
	if touch, ok := o.upstream.newest(sent.Mono); of == OfQuorum && ok {
		if l.leftOf(l.proven, o.since) > 0 || !o.since.Mono.Add(l.settling()).After(sent.Mono) {
			l.prove(touch, l.halfTick())
		}
	}
	if !sent.Mono.Before(o.last.Mono) {
		if !o.last.Mono.IsZero() {
			o.pairs.add(o.last, got.Mono)
		}
		o.last = sent
	}
}

func (o *oracle) hear(sent, got Instant) {
	touch, ok := o.upstream.newest(sent.Mono)
	if !ok || !touch.Mono.After(o.heard.Mono) {
		return
	}
	if o.l.leftOf(o.heard, got) <= 0 {
		o.since = got
	}
	o.heard = touch
}

// A history is a random history of a client: its heartbeats, the program's requests, replies that are late, refused or lost,
// connections that end, and a machine that sleeps.
type history struct {
	*rand.Rand
	now    Instant
	past   [8]Instant
	l      *Lease
	run    *Run
	o      *oracle
	flying []flying // requests without a reply, in the order in which they were sent
}

type flying struct {
	run   *Run
	of    Evidence
	req   *Request // nil for a request of the program
	sent  Instant
	lost  bool
	wrong bool // answered with an error, which is a touch alone
}

func newHistory(seed uint64, term, tick time.Duration) *history {
	h := &history{Rand: rand.New(rand.NewPCG(seed, 1)), now: Instant{time.Unix(1e6, 0), time.Unix(2e6, 0)}}
	for i := range h.past {
		h.past[i] = h.now
	}
	clock := func() Instant { return h.now }
	h.l = New(clock, term, TickOf(tick))
	h.run = h.l.Created(h.now, 0)
	h.o = &oracle{l: New(clock, term, TickOf(tick)), heard: h.now, since: h.now}
	h.o.l.proven = h.now
	return h
}

func (h *history) one(in int) bool { return h.IntN(in) == 0 }

func (h *history) send(of Evidence, req *Request) {
	sent := h.now
	if req == nil && h.one(10) { // it was queued for a while, and overtaken
		sent = h.past[h.IntN(len(h.past))]
	}
	h.flying = append(h.flying, flying{h.run, of, req, sent, h.one(200), h.one(20)})
}

func (h *history) answer() {
	i := 0
	if len(h.flying) == 0 {
		return
	}
	if h.one(20) {
		i = h.IntN(len(h.flying))
	}
	f := h.flying[i]
	h.flying = append(h.flying[:i:i], h.flying[i+1:]...)
	if f.wrong {
		f.of = OfServer
	}
	if !f.lost {
		if f.run == h.l.run {
			h.o.witness(f.sent, h.now, f.of)
		}
		f.run.Witness(f.sent, f.of)
	}
	if f.req != nil {
		h.l.Done(*f.req)
	}
}

func (h *history) reconnect() {
	asked := h.now
	h.now = h.now.Add(time.Duration(h.Int64N(int64(h.l.timeout / 8))))
	term := h.l.timeout
	if h.one(10) {
		term = term * 9 / 10
	}
	h.run = h.l.TakenBack(asked, term, 0)
	h.o.l.timeout = min(h.o.l.timeout, term)
	h.o.last, h.o.pairs, h.o.synced, h.o.upstream = Instant{}, nil, nil, nil
	h.o.heard, h.o.since = Instant{}, Instant{}
	h.o.upstream.add(asked, h.now.Mono)
}

func (h *history) step() {
	h.past[h.IntN(len(h.past))] = h.now
	switch n := h.IntN(1000); {
	case n < 450:
		if req, wait := h.l.Next(h.one(2)); req.Step != Nothing {
			h.send(brings[req.Step], &req)
		} else if len(h.flying) == 0 {
			h.now = h.now.Add(wait)
		}
	case n < 750:
		h.answer()
	case n < 900:
		h.now = h.now.Add(time.Duration(h.Int64N(int64(h.l.timeout / 100))))
	case n < 990:
		h.send(Evidence(h.IntN(3)), nil)
	case n < 993:
		h.now = h.now.Add(time.Duration(h.Int64N(int64(2 * h.l.timeout))))
	case n < 996:
		h.now = h.now.Add(1)
		h.now.Wall = h.now.Wall.Add(time.Duration(h.Int64N(int64(h.l.timeout / 2)))) // the machine has slept
	case n < 999:
		h.reconnect()
	}
}

// A heartbeat follows one touch. So in every history the lease knows no more than a prover that follows all touches.
func TestALeaseKnowsNoMoreThanAProverThatFollowsEveryTouch(t *testing.T) {
	histories, proofs, equal := 500, 0, 0
	if testing.Short() {
		histories = 100
	}
	for seed := range histories {
		term := []time.Duration{2, 4, 10, 30}[seed%4] * time.Second
		tick := []time.Duration{0, 200 * time.Millisecond, 2 * time.Second}[seed%3]
		h := newHistory(uint64(seed), term, tick)
		for range 2000 {
			before := h.l.proven
			h.step()
			require.LessOrEqual(t, h.l.proven.Mono.Sub(h.o.l.proven.Mono), time.Duration(0), "seed %d: proven", seed)
			require.LessOrEqual(t, h.l.Remaining(), h.o.l.Remaining(), "seed %d: remaining", seed)
			require.LessOrEqual(t, h.run.heard.Mono.Sub(h.o.heard.Mono), time.Duration(0), "seed %d: heard", seed)
			require.False(t, h.l.leftOf(h.run.heard, h.now) > 0 && h.run.since.Mono.Before(h.o.since.Mono), "seed %d: since", seed)
			if h.l.proven != before {
				proofs++
				if h.l.proven == h.o.l.proven {
					equal++
				}
			}
		}
	}
	t.Logf("%d histories, %d proofs; in %d the other prover knew no more", histories, proofs, equal)
	require.Greater(t, proofs, 10*histories)
}
