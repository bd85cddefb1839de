// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
)

// at returns the instant that is the given time after an arbitrary one.
func at(d time.Duration) lease.Instant {
	base := time.Unix(1000, 0)
	return lease.Instant{Mono: base.Add(d)}
}

// Pings are answered in their order, and other requests by their numbers, each once.
func TestARequestIsPendingUntilItsReply(t *testing.T) {
	pn := newPending()
	pn.addPing(at(1))
	pn.add(7, sentRequest{sent: at(2), op: frames.OpGetData})
	pn.addPing(at(3))
	for _, c := range []struct {
		number int32
		sent   lease.Instant
		ok     bool
	}{
		{frames.XidPing, at(1), true}, {7, at(2), true}, {7, lease.Instant{}, false}, {8, lease.Instant{}, false},
		{frames.XidPing, at(3), true}, {frames.XidPing, lease.Instant{}, false},
	} {
		r, ok := pn.take(c.number)
		assert.Equal(t, c.ok, ok, c.number)
		assert.Equal(t, c.sent, r.sent, c.number)
	}
	_, ok := new(pending).take(7)
	require.False(t, ok, "the connection has ended")
}

// Large requests are counted while they are pending.
func TestLargePendingRequestsAreCounted(t *testing.T) {
	pn := newPending()
	pn.add(1, sentRequest{room: largeRequest - 1})
	require.Zero(t, pn.large)
	pn.add(2, sentRequest{room: largeRequest})
	pn.add(3, sentRequest{room: 2 * largeRequest})
	require.Equal(t, 2, pn.large)
	for i, large := range []int{2, 1, 0} {
		_, ok := pn.take(int32(i) + 1)
		require.True(t, ok)
		require.Equal(t, large, pn.large)
	}
}

// After many requests at a time, their memory is returned once none is pending.
func TestThePendingRequestsOfABurstTakeNoMemoryAfterIt(t *testing.T) {
	for _, n := range []int32{64, 65} {
		pn := newPending()
		for i := range n {
			pn.add(i, sentRequest{})
		}
		require.Equal(t, int(n), pn.most)
		for i := range n {
			pn.take(i)
		}
		require.Equal(t, n == 64, pn.most == 64, "the map of at most 64 is kept")
		pn.add(1, sentRequest{})
		require.Len(t, pn.requests, 1)
	}
}

// A request is stuck if a later ping was answered, and two thirds of a session timeout are over.
func TestAPendingRequestBehindAnAnsweredPingIsStuck(t *testing.T) {
	pn := newPending()
	pn.add(1, sentRequest{sent: at(time.Second)})
	for name, c := range map[string]struct {
		ping, now time.Duration
		stuck     bool
	}{
		"late, and the ping was sent after it":      {2 * time.Second, time.Second + 2*term/3 + 1, true},
		"late, and the ping was sent before it":     {0, time.Second + 2*term/3 + 1, false},
		"late, and the ping was sent together":      {time.Second, time.Second + 2*term/3 + 1, false},
		"not late, and the ping was sent after it":  {2 * time.Second, time.Second + 2*term/3, false},
		"not late, and the ping was sent before it": {0, time.Second + 2*term/3, false},
	} {
		assert.Equal(t, c.stuck, pn.isStuck(at(c.ping), at(c.now), term), name)
	}
	require.False(t, new(pending).isStuck(at(0), at(time.Hour), term))
}

// A server is silent since the oldest pending request, or since it last sent something.
func TestTheOldestPendingRequestShowsTheSilence(t *testing.T) {
	pn := newPending()
	_, ok := pn.silentSince()
	require.False(t, ok)
	pn.add(1, sentRequest{sent: at(5)})
	pn.add(2, sentRequest{sent: at(4)})
	pn.addPing(at(3))
	pn.addPing(at(6))
	for _, want := range []struct {
		since lease.Instant
		taken int32
	}{{at(3), frames.XidPing}, {at(4), 2}, {at(5), 1}, {at(6), frames.XidPing}} {
		since, ok := pn.silentSince()
		require.True(t, ok)
		require.Equal(t, want.since.Mono, since)
		pn.take(want.taken)
	}
	_, ok = pn.silentSince()
	require.False(t, ok)
	pn.add(3, sentRequest{sent: at(7)})
	pn.heard = at(9).Mono
	since, ok := pn.silentSince()
	require.True(t, ok)
	require.Equal(t, at(9).Mono, since)
}
