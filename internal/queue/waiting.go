package queue

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/session"
)

// waitPhase is what a place needs while somebody is in its way. It watches nobody else's node at other times.
type waitPhase struct {
	waited   bool               // for somebody ahead
	standing *session.NodeWatch // on one of those ahead, from before it is waited for; nil for none
	shown    *waiting           // in the engine's waits, exactly as long as the place waits; else nil
}

// watchOn notes a watch that stands.
func (p *waitPhase) watchOn(w *session.NodeWatch) { p.standing = w }

// unwatch forgets the watch, which has fired or is not waited for any more.
func (p *waitPhase) unwatch() { p.standing = nil }

// show notes for those who ask what the place of our node waits for.
func (p *waitPhase) show(all *waits, own *session.OwnNode, ahead int, watching string) {
	if p.waited = true; p.shown == nil {
		p.shown = all.begin(own)
	}
	p.shown.show(ahead, watching)
}

// hide ends what show has begun.
func (p *waitPhase) hide(all *waits) {
	if p.shown != nil {
		all.end(p.shown)
		p.shown = nil
	}
}

// waiting is what a place shows of itself while it waits: the place belongs to one goroutine, and
// whoever asks why that hangs has another.
type waiting struct {
	own   *session.OwnNode // has a name, and keeps that and its session while it is waited
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
	return fmt.Sprintf("%s waits for %v: ahead=%d watching %s %v", w.own.Path(), time.Since(w.since).Round(time.Millisecond), w.ahead, w.watching, w.own.Sess.Lease)
}

// waits are the places of a client that wait. The zero value is ready for use.
type waits struct {
	mu   sync.Mutex
	live map[*waiting]struct{} // guarded by mu
}

// begin returns what the place of our node shows of itself until end is called.
func (s *waits) begin(own *session.OwnNode) *waiting {
	w := &waiting{own: own, since: time.Now()}
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
