// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/internal/lease"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/observe"
)

// holding is the result of one acquire. Several Holds of a Reentrant can share it.
type holding struct {
	engine *queue.Engine
	set    *holdings
	recipe string
	path   string       // as the caller passed it
	grant  *queue.Grant // nil for a holding of several locks
	nodes  []*session.OwnNode
	parts  []*Hold // the holds that own nodes, if several locks were acquired together
	token  int64   // the largest one if there are several
	since  time.Time

	// release starts to release the lock, given the reason why the holding ended, and calls done,
	// which does not wait, with the outcome.
	release func(why error, done func(error))
	quiet   bool // its end is not reported to the observer, because each of its locks or local holds reports its own

	downgraded atomic.Bool // whether Downgrade was called

	ctx            context.Context
	cancel         context.CancelCauseFunc
	revocation     *session.Revocation // set when any of the nodes is revoked
	stopForwarding []func()            // each stops forwarding a node's revocation to revocation; other holds may share the node

	mu       sync.Mutex
	writing  chan struct{}                // guarded by mu: see turnToWrite; nil before the first write
	levels   int                          // guarded by mu: the number of Holds that are not unlocked
	onEnd    map[*endHook]struct{}        // guarded by mu: see Hold.OnEnd
	expiring map[expiryKey]*session.Latch // guarded by mu: see Hold.Expiring
	err      error                        // set before removed: why the lock could not be released
	removed  session.Latch                // set when the lock is released or cannot be: nobody who hands it on waits for an observer
	released session.Latch                // set after removed, when the observer was notified, which may take long: Unlock waits for it
}

// begin starts the holding with one level. Its context has the values of the context values, which
// never ends.
func (ho *holding) begin(values context.Context) {
	ho.since, ho.levels = time.Now(), 1
	ho.ctx, ho.cancel = context.WithCancelCause(values)
	ho.joinRevocations()
	if len(ho.parts) == 0 { // otherwise it ends with its parts
		ho.set.add(ho)
	}
}

// turnToWrite returns the channel with which writers of the node's data take turns: see rewrite.
func (ho *holding) turnToWrite() chan struct{} {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	if ho.writing == nil {
		ho.writing = make(chan struct{}, 1)
	}
	return ho.writing
}

// watchOver ends the holding when the node, its session or its lease ends.
func (ho *holding) watchOver(n *session.OwnNode) {
	if !ho.set.oversee(ho, n.Sess) {
		ho.lose(ErrClosed)
		return
	}
	n.WhenGone(func() {
		if last, _ := ho.end(ho.lost(n)); last {
			ho.settleLater()
		}
	})
}

// leaseExpired returns the reason why a holding ends when its lease has run out. idle is how long no
// overseer has run, although they run often: then nothing else in the process has, either.
func leaseExpired(idle time.Duration, l *lease.Lease) error {
	if idle > l.Term()/4 {
		return fmt.Errorf("%w: this process did not run for %v (stopped, asleep or short of CPU time), unless its clock was set", ErrLost, idle.Round(10*time.Millisecond))
	}
	return fmt.Errorf("%w: no quorum has answered for nearly a session timeout", ErrLost)
}

// lose ends the holding for a reason that wraps ErrLost or ErrClosed, notifies the observer, and
// removes its nodes. A holding of several locks keeps the ones that are not lost until it is
// unlocked, because the caller may still be working under them.
func (ho *holding) lose(why error) {
	if last, _ := ho.end(why); last && len(ho.parts) == 0 {
		ho.settle()
	}
}

// end ends the holding for the reason why. This is the only place where a holding ends. ErrReleased ends
// one level, and the holding with the last one. If last is true, the holding has ended now, and the
// caller must call settle. If it had already ended, end returns the reason.
func (ho *holding) end(why error) (last bool, err error) {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	if ho.ctx.Err() != nil {
		return false, context.Cause(ho.ctx)
	}
	if why == ErrReleased {
		ho.levels--
		if ho.levels > 0 {
			return false, nil
		}
	}
	ho.cancel(why)
	ho.callHooks()
	return true, nil
}

// An endHook is a function that is called when a hold ends: see Hold.OnEnd.
type endHook struct {
	life   context.Context // of its Hold
	cancel context.CancelCauseFunc
}

// onEndOf is Hold.OnEnd for the one of the holding's Holds that has the context life.
func (ho *holding) onEndOf(life context.Context, cancel context.CancelCauseFunc) (stop func()) {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	if life.Err() != nil {
		cancel(context.Cause(life))
		return func() {}
	}
	hook := &endHook{life, cancel}
	if ho.onEnd == nil {
		ho.onEnd = map[*endHook]struct{}{}
	}
	ho.onEnd[hook] = struct{}{}
	return func() {
		ho.mu.Lock()
		defer ho.mu.Unlock()
		delete(ho.onEnd, hook)
	}
}

// endOnly is called when one Hold has ended and others of the holding may continue.
func (ho *holding) endOnly() {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	ho.callHooks()
}

// callHooks calls the hooks of the Holds that have ended. It must be called with mu held: a goroutine
// that finds that the holding has ended, and then lets another one hold the lock, has waited for the
// hooks.
func (ho *holding) callHooks() {
	for hook := range ho.onEnd {
		if hook.life.Err() != nil {
			delete(ho.onEnd, hook)
			hook.cancel(context.Cause(hook.life))
		}
	}
}

// settle must be called once, after the holding has ended. It notifies the observer, unless the
// holding was released, and releases the lock in the background.
func (ho *holding) settle() {
	why := context.Cause(ho.ctx)
	switch {
	case errors.Is(why, ErrLost):
		ho.report(observe.Lost, why)
	case !errors.Is(why, ErrReleased):
		ho.report(observe.Ended, why)
	}
	ho.askWhy(why)
	ho.set.remove(ho)
	for _, part := range ho.stopForwarding {
		part()
	}
	ho.release(why, func(err error) {
		ho.err = err
		ho.removed.Set()
		ho.reportRelease(why)
	})
}

// settleLater is settle for a caller that must not wait for a connection.
func (ho *holding) settleLater() {
	// Owned by the client; ends when the release was sent; Close waits for it.
	if !ho.engine.Requests.Calls.Run(ho.settle) {
		ho.settle()
	}
}

// reportRelease reports the release of the holding, which ended for the reason why, to the observer,
// and then sets released. The end of a holding that was not released has been reported already.
func (ho *holding) reportRelease(why error) {
	done := func() { ho.released.Set() }
	switch {
	case ho.quiet:
		ho.engine.Reporter.AfterNotices(done)
	case !errors.Is(why, ErrReleased):
		done()
	case ho.err != nil:
		ho.engine.Reporter.ObserveLater(ho.event(observe.Ended, ho.err), done)
	default:
		ho.engine.Reporter.ObserveLater(ho.event(observe.Released, nil), done)
	}
}

// errUnanswered is returned by Unlock if the outcome of the release is unknown.
var errUnanswered = fmt.Errorf("%w: no quorum has answered for a session timeout; the release continues", ErrUncertain)

// awaitRelease waits until the lock is released or cannot be. If the servers do not answer, it
// waits no longer than their session timeout.
func (ho *holding) awaitRelease(ctx context.Context) error {
	timer := time.NewTimer(ho.untilExpired())
	defer timer.Stop()
	for {
		select {
		case <-ho.released.Done():
			return ho.err
		case <-ctx.Done():
			return fmt.Errorf("release continues: %w", outcome.Beside(ctx, outcome.CauseOf(ctx, ctx.Err())))
		case <-timer.C:
		}
		if ho.removed.IsSet() {
			return ho.err // an observer has not returned
		}
		left := ho.untilExpired()
		if left <= 0 {
			return errUnanswered
		}
		timer.Reset(left)
	}
}

// untilExpired returns how long it takes until a session timeout has passed since the last proof of
// each session.
func (ho *holding) untilExpired() (left time.Duration) {
	for _, n := range ho.nodes {
		l := n.Sess.Lease
		left = max(left, l.Remaining()+l.Term()/20) // the lease is 95 % of the session timeout
	}
	return left
}

// report reports to the observer how the holding has ended.
func (ho *holding) report(kind observe.Kind, err error) {
	if !ho.quiet {
		ho.engine.Reporter.Observe(ho.event(kind, err))
	}
}

func (ho *holding) event(kind observe.Kind, err error) observe.Event {
	return observe.Event{Kind: kind, Recipe: ho.recipe, Path: ho.path, Node: ho.nodes[0].Name, Token: ho.token, Elapsed: time.Since(ho.since), Err: err}
}

func (ho *holding) String() string { return ho.describe(context.Cause(ho.ctx)) }

// describe describes a hold that ended for the reason why, or that has not ended if why is nil.
func (ho *holding) describe(why error) string {
	if len(ho.nodes) == 0 {
		return "not held"
	}
	ho.mu.Lock()
	levels := ho.levels
	ho.mu.Unlock()
	state := fmt.Sprintf("holds for %v", time.Since(ho.since).Round(time.Millisecond))
	if why != nil {
		state = fmt.Sprintf("ended (%v)", why)
	}
	return fmt.Sprintf("%s %s: levels=%d token=%d %v", ho.nodes[0].Path(), state, levels, ho.token, ho.nodes[0].Sess.Lease)
}

// checkLease ends the holding if its lease has run out and no timer has noticed yet.
func (ho *holding) checkLease() {
	for _, part := range ho.parts {
		part.holding().checkLease() // the holding ends with it
	}
	for _, n := range ho.nodes {
		if ho.ctx.Err() == nil && n.Sess.Lease.Remaining() <= 0 {
			ho.lose(leaseExpired(ho.set.idle(ho.engine.Requests.Link.Now()), n.Sess.Lease))
		}
	}
}

func (ho *holding) failure(op string, err error) error {
	return fmt.Errorf("zklock: %s %s: %w", op, node.Printable(ho.path), err)
}

// joinRevocations sets revocation to a Revocation that is set when any of the nodes is revoked.
func (ho *holding) joinRevocations() {
	var requests []*session.Revocation
	for _, n := range ho.nodes {
		if len(requests) == 0 || requests[len(requests)-1] != n.Revocation { // permits that were acquired together share one
			requests = append(requests, n.Revocation)
		}
	}
	if len(requests) == 1 {
		ho.revocation = requests[0]
		return
	}
	ho.revocation = new(session.Revocation)
	for _, r := range requests {
		ho.stopForwarding = append(ho.stopForwarding, r.Forward(ho.revocation))
	}
}

// nodeLoss is the reason why a holding ended whose node is gone. The holding ends before anybody knows
// why the node is gone. The client then asks the servers, and from then on the same error says it: it
// may wrap ErrEvicted in addition to ErrLost.
type nodeLoss struct {
	of    *holding
	at    time.Time
	first error                 // the reason without what the servers know
	why   atomic.Pointer[error] // the reason with it; nil if it is not known
	final session.Latch         // set when the error no longer changes: why is known, or the client has given up
}

func (l *nodeLoss) Error() string { return l.Unwrap().Error() }

func (l *nodeLoss) Unwrap() error {
	if why := l.why.Load(); why != nil {
		return *why
	}
	return l.first
}

// lost returns the reason with which the holding ends because the node is gone.
func (ho *holding) lost(n *session.OwnNode) error {
	why := n.Loss()
	if !n.WasDeleted() {
		return why
	}
	return &nodeLoss{of: ho, at: time.Now(), first: why}
}

// askWhy asks the servers why a node of the holding is gone: an operator has evicted it, or the session
// has expired. It does not wait. why is the reason why the holding has ended; if that is not one of its
// own nodes, askWhy does nothing.
func (ho *holding) askWhy(why error) {
	l, ok := why.(*nodeLoss)
	if !ok || l.of != ho {
		return
	}
	ask := func() {
		defer l.final.Set()
		ctx, cancel := context.WithDeadline(ho.engine.Requests.Life, l.at.Add(l.patience()))
		defer cancel()
		switch fate := ho.grant.Fate(ctx); {
		case errors.Is(fate, ErrEvicted):
			l.know(fmt.Errorf("%w: %w", ErrLost, fate))
			ho.engine.Requests.Log.Warn("zklock: lock was evicted", "path", ho.path, "node", ho.nodes[0].Name, "err", l)
		case errors.Is(fate, outcome.ErrSessionOver):
			l.know(fmt.Errorf("%w, because its session has expired", l.first))
		}
	}
	// Owned by the client; ends within the question's time; Close waits for it.
	if !ho.engine.Requests.Calls.Run(ask) {
		l.final.Set()
	}
}

func (l *nodeLoss) know(why error) { l.why.Store(&why) }

// patience is how long after the loss the servers are asked for its reason.
func (l *nodeLoss) patience() time.Duration { return l.of.engine.Requests.Term() / 4 }

// awaitReason waits until the reason for a loss is known or the client has given up, or until ctx ends.
// That is at most a quarter of the session timeout after the loss.
func awaitReason(ctx context.Context, why error) {
	var l *nodeLoss
	if !errors.As(why, &l) {
		return
	}
	select {
	case <-l.final.Done():
	case <-ctx.Done():
	}
}

// holdings contains the holdings of a client that have not ended.
type holdings struct {
	mu   sync.Mutex
	live map[*holding]struct{}                      // guarded by mu
	by   map[*session.Session]map[*holding]struct{} // guarded by mu: the holdings that an overseer watches

	looked atomic.Pointer[lease.Instant] // when an overseer has looked at its lease last, or has begun; nil before the first one
}

// idle returns how long no overseer has looked at its lease.
func (hs *holdings) idle(now lease.Instant) time.Duration {
	if looked := hs.looked.Load(); looked != nil {
		return now.Since(*looked)
	}
	return 0
}

func (hs *holdings) add(g *holding) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.live == nil {
		hs.live, hs.by = map[*holding]struct{}{}, map[*session.Session]map[*holding]struct{}{}
	}
	hs.live[g] = struct{}{}
}

func (hs *holdings) remove(g *holding) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	delete(hs.live, g)
	for _, n := range g.nodes {
		delete(hs.by[n.Sess], g)
	}
}

func (hs *holdings) all() []*holding {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return slices.Collect(maps.Keys(hs.live))
}

// oversee makes the holding end with the session or its lease, unless it has already ended. All
// holdings of a session share one overseer. It returns false if the client is closed.
func (hs *holdings) oversee(g *holding, sess *session.Session) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if _, lasts := hs.live[g]; !lasts {
		return true
	}
	if hs.by[sess] == nil {
		// Owned by the client; ends when no holding of the session is left, with the session or
		// with the client's life; Close waits for it.
		now := g.engine.Requests.Link.Now
		begun := now()
		hs.looked.Store(&begun)
		if !g.engine.Requests.Calls.Run(func() { hs.overseer(g.engine.Requests.Life, now, sess) }) {
			return false
		}
		hs.by[sess] = map[*holding]struct{}{}
	}
	hs.by[sess][g] = struct{}{}
	return true
}

// overseer ends the holdings of a session when the session is over or its lease has run out.
func (hs *holdings) overseer(life context.Context, now func() lease.Instant, sess *session.Session) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		again := sess.Reattached() // a server that resumes the session may give it a shorter timeout
		looked := now()
		left := sess.Lease.Remaining()
		if left <= 0 {
			hs.loseAll(sess, leaseExpired(hs.idle(looked), sess.Lease))
			return
		}
		hs.looked.Store(&looked)
		if hs.dismiss(sess) {
			return
		}
		timer.Reset(min(left, sess.Lease.Glance()))
		select {
		case <-sess.Over():
			hs.loseAll(sess, fmt.Errorf("%w: session 0x%x is over", ErrLost, sess.ID))
			return
		case <-life.Done(): // nobody watches the lease from now on
			hs.loseAll(sess, ErrClosed)
			return
		case <-again:
		case <-timer.C:
		}
	}
}

// loseAll ends the holdings of a session. The session has no overseer afterwards. All of them have
// ended before an observer is notified of the first.
func (hs *holdings) loseAll(sess *session.Session, why error) {
	hs.mu.Lock()
	lost := hs.by[sess]
	delete(hs.by, sess)
	hs.mu.Unlock()
	for g := range lost {
		if last, _ := g.end(why); !last {
			delete(lost, g)
		}
	}
	for g := range lost {
		g.settleLater()
	}
}

// dismiss reports whether the session's overseer has no holdings left, and unregisters it if so.
func (hs *holdings) dismiss(sess *session.Session) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if len(hs.by[sess]) > 0 {
		return false
	}
	delete(hs.by, sess)
	return true
}
