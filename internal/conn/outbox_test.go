// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// slowConn reports each write, which waits until it is open.
type slowConn struct {
	net.Conn
	wrote bytes.Buffer
	open  chan struct{}
}

func (c *slowConn) Write(p []byte) (int, error) {
	<-c.open
	return c.wrote.WriteString(string(p) + "|")
}

func (c *slowConn) Close() error { return nil }

// Frames that are queued during a write are written together, a heartbeat first.
func TestFramesThatWaitAreWrittenTogether(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := &slowConn{open: make(chan struct{})}
		o := newOutbox(c)
		o.flush()
		o.put([]byte("ab"))
		o.flush()
		synctest.Wait()
		o.put([]byte("cd"))
		o.put([]byte("ef"))
		o.putBeat([]byte("!"))
		o.flush()
		close(c.open)
		synctest.Wait()
		require.Equal(t, "ab|!cdef|", c.wrote.String())
		o.put([]byte("k"))
		o.flush()
		synctest.Wait()
		require.Equal(t, "ab|!cdef|k|", c.wrote.String())
		require.NoError(t, o.close())
	})
}

// Senders share connections of each kind. Each frame arrives once and in one piece, and the frames of
// each sender in their order, whether the reader is fast or slow.
func TestFramesOfManySendersKeepTheirOrder(t *testing.T) {
	for name, pair := range map[string]func(t *testing.T) (ours, theirs net.Conn){
		"TCP":  func(t *testing.T) (_, _ net.Conn) { return connected(t, "tcp", "127.0.0.1:0") },
		"Unix": func(t *testing.T) (_, _ net.Conn) { return connected(t, "unix", t.TempDir()+"/s") },
		"pipe": func(t *testing.T) (_, _ net.Conn) { return net.Pipe() },
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := pair(t)
			defer theirs.Close()
			o := newOutbox(ours)
			const senders, frames = 4, 300
			for who := range byte(senders) {
				go func() { // ends with its last frame; the reader below waits for all frames
					random := rand.New(rand.NewPCG(1, uint64(who)))
					for n := range frames {
						frame := bytes.Repeat([]byte{who}, 4+random.IntN(9000))
						frame[1], frame[2], frame[3] = byte(n>>8), byte(n), byte(len(frame)%251)
						frame = append([]byte{byte(len(frame) >> 8), byte(len(frame))}, frame...)
						o.put(frame)
						o.flush()
					}
				}()
			}
			var next [senders]int
			for total := range senders * frames {
				var size [2]byte
				_, err := io.ReadFull(theirs, size[:])
				require.NoError(t, err)
				frame := make([]byte, int(size[0])<<8|int(size[1]))
				_, err = io.ReadFull(theirs, frame)
				require.NoError(t, err)
				who := frame[0]
				require.Equal(t, next[who], int(frame[1])<<8|int(frame[2]))
				require.Equal(t, byte(len(frame)%251), frame[3])
				for _, b := range frame[4:] {
					if b != who {
						t.Fatal("frames are mixed up")
					}
				}
				next[who]++
				if total%100 == 0 {
					runtime.Gosched() // lets the connection fill up
				}
			}
			require.NoError(t, o.close())
		})
	}
}

// connected returns the two ends of a connection.
func connected(t *testing.T, network, address string) (ours, theirs net.Conn) {
	l, err := net.Listen(network, address)
	require.NoError(t, err)
	defer l.Close()
	ours, err = net.Dial(network, l.Addr().String())
	require.NoError(t, err)
	theirs, err = l.Accept()
	require.NoError(t, err)
	return ours, theirs
}

// hungUp is a connection on which the server has sent an event and then hung up.
type hungUp struct {
	net.Conn
	sent   bytes.Buffer
	closed bool
}

func (c *hungUp) Write([]byte) (int, error)       { return 0, net.ErrClosed }
func (c *hungUp) SetReadDeadline(time.Time) error { return nil }

func (c *hungUp) Read(p []byte) (int, error) {
	if c.closed {
		return 0, net.ErrClosed
	}
	return c.sent.Read(p)
}

func (c *hungUp) Close() error {
	c.closed = true
	return nil
}

func TestAFailedWriteLosesNoEvent(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := &hungUp{sent: *bytes.NewBufferString("event")}
		o := newOutbox(c)
		o.put([]byte("request"))
		o.flush()
		<-o.left
		got, err := io.ReadAll(c)
		require.NoError(t, err, "the end of the connection")
		require.Equal(t, "event", string(got))
		require.NoError(t, o.close())
	})
}

// selfish is a connection whose Close waits for the Write in progress. With deadlines, a deadline ends the Write.
type selfish struct {
	net.Conn
	deadlines bool
	writing   chan struct{} // has an element during a Write or a Close
	late      chan struct{}
}

func (c *selfish) Write(p []byte) (int, error) {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	<-c.late
	return 0, os.ErrDeadlineExceeded
}

func (c *selfish) SetDeadline(time.Time) error {
	if c.deadlines {
		close(c.late)
	}
	return nil
}

func (c *selfish) SetReadDeadline(time.Time) error { return nil }

func (c *selfish) Close() error {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	return nil
}

// A server that does not read can block a Write forever.
func TestAConnectionWhoseCloseWaitsForAWriteBlocksNobody(t *testing.T) {
	for _, deadlines := range []bool{true, false} {
		virtual(t, func(t *testing.T) {
			c := &selfish{deadlines: deadlines, writing: make(chan struct{}, 1), late: make(chan struct{})}
			o := newOutbox(c)
			o.put([]byte("request"))
			o.flush()
			synctest.Wait()
			began := time.Now()
			require.Error(t, o.close())
			require.LessOrEqual(t, time.Since(began), patienceToClose)
			synctest.Wait()
			require.Equal(t, deadlines, isClosed(o.left), "the goroutine has ended")
			if !deadlines {
				close(c.late)
			}
		})
	}
}
