package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/observe"
)

// A wish is what a caller asks for, by whatever recipe and verb.
type wish struct {
	verb   string // for errors: "lock", "try", "campaign"
	recipe string // its name, for observers
	path   string // as the caller names it
	// get returns the place that was granted. On an error, it has left the queue. dir is the
	// path in ZooKeeper.
	get func(ctx context.Context, dir string) (*place, error)
}

// obtain is the one way to a hold.
func (c *Client) obtain(ctx context.Context, w wish) (*Hold, error) {
	start := time.Now()
	granted, attempted, err := c.fulfil(ctx, w)
	if err != nil {
		err = fmt.Errorf("zklock: %s %s: %w", w.verb, printable(w.path), err)
		if attempted {
			c.observeFailure(ctx, w, time.Since(start), err)
		}
		return nil, err
	}
	defer c.acquires.leave()
	h := c.hold(ctx, w.recipe, w.path, granted)
	ev := h.of.event(observe.Acquired, nil)
	ev.Elapsed = time.Since(start)
	c.observe(ev)
	return h, nil
}

// fulfil returns the place that a wish was granted. If there is no error the caller must call acquires.leave.
// attempted is false for a bad argument.
func (c *Client) fulfil(ctx context.Context, w wish) (_ *place, attempted bool, _ error) {
	dir, err := c.admit(ctx, w.path)
	if err != nil {
		return nil, !errors.Is(err, ErrInvalid), err
	}
	inside, stop := either(ctx, c.life)
	defer stop()
	granted, err := w.get(inside, dir)
	if err != nil {
		c.acquires.leave()
		return nil, true, c.explain(inside, err)
	}
	return granted, true, nil
}

// lock acquires by any recipe that stands in the queue at path.
func (c *Client) lock(ctx context.Context, verb string, r *recipe, path string, data []byte) (*Hold, error) {
	return c.obtain(ctx, wish{verb, r.name, path, func(ctx context.Context, dir string) (*place, error) {
		return c.inTurn(ctx, path, func(s *session, asked *revocation) (*place, error) {
			return c.queue(ctx, s, c.newPlace(r, dir, data), path, asked)
		})
	}})
}

// tryLock is lock without the waiting.
func (c *Client) tryLock(ctx context.Context, r *recipe, path string, data []byte) (*Hold, error) {
	return c.obtain(ctx, wish{"try", r.name, path, func(ctx context.Context, dir string) (*place, error) {
		return atOnce(ctx, c, func(ctx context.Context, s *session) (*place, error) {
			return c.tryAcquire(ctx, s, c.newPlace(r, dir, data))
		})
	}})
}

// atOnce runs try for a caller that waits for nobody, not for a server either: its context
// ends, and the error is ErrNotConnected, when the connection that it began on is lost.
func atOnce[T any](ctx context.Context, c *Client, try func(ctx context.Context, s *session) (T, error)) (T, error) {
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
	granted, err := try(inside, s)
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

// admit checks what can be known without a server and returns the full path. If there
// is no error the caller must call acquires.leave.
func (c *Client) admit(ctx context.Context, path string) (string, error) {
	if err := checkPath(path); err != nil {
		return "", err
	}
	if ctx.Err() != nil {
		return "", causeOf(ctx, ctx.Err())
	}
	if c.holdsUnder(ctx, path, "") {
		return "", ErrDeadlock
	}
	if !c.acquires.enter() {
		return "", ErrClosed
	}
	return c.root + path, nil
}

// holdsUnder reports whether ctx was made under a hold of the lock at path that lasts, of
// another recipe than the one named.
func (c *Client) holdsUnder(ctx context.Context, path, except string) (held bool) {
	around(ctx, func(g *holding) bool {
		held = g.c == c.engine && g.path == path && g.recipe != except && g.ctx.Err() == nil
		return !held
	})
	return held
}

// inTurn queues until an attempt was granted its place. An attempt that lost its place, with
// its session or because somebody deleted its node, is followed by another. A request to let
// go that one of them was asked is for all.
func (c *Client) inTurn(ctx context.Context, path string, attempt func(s *session, asked *revocation) (*place, error)) (*place, error) {
	asked := new(revocation)
	for {
		s, err := c.link.Attached(ctx)
		if err != nil {
			return nil, err
		}
		t, err := attempt(s, asked)
		if err == nil {
			return t, nil
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
func (c *Client) queue(ctx context.Context, s *session, t *place, path string, asked *revocation) (*place, error) {
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
func (c *Client) tryAcquire(ctx context.Context, s *session, t *place) (*place, error) {
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

// untilGone returns a context that ends with ctx or, with errGone, when the node is found gone.
func (c *Client) untilGone(ctx context.Context, n *ownNode) (context.Context, func()) {
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
func (c *Client) discard(ctx context.Context, err error, t *place) {
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
func (c *Client) looksFree(ctx context.Context, s *session, r *recipe, dir string) (bool, error) {
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

// observeFailure reports an attempt that failed.
func (c *Client) observeFailure(ctx context.Context, w wish, took time.Duration, err error) {
	kind := observe.Refused
	if ctx.Err() != nil || errors.Is(err, ErrClosed) {
		kind = observe.GivenUp
	}
	c.observe(observe.Event{Kind: kind, Recipe: w.recipe, Path: w.path, Elapsed: took, Err: err})
}

// hold returns a hold of a place that was granted.
func (c *Client) hold(ctx context.Context, recipe, path string, granted *place) *Hold {
	lead := granted.contender // its place in the queue is not needed any more
	g := &holding{c: c.engine, among: &c.holds, recipe: recipe, path: path, nodes: lead.nodes(), token: granted.token}
	g.release = func(why error) func() error {
		lead.lost = g.wasLost(why)
		return removeAll(lead.whole())
	}
	h := newHold(ctx, g)
	for t := range lead.each {
		t.guard(aloneGrace)
		g.watchOver(&t.ownNode)
	}
	return h
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
