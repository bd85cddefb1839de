// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/bridge"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// Hold is a lock held by a caller, from a successful acquire until Unlock or until the lock is
// lost. Its methods are safe for concurrent use by multiple goroutines.
//
// A lock is not a sync.Locker: acquiring and releasing it can fail, and a hold can be lost while
// you work. Work under Context, or call Check before each step. If a process that was stopped could
// do harm when it resumes, use Token or Guard as well: a process cannot be notified while it is
// stopped.
type Hold struct {
	from  *holding
	life  context.Context
	under context.Context         // the acquiring caller's, without its cancellation: see values
	end   context.CancelCauseFunc // cancels this level's context alone, for one level of several or a hold in a shared place; otherwise nil
	local *localHold              // for a hold in a shared place, after which other goroutines of the process may hold there; otherwise nil
	done  atomic.Bool             // whether this level was unlocked
}

// A chain lists the holds that a context was derived from, innermost first. A nil chain is empty.
type chain struct {
	hold  *Hold
	outer atomic.Pointer[chain]
}

func newChain(h *Hold, outer *chain) *chain {
	c := &chain{hold: h}
	c.outer.Store(outer)
	return c
}

type chainKey struct{}

func chainOf(ctx context.Context) *chain {
	c, _ := ctx.Value(chainKey{}).(*chain)
	return c
}

// each yields the holds.
func (c *chain) each(yield func(h *Hold) bool) {
	for ; c != nil && yield(c.hold); c = c.outer.Load() {
	}
}

// HoldAt returns the hold of the lock at path whose Context ctx is or was derived from, or nil if
// there is none. path is the path as it was passed to the client. Use HoldAt for the token and the guard
// of a write, so that they belong to the lock that protects the write, whatever other locks the caller
// holds:
//
//	save(ctx, zklock.HoldAt(ctx, "/locks/orders/42").Token())
//
// If ctx belongs to a hold of several locks from LockAll, HoldAt returns the hold of that lock alone.
// If there are several holds of the lock, it returns the innermost.
//
// A nil Hold behaves like a hold that has ended for the reason ErrNotHeld. Its token is -1, which a
// store that compares tokens refuses.
func HoldAt(ctx context.Context, path string) *Hold {
	for h := range chainOf(ctx).each {
		if at := h.of(path); at != nil {
			return at
		}
	}
	return nil
}

// HoldOf returns the hold of any lock whose Context ctx is or was derived from. If there are several, it
// returns the innermost; if there is none, it returns nil, as HoldAt does. Use it only where ctx cannot
// belong to a hold of another lock, for example at the beginning of a function under Do or Election.Run.
// Elsewhere use HoldAt: a later caller of the function may hold a second lock.
func HoldOf(ctx context.Context) *Hold {
	for h := range chainOf(ctx).each {
		return h
	}
	return nil
}

// of returns h if it is of the lock at path, the hold of that lock if h is of several, and nil
// otherwise.
func (h *Hold) of(path string) *Hold {
	g := h.holding()
	if len(g.parts) == 0 && g.path == path {
		return h
	}
	for _, part := range g.parts {
		if at := part.of(path); at != nil {
			return at
		}
	}
	return nil
}

// noToken is the token of what is not held. A store that compares tokens refuses it, even if it
// begins with zero.
const noToken = -1

// noHold stands in for a nil or zero Hold. It has ended, and it never held anything.
var noHold = newNoHold()

func newNoHold() *Hold {
	g := &holding{engine: none.engine, set: &none.holds, revocation: new(session.Revocation), token: noToken}
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	g.cancel(ErrNotHeld)
	h := &Hold{from: g, life: g.ctx}
	h.done.Store(true)
	return h
}

// known returns h, or noHold if h was not returned by an acquire.
func (h *Hold) known() *Hold {
	if h == nil || h.from == nil {
		return noHold
	}
	return h
}

func (h *Hold) holding() *holding { return h.known().from }

// prune returns the chain without the holds that have no effect any more. It also takes them out of
// c behind its first hold: a later hold would otherwise keep all earlier ones in memory.
func (c *chain) prune() *chain {
	if c == nil {
		return nil
	}
	outer := c.outer.Load().prune()
	c.outer.Store(outer)
	if c.hold.hasNoEffect() {
		return outer
	}
	return c
}

// hasNoEffect reports whether the hold was unlocked, and nothing else of its holding is held.
func (h *Hold) hasNoEffect() bool {
	return h.done.Load() && (h.local != nil || h.holding().ctx.Err() != nil)
}

// enclose returns ctx, marked as derived from the hold.
func (h *Hold) enclose(ctx context.Context) context.Context {
	if h.isAround(ctx) {
		return ctx
	}
	return context.WithValue(ctx, chainKey{}, newChain(h, chainOf(ctx)))
}

// values returns the values that the context of a hold has, in addition to its end: those of the
// acquiring caller's context ctx, and the holds that this was derived from. If ctx is the context of
// another hold, it takes the values under which that one was acquired: so a program that acquires each
// lock under the hold of the previous one does not keep all of them.
func (h *Hold) values(ctx context.Context) context.Context {
	h.under = context.WithoutCancel(ctx)
	if outer := HoldOf(ctx); outer != nil && outer.life == ctx {
		h.under = outer.under
	}
	return context.WithValue(h.under, chainKey{}, newChain(h, chainOf(ctx).prune()))
}

// isAround reports whether ctx was derived from the hold.
func (h *Hold) isAround(ctx context.Context) bool {
	for other := range chainOf(ctx).each {
		if other == h {
			return true
		}
	}
	return false
}

// holdings yields the holdings of the holds, and those of their parts.
func (c *chain) holdings(yield func(g *holding) bool) {
	for h := range c.each {
		if h.local != nil && h.Context().Err() != nil {
			continue // this hold has ended, but the holding continues for other goroutines
		}
		g := h.holding()
		if !yield(g) {
			return
		}
		for _, part := range g.parts {
			g := part.holding()
			if g.quiet && h.Context().Err() != nil {
				continue // as above
			}
			if !yield(g) {
				return
			}
		}
	}
}

// newHold starts a holding and returns its first Hold.
func newHold(ctx context.Context, g *holding) *Hold {
	h := &Hold{from: g}
	g.begin(h.values(ctx))
	h.life = g.ctx
	return h
}

// Context returns a context that ends with the hold; context.Cause then wraps ErrLost, ErrReleased
// or ErrClosed. It ends before the servers can grant the lock to anyone else. This assumes that the
// clocks of client and servers run at rates within 5 % of each other, and that this process is
// running. The context has the values of the context that was passed to the acquire, but not its
// deadline or cancellation.
func (h *Hold) Context() context.Context { return h.known().life }

// OnEnd arranges for cancel to be called with the cause when the hold ends, in the same step in
// which Context ends: before anyone else can acquire the lock. If the hold has already ended, OnEnd
// calls cancel at once. The returned function undoes this. Use it to end your own context with
// the hold:
//
//	ctx, cancel := context.WithCancelCause(ctx)
//	defer hold.OnEnd(cancel)()
//
// context.AfterFunc is not suited for this, because it starts a goroutine, and someone else may
// hold the lock before it runs. cancel must return immediately and must not use the hold, as is
// the case for the functions that package context returns.
func (h *Hold) OnEnd(cancel context.CancelCauseFunc) (stop func()) {
	return h.holding().onEndOf(h.Context(), cancel)
}

// Token returns a number that increases with every grant of the path, for as long as the ensemble
// keeps its data. Pass it along with your writes, and have the store reject tokens smaller than the
// largest it has seen. The token is the id of the ZooKeeper transaction that created the node. It
// is not the node's sequence number, which restarts in a new directory. A nil Hold has the token -1,
// which is smaller than every other.
func (h *Hold) Token() int64 { return h.holding().token }

// Path returns the lock's path, as it was passed to the client. For a hold of several locks it
// returns all paths, sorted and separated by commas.
func (h *Hold) Path() string { return h.holding().path }

// Recipe returns the name of the lock's recipe, as events have it: "mutex", "reentrant", "cohort",
// "write", "read", "semaphore" or "election". After Downgrade it is "read". For a hold of several
// locks it is "all".
func (h *Hold) Recipe() string {
	g := h.holding()
	if g.downgraded.Load() {
		return readerRecipe.Name
	}
	return g.recipe
}

// Node returns the full path of the hold's node in ZooKeeper, or of the first one if the hold has
// several.
func (h *Hold) Node() string {
	for _, n := range h.holding().nodes {
		return n.Path()
	}
	return ""
}

// String describes the hold for people: its node, how long it has been held or why it ended, the
// number of levels that are not unlocked (a Reentrant can have several), its token and its lease.
func (h *Hold) String() string { return h.holding().describe(context.Cause(h.Context())) }

// Revoked returns a channel that is closed when operate.Revoke or Curator's Revoker asks the holder
// to release the lock. For a hold of several locks, it is closed when any of them is revoked. The
// holder decides whether and when to unlock.
func (h *Hold) Revoked() <-chan struct{} { return h.holding().revocation.Requested.Done() }

// Check returns nil if the hold is still valid. Otherwise it returns an error that wraps ErrLost,
// ErrReleased or ErrClosed. It sends no request. It compares the lease with the clock, so it
// notices immediately that the machine was asleep, which a timer may notice late.
func (h *Hold) Check() error { return h.unlessOver("check") }

// unlessOver returns nil if the hold is still valid, and otherwise the error of the operation op.
func (h *Hold) unlessOver(op string) error {
	if why := h.over(); why != nil {
		return h.holding().failure(op, why)
	}
	return nil
}

// over returns why the hold has ended, or nil if it has not. It checks the clock first, in case the
// lease has run out and no timer has noticed yet.
func (h *Hold) over() error {
	h.holding().checkLease()
	if h.Context().Err() != nil {
		return context.Cause(h.Context())
	}
	return nil
}

// Remaining returns how long the hold is guaranteed to last if no further reply arrives from the
// servers, or zero if it has ended. Heartbeats extend it several times per session timeout; between
// two heartbeats it falls to about 0.4 of the session timeout, or lower on a slow network.
//
// If stopping your work takes time (a child process, a device), start to stop it when Remaining
// falls to that time, instead of waiting for Context to end.
func (h *Hold) Remaining() time.Duration {
	if h.Context().Err() != nil {
		return 0
	}
	left := time.Duration(math.MaxInt64)
	for _, n := range h.holding().nodes {
		left = min(left, n.Sess.Lease.Remaining())
	}
	return max(0, left)
}

// Confirm asks the quorum whether the lock is still held, and returns nil if it is. If the lock is
// not held, the error wraps ErrLost, ErrReleased or ErrClosed. Any other error means that there was
// no reply; the hold is unchanged. Confirm costs one write, or several if the hold has more nodes
// than fit into one request.
func (h *Hold) Confirm(ctx context.Context) error {
	if err := h.unlessOver("confirm"); err != nil {
		return err
	}
	ctx, stop := session.Either(ctx, h.Context())
	defer stop()
	g := h.holding()
	err := g.engine.Heart.ConfirmAll(ctx, g.nodes[0].Sess, g.nodes)
	if err != nil {
		if errors.Is(err, outcome.ErrSessionOver) { // after ErrGone, ConfirmAll has ended the hold
			g.lose(fmt.Errorf("%w: session 0x%x is over", ErrLost, g.nodes[0].Sess.ID))
		}
		return g.failure("confirm", h.causeOf(ctx, err))
	}
	return h.unlessOver("confirm")
}

// causeOf returns the error of a call that failed with err, where ctx also ends with the hold. If
// the hold has ended, it returns the reason; otherwise, if ctx has ended, the reason for that.
//
// It looks at ctx first: the hold ends before the contexts that end with it. A look at ctx after the
// one at the hold could find the end of the hold, and would take it for that of another one.
func (h *Hold) causeOf(ctx context.Context, err error) error {
	ended := ctx.Err() != nil
	switch {
	case h.Context().Err() != nil:
		return context.Cause(h.Context())
	case ended:
		return outcome.Beside(ctx, outcome.CauseOf(ctx, err))
	}
	return err
}

// Guard returns operations to put in front of your transaction's operations. The transaction then commits
// only while the lock is held. They check that the hold's nodes exist; a change to the nodes' data
// does not affect them.
//
// For a nil or zero Hold, Guard returns an operation that makes the transaction fail before it is
// sent.
func (h *Hold) Guard() []any {
	nodes := h.holding().nodes
	if len(nodes) == 0 {
		return []any{noGuard{}}
	}
	ops := make([]any, len(nodes))
	for i, n := range nodes {
		ops[i] = n.Exists()
	}
	return ops
}

// noGuard is an operation that the client library does not know and rejects.
type noGuard struct{}

// Multi executes operations as zk.Conn.Multi does, all or none, and only while the lock is held.
// The paths in ops are full ZooKeeper paths: neither the servers' chroot nor Options.Root is
// prepended. Multi takes no context: it ends with the hold, because a caller that left earlier would
// hold a lock without knowing which of its writes took effect.
//
// If the error wraps ErrLost or ErrReleased, nothing was done. If it wraps ErrUncertain, the reply
// was lost or the hold ended before the reply arrived: either all operations were done or none. If
// the servers refuse an operation, nothing was done either: the error wraps the client library's, and
// the responses say which operation it was. If the error wraps ErrInvalid, nothing was sent: the
// operations and the guard do not fit into one request (1 MB).
//
// A server that throttles can refuse the whole request. Multi then sends it again, up to five times
// in a third of a second plus five round trips. If the last one is refused too, Multi returns an
// error that wraps none of these, and nothing was done.
//
// Multi costs one write, like zk.Conn.Multi. The guard adds to it one operation, which only reads, for
// each of the hold's nodes: more than one for LockAll and for several permits.
func (h *Hold) Multi(ops ...any) ([]zk.MultiResponse, error) {
	g := h.holding()
	if err := h.unlessOver("multi"); err != nil {
		return nil, err
	}
	guard := h.Guard()
	if err := node.CheckSize(append(guard, ops...)); err != nil {
		return nil, g.failure("multi", err)
	}
	answers, err := g.engine.Requests.Multi(h.Context(), g.nodes[0].Sess, append(guard, ops...)...)
	for i := range min(len(guard), len(answers)) {
		if errors.Is(answers[i].Error, zk.ErrNoNode) {
			g.nodes[i].MarkGone(nil)
			return nil, g.failure("multi", context.Cause(h.Context()))
		}
	}
	switch {
	case err == nil:
		return answers[len(guard):], nil
	case outcome.IsRefusal(err):
		return answers[min(len(guard), len(answers)):], g.failure("multi", err)
	case outcome.WasNotDone(err):
		return nil, g.failure("multi", err)
	}
	return nil, g.failure("multi", uncertain(err))
}

// uncertain returns the error of a transaction that failed with err but may have been committed. If
// err says that the hold ended, that is only included as text and cannot be found with errors.Is,
// because ErrLost without ErrUncertain means that nothing was done.
func uncertain(err error) error {
	for _, end := range []error{ErrLost, ErrReleased, ErrClosed} {
		if errors.Is(err, end) {
			return fmt.Errorf("%w: %v", ErrUncertain, err)
		}
	}
	return errors.Join(ErrUncertain, err)
}

// rewrite replaces the data of the hold's node. It overwrites only the version that it has read, so
// that a revocation that arrives in between is noticed and kept. It passes the new data to the
// node's watcher before it writes, because the watcher restores our data if another client
// overwrites it.
//
// Callers take turns, so that the last caller to write is also the last to update the watcher.
func (h *Hold) rewrite(ctx context.Context, value []byte) error {
	if err := h.over(); err != nil {
		return err
	}
	inside, stop := session.Either(ctx, h.Context())
	defer stop()
	g := h.holding()
	turn := g.turnToWrite()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-inside.Done():
		return h.causeOf(inside, inside.Err())
	}
	own := g.nodes[0]
	before := own.SetOwnData(value)
	var p session.Pace
	for {
		err := h.overwrite(inside, value)
		switch {
		case err == nil:
			return h.over()
		case errors.Is(err, zk.ErrNoNode):
			own.MarkGone(nil)
			return context.Cause(h.Context())
		case errors.Is(err, outcome.ErrSessionOver):
			g.lose(fmt.Errorf("%w: session 0x%x is over", ErrLost, own.Sess.ID))
			return context.Cause(h.Context())
		case errors.Is(err, zk.ErrBadVersion):
			continue
		case outcome.IsRefusal(err):
			own.SetOwnData(before)
			return err
		case inside.Err() != nil || !outcome.IsTransient(err):
			return h.causeOf(inside, err)
		}
		if err := p.Next(inside); err != nil {
			return h.causeOf(inside, err)
		}
	}
}

// overwrite makes one attempt at rewrite. If a revocation was requested, the new data contains it
// too.
func (h *Hold) overwrite(ctx context.Context, value []byte) error {
	g := h.holding()
	own := g.nodes[0]
	n, err := g.engine.Requests.Get(ctx, own.Sess, own.Path())
	if err != nil {
		return err
	}
	own.Hear(n)
	_, err = g.engine.Requests.Set(ctx, own.Sess, own.Path(), own.KeepRevocation(value), n.Stat.Version)
	return err
}

// Unlock ends the hold: first its Context, with the cause ErrReleased, then its node. On success
// the node is gone, unless other holds of the process share it: see Reentrant and Cohort. If ctx
// ends first, Unlock returns an error that wraps ctx.Err(), and the release continues for as long
// as the client lives. If ctx derives from the hold's context and is not yet done, only its
// deadline applies: the end of the hold does not cancel the wait.
//
// Unlock needs no deadline. If the servers do not answer, it returns an error that wraps
// ErrUncertain once a session timeout has passed since the last proof that the session was alive.
// By then the servers free the lock by themselves; the release also continues.
//
// After a loss Unlock returns ErrLost. If the node was deleted, the client asks the servers why as soon as it
// knows of the loss, and Unlock waits for the answer, until a quarter of the session timeout after the loss
// at the latest. If operate.Evict deleted the node, the error also wraps ErrEvicted. A second call returns ErrReleased, which wraps ErrNotHeld.
func (h *Hold) Unlock(ctx context.Context) error {
	ctx, stop := h.outlast(ctx)
	defer stop()
	if err := h.unlock(ctx); err != nil {
		awaitReason(ctx, err)
		return h.holding().failure("unlock", err)
	}
	return nil
}

// unlock releases the lock and waits until that is done. It returns an error if the hold had ended.
func (h *Hold) unlock(ctx context.Context) error {
	last, err := h.release()
	if last {
		err = join(err, h.holding().awaitRelease(ctx))
	}
	return err
}

// join returns an error that wraps a and b, or one of them if the other is nil.
func join(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return errors.Join(a, b)
}

// outlast returns ctx without the cancellation that the end of the hold would cause, if ctx was
// derived from the hold's context and has not ended. Its deadline is kept.
func (h *Hold) outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil || !h.isAround(ctx) {
		return ctx, func() {}
	}
	if due, ok := ctx.Deadline(); ok {
		return context.WithDeadline(context.WithoutCancel(ctx), due)
	}
	return context.WithoutCancel(ctx), func() {}
}

// release starts to release the lock. It returns an error if the hold had already ended. last
// reports whether there is something to wait for: the holding's released latch, which is set when
// the release is done.
func (h *Hold) release() (last bool, err error) {
	if h.known().done.Swap(true) {
		if h.known() == noHold {
			return false, ErrNotHeld
		}
		return false, ErrReleased
	}
	if h.local != nil {
		return false, h.local.giveUp()
	}
	g := h.holding()
	last, err = g.end(ErrReleased)
	if h.end != nil {
		h.end(ErrReleased) // if it has already ended, its cause stays
		g.endOnly()
	}
	if len(g.parts) > 0 && !errors.Is(err, ErrClosed) {
		last = true // after a loss, this releases the other locks
	}
	if last {
		g.settle()
	}
	return last, err
}

// level returns a Hold whose context ends with its own Unlock or with the holding. The caller has
// already counted the level.
func (ho *holding) level(ctx context.Context) *Hold {
	h := &Hold{from: ho}
	life, end := context.WithCancelCause(ho.ctx)
	if first := chainOf(ho.ctx); first != nil {
		first.outer.Store(nil) // each level has a chain of its own
	}
	h.life = levelContext{life, h.values(ctx)}
	h.end = end
	return h
}

// levelContext ends when Context does, and has the values of values.
type levelContext struct {
	context.Context
	values context.Context
}

func (l levelContext) Value(key any) any {
	if v := l.values.Value(key); v != nil {
		return v
	}
	return l.Context.Value(key) // package context finds the cause through Value
}

func init() {
	bridge.HoldOf = func(hold any) bridge.Hold {
		g := hold.(*Hold).holding()
		return bridge.Hold{Engine: g.engine, Nodes: g.nodes}
	}
}
