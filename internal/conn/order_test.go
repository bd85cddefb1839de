// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/frames"
)

// A caller that leaves at the moment at which it gets its room returns that room.
func TestRoomGivenToACallerThatLeavesIsReturned(t *testing.T) {
	w := window{pace: new(pace)}
	require.Nil(t, w.join(maxUnanswered))
	leaves, stays := w.join(5), w.join(maxUnanswered)
	w.free(maxUnanswered)
	require.True(t, closed(leaves.ready))
	require.False(t, closed(stays.ready))
	w.giveUp(leaves)
	require.True(t, closed(stays.ready), "the next one gets it")
	require.Equal(t, maxUnanswered, w.used)
	w.giveUp(stays)
	require.Zero(t, w.used)

	require.Nil(t, w.join(maxUnanswered))
	first, second, third := w.join(5), w.join(6), w.join(7)
	w.giveUp(second)
	require.Equal(t, []*waiter{first, third}, w.waiters)
	w.close()
	w.giveUp(first)
	require.ErrorIs(t, w.ended(), errEnded)
	require.Nil(t, w.join(1), "a connection that has ended has no waiters")
}

// TestAPieceIsNoLongerThanItsFramesMayBe has heartbeats and other frames, which share the bytes that are written together.
func TestAPieceIsNoLongerThanItsFramesMayBe(t *testing.T) {
	frame := func(n int, mark byte) []byte { return slices.Repeat([]byte{mark}, n) }
	for name, c := range map[string]struct {
		beats, frames []int
		taken         []string // the marks of the frames of each piece
	}{
		"nothing":                         {nil, nil, nil},
		"small ones together":             {[]int{1, 1}, []int{2, 2}, []string{"bbff"}},
		"as many as fit":                  {[]int{1}, []int{maxPiece - 1, 1}, []string{"bf", "f"}},
		"a heartbeat before a long frame": {[]int{1}, []int{maxPiece, 1}, []string{"b", "f", "f"}},
		"a long frame alone":              {nil, []int{3 * maxPiece, 1, 1}, []string{"f", "ff"}},
		"long heartbeats":                 {[]int{maxPiece, 1}, []int{1}, []string{"b", "bf"}},
		"more heartbeats than fit":        {[]int{maxPiece, maxPiece, 1}, []int{1}, []string{"b", "b", "bf"}},
	} {
		o := &outbox{more: make(chan struct{}, 1)}
		for _, n := range c.frames {
			o.put(frame(n, 'f'))
		}
		for _, n := range c.beats {
			o.putBeat(frame(n, 'b'))
		}
		var taken []string
		for {
			piece := o.next(nil)
			if len(piece) == 0 {
				break
			}
			marks := ""
			for _, f := range piece {
				marks += string(f[:1])
			}
			taken = append(taken, marks)
		}
		require.Equal(t, c.taken, taken, name)
	}
	o := newOutbox(failedConn{})
	o.put([]byte("x"))
	o.flush()
	<-o.left
	o.put([]byte("y"))
	o.flush()
	require.Empty(t, o.next(nil), "nothing is kept for a connection that has ended")
	require.NoError(t, o.close())
}

// failedConn refuses every write.
type failedConn struct{ net.Conn }

func (failedConn) Write([]byte) (int, error)       { return 0, net.ErrClosed }
func (failedConn) SetReadDeadline(time.Time) error { return nil }
func (failedConn) Close() error                    { return nil }

// The oldest request that is not answered says since when the server is silent, in whatever order they are found.
func TestTheOldestRequestShowsSinceWhenAServerIsSilent(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Latest()
		_, waiting := l.Unanswered(s)
		require.False(t, waiting)
		began := time.Now()
		for i := range 50 {
			require.NoError(t, l.SendNow(s, Outgoing{Request: frames.Get("/a", false), By: newAsker()}))
			if i == 10 {
				_, _ = w.Write(words(frames.XidPing, frames.OpPing))
			}
			time.Sleep(time.Millisecond)
		}
		since, waiting := l.Unanswered(s)
		require.True(t, waiting)
		require.Equal(t, began, since)
	})
}

// Whoever sees that an attachment has ended sees the newest transaction of it, and the next one.
func TestAnAttachmentThatHasEndedIsComplete(t *testing.T) {
	s := NewSession(7, nil)
	for zxid := range int64(5000) {
		before, seen := s.Attachment(), make(chan int64)
		s.Saw(zxid)
		go func() { // ends with the attachment
			for !before.HasEnded() {
			}
			seen <- before.Seen()
		}()
		s.Reattach()
		require.Equal(t, zxid, <-seen)
		require.NotSame(t, before, s.Attachment())
		require.True(t, closed(before.Ended()))
		require.False(t, closed(s.Reattached()))
	}
}

// A listener that stops does not disturb an event that is being passed on.
func TestListenersChangeWhileAnEventIsPassedOn(t *testing.T) {
	var ls listeners
	var heard []string
	add := func(name string, then func()) *listener {
		added := &listener{func(*Session, frames.Event) {
			heard = append(heard, name)
			then()
		}}
		ls.change(func(all []*listener) []*listener { return append(all, added) })
		return added
	}
	var first *listener
	first = add("first", func() {
		ls.change(func(all []*listener) []*listener {
			return slices.DeleteFunc(all, func(other *listener) bool { return other == first })
		})
	})
	add("second", func() {})
	add("third", func() {})
	ls.notify(new(Session), frames.Event{})
	require.Equal(t, []string{"first", "second", "third"}, heard)
	ls.notify(new(Session), frames.Event{})
	ls.notify(nil, frames.Event{})
	require.Equal(t, []string{"first", "second", "third", "second", "third"}, heard)
}
