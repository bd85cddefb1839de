// Package queue stands in line: a contender creates its node, finds its place, waits for those ahead of it, is granted, and leaves.
// A caller says what it wants, and gets back a Grant.
package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/observe"
)

// A Want is what an acquire stands in a queue for.
type Want struct {
	Recipe *Recipe
	Path   string // as the caller names it
	Dir    string // in ZooKeeper
	Data   []byte // of its node
	// replaces is deleted by the transaction that creates our node; nil for none. It leaves the queue
	// whatever comes of the acquire.
	Replaces *Grant
	Before   func() // called before each attempt to stand in the queue; nil for nothing
}

// place returns a new place for the want.
func (c *Engine) place(w *Want) *place {
	t := c.newPlace(w.Recipe, w.Dir, w.Data)
	if w.Replaces != nil {
		t.creation.replace(w.Replaces.t)
		w.Replaces = nil
	}
	if w.Before != nil {
		w.Before()
	}
	return t
}

// giveBack removes the node that no attempt has taken the place of.
func (c *Engine) giveBack(w *Want) {
	if w.Replaces != nil {
		c.remove(w.Replaces.t)
	}
}

// Obtain waits until the want, which is used up, is granted its place.
func (c *Engine) Obtain(ctx context.Context, w *Want) (*Grant, error) {
	defer c.giveBack(w)
	return c.inTurn(ctx, w.Path, func(s *session.Session, asked *session.Revocation) (*place, error) {
		return c.queue(ctx, s, c.place(w), w.Path, asked)
	})
}

// TryObtain is obtain for a caller that waits for no other contender. It returns ErrLocked if it
// would have to.
func (c *Engine) TryObtain(ctx context.Context, w *Want) (*Grant, error) {
	defer c.giveBack(w)
	s, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	t, err := c.tryAcquire(ctx, s, c.place(w))
	return t.granted(), err
}

// session returns the session that the connection carries, and waits for one, unless ctx has ended.
func (c *Engine) session(ctx context.Context) (*session.Session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return c.Link.Attached(ctx)
}

// inTurn queues until an attempt was granted its place. An attempt that lost its place, with
// its session or because somebody deleted its node, is followed by another. A request to let
// go that one of them was asked is for all.
func (c *Engine) inTurn(ctx context.Context, path string, attempt func(s *session.Session, asked *session.Revocation) (*place, error)) (*Grant, error) {
	asked := new(session.Revocation)
	for {
		s, err := c.session(ctx)
		if err != nil {
			return nil, err
		}
		t, err := attempt(s, asked)
		if err == nil {
			return t.granted(), nil
		}
		c.discard(ctx, err, t)
		if ctx.Err() != nil || !errors.Is(err, outcome.ErrSessionOver) && !errors.Is(err, outcome.ErrGone) {
			return nil, err
		}
		c.logAgain(path, err)
	}
}

// logAgain logs that an attempt is followed by another. The arguments would be a part of every waiter's stack.
func (c *Engine) logAgain(path string, why error) {
	c.Log.Info("zklock: queueing again", "path", path, "why", why)
}

// queue enters the queue with a new place and waits for its turn, once. The place that it returns
// with an error is to be discarded.
func (c *Engine) queue(ctx context.Context, s *session.Session, t *place, path string, asked *session.Revocation) (*place, error) {
	t.Asked = asked
	err := t.prepare(ctx, s)
	if err == nil {
		err = t.enter(ctx, s)
	}
	if err == nil {
		t.observeQueued(path)
		err = t.wait(ctx)
	}
	if err == nil {
		err = t.becomeHolder(ctx, true)
	}
	if err == nil {
		err = t.grant(ctx, nil)
	}
	return t, t.unlessEvicted(ctx, err)
}

// observeQueued reports that the place was found. An event in the frame of queue would be a part of every waiter's stack.
func (t *place) observeQueued(path string) {
	t.c.Observe(observe.Event{Kind: observe.Queued, Recipe: t.recipe.Name, Path: path, Node: t.Name, Behind: t.seen})
}

// tryAcquire enters the queue with a new place only where it sees nobody to wait for.
func (c *Engine) tryAcquire(ctx context.Context, s *session.Session, t *place) (*place, error) {
	if err := t.prepare(ctx, s); err != nil {
		return nil, err
	}
	if !c.mayBeAlone(t.Dir) && t.creation.replaces == nil {
		free, err := c.looksFree(ctx, s, t.recipe, t.Dir)
		if err != nil {
			return nil, err
		}
		if !free {
			return nil, outcome.ErrLocked
		}
	}
	if err := t.try(ctx, s); err != nil {
		err = t.unlessEvicted(ctx, err)
		c.discard(ctx, err, t)
		return nil, err
	}
	return t, nil
}

// try has the place granted if nobody stands in its way.
func (t *place) try(ctx context.Context, s *session.Session) error {
	t.keepAll()
	if err := t.enter(ctx, s); err != nil {
		return err
	}
	for t.unsure {
		if err := t.findPlace(ctx, nil); err != nil {
			return err
		}
	}
	switch i, err := t.c.obstacle(ctx, s, t.recipe, t.Dir, t.ahead); {
	case err != nil:
		return err
	case i >= 0:
		return outcome.ErrLocked
	}
	if len(t.ahead) > 0 {
		t.watchSelf(0) // what lets us pass was seen later than our own node
	}
	if err := t.becomeHolder(ctx, false); err != nil {
		return err
	}
	return t.grant(ctx, nil)
}

// AtOnce runs try for a caller that waits for nobody, not for a server either: its context
// ends, and the error is ErrNotConnected, when the connection that it began on is lost, or has not served it for five session
// timeouts. It may have to ask several times, and each answer may come late.
func AtOnce[T any](ctx context.Context, c *Engine, try func(ctx context.Context) (T, error)) (T, error) {
	var none T
	s, changed := c.Link.State()
	if s == nil {
		return none, outcome.ErrNotConnected
	}
	again := s.Reattached()
	inside, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	defer time.AfterFunc(5*s.Lease.Term(), func() { cut(errUnserved) }).Stop()
	// Owned by this call; ends with it; Close waits for it.
	if !c.Calls.Run(func() {
		if c.Link.AwaitLoss(inside, s, changed, again) {
			cut(errCutOff)
		}
	}) {
		return none, outcome.ErrClosed
	}
	granted, err := try(inside)
	switch {
	case err == nil, ctx.Err() != nil:
		return granted, err
	case inside.Err() != nil:
		return none, context.Cause(inside)
	}
	return none, notConnected(err)
}

// These end attempts that do not wait for another connection.
var (
	errCutOff   = fmt.Errorf("%w: it was lost meanwhile", outcome.ErrNotConnected)
	errUnserved = fmt.Errorf("%w that does what it is asked for", outcome.ErrNotConnected)
)

// untilGone returns a context that ends with ctx or, with errGone, when the node is found gone.
func untilGone(ctx context.Context, n *session.OwnNode) (context.Context, func()) {
	ctx, cut := context.WithCancelCause(ctx)
	n.WhenGone(func() { cut(outcome.ErrGone) })
	return ctx, func() { cut(nil) }
}

// discard leaves a place, nil for none, that came to nothing because of err. A caller that
// does not wait for others gets its answer when nothing is left in the queue. One that has lost its node queues again when that
// counts no more: both together may be more than a client may own.
func (c *Engine) discard(ctx context.Context, err error, t *place) {
	if t == nil {
		return
	}
	outcomes := []<-chan error{c.remove(t.contender)}
	if a := t.creation; a != nil && a.replaces != nil {
		outcomes = append(outcomes, c.remove(a.replaces))
	}
	if !errors.Is(err, outcome.ErrLocked) && !errors.Is(err, outcome.ErrGone) {
		return
	}
	for _, removed := range outcomes {
		select {
		case <-removed:
		case <-ctx.Done():
		}
	}
}

// looksFree reports whether a newcomer would have nobody to wait for.
func (c *Engine) looksFree(ctx context.Context, s *session.Session, r *Recipe, dir string) (bool, error) {
	l, err := c.List(ctx, s, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if err := c.notASemaphore(ctx, s, dir, l.Line()); err != nil {
		return false, err
	}
	if err := c.notDelayed(r, l.Line()); err != nil {
		return false, err
	}
	i, err := c.obstacle(ctx, s, r, dir, l.Line().Entries)
	return i < 0, err
}

// notConnected marks what a lost connection does to a call that does not wait for another.
func notConnected(err error) error {
	if errors.Is(err, outcome.ErrNotConnected) {
		return err
	}
	if outcome.IsTransient(err) || errors.Is(err, outcome.ErrSessionOver) || errors.Is(err, outcome.ErrGone) {
		return fmt.Errorf("%w: %w", outcome.ErrNotConnected, err)
	}
	return err
}

// unlessEvicted returns ErrEvicted instead of an error that says that our node is gone if it, or
// one that was made together with it, was evicted. A process that was stopped meanwhile finds its session over first.
func (t *contender) unlessEvicted(ctx context.Context, err error) error {
	if !errors.Is(err, outcome.ErrGone) && !errors.Is(err, outcome.ErrSessionOver) || t.guid == "" || t.c.untrusted {
		return err
	}
	dir := node.EvictedIn(t.Dir, t.recipe.limited)
	n, readErr := session.Persist(ctx, t.c.Requests, func(s *session.Session) (session.Node, error) {
		return session.UpToDate(ctx, t.c.Requests, s, func() (session.Node, error) { return t.c.Get(ctx, s, dir) })
	})
	if readErr != nil {
		return err
	}
	b, _ := node.ParseDirData(n.Data)
	for x := range t.each {
		if slices.Contains(b.Evicted, x.guid) {
			return outcome.ErrEvicted
		}
	}
	return err
}
