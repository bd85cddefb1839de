package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/observe"
)

// A want is what an acquire stands in a queue for.
type want struct {
	recipe *recipe
	path   string // as the caller names it
	dir    string // in ZooKeeper
	data   []byte // of its node
	// replaces is deleted by the transaction that creates our node; nil for none. It leaves the queue
	// whatever comes of the acquire.
	replaces *grant
	before   func() // called before each attempt to stand in the queue; nil for nothing
}

// place returns a new place for the want.
func (c *engine) place(w *want) *place {
	t := c.newPlace(w.recipe, w.dir, w.data)
	if w.replaces != nil {
		t.replaces, w.replaces = w.replaces.t, nil
	}
	if w.before != nil {
		w.before()
	}
	return t
}

// giveBack removes the node that no attempt has taken the place of.
func (c *engine) giveBack(w *want) {
	if w.replaces != nil {
		c.remove(w.replaces.t)
	}
}

// obtain waits until the want is granted its place.
func (c *engine) obtain(ctx context.Context, w want) (*grant, error) {
	defer c.giveBack(&w)
	return c.inTurn(ctx, w.path, func(s *session, asked *revocation) (*place, error) {
		return c.queue(ctx, s, c.place(&w), w.path, asked)
	})
}

// tryObtain is obtain for a caller that waits for no other contender. It returns ErrLocked if it
// would have to.
func (c *engine) tryObtain(ctx context.Context, w want) (*grant, error) {
	defer c.giveBack(&w)
	s, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	t, err := c.tryAcquire(ctx, s, c.place(&w))
	return t.granted(), err
}

// session returns the session that the connection carries, and waits for one, unless ctx has ended.
func (c *engine) session(ctx context.Context) (*session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return c.link.Attached(ctx)
}

// inTurn queues until an attempt was granted its place. An attempt that lost its place, with
// its session or because somebody deleted its node, is followed by another. A request to let
// go that one of them was asked is for all.
func (c *engine) inTurn(ctx context.Context, path string, attempt func(s *session, asked *revocation) (*place, error)) (*grant, error) {
	asked := new(revocation)
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
		if ctx.Err() != nil || !errors.Is(err, errSessionOver) && !errors.Is(err, errGone) {
			return nil, err
		}
		c.log.Info("zklock: queueing again", "path", path, "why", err)
	}
}

// queue enters the queue with a new place and waits for its turn, once. The place that it returns
// with an error is to be discarded.
func (c *engine) queue(ctx context.Context, s *session, t *place, path string, asked *revocation) (*place, error) {
	t.asked = asked
	err := t.prepare(ctx, s)
	if err == nil {
		err = t.enter(ctx, s)
	}
	if err == nil {
		c.observe(observe.Event{Kind: observe.Queued, Recipe: t.recipe.name, Path: path, Node: t.name, Behind: len(t.ahead)})
		err = t.wait(ctx)
	}
	if err == nil {
		err = t.succeed(ctx, true)
	}
	if err == nil {
		err = t.grant(ctx, nil)
	}
	return t, t.unlessEvicted(ctx, err)
}

// tryAcquire enters the queue with a new place only where it sees nobody to wait for.
func (c *engine) tryAcquire(ctx context.Context, s *session, t *place) (*place, error) {
	if err := t.prepare(ctx, s); err != nil {
		return nil, err
	}
	if !c.mayBeAlone(t.dir) && t.replaces == nil {
		free, err := c.looksFree(ctx, s, t.recipe, t.dir)
		if err != nil {
			return nil, err
		}
		if !free {
			return nil, ErrLocked
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
func (t *place) try(ctx context.Context, s *session) error {
	if err := t.enter(ctx, s); err != nil {
		return err
	}
	for t.unsure {
		if err := t.findPlace(ctx, listing{}, zk.ErrNoNode); err != nil {
			return err
		}
	}
	switch i, err := t.c.obstacle(ctx, s, t.recipe, t.dir, t.ahead); {
	case err != nil:
		return err
	case i >= 0:
		return ErrLocked
	}
	if t.recipe.rule(t.ahead) >= 0 {
		t.guard(0) // what lets us pass was seen later than our own node
	}
	if err := t.succeed(ctx, false); err != nil {
		return err
	}
	return t.grant(ctx, nil)
}

// atOnce runs try for a caller that waits for nobody, not for a server either: its context
// ends, and the error is ErrNotConnected, when the connection that it began on is lost.
func atOnce[T any](ctx context.Context, c *engine, try func(ctx context.Context) (T, error)) (T, error) {
	var none T
	s, changed := c.link.State()
	if s == nil {
		return none, ErrNotConnected
	}
	again := s.Reattached()
	inside, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	// Owned by this call; ends with it; Close waits for it.
	if !c.calls.run(func() {
		if c.link.AwaitLoss(inside, s, changed, again) {
			cut(errCutOff)
		}
	}) {
		return none, ErrClosed
	}
	granted, err := try(inside)
	switch {
	case err == nil, ctx.Err() != nil:
		return granted, err
	case errors.Is(context.Cause(inside), errCutOff):
		return none, errCutOff
	}
	return none, notConnected(err)
}

// errCutOff ends attempts that do not wait for another connection.
var errCutOff = fmt.Errorf("%w: it was lost meanwhile", ErrNotConnected)

// untilGone returns a context that ends with ctx or, with errGone, when the node is found gone.
func (c *engine) untilGone(ctx context.Context, n *ownNode) (context.Context, func()) {
	ctx, cut := context.WithCancelCause(ctx)
	// Owned by the caller; ends when that calls what is returned; Close waits for it.
	c.calls.run(func() {
		select {
		case <-n.gone.done():
			cut(errGone)
		case <-ctx.Done():
		}
	})
	return ctx, func() { cut(nil) }
}

// discard leaves a place, nil for none, that came to nothing because of err. A caller that
// does not wait for others gets its answer when nothing is left in the queue.
func (c *engine) discard(ctx context.Context, err error, t *place) {
	if t == nil {
		return
	}
	var outcomes []<-chan error
	for x := range t.each {
		outcomes = append(outcomes, c.remove(x))
	}
	if t.replaces != nil {
		outcomes = append(outcomes, c.remove(t.replaces))
	}
	if !errors.Is(err, ErrLocked) {
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
func (c *engine) looksFree(ctx context.Context, s *session, r *recipe, dir string) (bool, error) {
	l, err := c.list(ctx, s, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if err := c.notASemaphore(ctx, s, dir, l.names); err != nil {
		return false, err
	}
	if err := c.notDelayed(r, l.names); err != nil {
		return false, err
	}
	i, err := c.obstacle(ctx, s, r, dir, parseEntries(l.names))
	return i < 0, err
}

// notConnected marks what a lost connection does to a call that does not wait for another.
func notConnected(err error) error {
	if errors.Is(err, ErrNotConnected) {
		return err
	}
	if isTransient(err) || errors.Is(err, errSessionOver) || errors.Is(err, errGone) {
		return fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	return err
}

// removeAll takes leave of nodes, and returns a function that deletes them and returns the
// outcome.
func removeAll(parts []*contender) func() error {
	removals := make([]func() error, len(parts))
	for i, t := range parts {
		removals[i] = t.c.beginRemoval(t)
	}
	return func() (err error) {
		for _, remove := range removals {
			err = errors.Join(err, remove())
		}
		return err
	}
}

// unlessEvicted returns ErrEvicted instead of an error that says that our node is gone if it, or
// one that was made together with it, was evicted. A process that was stopped meanwhile finds its session over first.
func (t *contender) unlessEvicted(ctx context.Context, err error) error {
	if !errors.Is(err, errGone) && !errors.Is(err, errSessionOver) || t.guid == "" || t.c.untrusted {
		return err
	}
	dir := boardOf(t.dir, t.recipe.limited)
	n, readErr := persist(ctx, t.c.requests, func(s *session) (node, error) {
		return upToDate(ctx, t.c.requests, s, func() (node, error) { return t.c.get(ctx, s, dir) })
	})
	if readErr != nil {
		return err
	}
	b, _ := parseBoard(n.data)
	for x := range t.each {
		if slices.Contains(b.evicted, x.guid) {
			return ErrEvicted
		}
	}
	return err
}
