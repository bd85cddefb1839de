// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// slowConn takes as many bytes at once as takes has, and reports each write.
type slowConn struct {
	net.Conn
	mu     sync.Mutex
	takes  int
	wrote  bytes.Buffer
	writes []string // who has written: "sender" or "outbox"
	open   chan struct{}
}

func (c *slowConn) WriteAtOnce(p []byte) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(p), c.takes)
	c.takes -= n
	c.wrote.Write(p[:n])
	c.writes = append(c.writes, "sender")
	return n
}

func (c *slowConn) Write(p []byte) (int, error) {
	<-c.open
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes = append(c.writes, "outbox")
	return c.wrote.Write(p)
}

func (c *slowConn) Close() error { return nil }

func newSlowConn(takes int) *slowConn { return &slowConn{takes: takes, open: make(chan struct{})} }

func TestSenderWritesWhatTheConnectionTakes(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newSlowConn(7)
		o := newOutbox(c)
		o.flush()
		require.Empty(t, c.writes, "nothing is queued")
		o.put([]byte("ab"))
		o.put([]byte("cd"))
		o.putBeat([]byte("!"))
		o.flush()
		require.Equal(t, "!abcd", c.wrote.String())
		require.Equal(t, []string{"sender"}, c.writes, "together")

		o.put([]byte("efgh"))
		o.flush()
		synctest.Wait()
		require.Equal(t, "!abcdef", c.wrote.String(), "the outbox writes the rest")
		c.takes = 100
		o.put([]byte("ij"))
		o.flush()
		require.Equal(t, "!abcdef", c.wrote.String(), "not before what was queued earlier")
		close(c.open)
		synctest.Wait()
		require.Equal(t, "!abcdefghij", c.wrote.String())
		o.put([]byte("k"))
		o.flush()
		require.Equal(t, []string{"sender", "sender", "outbox", "outbox", "sender"}, c.writes)
		require.NoError(t, o.close())
	})
}

// A sender writes one piece. Frames that other senders have queued meanwhile are the outbox's.
func TestSenderWritesNoFramesThatCameMeanwhile(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newSlowConn(100)
		close(c.open)
		o := newOutbox(c)
		first := o.atOnce
		o.atOnce = func(p []byte) int {
			o.put([]byte("later"))
			o.flush()
			return first(p)
		}
		o.put([]byte("now "))
		o.flush()
		synctest.Wait()
		require.Equal(t, "now later", c.wrote.String())
		require.Equal(t, []string{"sender", "outbox"}, c.writes)
		require.NoError(t, o.close())
	})
}

func TestOutboxEndsWhileASenderWrites(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := newSlowConn(100)
		o := newOutbox(c)
		first := o.atOnce
		o.atOnce = func(p []byte) int {
			require.NoError(t, o.close())
			return first(p[:1])
		}
		o.put([]byte("ab"))
		o.flush()
		synctest.Wait()
		o.put([]byte("c"))
		o.flush()
		require.Equal(t, "a", c.wrote.String())
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
	require.NotNil(t, writerAtOnce(ours))
	return ours, theirs
}

// Wrappers of a connection must see each byte.
func TestWrappedConnectionsAreWrittenByTheOutbox(t *testing.T) {
	ours, theirs := connected(t, "tcp", "127.0.0.1:0")
	defer ours.Close()
	defer theirs.Close()
	require.Nil(t, writerAtOnce(struct{ *net.TCPConn }{ours.(*net.TCPConn)}))
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
