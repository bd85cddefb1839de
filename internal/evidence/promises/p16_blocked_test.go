// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// stuckConn is a connection of a program's dialer. Once stuck is closed, a Write waits until its deadline, and Close waits for the Write.
type stuckConn struct {
	net.Conn
	stuck   <-chan struct{}
	writing chan struct{} // has an element during a Write or a Close
	late    chan struct{}
	once    sync.Once
}

func (c *stuckConn) Write(p []byte) (int, error) {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	select {
	case <-c.stuck:
		<-c.late
		return 0, net.ErrClosed
	default:
		return c.Conn.Write(p)
	}
}

func (c *stuckConn) SetDeadline(d time.Time) error {
	c.once.Do(func() { close(c.late) })
	return c.Conn.SetDeadline(d)
}

func (c *stuckConn) Close() error {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	return c.Conn.Close()
}

// The server reads nothing any more, and the program's connection cannot be closed while it writes.
//
//zklock:promise P16.5
func TestCloseReturnsThoughAWriteIsBlocked(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		stuck := make(chan struct{})
		client := connectWith(t, srv, &zklock.Options{SessionTimeout: term, Dialer: func(network, address string, timeout time.Duration) (net.Conn, error) {
			c, err := srv.Dial(network, address, timeout)
			return &stuckConn{Conn: c, stuck: stuck, writing: make(chan struct{}, 1), late: make(chan struct{})}, err
		}})
		_, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		close(stuck)
		time.Sleep(term / 2) // heartbeats are written
		began := time.Now()
		require.NoError(t, client.Close())
		require.LessOrEqual(t, time.Since(began), 7*time.Second)
	})
}
