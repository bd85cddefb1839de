package zklock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/observe"
)

// holding is what one acquire has obtained. Several Holds of a Reentrant can share it.
type holding struct {
	c      *queue.Engine
	among  *holdings
	recipe string
	path   string // as the caller names it
	nodes  []*session.OwnNode
	parts  []part // whose nodes these are, if several locks were taken at once
	token  int64  // the largest, if there are several
	since  time.Time

	// release begins to release the lock, for the reason why the holding has ended, and
	// returns a function that waits for the outcome.
	release  func(why error) (outcome func() error)
	quiet    bool // it tells no observer of its end: each of its locks or local holds tells for itself
	unfenced bool // its local holds cannot be told apart by a token or a guard

	ctx    context.Context
	cancel context.CancelCauseFunc
	asked  *session.Revocation // when any of the nodes is asked for
	apart  []func()            // each ends that asked hears of a node, which can be that of other holds, too

	mu       sync.Mutex
	writing  chan struct{} // guarded by mu: see turnToWrite; nil before the first write
	levels   int           // guarded by mu: Holds that were not unlocked
	forfeit  bool          // guarded by mu: its release counts as a loss
	released session.Latch // the lock is released, or cannot be
	err      error         // set before released: why it could not be released
}

// begin begins to hold, with one level. The holding's context has the values of ctx, the
// acquiring caller's, and those that under adds; it does not end with ctx.
func (g *holding) begin(ctx context.Context, under func(context.Context) context.Context) {
	g.since, g.levels = time.Now(), 1
	g.ctx, g.cancel = context.WithCancelCause(under(context.WithoutCancel(ctx)))
	g.joinRevocations()
	g.among.add(g)
}

// turnToWrite returns what writers of the node's data take turns by: see rewrite.
func (g *holding) turnToWrite() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.writing == nil {
		g.writing = make(chan struct{}, 1)
	}
	return g.writing
}

// watchOver ends the holding when the node, its session or its lease ends.
func (g *holding) watchOver(n *session.OwnNode) {
	if !g.among.oversee(g, n.Sess) {
		g.lose(ErrClosed)
		return
	}
	n.WhenGone(func() {
		if g.end(n.Loss()) {
			g.settleLater()
		}
	})
}

// lapse is the reason why a holding ends whose lease has run out.
func lapse() error {
	return fmt.Errorf("%w: no quorum has answered for nearly a session timeout", ErrLost)
}

// lose ends the holding for a reason that wraps ErrLost or ErrClosed, tells the observer, and
// has its nodes removed.
func (g *holding) lose(why error) {
	if g.end(why) {
		g.settle()
	}
}

// end ends the holding, whatever levels it has. If it reports true, the caller has to call settle.
func (g *holding) end(why error) bool {
	last, _ := g.finish(why, true)
	return last
}

// drop takes one level off, and ends the holding with the last one. If it reports true, the caller has
// to call settle.
func (g *holding) drop() (last bool, err error) { return g.finish(ErrReleased, false) }

// finish takes one level off and with the last one ends the holding for that cause, or ends it whatever
// levels it has. This is the only place where a holding ends. If it has ended before, finish returns why.
func (g *holding) finish(cause error, all bool) (last bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() != nil {
		return false, context.Cause(g.ctx)
	}
	if !all {
		g.levels--
	}
	if g.levels > 0 && !all {
		return false, nil
	}
	g.cancel(cause)
	return true, nil
}

// settle does what follows the end of the holding, and is called once: it tells the observer of an end
// that is no release, and releases the lock in the background.
func (g *holding) settle() {
	why := context.Cause(g.ctx)
	switch {
	case errors.Is(why, ErrLost):
		g.tell(observe.Lost, why)
	case !errors.Is(why, ErrReleased):
		g.tell(observe.Ended, why)
	}
	g.startRelease(why)
}

// settleLater is settle for a caller that must not wait for an observer.
func (g *holding) settleLater() {
	// Owned by the client; ends when the observer has returned; Close waits for it.
	if !g.c.Calls.Run(g.settle) {
		g.settle()
	}
}

// startRelease releases the lock in the background, after the holding has ended for that reason.
func (g *holding) startRelease(why error) {
	g.among.remove(g)
	for _, part := range g.apart {
		part()
	}
	released := g.release(why)
	finish := func() {
		g.err = released()
		switch {
		case !errors.Is(why, ErrReleased):
		case g.err != nil:
			g.tell(observe.Ended, g.err)
		default:
			g.tell(observe.Released, nil)
		}
		g.released.Set()
	}
	// Owned by the client; ends with the removals, which Close bounds.
	if !g.c.Removals.Run(finish) {
		released = func() error { return ErrClosed }
		finish()
	}
}

// errUnanswered is why it is not known whether a lock was released.
var errUnanswered = fmt.Errorf("%w: no quorum has answered for a session timeout, and the release goes on", ErrUncertain)

// awaitRelease waits until the lock is released or cannot be, but for no servers longer than their
// session timeout.
func (g *holding) awaitRelease(ctx context.Context) error {
	timer := time.NewTimer(g.untilFree())
	defer timer.Stop()
	for {
		select {
		case <-g.released.Done():
			return g.err
		case <-ctx.Done():
			return fmt.Errorf("release goes on: %w", outcome.Beside(ctx, outcome.CauseOf(ctx, ctx.Err())))
		case <-timer.C:
		}
		left := g.untilFree()
		if left <= 0 {
			return errUnanswered
		}
		timer.Reset(left)
	}
}

// untilFree returns when a session timeout will have passed since the last proof of each session.
func (g *holding) untilFree() (left time.Duration) {
	for _, t := range g.nodes {
		l := t.Sess.Lease
		left = max(left, l.Remaining()+l.Term()/20) // the lease is 95 % of it
	}
	return left
}

// tell tells the observer how the holding has ended.
func (g *holding) tell(kind observe.Kind, err error) {
	if !g.quiet {
		g.c.Observe(g.event(kind, err))
	}
}

func (g *holding) event(kind observe.Kind, err error) observe.Event {
	return observe.Event{Kind: kind, Recipe: g.recipe, Path: g.path, Node: g.nodes[0].Name, Token: g.token, Elapsed: time.Since(g.since), Err: err}
}

func (g *holding) String() string {
	return fmt.Sprintf("%s holds for %v: token=%d %v", g.nodes[0].Path(), time.Since(g.since).Round(time.Millisecond), g.token, g.nodes[0].Sess.Lease)
}

// wasLost reports whether the holding, which has ended for that reason, ended without its
// caller's or its client's doing. The caller may still be at work then.
func (g *holding) wasLost(why error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.forfeit || errors.Is(why, ErrLost)
}

// giveUp has the release of the holding count as a loss.
func (g *holding) giveUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forfeit = true
}

// part is the hold of one of several locks that were taken at once.
type part interface {
	Context() context.Context
	Path() string
	Token() int64
	of() *holding
}

// checkParts ends the holding if one of its locks has ended and the goroutine that tells of that has not run yet.
func (g *holding) checkParts() {
	for _, part := range g.parts {
		if g.ctx.Err() == nil && part.Context().Err() != nil {
			g.lose(context.Cause(part.Context()))
		}
	}
}

// checkLease ends the holding if its lease has run out and no timer has noticed yet, or one of its locks has ended.
func (g *holding) checkLease() {
	g.checkParts()
	for _, t := range g.nodes {
		if g.ctx.Err() == nil && t.Sess.Lease.Remaining() <= 0 {
			g.lose(lapse())
		}
	}
}

func (g *holding) failure(op string, err error) error {
	return fmt.Errorf("zklock: %s %s: %w", op, node.Printable(g.path), err)
}

// joinRevocations sets asked to what is heard when any of the nodes is asked for.
func (g *holding) joinRevocations() {
	var requests []*session.Revocation
	for _, t := range g.nodes {
		if len(requests) == 0 || requests[len(requests)-1] != t.Asked { // permits taken at once share one
			requests = append(requests, t.Asked)
		}
	}
	if len(requests) == 1 {
		g.asked = requests[0]
		return
	}
	g.asked = new(session.Revocation)
	for _, r := range requests {
		g.apart = append(g.apart, r.PassOn(g.asked))
	}
}

// holdings are those of a client that have not ended.
type holdings struct {
	mu   sync.Mutex
	live map[*holding]struct{}                      // guarded by mu
	by   map[*session.Session]map[*holding]struct{} // guarded by mu: those that an overseer looks after
}

func (s *holdings) add(g *holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live, s.by = map[*holding]struct{}{}, map[*session.Session]map[*holding]struct{}{}
	}
	s.live[g] = struct{}{}
}

func (s *holdings) remove(g *holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, g)
	for _, n := range g.nodes {
		delete(s.by[n.Sess], g)
	}
}

func (s *holdings) all() []*holding {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.live))
}

// oversee has the holding, unless it has ended, end with the session or its lease. All holdings of
// a session share one overseer. It reports false if the client is closed.
func (s *holdings) oversee(g *holding, sess *session.Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, lasts := s.live[g]; !lasts {
		return true
	}
	if s.by[sess] == nil {
		// Owned by the client; ends when no holding of the session is left, with the session or
		// with the client's life; Close waits for it.
		if !g.c.Calls.Run(func() { s.overseer(g.c.Life, sess) }) {
			return false
		}
		s.by[sess] = map[*holding]struct{}{}
	}
	s.by[sess][g] = struct{}{}
	return true
}

// overseer ends the holdings of a session when that is over or its lease has run out.
func (s *holdings) overseer(life context.Context, sess *session.Session) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		again := sess.Reattached() // a server that takes the session back may give it a shorter timeout
		left := sess.Lease.Remaining()
		if left <= 0 {
			s.loseAll(sess, lapse())
			return
		}
		if s.dismiss(sess) {
			return
		}
		timer.Reset(min(left, sess.Lease.Glance()))
		select {
		case <-sess.Over():
			s.loseAll(sess, fmt.Errorf("%w: session 0x%x is over", ErrLost, sess.ID))
			return
		case <-life.Done(): // Close ends them
			return
		case <-again:
		case <-timer.C:
		}
	}
}

// loseAll ends the holdings of a session, which has no overseer then. All have ended before an
// observer is told of the first.
func (s *holdings) loseAll(sess *session.Session, why error) {
	s.mu.Lock()
	lost := s.by[sess]
	delete(s.by, sess)
	s.mu.Unlock()
	for g := range lost {
		if !g.end(why) {
			delete(lost, g)
		}
	}
	for g := range lost {
		g.settleLater()
	}
}

// dismiss reports whether the session's overseer has nothing left to do, and then has it go.
func (s *holdings) dismiss(sess *session.Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.by[sess]) > 0 {
		return false
	}
	delete(s.by, sess)
	return true
}
