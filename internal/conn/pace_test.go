// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/frames"
)

func TestASlowConnectionHasLessRoom(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := window{pace: new(pace)}
		w.setSlice(100 * time.Millisecond)
		require.True(t, w.tryReserve(100<<10))
		require.True(t, w.tryReserve(100<<10))
		require.False(t, w.tryReserve(100<<10), "nothing is known of the connection yet")
		time.Sleep(100 * time.Millisecond)
		w.answered(100 << 10) // 1000 KiB a second
		assert.Equal(t, 100<<10, w.pace.fits(100*time.Millisecond, maxUnanswered))
		time.Sleep(10 * time.Millisecond)
		w.answered(100 << 10)
		assert.Equal(t, maxUnanswered*1000/1024, w.pace.fits(100*time.Millisecond, maxUnanswered), "counted from the reply before")

		time.Sleep(time.Hour)
		require.True(t, w.tryReserve(100<<10))
		time.Sleep(10 * time.Millisecond)
		w.answered(100 << 10)
		assert.Equal(t, maxUnanswered*1000/1024, w.pace.fits(100*time.Millisecond, maxUnanswered), "an idle time does not count")
	})
}

func TestALargeRequestWaitsForTheLeaseWhileANodeIsKept(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Carried()
		time.Sleep(term / 2)
		wait := func(ctx context.Context, size int) time.Duration {
			began := time.Now()
			_ = l.awaitLease(ctx, s, w.proxy, size)
			return time.Since(began)
		}
		assert.Zero(t, wait(t.Context(), largeRequest), "no node is kept")
		s.Lease.Next(true)
		assert.Zero(t, wait(t.Context(), largeRequest-1), "it is small")
		ctx, cancel := context.WithTimeout(t.Context(), term/10)
		defer cancel()
		assert.Equal(t, term/10, wait(ctx, largeRequest))
		require.ErrorIs(t, l.awaitLease(ctx, s, w.proxy, largeRequest), context.DeadlineExceeded)
		assert.LessOrEqual(t, wait(t.Context(), largeRequest), term*4/10, "then the lease has run out")
		assert.Zero(t, wait(t.Context(), largeRequest))
	})
}

// The client library connects again when its write has returned.
func TestALargeRequestDoesNotWaitForTheLeaseOnAConnectionThatHasEnded(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Carried()
		s.Lease.Next(true)
		time.Sleep(term / 2)
		began := time.Now()
		time.AfterFunc(term/10, func() { w.gone(io.EOF) })
		require.ErrorIs(t, l.awaitLease(t.Context(), s, w.proxy, largeRequest), errEnded)
		assert.LessOrEqual(t, time.Since(began), term*11/100)
	})
}

func TestAServerMayBeSilentForLongerWhileALargeRequestIsOnItsWay(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, _ := attached(t)
		s := l.Carried()
		size := make([]byte, largeRequest)
		require.NoError(t, l.SendNow(s, Outgoing{Request: frames.Create("/a", size, 0, nil), By: newAsker()}))
		time.Sleep(term / 4)
		since, ok := l.Unanswered(s)
		require.True(t, ok)
		left := time.Until(since.Add(s.Lease.Patience()))
		assert.InDelta(t, s.Lease.Remaining()-left, term*22/100, float64(time.Microsecond), "until that much of the lease remains")
		time.Sleep(term * 6 / 10)
		since, _ = l.Unanswered(s)
		assert.Less(t, time.Until(since.Add(s.Lease.Patience())), time.Duration(0))
	})
}
