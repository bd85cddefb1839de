package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/internal/lease"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/observe"
)

// A localQueue gets places in a queue for all goroutines of a client that lock in one cohort, or
// for all that read there. It lets them hold in the order in which they asked, and gives the places
// up. It exists while a goroutine waits or a place lasts.
type localQueue struct {
	c   *Client
	key cohortKey
	dir string
	// wake makes run look again.
	wake chan struct{}

	mu      sync.Mutex
	waiting []*localWaiter          // guarded by mu: in order
	asked   int64                   // guarded by mu: the number of the last waiter
	covered int64                   // guarded by mu: the last waiter when the node was asked for that was asked for last
	place   *sharedPlace            // guarded by mu: where waiters are let in; nil while there is none
	running bool                    // guarded by mu: a goroutine is in run
	cancel  context.CancelCauseFunc // guarded by mu: ends the wait for a place; nil while there is none

	over atomic.Bool // it has ended, and another is to be used; changed with mu held
	runs run         // in which the newest place stands; only run uses it
}

// A cohortKey is what the goroutines that share a place have in common.
type cohortKey struct {
	path     string
	recipe   *queue.Recipe
	unfenced bool
	keep     time.Duration // negative for not at all
}

// A localWaiter is a goroutine that waits for its hold.
type localWaiter struct {
	ctx    context.Context
	number int64       // by which waiters are in order
	try    bool        // it waits for no holder
	answer chan answer // receives one, for which it has room, when the waiter is out of the queue
}

type answer struct {
	hold *Hold
	err  error
}

// Clients with a lock-delay have no cohorts.
var (
	cohortRecipe       = &queue.Recipe{Name: "cohort", Delays: true, Infix: node.LockInfix, Rule: node.AfterAll}
	cohortReaderRecipe = &queue.Recipe{Name: "cohort of readers", Delays: true, Infix: node.ReaderInfix, Rule: node.AfterExclusive, Shared: true, Passes: node.IsDowngraded}
)

var (
	// errNobody ends the wait for a place when nobody waits for it any more.
	errNobody = errors.New("nobody waits any more")
	// errOver is returned by a queue that has ended, in whose place there is another.
	errOver = errors.New("the queue has ended")
	// errBehind is returned to a reader that waits for nobody and would stand behind others.
	errBehind = errors.New("other readers of the process wait")
)

const (
	// maxRun is how long a process keeps a lock from contenders that only look whether it is free,
	// before it lets go of it for a moment.
	maxRun        = time.Second
	shortestPause = 20 * time.Millisecond
	longestPause  = 250 * time.Millisecond
)

// localQueue returns the one of a cohort.
func (c *Client) localQueue(of any) *localQueue {
	q, ok := c.cohorts.Load(of)
	if !ok {
		key := of.(cohortKey)
		q, _ = c.cohorts.LoadOrStore(of, &localQueue{c: c, key: key, dir: c.root + key.path, wake: make(chan struct{}, 1)})
	}
	return q.(*localQueue)
}

// enter returns a hold if that takes neither a request nor a wait, and nil if not.
func (q *localQueue) enter(ctx context.Context, now lease.Instant) *Hold {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.place == nil || len(q.waiting) > 0 || !q.place.admits(q.asked+1, q.asked, now) {
		return nil
	}
	return q.place.begin(ctx, now)
}

// join puts the caller at the end of the queue. For a caller that waits for no holder and would
// have to, it returns ErrLocked, or errBehind if those that wait would share the lock with it.
func (q *localQueue) join(ctx context.Context, try bool) (*localWaiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.over.Load():
		return nil, errOver
	case try && len(q.waiting) > 0 && q.key.recipe.Shared:
		return nil, errBehind
	case try && (len(q.waiting) > 0 || q.place != nil && !q.place.hasRoom()):
		return nil, ErrLocked
	}
	if p := q.place; p != nil {
		p.checkOthers(q.asked, q.c.engine.Link.Now()) // those have asked before
	}
	q.asked++
	w := &localWaiter{ctx, q.asked, try, make(chan answer, 1)}
	q.waiting = append(q.waiting, w)
	if q.running && q.place != nil && !q.place.hasRoom() {
		return w, nil // the end of a hold has run look again
	}
	if !q.kick() {
		q.waiting = q.waiting[:len(q.waiting)-1]
		return nil, ErrClosed
	}
	return w, nil
}

// kick makes run look again, and starts it if it does not run. It reports false if the client is
// closed. It must be called with mu held.
func (q *localQueue) kick() bool {
	if q.running {
		select {
		case q.wake <- struct{}{}:
		default:
		}
		return true
	}
	// Owned by the client; ends when nothing is left to do, or with the client's life; Close waits for it.
	q.running = q.c.acquires.Run(q.run)
	return q.running
}

// await waits for the answer to a waiter, which leaves the queue when its ctx ends. When the client
// is closed, that is an answer.
func (q *localQueue) await(w *localWaiter) (*Hold, error) {
	select {
	case got := <-w.answer:
		return got.hold, got.err
	case <-w.ctx.Done():
	}
	if q.withdraw(w) {
		return nil, context.Cause(w.ctx)
	}
	got := <-w.answer
	return got.hold, got.err
}

// withdraw takes a waiter out of the queue. It reports false if it has got its answer.
func (q *localQueue) withdraw(w *localWaiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.waiting, w)
	if at < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, at, at+1)
	if len(q.waiting) == 0 && q.cancel != nil {
		q.cancel(errNobody)
	}
	return true
}

// run does one step after the other, until nothing is left to do for now.
func (q *localQueue) run() {
	timer := time.NewTimer(forever)
	defer timer.Stop()
	for {
		do, p := q.look()
		switch do.action {
		case rest, end:
			return
		case stay:
			timer.Reset(do.wait)
			q.sleep(p, timer.C)
		case obtain, leaveApart:
			q.obtain(nil)
		case replace:
			if p.leaveNode() {
				q.obtain(p.place)
			}
		case release, releaseLong:
			q.release(p, do.action == releaseLong)
		}
	}
}

// look lets in those that can hold now, and returns what to do next, and the place that this is about.
func (q *localQueue) look() (step, *sharedPlace) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, now := q.place, q.c.engine.Link.Now()
	if p != nil {
		p.update(q.asked, now)
		q.letIn(p, now)
	}
	do := q.situation(p, now).next()
	switch do.action {
	case stay:
	case rest:
		q.running = false
	case watchOthers:
		q.watchOthers(p, now)
	case end:
		q.running = false
		q.end()
	default:
		q.place = nil
		if p != nil {
			p.apart = do.action == leaveApart
		}
	}
	return do, p
}

// letIn lets those begin that wait and can. It must be called with mu held.
func (q *localQueue) letIn(p *sharedPlace, now lease.Instant) {
	for len(q.waiting) > 0 && p.admits(q.waiting[0].number, q.asked, now) {
		q.letFirst(p, now)
	}
}

// letFirst lets the first waiter hold. It must be called with mu held.
func (q *localQueue) letFirst(p *sharedPlace, now lease.Instant) {
	w := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	w.answer <- answer{hold: p.begin(w.ctx, now)}
}

// situation returns what the next step depends on. It must be called with mu held.
func (q *localQueue) situation(p *sharedPlace, now lease.Instant) situation {
	s := situation{over: q.c.engine.Life.Err() != nil, waiting: len(q.waiting)}
	if p == nil {
		return s
	}
	if p.idleSince.IsZero() && len(p.holds) == 0 {
		p.idleSince = now.Mono
	}
	s.place, s.lost, s.holds = true, p.of.ctx.Err() != nil, len(p.holds)
	s.shared, s.unfenced, s.ready, s.closed, s.wanted, s.waited = p.isShared(), q.key.unfenced, p.ready, p.closed, p.quota.wanted, p.place.Waited
	s.runOver, s.keep = p.runs.isOver(now), q.key.keep
	if s.shared {
		s.pause = p.runs.pause(now)
		s.runOver = s.pause > 0
	}
	s.age, s.idle = now.Mono.Sub(p.since), now.Mono.Sub(p.idleSince)
	s.watching = !p.watching.IsZero()
	s.patience = p.patience() - now.Mono.Sub(p.watching)
	return s
}

// sleep waits for something that may have to be looked at.
func (q *localQueue) sleep(p *sharedPlace, timeout <-chan time.Time) {
	q.mu.Lock()
	fired, revoked := p.fired(), p.revoked()
	q.mu.Unlock()
	select {
	case <-q.wake:
	case <-timeout:
	case <-fired:
	case <-revoked:
	case <-p.of.ctx.Done():
	case <-q.c.engine.Life.Done():
	}
}

// end ends the queue. Those that still wait learn that the client is closed. It must be called
// with mu held.
func (q *localQueue) end() {
	q.over.Store(true)
	q.c.cohorts.Delete(q.key)
	for _, w := range q.waiting {
		w.answer <- answer{err: ErrClosed}
	}
	q.waiting = nil
}

// obtain gets a place for those that wait. In its transaction the old one, nil for none, is given up.
func (q *localQueue) obtain(old *queue.Grant) {
	ctx, first, done := q.beginWait()
	defer done()
	fresh := old == nil
	granted, err := q.stand(ctx, first != nil && first.try, old)
	if err != nil {
		if ctx.Err() != nil { // it is nobody's of those that wait
			err = context.Cause(ctx)
		}
		q.refuse(first, err)
		return
	}
	if fresh || granted.Waited {
		q.runs = run{time.Now(), max(maxRun, q.key.keep)}
	}
	q.settle(granted)
}

// beginWait returns the first waiter, nil for none, and a context that ends when nobody waits.
func (q *localQueue) beginWait() (context.Context, *localWaiter, func()) {
	ctx, cancel := context.WithCancelCause(q.c.engine.Life)
	q.mu.Lock()
	defer q.mu.Unlock()
	var first *localWaiter
	if len(q.waiting) > 0 {
		first = q.waiting[0]
	} else {
		cancel(errNobody)
	}
	q.cancel = cancel
	return ctx, first, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.cancel = nil
		cancel(nil)
	}
}

// stand gets a place in the queue of all processes. The old one leaves it whatever comes of that.
func (q *localQueue) stand(ctx context.Context, try bool, old *queue.Grant) (*queue.Grant, error) {
	w := q.want()
	w.Replaces, w.Before = old, q.cover
	if try {
		return q.c.engine.TryObtain(ctx, w)
	}
	return q.c.engine.Obtain(ctx, w)
}

// want returns what a place in the queue of all processes is asked for.
func (q *localQueue) want() *queue.Want {
	return &queue.Want{Recipe: q.key.recipe, Path: q.key.path, Dir: q.dir, Data: q.c.shared}
}

// cover notes that all who wait now have asked before anybody who will stand behind our next node.
func (q *localQueue) cover() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.covered = q.asked
}

// refuse answers those that wait with an error. An attempt to get the place without waiting was
// only for the first of them.
func (q *localQueue) refuse(first *localWaiter, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if first == nil || errors.Is(err, errNobody) {
		return
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(w *localWaiter) bool {
		out := w == first || !first.try
		if out {
			w.answer <- answer{err: err}
		}
		return out
	})
}

// share returns a shared place of one that was granted.
func (q *localQueue) share(granted *queue.Grant) *sharedPlace {
	c := q.c
	p := &sharedPlace{place: granted, moved: granted.Nodes()[0].Sess.Reattached(), since: time.Now()}
	p.ended = func(h *localHold) { q.ended(p, h) }
	p.of = &holding{
		c: c.engine, among: &c.holds, recipe: q.key.recipe.Name, path: q.key.path, nodes: granted.Nodes(), token: granted.Token,
		quiet: true, unfenced: q.key.unfenced,
	}
	p.of.release = func(why error) func() error {
		q.endAll(p, why)
		return granted.Leave(false)
	}
	p.of.begin(context.Background(), func(ctx context.Context) context.Context { return ctx })
	granted.WatchSelf(q.key.unfenced)
	p.of.watchOver(p.node())
	return p
}

// settle lets waiters hold in a place that was granted. A place that had to wait is taken to be wanted by others, until the
// directory shows that nobody stands behind it: those that had asked before go first.
func (q *localQueue) settle(granted *queue.Grant) {
	p := q.share(granted)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.place, p.before, p.runs = p, q.covered, q.runs
	now := q.c.engine.Link.Now()
	if granted.Waited && !p.isShared() {
		p.want(p.before, now)
		p.ready = q.key.unfenced
	}
	for len(q.waiting) > 0 && p.takes(q.waiting[0].number) {
		q.letFirst(p, now)
	}
}

// tryApart returns a reader's hold in a place of its own, if nobody stands in its way.
func (q *localQueue) tryApart(ctx context.Context) (*Hold, error) {
	granted, err := q.c.engine.TryObtain(ctx, q.want())
	if err != nil {
		return nil, q.c.engine.Explain(ctx, err)
	}
	p := q.share(granted)
	q.mu.Lock()
	defer q.mu.Unlock()
	p.apart, p.closed = true, true
	return p.begin(ctx, q.c.engine.Link.Now()), nil
}

// watchOthers begins to find out whether others want the place. It must be called with mu held.
func (q *localQueue) watchOthers(p *sharedPlace, now lease.Instant) {
	p.watching = now.Mono
	// Owned by the place; ends with the requests or with the place; Close waits for it.
	if !q.c.engine.Calls.Run(func() { q.watched(p) }) {
		p.closed = true
	}
}

func (q *localQueue) watched(p *sharedPlace) {
	w, wanted, err := p.place.WatchOthers(p.of.ctx, p.of.unfenced)
	if err != nil {
		w = nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p.see(w, wanted, q.c.engine.Link.Now())
	if q.place == p && (q.running || len(q.waiting) > 0 || len(p.holds) == 0) {
		q.kick() // it may sleep as if the place were not watched
	}
}

// ended lets the next goroutine hold if that takes no request, after another has given its hold up.
func (q *localQueue) ended(p *sharedPlace, h *localHold) {
	p.tell(observe.Released, h.since, nil)
	if q.isLast(p, h) {
		p.giveUp()
	}
}

// isLast ends a hold, and reports whether the place is to be given up because of that.
func (q *localQueue) isLast(p *sharedPlace, h *localHold) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.end(h)
	if len(p.holds) > 0 || p.apart {
		return len(p.holds) == 0
	}
	waiting := len(q.waiting) > 0
	if waiting && p.ready {
		if now := q.c.engine.Link.Now(); p.admits(q.waiting[0].number, q.asked, now) {
			q.letFirst(p, now)
			return false
		}
	}
	if waiting || !q.running || !p.ready || p.closed || p.quota.wanted || q.key.keep < 0 {
		q.kick()
	}
	return false
}

// endAll tells of the end of the holds in a place that was lost.
func (q *localQueue) endAll(p *sharedPlace, why error) {
	q.mu.Lock()
	holds := p.holds
	p.holds = nil
	if q.place == p {
		q.kick()
	}
	q.mu.Unlock()
	for _, h := range holds {
		if !errors.Is(context.Cause(h), ErrReleased) {
			p.tell(endKind(why), h.since, why)
		}
	}
}

// release gives the place up. After a long run it waits a moment, so that others find the queue
// empty which look now and then.
func (q *localQueue) release(p *sharedPlace, pause bool) {
	began := time.Now()
	if !p.giveUp() {
		return
	}
	select {
	case <-p.of.released.Done():
	case <-q.c.engine.Life.Done():
	}
	if pause {
		session.Sleep(q.c.engine.Life, min(max(shortestPause, 4*time.Since(began)), longestPause))
	}
}

func (q *localQueue) String() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return fmt.Sprintf("%s %s: waiting=%d running=%t place=(%v)", q.key.recipe.Name, q.key.path, len(q.waiting), q.running, q.place)
}
