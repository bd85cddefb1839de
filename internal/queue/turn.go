// SPDX-License-Identifier: Apache-2.0

// Package queue implements waiting in a lock's queue: a contender creates its node, finds its
// position, waits for the contenders ahead of it, is granted the lock, and leaves. A caller
// describes what it needs with a Want and gets a Grant.
package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/observe"
)

// A Want describes an acquire.
type Want struct {
	Recipe *Recipe
	Path   string // as the caller specified it
	Dir    string // the path in ZooKeeper
	Data   []byte // the node's data
	// Replaces is deleted by the transaction that creates our node; nil if there is none. It leaves
	// the queue even if the acquire fails.
	Replaces *Grant
	Before   func() // called before each attempt to enter the queue; may be nil
	Admit    Admission
	progress progress
}

// WaitsFor returns what the acquire waits for now, or "" if that is only a connection or a reply.
// Any goroutine may call it.
func (w *Want) WaitsFor() string { return w.progress.text() }

// newWaiterFor returns a new waiter for the want.
func (en *Engine) newWaiterFor(w *Want) *waiter {
	wa := en.newWaiter(w.Recipe, w.Dir, w.Data, &w.progress)
	if w.Replaces != nil {
		wa.creation.replaces = w.Replaces.lead
		w.Replaces = nil
	}
	if w.Before != nil {
		w.Before()
	}
	return wa
}

// giveBack removes the node to be replaced if no attempt has replaced it.
func (en *Engine) giveBack(w *Want) {
	if w.Replaces != nil {
		en.remove(w.Replaces.lead)
	}
}

// Obtain waits until w is granted. It uses w up.
func (en *Engine) Obtain(ctx context.Context, w *Want) (*Grant, error) {
	defer en.giveBack(w)
	return en.inTurn(ctx, w.Path, &w.progress, func(s *session.Session, revocation *session.Revocation) (*waiter, error) {
		return en.queue(ctx, s, en.newWaiterFor(w), w, revocation)
	})
}

// TryObtain is like Obtain for a caller that does not wait for other contenders. It returns
// ErrLocked if it would have to wait.
func (en *Engine) TryObtain(ctx context.Context, w *Want) (*Grant, error) {
	defer en.giveBack(w)
	return en.withoutWaiting(ctx, &w.progress, func(s *session.Session) (*waiter, error) { return en.tryAcquire(ctx, s, en.newWaiterFor(w)) })
}

// withoutWaiting makes one attempt for a caller that does not wait for other contenders. The attempt shows
// in pr what it waits for.
func (en *Engine) withoutWaiting(ctx context.Context, pr *progress, attempt func(s *session.Session) (*waiter, error)) (*Grant, error) {
	defer en.acquires.remove(pr)
	s, err := en.session(ctx)
	var wa *waiter
	if err == nil {
		wa, err = attempt(s)
	}
	if err != nil && ctx.Err() != nil {
		err = en.explain(err, pr)
	}
	return wa.granted(), err
}

// session returns the session of the current connection. It waits for one, unless ctx is already
// done.
func (en *Engine) session(ctx context.Context) (*session.Session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return en.Requests.Link.Attached(ctx)
}

// inTurn calls attempt until one is granted. It starts another attempt if one lost its position
// because its session ended or because its node was deleted. A revocation request for one attempt
// applies to all. The attempts show in pr what they wait for.
func (en *Engine) inTurn(ctx context.Context, path string, pr *progress, attempt func(s *session.Session, revocation *session.Revocation) (*waiter, error)) (*Grant, error) {
	defer en.acquires.remove(pr)
	revocation := new(session.Revocation)
	for {
		s, err := en.session(ctx)
		var wa *waiter
		if err == nil {
			wa, err = attempt(s, revocation)
		}
		if err == nil {
			return wa.granted(), nil
		}
		en.discard(ctx, err, wa)
		if ctx.Err() != nil {
			return nil, en.explain(err, pr)
		}
		if !errors.Is(err, outcome.ErrSessionOver) && !errors.Is(err, outcome.ErrGone) {
			return nil, err
		}
		pr.clear()
		en.logAgain(path, err)
	}
}

// logAgain logs that another attempt follows. It is a separate function to keep its arguments off
// every waiter's stack.
func (en *Engine) logAgain(path string, why error) {
	en.Requests.Log.Info("zklock: place in queue lost, queueing again", "path", path, "err", why)
}

// queue makes one attempt: it enters the queue with a new waiter and waits for its turn. If it
// returns an error, the caller must discard the waiter.
func (en *Engine) queue(ctx context.Context, s *session.Session, wa *waiter, w *Want, revocation *session.Revocation) (*waiter, error) {
	returned := false
	defer wa.abandonUnless(&returned)
	wa.Revocation = revocation
	err := wa.prepare(ctx, s)
	if err == nil {
		err = wa.enter(ctx, s)
	}
	if err == nil {
		err = wa.verify(ctx, s)
	}
	if err == nil {
		err = wa.observeQueued(w.Path)
	}
	if err == nil {
		err = wa.admit(w.Admit)
	}
	if err == nil {
		err = wa.wait(ctx)
	}
	if err == nil {
		err = wa.becomeHolder(ctx, true)
	}
	if err == nil {
		err = wa.grant(ctx, nil)
	}
	err = wa.unlessEvicted(ctx, err)
	returned = true
	return wa, err
}

// An Admission decides, with the number of contenders ahead, whether an acquire that has entered the
// queue and must wait does so. Its error ends the acquire. It may be nil.
type Admission func(ahead int) error

// admit returns the error of the admission, or nil if the waiter need not wait.
func (wa *waiter) admit(may Admission) error {
	if may == nil || len(wa.nearest.ahead) == 0 && wa.nearest.beyond == 0 {
		return nil
	}
	return may(wa.nearest.seen)
}

// observeQueued reports the position in the queue. If the client is closed meanwhile, it returns an error. It is a separate function
// to keep the event off every waiter's stack.
func (wa *waiter) observeQueued(path string) error {
	ev := observe.Event{Kind: observe.Queued, Recipe: wa.recipe.Name, Path: path, Node: wa.Name, Ahead: wa.nearest.seen}
	if wa.recipe.ForSeveral {
		wa.engine.Reporter.ObserveLater(ev, func() {})
		return nil
	}
	return wa.lend(func() { wa.engine.Reporter.Observe(ev) })
}

// tryAcquire enters the queue with a new waiter only if it sees no contender to wait for.
func (en *Engine) tryAcquire(ctx context.Context, s *session.Session, wa *waiter) (*waiter, error) {
	if err := wa.prepare(ctx, s); err != nil {
		return nil, err
	}
	if !en.mayBeAlone(wa.Dir) && wa.creation.replaces == nil {
		free, err := en.looksFree(ctx, s, wa.recipe, wa.Dir)
		if err != nil {
			return nil, err
		}
		if !free {
			return nil, outcome.ErrLocked
		}
	}
	returned := false
	defer wa.abandonUnless(&returned)
	err := wa.try(ctx, s)
	returned = true
	if err != nil {
		err = wa.unlessEvicted(ctx, err)
		en.discard(ctx, err, wa)
		return nil, err
	}
	return wa, nil
}

// try acquires the lock if no contender blocks it.
func (wa *waiter) try(ctx context.Context, s *session.Session) error {
	wa.nearest.keepAll()
	if err := wa.enter(ctx, s); err != nil {
		return err
	}
	for wa.nearest.unsure {
		if err := wa.findPosition(ctx, nil); err != nil {
			return err
		}
	}
	switch i, err := wa.engine.blocker(ctx, s, wa.recipe, wa.Dir, wa.nearest.ahead); {
	case err != nil:
		return err
	case i >= 0:
		if err := wa.verify(ctx, s); err != nil {
			return err
		}
		return outcome.ErrLocked
	}
	if len(wa.nearest.ahead) > 0 {
		wa.watchSelf() // the reply that showed our turn is newer than our last look at our own node
	}
	if err := wa.becomeHolder(ctx, false); err != nil {
		return err
	}
	return wa.grant(ctx, nil)
}

// WithoutWaiting runs try for a caller that waits neither for other contenders nor for a server. Its
// context is canceled, and the error is ErrNotConnected, if the connection that it started on is
// lost or has not served it within five session timeouts. The limit is that long because try may
// send several requests, and each reply may be slow.
func WithoutWaiting[T any](ctx context.Context, c *Engine, try func(ctx context.Context) (T, error)) (T, error) {
	var none T
	s, changed := c.Requests.Link.State()
	if s == nil {
		return none, outcome.ErrNotConnected
	}
	again := s.Reattached()
	inside, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	defer time.AfterFunc(5*s.Lease.Term(), func() { cut(errUnserved) }).Stop()
	// Owned by this call; ends with it; Close waits for it.
	if !c.Requests.Calls.Run(func() {
		if c.Requests.Link.AwaitLoss(inside, s, changed, again) {
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
		return none, outcome.WithWaitOf(err, context.Cause(inside))
	}
	return none, notConnected(err)
}

// The causes of attempts that do not wait for another connection.
var (
	errCutOff   = fmt.Errorf("%w: connection lost", outcome.ErrNotConnected)
	errUnserved = fmt.Errorf("%w: request not served within five session timeouts", outcome.ErrNotConnected)
)

// untilGone returns a context that is done when ctx is done or, with cause ErrGone, when the node
// is found to be gone.
func untilGone(ctx context.Context, n *session.OwnNode) (context.Context, func()) {
	ctx, cut := context.WithCancelCause(ctx)
	n.WhenGone(func() { cut(outcome.ErrGone) })
	return ctx, func() { cut(nil) }
}

// discard removes a waiter, which may be nil, that failed with err. A caller that does not wait for
// others gets its result once nothing is left in the queue. A caller that lost its node queues
// again once that node is no longer counted: both nodes together may exceed what a client may own.
func (en *Engine) discard(ctx context.Context, err error, wa *waiter) {
	if wa == nil {
		return
	}
	outcomes := wa.abandon()
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

// abandon removes the nodes of an attempt: its own, and the one that it was to replace.
func (co *contender) abandon() []<-chan error {
	outcomes := []<-chan error{co.engine.remove(co)}
	if a := co.creation; a != nil && a.replaces != nil {
		outcomes = append(outcomes, co.engine.remove(a.replaces))
	}
	return outcomes
}

// abandonUnless abandons an attempt that has not returned. If the program's observer or context has
// panicked and the program recovers, no caller receives the waiter, whose node would stay in the queue.
func (co *contender) abandonUnless(returned *bool) {
	if !*returned {
		co.abandon()
	}
}

// looksFree reports whether a newcomer would have no contender to wait for.
func (en *Engine) looksFree(ctx context.Context, s *session.Session, r *Recipe, dir string) (bool, error) {
	l, err := en.Requests.List(ctx, s, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if err := en.notASemaphore(ctx, s, dir, l.Queue()); err != nil {
		return false, err
	}
	if err := en.checkDelay(r, l.Queue()); err != nil {
		return false, err
	}
	i, err := en.blocker(ctx, s, r, dir, l.Queue().Entries)
	return i < 0, err
}

// notConnected marks the errors that a lost connection causes in a call that does not wait for
// another connection.
func notConnected(err error) error {
	if errors.Is(err, outcome.ErrNotConnected) {
		return err
	}
	if outcome.IsTransient(err) || errors.Is(err, outcome.ErrSessionOver) || errors.Is(err, outcome.ErrGone) {
		return fmt.Errorf("%w: %w", outcome.ErrNotConnected, err)
	}
	return err
}
