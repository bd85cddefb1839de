// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/digestmd5"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
)

func closed(ch <-chan struct{}) bool { return isClosed(ch) }

func TestALinkLearnsItsSessionFromTheWire(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := NewLink()
		s, changed := l.State()
		require.Nil(t, s)
		w := wire(t, l)
		w.greet(t, 0, 7)
		assert.True(t, closed(changed))
		s, _ = l.State()
		require.NotNil(t, s)
		assert.Equal(t, int64(7), s.ID)
		assert.Equal(t, term, s.Lease.Term(), "the timeout that was negotiated")
		assert.Same(t, s, l.Carried())
		assert.Same(t, s, l.Latest())
		assert.True(t, l.Carries(s))
	})
}

func TestASessionOutlivesItsConnection(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s, changed := l.State()
		again := s.Reattached()
		w.server.Close()
		_, err := w.Read(make([]byte, 1))
		require.Error(t, err)
		assert.True(t, closed(changed))
		assert.Nil(t, l.Carried())
		assert.True(t, l.Carries(s), "it is still the client's")
		assert.False(t, closed(again))
		assert.ErrorIs(t, l.LastError(), io.EOF)

		second := wire(t, l)
		second.greet(t, 7, 7)
		assert.Same(t, s, l.Carried())
		assert.True(t, closed(again))
		assert.False(t, closed(s.Reattached()), "the next time has not come")
	})
}

func TestAnotherSessionIDEndsTheSession(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Carried()
		w.Close()
		second := wire(t, l)
		second.greet(t, 7, 8)
		assert.True(t, closed(s.Over()))
		assert.False(t, s.HasExpired(), "its nodes may be there still")
		assert.False(t, l.Carries(s))
		assert.Equal(t, int64(8), l.Carried().ID)
	})
}

func TestARefusedSessionHasExpired(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Carried()
		w.Close()
		second := wire(t, l)
		_, _ = second.Write(connectRequest(7))
		require.NoError(t, second.says(greetingOf(0, 0)))
		assert.True(t, s.HasExpired())
		assert.Nil(t, l.Carried())
		assert.Same(t, s, l.Latest())
	})
}

// The client library does not close a connection on which it learns that its session has expired.
func TestAConnectionEndsWithAnExpiredSession(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		w.Close()
		second := wire(t, l)
		_, _ = second.Write(connectRequest(7))
		second.sessionAsked(t)
		require.NoError(t, second.says(greetingOf(0, 0)))
		select {
		case _, ok := <-second.frames:
			assert.False(t, ok, "the server sees its end")
		case <-time.After(term):
			assert.Fail(t, "the connection is open")
		}
		third := wire(t, l)
		third.greet(t, 0, 8)
		assert.Equal(t, int64(8), l.Carried().ID)
	})
}

func TestAnExpiredReplyEndsSessionAndConnection(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Carried()
		w.asks(1, frames.OpGetData)
		require.ErrorIs(t, w.says(replyOf(1, frames.CodeExpired, 1)), ErrSessionOver)
		assert.True(t, s.HasExpired())
		assert.Nil(t, l.Carried())
		assert.False(t, l.Carries(s))
	})
}

func TestALateConnectResponseIsIgnored(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := NewLink()
		w := wire(t, l)
		_, _ = w.Write(connectRequest(0))
		_, _, err := l.welcome(&proxy{}, 7, term, l.Now()) // on a connection that was replaced
		require.ErrorIs(t, err, net.ErrClosed)
		assert.Nil(t, l.Carried())
	})
}

func TestASessionThatWasGivenUpIsNotUsedAgain(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Carried()
		l.expire(s)
		w.Close()
		second := wire(t, l)
		_, _ = second.Write(connectRequest(7))
		id, zxid := second.sessionAsked(t)
		assert.Zero(t, id, "a new one is asked for")
		assert.Zero(t, zxid)
		require.ErrorIs(t, second.says(greetingOf(7, term)), ErrSessionOver, "a server that has it all the same")
		assert.Nil(t, l.Carried())
	})
}

// refused closes n connections after their connect requests, and returns the requested sessions.
func refused(t *testing.T, l *Link, n int) (asked []int64) {
	for range n {
		next := wire(t, l)
		_, _ = next.Write(connectRequest(7))
		id, _ := next.sessionAsked(t)
		asked = append(asked, id)
		next.server.Close()
		_, err := next.Read(make([]byte, 1))
		require.Error(t, err)
	}
	return asked
}

// A server that was restored from a backup closes the connections of clients that have seen a later zxid, and only of those.
func TestASessionThatServersRefuseWhileTheyServeOthersIsGivenUp(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Carried()
		w.Close()
		time.Sleep(2 * term) // the lease has run out
		assert.Equal(t, []int64{7, 7, 7, 7, 7, 7, 7, 0, 7}, refused(t, l, manyRefusals+3), "now and then another one")
		probe := wire(t, l)
		_, _ = probe.Write(connectRequest(7))
		id, _ := probe.sessionAsked(t)
		require.Zero(t, id)
		require.ErrorIs(t, probe.says(greetingOf(8, term)), errProbe)
		require.ErrorContains(t, l.LastError(), "without creating a session", "the probe is no failure")
		assert.Nil(t, l.Carried())
		assert.True(t, l.Carries(s), "the servers may have had an outage")
		assert.Equal(t, []int64{7, 7, 7, 7, 7, 7, 0}, refused(t, l, manyRefusals+1))
		wire(t, l).greet(t, 7, 9)
		assert.Equal(t, int64(9), l.Carried().ID)
		assert.True(t, s.IsOver())
		assert.Zero(t, l.refusals, "a server has answered")
	})
}

func TestASessionOutlastsAnOutageInWhichServersHangUp(t *testing.T) {
	for n := range 2 * manyRefusals {
		virtual(t, func(t *testing.T) {
			l, w := attached(t)
			s := l.Carried()
			w.Close()
			time.Sleep(2 * term)
			refused(t, l, n)
			next := wire(t, l)
			_, _ = next.Write(connectRequest(7))
			if id, _ := next.sessionAsked(t); id == 0 {
				require.ErrorIs(t, next.says(greetingOf(8, term)), errProbe)
				next = wire(t, l)
				_, _ = next.Write(connectRequest(7))
				id, _ := next.sessionAsked(t)
				require.Equal(t, int64(7), id)
			}
			require.NoError(t, next.says(greetingOf(7, term)))
			assert.Same(t, s, l.Carried())
		})
	}
}

func TestASessionEndsBeforeTheClientLibraryClosesIt(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Carried()
		w.asks(1, frames.OpGetData)
		assert.True(t, l.Carries(s))
		w.asks(2, frames.OpClose)
		assert.True(t, s.IsOver())
		assert.False(t, s.HasExpired(), "no server has said so")
		assert.Nil(t, l.Carried())
	})
}

func TestASessionThatMayExistIsRequestedHoweverOftenServersHangUp(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		w.Close()
		l.refusals = manyRefusals + 1
		l.session.Lease = fresh(t, l)
		next := wire(t, l)
		_, _ = next.Write(connectRequest(7))
		id, _ := next.sessionAsked(t)
		assert.Equal(t, int64(7), id)
	})
}

func TestListenersReceiveEventsUntilTheyStop(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		var first, second []string
		stop := l.Listen(func(_ *Session, e frames.Event) { first = append(first, e.Path) })
		l.Listen(func(s *Session, e frames.Event) {
			assert.Same(t, l.Carried(), s)
			assert.Equal(t, frames.NodeDeleted, e.Kind)
			second = append(second, e.Path)
		})
		w.hears = true
		require.NoError(t, w.says(eventOf("/a")))
		stop()
		stop()
		require.NoError(t, w.says(eventOf("/b")))
		assert.Equal(t, []string{"/a"}, first)
		assert.Equal(t, []string{"/a", "/b"}, second)
	})
}

// eventOf returns the event of a node's deletion.
func eventOf(path string) []byte {
	body := append(words(2, 3, int32(len(path)))[4:], path...)
	return replyOf(frames.XidEvent, 0, -1, body...)
}

func TestAttachedWaitsForASessionOrItsContext(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := NewLink()
		why := errors.New("no time left")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		_, err := l.Attached(ctx)
		require.ErrorIs(t, err, why)
		got := make(chan *Session, 1)
		go func() { // ends with the session
			s, _ := l.Attached(t.Context())
			got <- s
		}()
		w := wire(t, l)
		w.greet(t, 0, 7)
		assert.Same(t, l.Carried(), <-got)
	})
}

func TestALossIsSeenThoughTheSessionIsBackByThen(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s, changed := l.State()
		again := s.Reattached()
		lost := make(chan bool, 1)
		go func() { lost <- l.AwaitLoss(t.Context(), s, changed, again) }() // ends with the loss
		synctest.Wait()
		require.Empty(t, lost)
		w.Close()
		wire(t, l).greet(t, 7, 7)
		assert.True(t, <-lost)

		_, changed = l.State()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.False(t, l.AwaitLoss(ctx, s, changed, s.Reattached()), "nothing was lost")
	})
}

func TestUnansweredReturnsSinceWhenAServerIsSilent(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Carried()
		_, ok := l.Unanswered(s)
		assert.False(t, ok, "nothing was asked")
		time.Sleep(time.Second)
		asked := time.Now()
		w.asks(1, frames.OpGetData)
		time.Sleep(time.Second)
		w.asks(2, frames.OpGetData)
		since, ok := l.Unanswered(s)
		require.True(t, ok)
		assert.Equal(t, asked, since)
		w.hears = true
		require.NoError(t, w.says(eventOf("/a")))
		since, _ = l.Unanswered(s)
		assert.Equal(t, asked, since, "an event is no answer")
		_, ok = l.Unanswered(&Session{})
		assert.False(t, ok, "a session that is not carried")
	})
}

// A link can be so slow that the parts of a long reply, such as TLS records, arrive with long pauses.
func TestEachPartOfAnAnswerIsASignOfLife(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		asked := time.Now()
		w.asks(1, frames.OpGetData)
		w.asks(2, frames.OpGetData)
		heard := func() time.Time {
			since, ok := l.Unanswered(l.Carried())
			require.True(t, ok)
			return since
		}
		inParts := func(frame []byte, told func(part int)) {
			go func() { // ends when everything has arrived
				_, _ = io.Copy(io.Discard, io.LimitReader(w.proxy, int64(len(frame))))
			}()
			for i := range 4 {
				time.Sleep(time.Second)
				_, err := w.server.Write(frame[i*len(frame)/4 : (i+1)*len(frame)/4])
				require.NoError(t, err)
				synctest.Wait()
				told(i)
			}
		}
		w.hears = true
		inParts(eventOf("/"+strings.Repeat("a", 1000)), func(int) { assert.Equal(t, asked, heard(), "an event is no answer, however long") })
		inParts(replyOf(1, -101, 5, make([]byte, 1000)...), func(part int) { assert.Equal(t, time.Now(), heard(), "part %d", part) })
	})
}

func TestAbandonEndsTheConnectionOfThatSessionOnly(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Carried()
		l.Abandon(&Session{})
		w.hears = true
		require.NoError(t, w.says(eventOf("/a")))
		l.Abandon(s)
		_, err := w.Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.ErrClosedPipe)
	})
}

func TestAClosedLinkEndsItsSessionAndAcceptsNoConnection(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Carried()
		ours, theirs := net.Pipe()
		dial := l.Dialer(Dialing{Dial: func(string, string, time.Duration) (net.Conn, error) {
			l.Close()
			l.Close()
			return ours, nil
		}})
		_, err := dial("tcp", "server", 0)
		require.ErrorIs(t, err, errClosed)
		assert.True(t, s.IsOver())
		assert.False(t, s.HasExpired(), "the servers have not said so")
		_, err = w.Read(make([]byte, 1))
		require.Error(t, err)
		_, err = theirs.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "its connection was closed")
	})
}

func TestALoginThatIsSetEndsTheConnectionWithoutOne(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		_, changed := l.State()
		l.SetLogin(Digest(digestmd5.Credential{User: "joe", Password: "secret"}), 1)
		assert.True(t, closed(changed))
		assert.Nil(t, l.Carried())
		_, err := w.Read(make([]byte, 1))
		assert.Error(t, err)
	})
}

func TestAReplyEndsTheDenial(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		l.deny(nil, errRefused)
		require.True(t, l.IsDenied())
		w.asks(1, frames.OpGetData)
		require.NoError(t, w.says(replyOf(1, frames.CodeNoNode, 1)))
		assert.False(t, l.IsDenied())
	})
}

func TestErrorsAreShownEscaped(t *testing.T) {
	l := NewLink()
	assert.NoError(t, l.LastError())
	why := errors.New("bell \a")
	l.RecordError(why)
	assert.ErrorIs(t, l.LastError(), why)
	assert.NotContains(t, l.LastError().Error(), "\a")
}

func TestATickThatIsSetLateAppliesToTheSession(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, _ := attached(t)
		assumed := l.Carried().Lease.TickAssumed
		l.AddTick(3 * time.Second)
		assert.Contains(t, assumed(), "Options.TickTime (3s)")
		l.AddTick(time.Second)
		assert.Contains(t, assumed(), "Options.TickTime (3s)", "the longest counts")
		assert.True(t, l.CanProve(2*time.Second))
		assert.False(t, l.CanProve(40*time.Second))
		l.AddTick(0)
		assert.Contains(t, assumed(), "half the session timeout")
		l.RemoveTick(0)
		l.RemoveTick(3 * time.Second)
		assert.Contains(t, assumed(), "half the session timeout", "until the next connection")
		l.establish(l.Carried().ID, l.Carried().Lease.Term(), 0, l.Now())
		assert.Contains(t, assumed(), "Options.TickTime (1s)")
	})
}

func TestASessionKnowsItsEpochAndItsEnd(t *testing.T) {
	var none *Session
	assert.Nil(t, none.Over())
	s := NewSession(7, lease.New(lease.Clock(nil), time.Second, lease.TickOf(0)))
	s.wrote(5<<32 | 3)
	s.wrote(4<<32 | 9)
	assert.Equal(t, int32(5), s.Epoch(), "an answer that comes late changes nothing")
	assert.False(t, s.HasExpired())
	s.end(true)
	assert.True(t, s.HasExpired())
}
