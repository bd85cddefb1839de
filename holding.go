package zklock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// holding is what one acquire has obtained. Several Holds of a Reentrant can share it.
type holding struct {
	c      *engine
	among  *holdings
	recipe string
	path   string // as the caller names it
	nodes  []*ownNode
	locks  []*holding // whose nodes these are, if several locks were taken at once
	token  int64      // the largest, if there are several
	since  time.Time

	// release begins to release the lock, for the reason why the holding has ended, and
	// returns a function that waits for the outcome.
	release func(why error) (outcome func() error)
	quiet   bool // it tells no observer of its end: each of its locks tells for itself

	ctx     context.Context
	cancel  context.CancelCauseFunc
	revoked <-chan struct{} // closed when somebody asks for any of the parts
	writing chan struct{}   // a mutex for writers of the node's data: see rewrite

	mu       sync.Mutex
	levels   int           // guarded by mu: Holds that were not unlocked
	released chan struct{} // closed when the lock is released, or cannot be
	err      error         // set before released is closed: why it could not be released
}

// begin begins to hold, with one level. The holding's context has the values of ctx, the
// acquiring caller's, and those that under adds; it does not end with ctx.
func (g *holding) begin(ctx context.Context, under func(context.Context) context.Context) {
	g.since, g.levels = time.Now(), 1
	g.released, g.writing = make(chan struct{}), make(chan struct{}, 1)
	g.ctx, g.cancel = context.WithCancelCause(under(context.WithoutCancel(ctx)))
	g.heed()
	g.among.add(g)
}

// watchOver ends the holding when the node, its session or its lease ends.
func (g *holding) watchOver(n *ownNode) {
	// Owned by the holding; ends with its context, at the latest by Close, which waits.
	if !g.c.calls.run(func() { g.attend(n) }) {
		g.lose(ErrClosed)
	}
}

// attend ends the holding when the node is gone, its session is over, or its lease has run
// out.
func (g *holding) attend(n *ownNode) {
	timer := time.NewTimer(n.sess.Lease.Remaining())
	defer timer.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-n.gone:
			g.lose(n.loss())
		case <-n.sess.Over():
			g.lose(fmt.Errorf("%w: session 0x%x is over", ErrLost, n.sess.ID))
		case <-timer.C:
			left := n.sess.Lease.Remaining()
			if left <= 0 {
				g.lose(g.lapse())
			}
			timer.Reset(left)
		}
	}
}

func (g *holding) lapse() error {
	return fmt.Errorf("%w: no quorum has answered for nearly a session timeout", ErrLost)
}

// lose ends the holding for a reason that wraps ErrLost or ErrClosed and has its nodes removed.
func (g *holding) lose(why error) {
	g.mu.Lock()
	if g.ctx.Err() != nil {
		g.mu.Unlock()
		return
	}
	g.cancel(why)
	g.mu.Unlock()
	if errors.Is(why, ErrLost) {
		g.tell(Lost, why)
	} else {
		g.tell(Ended, why)
	}
	g.letGo()
}

// letGo releases the lock in the background. It is called once, when the context has ended.
func (g *holding) letGo() {
	g.among.remove(g)
	why := context.Cause(g.ctx)
	released := g.release(why)
	finish := func() {
		g.err = released()
		switch {
		case !errors.Is(why, ErrReleased):
		case g.err != nil:
			g.tell(Ended, g.err)
		default:
			g.tell(Released, nil)
		}
		close(g.released)
	}
	// Owned by the client; ends with the removals, which Close bounds.
	if !g.c.removals.run(finish) {
		finish()
	}
}

// tell tells the observer how the holding has ended.
func (g *holding) tell(kind EventKind, err error) {
	if !g.quiet {
		g.c.observe(g.event(kind, err))
	}
}

func (g *holding) event(kind EventKind, err error) Event {
	return Event{Kind: kind, Recipe: g.recipe, Path: g.path, Node: g.nodes[0].name, Token: g.token, Elapsed: time.Since(g.since), Err: err}
}

// vouch ends the holding if its lease has run out and no timer has noticed yet.
func (g *holding) vouch() {
	for _, t := range g.nodes {
		if g.ctx.Err() == nil && t.sess.Lease.Remaining() <= 0 {
			g.lose(g.lapse())
		}
	}
}

func (g *holding) failure(op string, err error) error {
	return fmt.Errorf("zklock: %s %s: %w", op, printable(g.path), err)
}

// drop takes one level off, and ends the context with the last one.
func (g *holding) drop() (last bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() != nil {
		return false, context.Cause(g.ctx)
	}
	g.levels--
	if g.levels > 0 {
		return false, nil
	}
	g.cancel(ErrReleased)
	return true, nil
}

// heed sets revoked to a channel that is closed when any part is asked for.
func (g *holding) heed() {
	var requests []*revocation
	for _, t := range g.nodes {
		if len(requests) == 0 || requests[len(requests)-1] != t.asked { // permits taken at once share one
			requests = append(requests, t.asked)
		}
	}
	if len(requests) == 1 {
		g.revoked = requests[0].heard
		return
	}
	any := newRevocation()
	for _, r := range requests {
		// Owned by the holding; ends with its context, at the latest by Close, which waits.
		g.c.calls.run(func() {
			select {
			case <-r.heard:
				any.hear()
			case <-g.ctx.Done():
			}
		})
	}
	g.revoked = any.heard
}

// holdings are those of a client that have not ended.
type holdings struct {
	mu   sync.Mutex
	live map[*holding]struct{} // guarded by mu
}

func (s *holdings) add(g *holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live = map[*holding]struct{}{}
	}
	s.live[g] = struct{}{}
}

func (s *holdings) remove(g *holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, g)
}

func (s *holdings) all() []*holding {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.live))
}
