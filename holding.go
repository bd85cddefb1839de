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
	c      *Client
	among  *holdings
	recipe string
	path   string // as the caller names it
	parts  []*contender
	locks  []*holding // whose parts these are, if several locks were taken at once
	token  int64      // the largest of the parts
	since  time.Time

	// release begins to release the lock, for the reason why the holding has ended, and
	// returns a function that waits for the outcome.
	release func(why error) (outcome func() error)
	// tell tells the observer how the holding has ended.
	tell func(kind EventKind, err error)

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
	for _, t := range g.parts {
		g.token = max(g.token, t.token)
	}
	g.ctx, g.cancel = context.WithCancelCause(under(context.WithoutCancel(ctx)))
	g.heed()
	g.among.add(g)
}

// watchOver ends the holding when one of its nodes, their session or its lease ends.
func (g *holding) watchOver() {
	for _, t := range g.parts {
		t.guard(aloneGrace)
		// Owned by the holding; ends with its context, at the latest by Close, which waits.
		if !g.c.calls.run(func() { g.attend(t) }) {
			g.lose(ErrClosed)
		}
	}
}

// attend ends the holding when t's node is gone, its session is over, or its lease has run
// out.
func (g *holding) attend(t *contender) {
	timer := time.NewTimer(t.sess.Lease.Remaining())
	defer timer.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-t.gone:
			g.lose(t.loss())
		case <-t.sess.Over():
			g.lose(fmt.Errorf("%w: session 0x%x is over", ErrLost, t.sess.ID))
		case <-timer.C:
			left := t.sess.Lease.Remaining()
			if left <= 0 {
				g.lose(g.lapse())
			}
			timer.Reset(left)
		}
	}
}

// loss is the error of a hold whose node is gone.
func (t *contender) loss() error {
	if t.why != nil {
		return fmt.Errorf("%w: node %s: %w", ErrLost, t.path(), t.why)
	}
	return fmt.Errorf("%w: node %s was deleted", ErrLost, t.path())
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

// removeAll begins to remove nodes, and returns a function that waits for the outcome.
func removeAll(parts []*contender) func() error {
	outcomes := make([]<-chan error, len(parts))
	for i, t := range parts {
		outcomes[i] = t.c.remove(t)
	}
	return func() (err error) {
		for _, o := range outcomes {
			err = errors.Join(err, <-o)
		}
		return err
	}
}

func (g *holding) event(kind EventKind, err error) Event {
	return Event{Kind: kind, Recipe: g.recipe, Path: g.path, Node: g.parts[0].name, Token: g.token, Elapsed: time.Since(g.since), Err: err}
}

// vouch ends the holding if its lease has run out and no timer has noticed yet.
func (g *holding) vouch() {
	for _, t := range g.parts {
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
	for _, t := range g.parts {
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
