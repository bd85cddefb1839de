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
	address    string // as it was dialed
	out        *outbox
	room       window                                         // for requests other than heartbeats
	unanswered func() (since time.Time, ok bool)              // see Link.Unanswered
	send       func(r frames.Request, by Requester) (ok bool) // sends a request for which room was reserved
	sendBeat   func(r frames.Request, by Requester) (ok bool) // sends a request of a heartbeat
	sendAll    func(requests []Outgoing) (ok bool)            // is like send for several requests
}

// An Outgoing is a request that is about to be sent.
type Outgoing struct {
	Request frames.Request
	By      Requester
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
