// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/internal/lease"
)

// ErrSessionOver is the error of an operation whose session is over.
var ErrSessionOver = errors.New("session is over")

// Session is one ZooKeeper session as this client sees it. Everything obtained under it ends with
// it, and no reconnect revives it. All methods may be called from several goroutines.
type Session struct {
	ID    int64
	Lease *lease.Lease

	newest  atomic.Int64             // the largest zxid in a reply to a write
	seen    atomic.Int64             // the largest zxid in any reply except those to pings
	over    chan struct{}            // closed when the session is over for us
	expired bool                     // set before over is closed
	early   time.Duration            // set before over is closed: see EndedEarly
	deleted atomic.Pointer[deletion] // of an own node, if no reply has come since

	mu    sync.Mutex
	now   *Attachment // guarded by mu: replaced at every reattach
	owned int         // guarded by mu: see Own
	moved bool        // guarded by mu: another connection has carried it
}

// Attachment is the part of a session's life on one connection.
type Attachment struct {
	ended chan struct{} // closed when a server takes the session over on the next connection
	seen  int64         // set before ended is closed: see Seen
}

func newAttachment() *Attachment { return &Attachment{ended: make(chan struct{})} }

// Ended returns a channel that is closed when a server takes the session over on another connection.
func (a *Attachment) Ended() <-chan struct{} { return a.ended }

// HasEnded reports whether a server has taken the session over on another connection.
func (a *Attachment) HasEnded() bool { return isClosed(a.ended) }

// Seen returns the newest transaction that a reply on this connection, or on an earlier one, has
// shown. Every event of an earlier transaction that concerns a watch set on this connection arrived
// before that reply. It is valid once the attachment has ended.
func (a *Attachment) Seen() int64 { return a.seen }

// NewSession returns a session that a server has just created. Outside this package only tests use it.
func NewSession(id int64, l *lease.Lease) *Session {
	return &Session{ID: id, Lease: l, over: make(chan struct{}), now: newAttachment()}
}

// Own adds n, which may be negative, to the number of bytes counted for what the clients that share
// the session own in it. It returns the sum. If n is positive and the sum would exceed limit, Own
// adds nothing and returns false.
func (s *Session) Own(n, limit int) (sum int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum = s.owned + n
	if n > 0 && sum > limit {
		return sum, false
	}
	s.owned = sum
	return sum, true
}

// deletion is the deletion of an own node, as the client learned of it.
type deletion struct {
	left time.Duration // of the lease
	at   time.Time
}

// farewell is how long the end of a connection may follow the event of a node that was deleted with
// its session. The server sends the one after the other; a packet that is lost is sent again
// within this time.
const farewell = 500 * time.Millisecond

// end ends the session. The link that owns the session calls it once.
func (s *Session) end(expired bool) {
	s.expired = expired
	if expired {
		s.early = max(0, s.Lease.Remaining())
		if d := s.deleted.Load(); d != nil {
			s.early = max(s.early, d.left)
		}
	}
	close(s.over)
}

// NodeDeleted records that a node of ours was deleted. If the connection ends within farewell, and
// a server reports next that the session has expired, the node was deleted with it.
func (s *Session) NodeDeleted() { s.deleted.Store(&deletion{s.Lease.Remaining(), time.Now()}) }

// replied records a reply: a node that was deleted before was not deleted with the session.
func (s *Session) replied() {
	if s.deleted.Load() != nil {
		s.deleted.Store(nil)
	}
}

// disconnected records the end of a connection: a node that was deleted longer ago than farewell was
// not deleted with the session.
func (s *Session) disconnected() {
	if d := s.deleted.Load(); d != nil && time.Since(d.at) > farewell {
		s.deleted.CompareAndSwap(d, nil)
	}
}

// EndedEarly returns how much of its lease was left when the servers ended the session, or zero.
// More than zero means that an assumption of the lease does not hold.
func (s *Session) EndedEarly() time.Duration {
	if !s.IsOver() {
		return 0
	}
	return s.early
}

// Over returns a channel that is closed when the session is over. For a nil session it returns nil.
func (s *Session) Over() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.over
}

// IsOver reports whether the session is over.
func (s *Session) IsOver() bool { return isClosed(s.over) }

// HasExpired reports whether the session is over because the server said so; then all of its nodes
// are gone.
func (s *Session) HasExpired() bool { return s.IsOver() && s.expired }

// wrote records the zxid of a reply to a write.
func (s *Session) wrote(zxid int64) { raise(&s.newest, zxid) }

// Saw records the zxid of a reply: a server that has not reached it must not take over the session.
func (s *Session) Saw(zxid int64) { raise(&s.seen, zxid) }

// raise increases n to at least to.
func raise(n *atomic.Int64, to int64) {
	for {
		now := n.Load()
		if to <= now || n.CompareAndSwap(now, to) {
			return
		}
	}
}

// Epoch returns the epoch of the leader that replied to the newest write, or zero if unknown.
func (s *Session) Epoch() int32 { return int32(s.newest.Load() >> 32) }

// Attachment returns the current attachment. Before the first reconnect it is the one that began
// with the session.
func (s *Session) Attachment() *Attachment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Reattached returns a channel that is closed the next time a server takes the session over on
// another connection.
func (s *Session) Reattached() <-chan struct{} { return s.Attachment().ended }

// Seen returns the newest transaction that a reply has shown.
func (s *Session) Seen() int64 { return s.seen.Load() }

// Reattach ends the attachment. No reply has arrived on the new connection yet.
func (s *Session) Reattach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.seen = s.seen.Load()
	close(s.now.ended)
	s.now = newAttachment()
	s.moved = true
}

// IsOnFirst reports whether the session is on the connection on which it was created. Its server then knows everything that a quorum
// has agreed on before it created the session.
func (s *Session) IsOnFirst() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.moved
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
