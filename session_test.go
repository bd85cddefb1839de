package zklock

import (
	"encoding/binary"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// frame is a length-prefixed frame of big-endian int32s.
func frame(words ...int32) []byte {
	data := binary.BigEndian.AppendUint32(nil, uint32(4*len(words)))
	for _, w := range words {
		data = binary.BigEndian.AppendUint32(data, uint32(w))
	}
	return data
}

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

		conn.Write(frame(0, 0, 0, 0))                               // the connection request
		wire.in.feed(frame(0, 10_000, 0, 7), replyHead, wire.reply) // session 7 for 10 s
		s, _ := l.state()
		require.NotNil(t, s)

		multi := func(xid int32, result ...int32) {
			conn.Write(frame(xid, opMulti))
			time.Sleep(time.Second)
			answer := frame(append([]int32{xid, 0, 1, 0}, result[0])...)
			answer = append(answer, 0) // not the end
			answer = binary.BigEndian.AppendUint32(answer, uint32(result[1]))
			binary.BigEndian.PutUint32(answer, uint32(len(answer)-4))
			wire.in.feed(answer, replyHead, wire.reply)
		}
		for xid := int32(1); xid < 9; xid++ {
			multi(xid, 13, 0) // a check that holds
		}
		require.False(t, s.isOver())
		require.Positive(t, s.lease.remaining())

		multi(9, opError, codeExpired)
		require.True(t, s.isOver(), "the session is over")
	})
}
