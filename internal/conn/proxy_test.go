// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/digestmd5"
	"github.com/zklock-go/zklock/internal/frames"
)

// words returns a frame of big-endian int32s after its length.
func words(ws ...int32) []byte {
	data := binary.BigEndian.AppendUint32(nil, uint32(4*len(ws)))
	for _, w := range ws {
		data = binary.BigEndian.AppendUint32(data, uint32(w))
	}
	return data
}

// A server that ends a session refuses its transactions before it reports the end: with the code OK, and the reason in the first
// result. If this counted as a sign of life, the lease would be longer than the session.
//
//zklock:promise P2.12
func TestARefusedTransactionOfADeadSessionIsNotASignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLink()
		ours, theirs := net.Pipe()
		defer theirs.Close()
		go func() { // ends with the pipe
			buf := make([]byte, 1024)
			for {
				if _, err := theirs.Read(buf); err != nil {
					return
				}
			}
		}()
		conn, err := adopt(l, ours)
		require.NoError(t, err)
		defer conn.Close()
		wire := conn.(*proxy)

		conn.Write(words(0, 0, 0, 0))                                                                 // the connection request
		require.NoError(t, wire.welcome(append(words(0, 10_000, 0, 7, 16)[4:], make([]byte, 16)...))) // session 7 for 10 s
		s, _ := l.State()
		require.NotNil(t, s)

		end := []byte{0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff}
		multi := func(xid int32, result ...int32) error {
			conn.Write(words(xid, frames.OpMulti))
			time.Sleep(time.Second)
			answer := words(xid, 0, 1, 0, result[0])[4:]
			answer = append(answer, 0) // not the end
			answer = binary.BigEndian.AppendUint32(answer, uint32(result[1]))
			if result[0] == frames.OpError {
				answer = binary.BigEndian.AppendUint32(answer, uint32(result[1]))
			}
			return wire.reply(append(answer, end...), false)
		}
		for xid := int32(1); xid < 9; xid++ {
			require.NoError(t, multi(xid, frames.OpCheck, 0))
		}
		require.False(t, s.IsOver())
		require.Positive(t, s.Lease.Remaining())

		require.Error(t, multi(9, frames.OpError, frames.CodeExpired), "some servers leave the connection open")
		require.True(t, s.IsOver(), "the session is over")
	})
}

func TestARequestOnABrokenConnectionDoesNotFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, w := attached(t)
		w.server.Close()
		n, err := w.Write(words(1, frames.OpGetData))
		require.NoError(t, err, "it shows in Read")
		require.Equal(t, 12, n)
		_, err = w.Read(make([]byte, 1))
		require.Error(t, err)
	})
}

func TestAnUnexpectedFrameEndsTheConnection(t *testing.T) {
	for name, frame := range map[string][]byte{
		"an answer to no request":  replyOf(5, 0, 1),
		"an answer to no ping":     replyOf(frames.XidPing, 0, 1),
		"half a head":              framed([]byte{0, 0, 0}),
		"an event without a path":  replyOf(frames.XidEvent, 0, -1),
		"a frame of no length":     {0xff, 0xff, 0xff, 0xff},
		"a body that is cut short": replyOf(1, 0, 1, 0, 0),
	} {
		synctest.Test(t, func(t *testing.T) {
			l, w := attached(t)
			w.asks(1, frames.OpGetData)
			require.ErrorIs(t, w.says(frame), frames.ErrMalformed, name)
			require.Nil(t, l.Carried(), name)
			require.True(t, l.Carries(l.Latest()), "%s: the session may live", name)
		})
	}
}

// listingOf returns a reply with n children whose names have the given length.
func listingOf(xid int32, n, length int) []byte {
	one := append(binary.BigEndian.AppendUint32(nil, uint32(length)), bytes.Repeat([]byte("x"), length)...)
	body := append(binary.BigEndian.AppendUint32(nil, uint32(n)), bytes.Repeat(one, n)...)
	return replyOf(xid, 0, 1, append(body, make([]byte, 68)...)...)
}

// A directory with very many children, or with very long names, must fail only the call that lists it, because others share the
// connection.
//
//zklock:promise P8.5
func TestALongReplyEndsNoConnection(t *testing.T) {
	for name, c := range map[string]struct{ children, length int }{
		"many children": {frames.MaxNames + 1, 1},
		"long names":    {1<<16 + 1, 1 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, w := opened(t)
				w.asks(78, frames.OpGetChildren2)
				number := xidOf(w.sent(t))
				go w.server.Write(listingOf(number, c.children, c.length)) // ends when it was read
				got := make([]byte, len(listingOf(78, c.children, c.length)))
				_, err := io.ReadFull(w, got)
				require.NoError(t, err)
				require.True(t, bytes.Equal(listingOf(78, c.children, c.length), got), "the program gets what it has asked for")

				ours, next := newAsker(), newAsker()
				require.NoError(t, l.SendNow(l.Carried(), Outgoing{Request: frames.Children("/", false), By: ours}))
				require.NoError(t, l.SendNow(l.Carried(), Outgoing{Request: frames.Get("/", false), By: next}))
				w.asks(frames.XidPing, frames.OpPing)
				number = xidOf(w.sent(t))
				go w.server.Write(slices.Concat(listingOf(number, c.children, c.length), replyOf(number+1, frames.CodeNoNode, 1), replyOf(frames.XidPing, 0, 1))) // ends when it was read
				n, err := w.Read(got)
				require.NoError(t, err)
				require.Equal(t, replyOf(frames.XidPing, 0, 1), got[:n])
				<-ours.done
				require.ErrorIs(t, ours.err, frames.ErrTooLong)
				<-next.done
				require.ErrorIs(t, next.err, zk.ErrNoNode)
				require.NotNil(t, l.Carried())
			})
		})
	}
}

func TestAnswersAreGivenToTheirRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Carried()
		w.asks(1, frames.OpDelete)
		w.asks(frames.XidPing, frames.OpPing)
		w.asks(frames.XidPing, frames.OpPing)
		require.NoError(t, w.says(replyOf(frames.XidPing, 0, 1)))
		require.NoError(t, w.says(replyOf(1, frames.CodeNoNode, 7<<32|1)))
		require.Equal(t, int32(7), s.Epoch(), "a write was answered")
		require.NoError(t, w.says(replyOf(frames.XidPing, 0, 9<<32)))
		require.Equal(t, int32(7), s.Epoch(), "a ping does not show writes")
		_, ok := l.Unanswered(s)
		require.False(t, ok)
	})
}

func TestTheClientLeavesAServerThatAnswersLaterPingsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, w := attached(t)
		w.asks(1, frames.OpGetData)
		time.Sleep(term * 2 / 3)
		w.asks(frames.XidPing, frames.OpPing)
		require.NoError(t, w.says(replyOf(frames.XidPing, 0, 1)), "it may still come")
		time.Sleep(time.Nanosecond)
		w.asks(frames.XidPing, frames.OpPing)
		require.ErrorContains(t, w.says(replyOf(frames.XidPing, 0, 1)), "pings")
	})
}

// A slow server answers a ping late. A request that was sent after that ping is answered after it, however old it has become.
func TestAServerThatAnswersAnEarlierPingLateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := attached(t)
		w.asks(frames.XidPing, frames.OpPing)
		w.asks(1, frames.OpGetData)
		w.sent(t)
		number := xidOf(w.sent(t))
		time.Sleep(term * 9 / 10)
		require.NoError(t, w.says(replyOf(frames.XidPing, 0, 1)))
		go w.server.Write(replyOf(number, frames.CodeNoNode, 1)) // ends when it was read
		_, err := w.Read(make([]byte, 100))
		require.NoError(t, err)
		require.NotNil(t, l.Carried())
	})
}

// A server that stops reading must not keep the client from the others.
func TestALoginThatIsNotReadEndsWithTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLink()
		l.SetLogin(Digest(digestmd5.Credential{User: "joe", Password: "secret"}), 1)
		ours, theirs := net.Pipe()
		defer theirs.Close()
		conn, err := adopt(l, ours)
		require.NoError(t, err)
		defer conn.Close()
		go func() { // ends with the pipe
			theirs.Read(make([]byte, 1024))
			theirs.Write(words(0, 10_000, 0, 7, 16, 0, 0, 0, 0)) // session 7 for 10 s
		}()
		conn.Write(words(0, 0, 0, 0)) // the connection request
		start := time.Now()
		_, err = conn.Read(make([]byte, 1024))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.LessOrEqual(t, time.Since(start), 3*time.Second)
		require.False(t, l.IsDenied(), "nobody has refused anything")
	})
}

// The client library reads only its own replies, and few are its own. Replies to others must not count as silence, either.
func TestAServerThatAnswersUsIsNotSilentForTheClientLibrary(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		require.NoError(t, w.SetReadDeadline(time.Now().Add(5*time.Second)))
		read := make(chan error, 1)
		go func() { // ends with the deadline
			_, err := w.Read(make([]byte, 1))
			read <- err
		}()
		long := framed(make([]byte, 100))
		for range 10 {
			time.Sleep(4 * time.Second)
			_, err := w.server.Write(long[:10])
			require.NoError(t, err)
			long = long[10:]
			synctest.Wait() // the write returns when the bytes are read, before the client records them
			since := time.Now()
			w.asks(1, frames.OpPing)
			heard, ok := l.Unanswered(l.Carried())
			require.True(t, ok)
			require.Equal(t, since, heard, "it sends a long answer")
		}
		began := time.Now()
		require.ErrorIs(t, <-read, os.ErrDeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}
