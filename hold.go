package zklock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// Hold is a lock that a caller has, from a successful acquire until Unlock or until it is
// lost. Its methods are safe for use by several goroutines.
//
// A lock is not a sync.Locker: both taking and releasing it can fail, and a hold can be lost
// while you work. Work under Context, or call Check before each step. If a process that was
// stopped would do harm when it wakes up, use Token or Guard as well: nothing can notify a
// process while it is stopped.
type Hold struct {
	from  *holding
	life  context.Context
	end   context.CancelCauseFunc // of ctx alone, for one level of several; else nil
	local releaser                // of a hold in a shared place, which other holds of the process may follow; else nil
	done  atomic.Bool             // this level was unlocked
}

// A releaser is one hold of several in a shared place.
type releaser interface {
	// giveUp ends the hold. If it has ended before, giveUp returns why.
	giveUp() error
}

// A chain is the holds that a context was derived from, innermost first. Nil is none.
type chain struct {
	hold  *Hold
	outer *chain
}

type chainKey struct{}

func chainOf(ctx context.Context) *chain {
	c, _ := ctx.Value(chainKey{}).(*chain)
	return c
}

// each yields the holds.
func (c *chain) each(yield func(h *Hold) bool) {
	for ; c != nil && yield(c.hold); c = c.outer {
	}
}

// HoldOf returns the hold whose Context ctx is or was derived from: the innermost if there
// are several, nil if there is none. It gives access to the token and the guard inside Do
// and Election.Run. The methods of a nil Hold return ErrNotHeld or nothing.
func HoldOf(ctx context.Context) *Hold {
	for h := range chainOf(ctx).each {
		return h
	}
	return nil
}

// noHold is what a nil or zero Hold stands for: it has ended, and nobody had it.
var noHold = newNoHold()

func newNoHold() *Hold {
	g := &holding{c: none.engine, among: &none.holds, asked: new(session.Revocation), unfenced: true}
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	g.cancel(ErrNotHeld)
	h := &Hold{from: g, life: g.ctx}
	h.done.Store(true)
	return h
}

// known returns h, or noHold for a Hold that no acquire has returned.
func (h *Hold) known() *Hold {
	if h == nil || h.from == nil {
		return noHold
	}
	return h
}

func (h *Hold) of() *holding { return h.known().from }

// enclose returns ctx as a context that was derived from the hold.
func (h *Hold) enclose(ctx context.Context) context.Context {
	if h.isAround(ctx) {
		return ctx
	}
	return context.WithValue(ctx, chainKey{}, &chain{h, chainOf(ctx)})
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

// around calls each for every holding that ctx was derived from, innermost first, until each
// returns false.
func around(ctx context.Context, each func(g *holding) bool) {
	for h := range chainOf(ctx).each {
		if h.local != nil && h.Context().Err() != nil {
			continue // the holding lasts, for others
		}
		if !each(h.of()) {
			return
		}
		for _, part := range h.of().parts {
			if part.of().quiet && h.Context().Err() != nil {
				continue // as above
			}
			if !each(part.of()) {
				return
			}
		}
	}
}

// newHold begins a holding and returns its first Hold.
func newHold(ctx context.Context, g *holding) *Hold {
	h := &Hold{from: g}
	g.begin(ctx, h.enclose)
	h.life = g.ctx
	return h
}

// Context returns a context that ends with the hold; context.Cause then wraps ErrLost,
// ErrReleased or ErrClosed. It ends before the server can grant the lock to anybody else. This
// assumes that the clocks of client and servers run at rates within 5 % of each other, and that
// this process is running. It has the values of the context that the lock was acquired with,
// but not its deadline or cancellation.
func (h *Hold) Context() context.Context { return h.known().life }

// Token returns a number that grows with every grant of the path, for as long as the
// ensemble lives. Pass it along with your writes, and let the store refuse a token that is
// smaller than one it has seen. The token is the id of the ZooKeeper transaction that has made
// the node, and not the node's sequence number, which starts again in a new directory.
func (h *Hold) Token() int64 { return h.of().token }

// Path returns the lock's path, as it was given to the client. Of several locks it returns all, in
// order, with commas between them.
func (h *Hold) Path() string { return h.of().path }

// Node returns the full path of the hold's node in ZooKeeper, of the first one if it has
// several.
func (h *Hold) Node() string {
	for _, t := range h.of().nodes {
		return t.Path()
	}
	return ""
}

// Revoked returns a channel that is closed when the holder is asked to let go, by
// operate.Revoke or Curator's Revoker; for a hold of several locks, when any of them is asked
// for. The holder decides whether and when to unlock.
func (h *Hold) Revoked() <-chan struct{} { return h.of().asked.Heard.Done() }

// Check returns nil if the hold is still valid. Otherwise it returns an error that wraps
// ErrLost, ErrReleased or ErrClosed. It sends no request: it compares the lease with the
// clock, and so notices at once that the machine was asleep, which a timer may notice late.
func (h *Hold) Check() error { return h.unlessOver("check") }

// unlessOver returns nil if the hold is still valid, and otherwise the error of what was to be done.
func (h *Hold) unlessOver(op string) error {
	if why := h.over(); why != nil {
		return h.of().failure(op, why)
	}
	return nil
}

// over returns why the hold has ended, by the clock if that is first to say so, and nil if it has not.
func (h *Hold) over() error {
	h.of().checkLease()
	if h.Context().Err() != nil {
		return context.Cause(h.Context())
	}
	return nil
}

// Remaining returns how long the hold lasts for certain if nothing more is heard from the
// servers, or zero if it is over. Heartbeats prolong it several times in a session timeout;
// between two of them it falls to somewhat less than half the session timeout.
//
// If stopping your work takes time (a child process, a device), begin to stop when no more
// than that time remains, instead of waiting for Context to end.
func (h *Hold) Remaining() time.Duration {
	h.of().checkParts()
	if h.Context().Err() != nil {
		return 0
	}
	left := time.Duration(math.MaxInt64)
	for _, t := range h.of().nodes {
		left = min(left, t.Sess.Lease.Remaining())
	}
	return max(0, left)
}

// Confirm asks the quorum whether the lock is still held, and returns nil if it is. If it is
// not, the error wraps ErrLost, ErrReleased or ErrClosed; any other error means that there
// was no answer, and leaves the hold as it is. It costs one write, or several if the hold
// has more nodes than fit into one request.
func (h *Hold) Confirm(ctx context.Context) error {
	if err := h.unlessOver("confirm"); err != nil {
		return err
	}
	ctx, stop := session.Either(ctx, h.Context())
	defer stop()
	err := h.of().c.ConfirmAll(ctx, h.of().nodes[0].Sess, h.of().nodes)
	if err != nil {
		switch sess := h.of().nodes[0].Sess; {
		case errors.Is(err, outcome.ErrGone):
			h.of().lose(fmt.Errorf("%w: a node was deleted", ErrLost))
			err = context.Cause(h.Context())
		case errors.Is(err, outcome.ErrSessionOver):
			h.of().lose(fmt.Errorf("%w: session 0x%x is over", ErrLost, sess.ID))
			err = context.Cause(h.Context())
		}
		return h.of().failure("confirm", h.causeOf(ctx, err))
	}
	return h.unlessOver("confirm")
}

// causeOf returns err, with which a call under ctx failed that also ends with the hold, or if ctx has ended why.
func (h *Hold) causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil && h.Context().Err() != nil {
		return context.Cause(h.Context())
	}
	return outcome.Beside(ctx, outcome.CauseOf(ctx, err))
}

// Guard returns operations to put in front of those of your own transaction, which then
// commits only while the lock is held. They check that the hold's nodes exist, and go on
// to do so when the nodes' data changes.
//
// A hold of an unfenced Cohort has no guard, because its node is also that of later holds:
// what Guard returns makes a transaction fail before it is sent.
func (h *Hold) Guard() []any {
	if h.of().unfenced {
		return []any{noGuard{}}
	}
	ops := make([]any, len(h.of().nodes))
	for i, t := range h.of().nodes {
		ops[i] = t.Exists()
	}
	return ops
}

// noGuard is an operation that the client library does not know and refuses.
type noGuard struct{}

// errUnfenced is returned for what needs a guard, before anything is sent.
var errUnfenced = fmt.Errorf("%w: a hold of an unfenced cohort has no guard", ErrInvalid)

// Multi executes operations as zk.Conn.Multi does, all or none, and only while the lock is
// held. The paths in ops are ZooKeeper's own: neither a chroot of the servers nor Options.Root is
// put before them.
//
// If the error wraps ErrLost or ErrReleased, nothing was done. If it wraps ErrUncertain, the
// answer was lost or the hold ended before it came: either all operations were done or none.
// If it wraps ErrInvalid, nothing was sent: the hold has no guard (see Guard), or the
// operations and the guard do not fit into one request (1 MB). The guard adds one for each of
// the hold's nodes.
func (h *Hold) Multi(ops ...any) ([]zk.MultiResponse, error) {
	if err := h.unlessOver("multi"); err != nil {
		return nil, err
	}
	if h.of().unfenced {
		return nil, h.of().failure("multi", errUnfenced)
	}
	guard := h.Guard()
	if err := node.CheckSize(append(guard, ops...)); err != nil {
		return nil, h.of().failure("multi", err)
	}
	answers, err := h.of().c.Multi(h.Context(), h.of().nodes[0].Sess, append(guard, ops...)...)
	for i := range min(len(guard), len(answers)) {
		if errors.Is(answers[i].Error, zk.ErrNoNode) {
			h.of().lose(fmt.Errorf("%w: node %s was deleted", ErrLost, h.of().nodes[i].Path()))
			return nil, h.of().failure("multi", context.Cause(h.Context()))
		}
	}
	switch {
	case err == nil:
		return answers[len(guard):], nil
	case outcome.IsRefusal(err):
		return answers[min(len(guard), len(answers)):], h.of().failure("multi", err)
	case outcome.WasNotSent(err):
		return nil, h.of().failure("multi", err)
	}
	return nil, h.of().failure("multi", uncertain(err))
}

// uncertain returns the error of a transaction that may have been done although its answer
// is err. An end of the hold is in the text only and cannot be found with errors.Is, because
// ErrLost without ErrUncertain means that nothing was done.
func uncertain(err error) error {
	for _, end := range []error{ErrLost, ErrReleased, ErrClosed} {
		if errors.Is(err, end) {
			return fmt.Errorf("%w: %v", ErrUncertain, err)
		}
	}
	return errors.Join(ErrUncertain, err)
}

// rewrite replaces the data of the hold's node. It only writes over the version that it has
// read, so that it notices a request to let go that came in between, and keeps it. It tells
// the node's watcher about the new data before it writes, because the watcher restores our
// data where somebody has overwritten it.
//
// Callers take turns, so that the last to write is also the last to tell the watcher.
func (h *Hold) rewrite(ctx context.Context, value []byte) error {
	if err := h.over(); err != nil {
		return err
	}
	inside, stop := session.Either(ctx, h.Context())
	defer stop()
	turn := h.of().turnToWrite()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-inside.Done():
		return h.causeOf(inside, inside.Err())
	}
	t := h.of().nodes[0]
	before := t.SetOwnData(value)
	var p session.Pace
	for {
		err := h.overwrite(inside, value)
		switch {
		case err == nil:
			return h.over()
		case errors.Is(err, zk.ErrNoNode):
			h.of().lose(fmt.Errorf("%w: node %s was deleted", ErrLost, t.Path()))
			return context.Cause(h.Context())
		case errors.Is(err, outcome.ErrSessionOver):
			h.of().lose(fmt.Errorf("%w: session 0x%x is over", ErrLost, t.Sess.ID))
			return context.Cause(h.Context())
		case errors.Is(err, zk.ErrBadVersion):
			continue
		case outcome.IsRefusal(err):
			t.SetOwnData(before)
			return err
		case inside.Err() != nil || !outcome.IsTransient(err):
			return h.causeOf(inside, err)
		}
		if err := p.Next(inside); err != nil {
			return h.causeOf(inside, err)
		}
	}
}

// overwrite is one attempt of rewrite. If we were asked to let go, the new data shows that as
// well.
func (h *Hold) overwrite(ctx context.Context, value []byte) error {
	t := h.of().nodes[0]
	n, err := h.of().c.Get(ctx, t.Sess, t.Path())
	if err != nil {
		return err
	}
	t.Hear(n)
	_, err = h.of().c.Set(ctx, t.Sess, t.Path(), t.Shown(value), n.Stat.Version)
	return err
}

// Unlock ends the hold: first its Context, with the cause ErrReleased, then its node. On
// success, the node is gone, but for one that others of the process share: see Reentrant and Cohort.
// If ctx ends first, Unlock returns an error that wraps ctx.Err(), and the release goes on for as
// long as the client lives. Of a context that was derived from the hold's own and lasts when Unlock
// is called, only the deadline counts.
//
// Unlock needs no deadline. If the servers do not answer, it returns an error that wraps
// ErrUncertain as soon as a session timeout has passed since they last did for certain: they
// free the lock by themselves then, and the release goes on as well.
//
// After a loss Unlock returns ErrLost, and on a second call ErrNotHeld.
func (h *Hold) Unlock(ctx context.Context) error {
	ctx, stop := h.outlast(ctx)
	defer stop()
	last, err := h.release()
	if err == nil && last {
		err = h.of().awaitRelease(ctx)
	}
	if err != nil {
		return h.of().failure("unlock", err)
	}
	return nil
}

// outlast returns ctx without what the end of the hold does to it, if it was derived from the hold's context and has not ended.
func (h *Hold) outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil || !h.isAround(ctx) {
		return ctx, func() {}
	}
	if due, ok := ctx.Deadline(); ok {
		return context.WithDeadline(context.WithoutCancel(ctx), due)
	}
	return context.WithoutCancel(ctx), func() {}
}

// release begins to give the lock up and reports true if this was the last level of it; released
// tells when that is done.
func (h *Hold) release() (last bool, err error) {
	if h.known().done.Swap(true) {
		return false, ErrNotHeld
	}
	if h.local != nil {
		return false, h.local.giveUp()
	}
	h.of().checkParts()
	last, err = h.of().drop()
	if h.end != nil {
		h.end(ErrReleased) // no cause replaces an earlier one
	}
	if last {
		h.of().settle()
	}
	return last, err
}
