package queue

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/session"
)

// waiting is what a place shows of itself while it waits: the place belongs to one goroutine, and
// whoever asks why that hangs has another.
type waiting struct {
	node  string // its path
	sess  *session.Session
	since time.Time

	mu       sync.Mutex
	ahead    int    // guarded by mu: how many are in its way
	watching string // guarded by mu: the name of the one that it watches
}

// show notes what the place waits for now.
func (w *waiting) show(ahead int, watching string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead, w.watching = ahead, watching
}

func (w *waiting) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%s waits for %v: ahead=%d watching %s %v", w.node, time.Since(w.since).Round(time.Millisecond), w.ahead, w.watching, w.sess.Lease)
}

// waits are the places of a client that wait. The zero value is ready for use.
type waits struct {
	mu   sync.Mutex
	live map[*waiting]struct{} // guarded by mu
}

// begin returns what the place of a node shows of itself until end is called.
func (s *waits) begin(node string, sess *session.Session) *waiting {
	w := &waiting{node: node, sess: sess, since: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live = map[*waiting]struct{}{}
	}
	s.live[w] = struct{}{}
	return w
}

func (s *waits) end(w *waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, w)
}

// all returns a line for each place that waits, in the order of their paths.
func (s *waits) all() []string {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.live))
	s.mu.Unlock()
	lines := make([]string, len(all))
	for i, w := range all {
		lines[i] = w.String()
	}
	slices.Sort(lines)
	return lines
}
