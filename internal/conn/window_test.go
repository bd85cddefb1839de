// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/frames"
)

// reserving is a wait for space in the background.
type reserving struct{ done chan error }

func reserve(ctx context.Context, w *window, size int) reserving {
	r := reserving{make(chan error, 1)}
	go func() { r.done <- w.reserve(ctx, nil, size) }() // ends with ctx, with the window, or when there is room
	synctest.Wait()
	return r
}

func (r reserving) waits() bool { return len(r.done) == 0 }

func TestRoomIsGivenInOrder(t *testing.T) {
	const half = maxUnanswered / 2
	virtual(t, func(t *testing.T) {
		w := window{pace: new(pace)}
		ctx := t.Context()
		tooLong := reserve(ctx, &w, 3*maxUnanswered)
		require.False(t, tooLong.waits(), "nothing else is unanswered")
		first, large, small := reserve(ctx, &w, half), reserve(ctx, &w, maxUnanswered), reserve(ctx, &w, 1)
		require.True(t, first.waits())
		w.free(3 * maxUnanswered)
		synctest.Wait()
		require.False(t, first.waits())
		require.True(t, large.waits())
		require.True(t, small.waits(), "a small one must not delay a large one forever")
		w.free(half)
		synctest.Wait()
		require.False(t, large.waits())
		require.True(t, small.waits())
		w.free(maxUnanswered)
		synctest.Wait()
		require.False(t, small.waits())
		w.free(1)
		require.Zero(t, w.used)
	})
}

func TestAWaitForRoomEnds(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := window{pace: new(pace)}
		w.use(maxUnanswered)
		why := errors.New("the caller gives up")
		ctx, cancel := context.WithCancelCause(t.Context())
		gone, next := reserve(ctx, &w, maxUnanswered), reserve(t.Context(), &w, 1)
		cancel(why)
		require.ErrorIs(t, <-gone.done, why)
		synctest.Wait()
		require.True(t, next.waits())
		w.free(1)
		require.NoError(t, <-next.done, "the one that gave up takes up no room")
		over := make(chan struct{})
		close(over)
		require.ErrorIs(t, w.reserve(t.Context(), over, 1), ErrSessionOver)
		last := reserve(t.Context(), &w, 1)
		w.close()
		require.ErrorIs(t, <-last.done, errEnded)
		require.NoError(t, w.reserve(t.Context(), nil, maxUnanswered), "the connection tells its end")
	})
}

// In any order of requests and releases, the space in use is the reserved space, and no request waits while there is space for
// it.
func TestRoomIsNeverLost(t *testing.T) {
	for seed := range uint64(50) {
		virtual(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			w := window{pace: new(pace)}
			for range 100 {
				size := 1 + rng.IntN(maxUnanswered/2)
				hold, patience := time.Duration(rng.IntN(100))*time.Millisecond, time.Duration(rng.IntN(300))*time.Millisecond
				start := time.Duration(rng.IntN(1000)) * time.Millisecond
				go func() { // ends within seconds
					time.Sleep(start)
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					if w.reserve(ctx, nil, size) == nil {
						time.Sleep(hold)
						w.free(size)
					}
				}()
			}
			for range 100 {
				time.Sleep(10*time.Millisecond + time.Microsecond)
				synctest.Wait()
				w.mu.Lock()
				assert.LessOrEqual(t, w.used, maxUnanswered)
				assert.False(t, len(w.waiters) > 0 && w.fits(w.waiters[0].size), "seed %d", seed)
				w.mu.Unlock()
			}
			time.Sleep(10 * time.Second)
			synctest.Wait() // orders the reads below after the last goroutine's end
			require.Zero(t, w.used)
			require.Empty(t, w.waiters)
		})
	}
}

func TestHeartbeatsGoFirst(t *testing.T) {
	virtual(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		o := newOutbox(ours)
		defer o.close()
		large := func(first byte) []byte { return append([]byte{first}, make([]byte, maxPiece)...) }
		o.put(large('a'))
		o.flush()
		synctest.Wait() // it is being written
		o.put([]byte("b"))
		o.put([]byte("c"))
		o.put(large('d'))
		o.put([]byte("e"))
		o.putBeat([]byte("1"))
		o.putBeat([]byte("2"))
		o.flush()
		buf := make([]byte, 2*maxPiece)
		for _, want := range []string{"a", "12bc", "d", "e"} {
			n, err := theirs.Read(buf)
			require.NoError(t, err)
			require.Equal(t, want, string(bytes.TrimRight(buf[:n], "\x00")), "what is short is written together")
		}
	})
}

func TestRequestsWaitForRoomAndHeartbeatsDoNot(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := opened(t)
		l.pace.carried(maxUnanswered, time.Millisecond)
		s := l.Carried()
		request := func() frames.Request { return frames.SetData("/a", make([]byte, maxUnanswered*2/3), -1) }
		first := newAsker()
		require.NoError(t, l.Send(t.Context(), s, Outgoing{Request: request(), By: first}))
		number := xidOf(w.sent(t))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.Send(ctx, s, Outgoing{Request: request(), By: newAsker()}), context.DeadlineExceeded)
		require.NoError(t, l.SendBeat(t.Context(), s, Outgoing{Request: frames.Sync("/"), By: newAsker()}))
		require.Equal(t, int32(frames.OpSync), opOf(w.sent(t)))
		second := make(chan error, 1)
		go func() { second <- l.Send(t.Context(), s, Outgoing{Request: request(), By: newAsker()}) }() // ends with the first answer
		synctest.Wait()
		require.Empty(t, second)
		go w.server.Write(slices.Concat(replyOf(number, frames.CodeNoNode, 1), eventOf("/a"))) // ends when it was read
		w.hears = true
		_, err := w.Read(make([]byte, 100))
		require.NoError(t, err)
		require.NoError(t, <-second)

		third := make(chan error, 1)
		go func() { third <- l.Send(t.Context(), s, Outgoing{Request: request(), By: newAsker()}) }() // ends on the next connection
		synctest.Wait()
		w.Close()
		next := wire(t, l)
		next.greet(t, 7, 7)
		require.NoError(t, <-third, "another connection has room of its own")
		l.expire(s)
		require.ErrorIs(t, l.Send(t.Context(), s, Outgoing{Request: request(), By: newAsker()}), ErrSessionOver)
	})
}

// The client library's request loop waits, as for a slow connection, but not forever.
func TestTheClientLibraryWaitsForRoomUntilItsDeadline(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := opened(t)
		l.pace.carried(maxUnanswered, time.Millisecond)
		request := func() []byte {
			r := frames.SetData("/a", make([]byte, maxUnanswered*2/3), -1)
			r.Number(1)
			return r
		}
		write := func() time.Duration {
			start := time.Now()
			require.NoError(t, w.SetWriteDeadline(time.Now().Add(5*time.Second)))
			_, err := w.Write(request())
			require.NoError(t, err)
			require.NoError(t, w.SetWriteDeadline(time.Time{}))
			return time.Since(start)
		}
		require.Zero(t, write())
		require.Equal(t, 5*time.Second, write())
		start := time.Now()
		w.asks(frames.XidPing, frames.OpPing)
		require.Zero(t, time.Since(start), "a ping does not wait")
		time.AfterFunc(time.Second, func() { w.proxy.Close() })
		require.Equal(t, time.Second, write(), "the connection has ended")
		require.Nil(t, l.Carried())
	})
}
