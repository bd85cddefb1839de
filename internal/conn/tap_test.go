package conn

import (
	"encoding/binary"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/digestmd5"
	"github.com/zklock-go/zklock/internal/frames"
)

// words is a frame of big-endian int32s behind its length.
func words(ws ...int32) []byte {
	data := binary.BigEndian.AppendUint32(nil, uint32(4*len(ws)))
	for _, w := range ws {
		data = binary.BigEndian.AppendUint32(data, uint32(w))
	}
	return data
}

// A server that ends a session refuses its transactions before it says so: with a code of OK, and the reason in the
// first result. To take that for a sign of life would make the lease longer than the session.
func TestARefusedTransactionOfADeadSessionIsNoSignOfLife(t *testing.T) {
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
		conn, err := l.adopt(ours)
		require.NoError(t, err)
		defer conn.Close()
		wire := conn.(*tap)

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
			return wire.reply(append(answer, end...))
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

func TestWhatNobodyAskedForEndsTheConnection(t *testing.T) {
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
		require.Equal(t, int32(7), s.Epoch(), "a ping says nothing of writes")
		_, ok := l.Unanswered(s)
		require.False(t, ok)
	})
}

func TestAServerThatAnswersLaterPingsOnlyIsLeft(t *testing.T) {
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

// A server that reads no more must not keep the client from the others.
func TestALoginThatNobodyReadsEndsWithTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLink()
		l.SetLogin(digestmd5.Credential{User: "joe", Password: "secret"}, 1)
		ours, theirs := net.Pipe()
		defer theirs.Close()
		conn, err := l.adopt(ours)
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

// The client library reads its own answers only, and few are its own. What is said to others is no silence either.
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
