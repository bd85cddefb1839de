package zklock

import (
	"encoding/binary"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that ends a session refuses its transactions before it says so: with a code of OK, and the reason in the
// first result. To take that for a sign of life would make the lease longer than the session.
func TestARefusedTransactionOfADeadSessionIsNoSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink()
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
		s, _ := l.state()
		require.NotNil(t, s)

		end := []byte{0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff}
		multi := func(xid int32, result ...int32) error {
			conn.Write(words(xid, opMulti))
			time.Sleep(time.Second)
			answer := words(xid, 0, 1, 0, result[0])[4:]
			answer = append(answer, 0) // not the end
			answer = binary.BigEndian.AppendUint32(answer, uint32(result[1]))
			if result[0] == opError {
				answer = binary.BigEndian.AppendUint32(answer, uint32(result[1]))
			}
			return wire.reply(append(answer, end...))
		}
		for xid := int32(1); xid < 9; xid++ {
			require.NoError(t, multi(xid, opCheck, 0))
		}
		require.False(t, s.isOver())
		require.Positive(t, s.lease.remaining())

		require.Error(t, multi(9, opError, codeExpired), "some servers leave the connection open")
		require.True(t, s.isOver(), "the session is over")
	})
}
