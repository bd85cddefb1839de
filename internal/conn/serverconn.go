// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"net"
	"slices"
	"time"

	"github.com/zklock-go/zklock/internal/frames"
)

// serverConn is one connection to a server.
type serverConn struct {
	net.Conn
	address string        // as it was dialed
	dialed  time.Duration // how long the dialer took
	out     *outbox
}

// An Outgoing is a request that is about to be sent.
type Outgoing struct {
	Request frames.Request
	By      Requester
	again   int // how often it was sent again: see proxy.sendAgain
}

// A Requester has sent a request. Answered is called once, with a successful reply or with an
// error, and must not wait. The reply's body is valid only during the call.
type Requester interface {
	Answered(r frames.Reply, err error)
}

func newServerConn(address string, conn net.Conn) *serverConn {
	return &serverConn{Conn: conn, address: address, out: newOutbox(conn)}
}

// Write queues p for writing. It never fails.
func (c *serverConn) Write(p []byte) (int, error) {
	c.out.put(slices.Clone(p))
	c.out.flush()
	return len(p), nil
}

// Close ends the connection.
func (c *serverConn) Close() error { return c.out.close() }
