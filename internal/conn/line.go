package conn

import (
	"net"
	"slices"
	"time"

	"github.com/zklock-go/zklock/internal/frames"
)

// line is one connection to a server.
type line struct {
	net.Conn
	out        *outbox
	unanswered func() (since time.Time, ok bool)          // see Link.Unanswered
	send       func(r frames.Request, by Asker) (ok bool) // see Link.Send
}

// An Asker has sent a request. Answered is called once, with a successful reply or with an error, and must not
// wait. The reply's body is valid during the call.
type Asker interface {
	Answered(r frames.Reply, err error)
}

func newLine(conn net.Conn) *line { return &line{Conn: conn, out: newOutbox(conn)} }

// Write has p written. It never fails.
func (c *line) Write(p []byte) (int, error) {
	c.out.put(slices.Clone(p))
	return len(p), nil
}

// Close ends the connection.
func (c *line) Close() error { return c.out.close() }
