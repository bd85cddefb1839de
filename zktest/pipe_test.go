// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// piped is a pipe with its client's end, and what has become of its goroutines.
type piped struct {
	*pipe
	client net.Conn
	read   chan error    // why read has ended
	broken int           // how often write could not
	wrote  chan struct{} // closed when write has ended
}

// inPipe runs a test on a pipe in virtual time.
func inPipe(t *testing.T, fn func(t *testing.T, p *piped)) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		opts, done := Options{}, make(chan struct{})
		require.NoError(t, opts.complete())
		p := &piped{pipe: newPipe(far, "a", 0), client: near, read: make(chan error, 1), wrote: make(chan struct{})}
		p.clock, p.gates, p.network, p.traffic, p.done = newClock(), newGates(), newNetwork(&opts), newTraffic(), done
		p.isWord = func(head string) bool { return head == "ruok" }
		// Both end with the test: its end closes both sides.
		go func() { p.read <- p.pipe.read() }()
		go func() { p.write(func() { p.broken++; p.end() }); close(p.wrote) }()
		fn(t, p)
		_ = near.Close()
		if !p.isDead() {
			p.end()
		}
		close(done)
		<-p.wrote
	})
}

// send writes a frame as a client does.
func (p *piped) send(t *testing.T, body string) {
	_, err := p.client.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	require.NoError(t, err)
}

// bodies returns the frames that have come.
func (p *piped) bodies(t *testing.T) (list []string) {
	synctest.Wait()
	batch, ok := p.next(nil)
	require.True(t, ok)
	for _, pkt := range batch {
		list = append(list, string(pkt.frame)+pkt.word)
	}
	return list
}

func TestFramesAreReadOneByOne(t *testing.T) {
	inPipe(t, func(t *testing.T, p *piped) {
		p.send(t, "hello")
		p.send(t, "")
		p.send(t, "ruok") // a word counts at the beginning only
		assert.Equal(t, []string{"hello", "", "ruok"}, p.bodies(t))
		assert.Equal(t, int64(3*4+9), p.traffic.in.Load())
		require.NoError(t, p.client.Close())
		assert.ErrorIs(t, <-p.read, io.EOF)
		batch, _ := p.next(nil)
		require.Len(t, batch, 1)
		assert.True(t, batch[0].end, "the last packet tells the end")
	})
}

func TestAFourLetterWordIsReadBeforeAnyFrame(t *testing.T) {
	inPipe(t, func(t *testing.T, p *piped) {
		_, err := p.client.Write([]byte("ruok"))
		require.NoError(t, err)
		assert.Equal(t, []string{"ruok"}, p.bodies(t))
	})
}

func TestAFrameWithABadLengthEndsTheReader(t *testing.T) {
	for _, head := range [][]byte{{0xff, 0xff, 0xff, 0xff}, {0, 0x0f, 0xff, 0xff}, {0, 0x10, 0, 0}} {
		inPipe(t, func(t *testing.T, p *piped) {
			bad := int32(binary.BigEndian.Uint32(head)) < 0 || binary.BigEndian.Uint32(head) > maxFrame
			_, err := p.client.Write(head)
			require.NoError(t, err)
			synctest.Wait()
			assert.Equal(t, bad, len(p.read) == 1, "%x", head)
		})
	}
}

func TestASilentClientIsClosedAfterTheHandshakeTimeout(t *testing.T) {
	inPipe(t, func(t *testing.T, p *piped) {
		begin := time.Now()
		require.Error(t, <-p.read)
		assert.Equal(t, handshake, time.Since(begin))
	})
}

func TestRepliesAreSentInOrder(t *testing.T) {
	inPipe(t, func(t *testing.T, p *piped) {
		p.enqueue([]byte("ab"))
		p.enqueue([]byte("cd"))
		got := make([]byte, 4)
		_, err := io.ReadFull(p.client, got)
		require.NoError(t, err)
		assert.Equal(t, "abcd", string(got))
		synctest.Wait()
		assert.Zero(t, p.out.bytes)
		assert.Equal(t, int64(4), p.traffic.out.Load())
	})
}

func TestRepliesWaitWhileAClientIsCutOff(t *testing.T) {
	inPipe(t, func(t *testing.T, p *piped) {
		p.send(t, "hello") // one that says nothing is not waited for
		p.gates.shutClient("a")
		p.enqueue([]byte("ab"))
		p.end() // the client learns of it when the gate opens
		time.Sleep(time.Minute)
		assert.NotZero(t, p.out.bytes)
		p.gates.openClient("a")
		got, err := io.ReadAll(p.client)
		require.NoError(t, err)
		assert.Equal(t, "ab", string(got))
	})
}

func TestNothingIsSentAfterACut(t *testing.T) {
	inPipe(t, func(t *testing.T, p *piped) {
		p.gates.shutMember(0)
		p.enqueue([]byte("ab"))
		p.enqueue([]byte("cd"))
		p.cut()
		p.end()
		p.gates.openMember(0)
		got, err := io.ReadAll(p.client)
		require.NoError(t, err)
		assert.Empty(t, got)
	})
}

func TestAClientThatDoesNotReadMustWait(t *testing.T) {
	inPipe(t, func(t *testing.T, p *piped) {
		p.enqueue(make([]byte, outboxLimit))
		ready := make(chan bool, 1)
		go func() { ready <- p.awaitRoom() }() // ends when there is room
		synctest.Wait()
		assert.Empty(t, ready)
		_, err := io.CopyN(io.Discard, p.client, outboxLimit)
		require.NoError(t, err)
		assert.True(t, <-ready)

		p.setWaiting(pendingLimit)
		go func() { ready <- p.awaitRoom() }() // ends with the answer below
		synctest.Wait()
		assert.Empty(t, ready)
		p.setWaiting(pendingLimit - 1)
		assert.True(t, <-ready)
	})
}

func TestAClientFarAheadMustWait(t *testing.T) {
	inPipe(t, func(t *testing.T, p *piped) {
		sent := make(chan struct{})
		go func() { // ends when all was taken
			defer close(sent)
			for range 6 {
				_, _ = p.client.Write(append(binary.BigEndian.AppendUint32(nil, 1<<19), make([]byte, 1<<19)...))
				_, _ = p.client.Write(append(binary.BigEndian.AppendUint32(nil, 1<<19), make([]byte, 1<<19)...))
			}
		}()
		synctest.Wait()
		select {
		case <-sent:
			t.Error("six megabytes were taken at once")
		default:
		}
		frames := 0
		for frames < 12 {
			frames += len(p.bodies(t))
		}
		<-sent
		assert.Equal(t, 12, frames)
	})
}

func TestALatencyDelaysRequestsAndReplies(t *testing.T) {
	inPipe(t, func(t *testing.T, p *piped) {
		p.network.latencyOf = func(*rand.Rand, string, int) time.Duration { return time.Second }
		begin := time.Now()
		p.send(t, "x")
		synctest.Wait()
		batch, _ := p.next(nil)
		require.Len(t, batch, 1)
		require.True(t, p.mayHandle(batch[0]))
		assert.Equal(t, time.Second, time.Since(begin))
		p.enqueue([]byte("y"))
		_, err := io.ReadFull(p.client, make([]byte, 1))
		require.NoError(t, err)
		assert.Equal(t, 2*time.Second, time.Since(begin))
	})
}
