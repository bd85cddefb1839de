package conn

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/lease"
)

// A bare connection is one whose wire is not seen. Its session is learnt by asking the
// client library again and again, and evidence comes from the client's own requests: they
// are sent no earlier than they are handed over, and answered no later than they return.

// A Bare connection tells of its session when it is asked, as a *zk.Conn does.
type Bare interface {
	SessionID() int64
	State() zk.State
}

// SetBare makes the link that of a bare connection. It must be called before anything else
// uses the link.
func (l *Link) SetBare(conn Bare) { l.bare = conn.SessionID }

// IsBare reports whether the wire of the connection is not seen.
func (l *Link) IsBare() bool { return l.bare != nil }

// Follow follows the session of a bare connection, whose timeout is given, until ctx ends.
func (l *Link) Follow(ctx context.Context, conn Bare, timeout time.Duration) {
	tick := time.NewTicker(max(timeout/40, 20*time.Millisecond))
	defer tick.Stop()
	var last int64
	for {
		id, up := conn.SessionID(), conn.State() == zk.StateHasSession
		attached, _ := l.State()
		switch {
		case up && id != 0 && (attached == nil || id != last):
			l.establish(id, timeout, lease.Instant{})
			last = id
		case id == 0 && last != 0:
			l.establish(0, 0, lease.Instant{})
			last = 0
		case !up:
			l.disconnect()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Witness takes a request that was answered just now as evidence for a bare connection's
// session, if the connection has that session still.
func (l *Link) Witness(sent lease.Instant, of lease.Evidence) {
	if s := l.Latest(); s != nil && l.bare() == s.ID {
		s.Lease.Note(sent, of)
	}
}
