// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// echo is a server that sends back what it gets.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	// Ends when the test closes the listener; its connections end with their clients.
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); _ = conn.Close() }()
		}
	}()
	return l.Addr().String()
}

// exchange sends a byte and returns the one that comes back.
func exchange(conn net.Conn, b byte) (byte, error) {
	if _, err := conn.Write([]byte{b}); err != nil {
		return 0, err
	}
	back := make([]byte, 1)
	_, err := io.ReadFull(conn, back)
	return back[0], err
}

func TestDataSentDuringAPartitionArrivesAfterIt(t *testing.T) {
	var z Ensemble
	defer z.links.closeAll()
	conn, err := z.DialFrom("a")("tcp", echo(t), time.Minute)
	require.NoError(t, err)
	defer conn.Close()
	b, err := exchange(conn, 1)
	require.NoError(t, err)
	require.Equal(t, byte(1), b)

	z.Partition("a")
	z.Partition("a")
	_, err = conn.Write([]byte{2})
	require.NoError(t, err, "the sender does not notice")
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	z.HealClient("a")
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	back := make([]byte, 1)
	_, err = io.ReadFull(conn, back)
	require.NoError(t, err)
	require.Equal(t, byte(2), back[0])
}

func TestDialsOfAPartitionedClientTimeOut(t *testing.T) {
	var z Ensemble
	defer z.links.closeAll()
	addr := echo(t)
	z.Partition("a")
	_, err := z.DialFrom("a")("tcp", addr, 20*time.Millisecond)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())
	other, err := z.DialFrom("b")("tcp", addr, time.Minute)
	require.NoError(t, err, "another client")
	_, err = exchange(other, 1)
	assert.NoError(t, err)
}

func TestASlowLinkIsLateBothWays(t *testing.T) {
	var z Ensemble
	defer z.links.closeAll()
	conn, err := z.DialFrom("a")("tcp", echo(t), time.Minute)
	require.NoError(t, err)
	const late = 40 * time.Millisecond
	z.SlowClient("a", late)
	begin := time.Now()
	_, err = exchange(conn, 1)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(begin), 2*late)
}

func TestTheEndOfAConnectionIsPassedOn(t *testing.T) {
	var z Ensemble
	defer z.links.closeAll()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	conn, err := z.DialFrom("a")("tcp", l.Addr().String(), time.Minute)
	require.NoError(t, err)
	server, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, server.Close())
	_, err = conn.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF)
}

func TestNothingIsLeftOfLinksThatAreClosed(t *testing.T) {
	var z Ensemble
	conn, err := z.DialFrom("a")("tcp", echo(t), time.Minute)
	require.NoError(t, err)
	z.Partition("a")
	_, err = conn.Write([]byte{1})
	require.NoError(t, err)
	z.links.closeAll()
	z.links.closeAll()
	assert.Empty(t, z.links.open)
	_, err = z.DialFrom("b")("tcp", echo(t), time.Minute)
	assert.ErrorIs(t, err, net.ErrClosed)
}
