package zklock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Hold is what a caller has of a lock, from a successful acquire until Unlock or until
// it is lost. All methods may be called from several goroutines.
//
// A hold is no sync.Locker: both taking and releasing can fail, and a hold can be lost
// while you work. Do the work under Context, or ask Check before each step; and where
// a stopped process would do harm when it wakes up, use Token or Guard: nothing can
// tell a process anything while it is stopped.
type Hold struct {
	*holding
	outer *Hold // the hold under whose context this one was taken, nil for none
	ctx   context.Context
	end   context.CancelCauseFunc // of ctx alone, for one level of several; else nil

	mu   sync.Mutex
	done bool // guarded by mu: this level was unlocked
}

// holding is what one acquire obtained. Several Holds of one owner can share it.
type holding struct {
	c      *Client
	recipe string
	path   string // as the caller names it
	parts  []*contender
	locks  []*Hold // whose parts these are, if several locks were taken at once
	token  int64
	since  time.Time

	ctx     context.Context
	cancel  context.CancelCauseFunc
	revoked <-chan struct{} // closed when somebody asks for any of the parts
	writing chan struct{}   // has room for the one who writes the node's data: see rewrite

	mu       sync.Mutex
	levels   int           // guarded by mu: Holds that were not unlocked
	released chan struct{} // closed when the nodes are gone, or cannot be removed
	err      error         // set before released is closed: why they could not be removed
}

type holdKey struct{}

// HoldOf returns the hold whose context ctx is or was made from, the innermost if there
// are several; nil if there is none. Inside Do and Election.Run it is what leads to the
// token and the guard.
func HoldOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}

// around calls each for every lock that ctx was made under, innermost first, until it answers false.
func around(ctx context.Context, each func(g *holding) bool) {
	for h := HoldOf(ctx); h != nil; h = h.outer {
		if !each(h.holding) {
			return
		}
		for _, lock := range h.locks {
			if !each(lock.holding) {
				return
			}
		}
	}
}

// newHold makes a hold of contenders that were granted. ctx is the acquiring caller's:
// its values live on in the hold's, its end does not.
func (c *Client) newHold(ctx context.Context, recipe, path string, parts ...*contender) *Hold {
	g := &holding{
		c: c, recipe: recipe, path: path, parts: parts, since: time.Now(),
		levels: 1, released: make(chan struct{}), writing: make(chan struct{}, 1),
	}
	for _, t := range parts {
		g.token = max(g.token, t.token)
	}
	h := &Hold{holding: g, outer: HoldOf(ctx)}
	g.ctx, g.cancel = context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), holdKey{}, h))
	h.ctx = g.ctx
	g.heed()
	c.enlist(g)
	for _, t := range parts {
		t.guard(aloneGrace)
		// Owned by the holding; ends with its context, at the latest by Close, which waits.
		if !c.calls.run(func() { g.attend(t) }) {
			g.lose(ErrClosed)
		}
	}
	return h
}

// attend ends the holding's context when t can no longer be vouched for.
func (g *holding) attend(t *contender) {
	timer := time.NewTimer(t.sess.lease.remaining())
	defer timer.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-t.gone:
			g.lose(t.loss())
		case <-t.sess.over:
			g.lose(fmt.Errorf("%w: session 0x%x is over", ErrLost, t.sess.id))
		case <-timer.C:
			left := t.sess.lease.remaining()
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
	switch {
	case g.locks != nil: // of several locks each tells for itself
	case errors.Is(why, ErrLost):
		g.c.observe(g.event(Lost, why))
	default:
		g.c.observe(g.event(Ended, why))
	}
	g.letGo()
}

// letGo removes the nodes in the background. It is called once, after the context has ended.
func (g *holding) letGo() {
	g.c.delist(g)
	var removed func() error
	if g.locks != nil {
		removed = releaseAll(g.locks, context.Cause(g.ctx))
	} else {
		removed = removeAll(g.parts)
	}
	finish := func() {
		g.err = removed()
		switch released := errors.Is(context.Cause(g.ctx), ErrReleased); {
		case !released || g.locks != nil:
		case g.err != nil:
			g.c.observe(g.event(Ended, g.err))
		default:
			g.c.observe(g.event(Released, nil))
		}
		close(g.released)
	}
	// Owned by the client; ends with the removals, which Close bounds.
	if !g.c.removals.run(finish) {
		finish()
	}
}

// removeAll begins to remove nodes; what it returns waits for the outcome.
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

// Context is done when the hold is over. context.Cause then wraps ErrLost, ErrReleased
// or ErrClosed. It carries the values of the context that the lock was acquired with,
// not its deadline or cancellation. It ends before the server can give the lock to
// anybody else, provided that clocks run at rates within 5 % of each other and that
// this process runs at all.
func (h *Hold) Context() context.Context { return h.ctx }

// Token grows with every grant on the path, for as long as the ensemble lives: give it
// to whatever you write to, and have that refuse a smaller one than it has seen. It is
// a ZooKeeper transaction id, never the node's sequence number, which starts anew with
// a new directory.
func (g *holding) Token() int64 { return g.token }

// Path is the lock's, as it was given to the client.
func (g *holding) Path() string { return g.path }

// Node is the full path of our node in ZooKeeper (of the first, if the hold has several).
func (g *holding) Node() string { return g.parts[0].path() }

// Revoked is closed when somebody has asked us to let go (Client.Revoke, Curator's
// Revoker), of whichever part if the hold has several. It is up to the holder to do so.
func (g *holding) Revoked() <-chan struct{} { return g.revoked }

// Check says whether the hold is valid now, by our clocks and without asking anybody.
// It sees at once what a timer may tell late: that the machine was asleep.
func (h *Hold) Check() error {
	h.vouch()
	if h.ctx.Err() != nil {
		return h.failure("check", context.Cause(h.ctx))
	}
	return nil
}

// vouch ends the holding if its time is up and no timer has told yet.
func (g *holding) vouch() {
	for _, t := range g.parts {
		if g.ctx.Err() == nil && t.sess.lease.remaining() <= 0 {
			g.lose(g.lapse())
		}
	}
}

// Remaining is how long the hold is certain from now on, should nothing more be heard
// from the servers; zero when it is over. Heartbeats make it longer, several times a
// session timeout: between two of them it falls to somewhat less than half of that.
// Whoever needs time to stop what it does (a child process, a device) begins when no
// more than that is left, instead of waiting for Context to end.
func (h *Hold) Remaining() time.Duration {
	if h.ctx.Err() != nil {
		return 0
	}
	left := time.Duration(math.MaxInt64)
	for _, t := range h.parts {
		left = min(left, t.sess.lease.remaining())
	}
	return max(0, left)
}

// Confirm asks the quorum whether the lock is still ours. It costs one write, or several
// where the hold has more nodes than fit in one request. Where the client had been idle
// before it took the lock, Confirm also waits until the session is proven to live without
// the assumption that such a hold begins with, which takes about a quarter of the session
// timeout. An error that does not wrap ErrLost means that there was no answer.
func (h *Hold) Confirm(ctx context.Context) error {
	if err := h.Check(); err != nil {
		return err
	}
	ctx, stop := either(ctx, h.ctx)
	defer stop()
	err := h.c.confirmAll(ctx, h.parts[0].sess, h.parts)
	if err == nil {
		err = h.parts[0].sess.untilProven(ctx)
	}
	if err != nil {
		switch sess := h.parts[0].sess; {
		case errors.Is(err, errGone):
			h.lose(fmt.Errorf("%w: a node was deleted", ErrLost))
			err = context.Cause(h.ctx)
		case errors.Is(err, errSessionOver):
			h.lose(fmt.Errorf("%w: session 0x%x is over", ErrLost, sess.id))
			err = context.Cause(h.ctx)
		}
		return h.failure("confirm", causeOf(ctx, err))
	}
	return h.Check()
}

// Guard returns operations for the front of a transaction of yours: it then commits
// only while the lock is held. They stay true when owner data is written.
func (g *holding) Guard() []any {
	ops := make([]any, len(g.parts))
	for i, t := range g.parts {
		ops[i] = t.exists()
	}
	return ops
}

// Multi executes operations as zk.Conn.Multi does, all or none, and only while the lock
// is held. The paths in ops are ZooKeeper's own, Options.Root is not put before them.
// ErrLost, ErrReleased: nothing was done. ErrUncertain: the answer was lost, or the hold
// ended before it came; the operations may have been done, all or none. ErrInvalid: with the
// guard, one operation for each of our nodes, they do not fit in one request (1 MB). Nothing
// was sent then.
func (h *Hold) Multi(ops ...any) ([]zk.MultiResponse, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	guard := h.Guard()
	if err := checkSize(append(guard, ops...)); err != nil {
		return nil, h.failure("multi", err)
	}
	answers, err := h.c.multi(h.ctx, h.parts[0].sess, append(guard, ops...)...)
	for i := range min(len(guard), len(answers)) {
		if errors.Is(answers[i].Error, zk.ErrNoNode) {
			h.lose(fmt.Errorf("%w: node %s was deleted", ErrLost, h.parts[i].path()))
			return nil, h.failure("multi", context.Cause(h.ctx))
		}
	}
	switch {
	case err == nil:
		return answers[len(guard):], nil
	case isRefusal(err):
		return answers[min(len(guard), len(answers)):], h.failure("multi", err)
	case wasNotSent(err):
		return nil, h.failure("multi", err)
	}
	return nil, h.failure("multi", uncertain(err))
}

// uncertain says that a transaction may have been done although its answer is err. What ended
// the hold meanwhile is told, but cannot be asked for: alone it means that nothing was done.
func uncertain(err error) error {
	for _, end := range []error{ErrLost, ErrReleased, ErrClosed} {
		if errors.Is(err, end) {
			return fmt.Errorf("%w: %v", ErrUncertain, err)
		}
	}
	return errors.Join(ErrUncertain, err)
}

// rewrite gives the hold's node other data. It writes over the very version it has read:
// a request to let go that came between is seen first, and kept. The node's watcher, which
// puts our data back where it was overwritten, knows the new data before it is written.
//
// Callers take turns: of two at once the one that writes last is also the last to say what
// our data is.
func (h *Hold) rewrite(ctx context.Context, value []byte) error {
	if err := h.Check(); err != nil {
		return err
	}
	inside, stop := either(ctx, h.ctx)
	defer stop()
	select {
	case h.writing <- struct{}{}:
		defer func() { <-h.writing }()
	case <-inside.Done():
		return causeOf(inside, inside.Err())
	}
	t := h.parts[0]
	before := t.setOwnData(value)
	var p pace
	for {
		err := h.overwrite(inside, value)
		switch {
		case err == nil:
			return h.Check()
		case errors.Is(err, zk.ErrNoNode):
			h.lose(fmt.Errorf("%w: node %s was deleted", ErrLost, t.path()))
			return context.Cause(h.ctx)
		case errors.Is(err, errSessionOver):
			h.lose(fmt.Errorf("%w: session 0x%x is over", ErrLost, t.sess.id))
			return context.Cause(h.ctx)
		case errors.Is(err, zk.ErrBadVersion):
			continue
		case isRefusal(err):
			t.setOwnData(before)
			return err
		case inside.Err() != nil || !isTransient(err):
			return causeOf(inside, err)
		}
		if err := p.next(inside); err != nil {
			return causeOf(inside, err)
		}
	}
}

// overwrite is one attempt of rewrite. Where we were asked to let go, the data goes on showing it.
func (h *Hold) overwrite(ctx context.Context, value []byte) error {
	t := h.parts[0]
	n, err := h.c.get(ctx, t.sess, t.path())
	if err != nil {
		return err
	}
	t.hear(n)
	_, err = h.c.set(ctx, t.sess, t.path(), t.shown(value), n.stat.Version)
	return err
}

// setOwnData says what our node's data should be from now on.
func (t *contender) setOwnData(data []byte) (before []byte) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	before, t.data = t.data, data
	return before
}

func (g *holding) failure(op string, err error) error {
	return fmt.Errorf("zklock: %s %s: %w", op, printable(g.path), err)
}

// Depth is how many Holds share this one's place in the queue: more than one only
// where a Reentrant was entered again.
func (h *Hold) Depth() int {
	h.holding.mu.Lock()
	defer h.holding.mu.Unlock()
	return h.levels
}

// Unlock ends the hold and gives the lock up. Context ends first, with the cause
// ErrReleased. It returns when the node is gone, or when ctx ends: that stops the
// waiting, not the release, which goes on for as long as the client lives.
//
// The second call returns ErrNotHeld, a call after a loss ErrLost.
func (h *Hold) Unlock(ctx context.Context) error {
	last, err := h.release()
	if err != nil {
		return h.failure("unlock", err)
	}
	if !last {
		return nil
	}
	select {
	case <-h.released:
		if h.err != nil {
			return h.failure("unlock", h.err)
		}
		return nil
	case <-ctx.Done():
		return h.failure("unlock", fmt.Errorf("release goes on: %w", causeOf(ctx, ctx.Err())))
	}
}

// leave unlocks for the library's own calls, whose work may have used ctx up. It waits at
// most for the session timeout: after that long without a server the session, and the
// node with it, is gone anyway.
func (h *Hold) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.parts[0].sess.lease.term())
	defer cancel()
	return h.Unlock(ctx)
}

// release begins to give the lock up, unless other levels hold it; else released tells the end.
func (h *Hold) release() (last bool, err error) {
	if !h.leaveLevel() {
		return false, ErrNotHeld
	}
	last, err = h.drop()
	if h.end != nil {
		h.end(ErrReleased) // no cause replaces an earlier one
	}
	if last {
		h.letGo()
	}
	return last, err
}

func (h *Hold) leaveLevel() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.done
	h.done = true
	return !was
}

// drop takes one level off; with the last one the context ends.
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

// either returns a context that ends with ctx or with other, with the cause of that one.
func either(ctx, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// causeOf completes err, with which a call under ctx failed, so that both what the
// context says and what was its cause can be found with errors.Is.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrLost) || errors.Is(cause, ErrReleased) || errors.Is(cause, ErrClosed):
		return cause
	case errors.Is(cause, ctx.Err()):
		return cause
	}
	return errors.Join(ctx.Err(), cause)
}
