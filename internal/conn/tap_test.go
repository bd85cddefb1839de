package conn

import (
	"encoding/binary"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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
