package conn

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/zklock-go/zklock/internal/lease"
)

// ErrSessionOver is the error of what was begun under a session that is over.
var ErrSessionOver = errors.New("session is over")

// Session is one ZooKeeper session as this client sees it: an epoch. What was obtained
// under it ends with it, and no reconnect revives it. All methods may be called from
// several goroutines.
type Session struct {
	ID    int64
	Lease *lease.Lease

	newest  atomic.Int64  // the largest zxid that has come with the answer to a write
	seen    atomic.Int64  // the largest that has come with any answer but a ping's
	over    chan struct{} // closed when the session is over for us
	expired bool          // set before over is closed

	mu    sync.Mutex
	again chan struct{} // guarded by mu; closed and replaced at every re-attach
	owned int           // guarded by mu: see Own
}

func newSession(id int64, l *lease.Lease) *Session {
	return &Session{ID: id, Lease: l, over: make(chan struct{}), again: make(chan struct{})}
}

// Own adds n, which may be negative, to what all clients of the session own that ends with it. It returns the sum, and adds
// nothing that would make it more than limit.
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

// end ends the session. The link that owns the session calls it once.
func (s *Session) end(expired bool) {
	s.expired = expired
	close(s.over)
}

// Over returns a channel that is closed when the session is over. A nil session has none.
func (s *Session) Over() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.over
}

// IsOver reports whether the session is over.
func (s *Session) IsOver() bool { return isClosed(s.over) }

// HasExpired reports whether the session is over because the server said so: then all of
// its nodes are gone.
func (s *Session) HasExpired() bool { return s.IsOver() && s.expired }

// wrote notes the zxid that has come with the answer to a write.
func (s *Session) wrote(zxid int64) { raise(&s.newest, zxid) }

// saw notes the zxid that has come with an answer: no server that has not seen that much may take the session.
func (s *Session) saw(zxid int64) { raise(&s.seen, zxid) }

// raise makes a number at least as large as to.
func raise(n *atomic.Int64, to int64) {
	for {
		now := n.Load()
		if to <= now || n.CompareAndSwap(now, to) {
			return
		}
	}
}

// Epoch returns the epoch of the leader that has answered the newest write, or zero if none
// is known.
func (s *Session) Epoch() int32 { return int32(s.newest.Load() >> 32) }

// Reattached returns a channel that is closed the next time that a server takes the session
// back on another connection.
func (s *Session) Reattached() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.again
}

func (s *Session) announceReattach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.again)
	s.again = make(chan struct{})
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
