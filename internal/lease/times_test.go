// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The timeouts are short and long, with a tick and without one.
func TestTheTimesOfALeaseFollowFromItsTimeoutAndTick(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ timeout, tick, half, lag, pause, settling, patience time.Duration }{
		{400 * ms, 0, 100 * ms, 115 * ms, 20 * ms, 100 * ms, 80 * ms},
		{400 * ms, 40 * ms, 20 * ms, 31 * ms, 20 * ms, 100 * ms, 80 * ms},
		{2000 * ms, 400 * ms, 200 * ms, 250 * ms, 100 * ms, 500 * ms, 400 * ms},
		{4000 * ms, 0, 1000 * ms, 1090 * ms, 100 * ms, 1000 * ms, 800 * ms},
		{40_000 * ms, 4000 * ms, 2000 * ms, 2140 * ms, 100 * ms, 2000 * ms, 8000 * ms},
	} {
		l := New(Clock(nil), c.timeout, TickOf(c.tick))
		require.Equal(t, []time.Duration{c.half, c.lag, c.pause, c.settling, c.patience}, []time.Duration{l.halfTick(), l.lag(), l.pause(), l.settling(), l.patience()}, "%+v", c)
		require.Equal(t, max(c.timeout/20, ms), l.Glance())
	}
}

func TestTheTickThatIsAssumedIsNamed(t *testing.T) {
	l := New(Clock(nil), 10*time.Second, TickOf(0))
	require.Equal(t, "a server's tickTime may be longer than half the session timeout (5s), so set Options.TickTime", l.TickAssumed())
	l.SetTick(TickOf(2 * time.Second))
	require.Equal(t, "a server's tickTime may be longer than Options.TickTime (2s)", l.TickAssumed())
}

// A request that is also a touch of another heartbeat has failed only if its own step has failed.
func TestARequestThatIsATouchOfAnotherHeartbeatFailsByItsOwnStep(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		require.Equal(t, Touch, l.next(false).Step)
		own := &beat{from: l.now().Mono}
		l.run.beats = append(l.run.beats, own)
		req := Request{Step: Quorum, aim: proof{l.now()}}
		l.run.send(&req, l.now())
		require.Contains(t, req.beats, own)
		require.Zero(t, own.steps)
		l.proven = l.now()
		require.True(t, l.Done(req), "it was sent to prove a touch, and has")
	})
}
