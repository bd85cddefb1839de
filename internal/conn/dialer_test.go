// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/frames"
)

// failing is a dialer that always fails.
func failing(string, string, time.Duration) (net.Conn, error) { return nil, errors.New("nobody there") }

func TestFailedDialsAreSpacedOut(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := NewLink()
		dial := l.Dialer(Dialing{Dial: failing})
		for i, most := range []time.Duration{0, 20, 40, 80, 160, 320, 640, 1000, 1000} {
			most *= time.Millisecond
			begin := time.Now()
			_, err := dial("tcp", "server", 0)
			require.ErrorContains(t, err, "nobody there")
			took := time.Since(begin)
			assert.LessOrEqual(t, took, most, "dial %d", i)
			assert.GreaterOrEqual(t, took, most/2, "dial %d", i)
		}
		assert.ErrorContains(t, l.LastError(), "nobody there")
	})
}

func TestAConnectionThatLastedNeedsNoPauseAfterIt(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		_, _ = l.Dialer(Dialing{Dial: failing})("tcp", "server", 0)
		time.Sleep(steady)
		w.Close()
		assert.Zero(t, l.dialed())

		second := wire(t, l)
		second.greet(t, 7, 7)
		second.Close()
		assert.Positive(t, l.dialed(), "this one did not last")
	})
}

func TestAPauseEndsWhenTheLinkIsClosed(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := NewLink()
		dial := l.Dialer(Dialing{Dial: failing})
		for range 10 {
			_, _ = dial("tcp", "server", 0)
		}
		done := make(chan error, 1)
		begin := time.Now()
		go func() { // ends with the link
			_, err := dial("tcp", "server", 0)
			done <- err
		}()
		time.Sleep(time.Millisecond)
		l.Close()
		require.ErrorIs(t, <-done, errClosed)
		assert.Equal(t, time.Millisecond, time.Since(begin))
	})
}

func TestANewConnectionClosesTheOneBefore(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		wire(t, l)
		_, ok := <-w.frames
		assert.False(t, ok, "the server sees its end")
		assert.Nil(t, l.Carried(), "requests must not come before a connection request")
		assert.ErrorIs(t, l.SendNow(l.Latest(), Outgoing{Request: frames.Exists("/"), By: newAsker()}), ErrNotSent)
	})
}

func TestAServerHasALimitedTimeToAnswerAConnectionRequest(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := NewLink()
		w := wire(t, l)
		_, _ = w.Write(connectRequest(0))
		begin := time.Now()
		require.NoError(t, w.SetReadDeadline(time.Time{}), "the client library's own deadlines do not count yet")
		_, err := w.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Equal(t, term/3, time.Since(begin), "of the timeout that is asked for")

		second := wire(t, l)
		second.greet(t, 0, 7)
		require.NoError(t, second.SetReadDeadline(time.Now().Add(5*time.Second)))
		begin = time.Now()
		_, err = second.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.GreaterOrEqual(t, time.Since(begin), 5*time.Second, "from then on they do")
	})
}

// The program's dialer may ignore its timeout.
func TestADialThatDoesNotReturnEndsWithTheLink(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := NewLink()
		held := make(chan struct{})
		var dials, closed atomic.Int32
		dial := l.Dialer(Dialing{Dial: func(string, string, time.Duration) (net.Conn, error) {
			dials.Add(1)
			<-held
			ours, theirs := net.Pipe()
			go func() { // ends when the link closes its end
				_, _ = theirs.Read(make([]byte, 1))
				closed.Add(1)
			}()
			return ours, nil
		}})
		time.AfterFunc(time.Hour, l.Close)
		err := error(errSlow)
		for n := 0; errors.Is(err, errSlow); n++ {
			_, err = dial("tcp", fmt.Sprint("server ", n), time.Second)
		}
		require.ErrorIs(t, err, errClosed)
		assert.LessOrEqual(t, dials.Load(), int32(maxDials), "however many servers are tried meanwhile")
		close(held)
		synctest.Wait()
		assert.Equal(t, dials.Load(), closed.Load())
	})
}
