// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/internal/cohort"
	"github.com/zklock-go/zklock/internal/lease"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/observe"
)

// A localQueue acquires places in a queue for all goroutines of a client that lock in one cohort.
// It grants holds in the order in which the goroutines
// asked, and releases the places. It exists while a goroutine waits or a place lasts.
type localQueue struct {
	c      *Client
	engine *queue.Engine // of c
	key    cohortKey
	dir    string
	// wake makes run check the state again.
	wake chan struct{}

	mu         sync.Mutex
	waiting    []*localWaiter          // guarded by mu: in the order in which they asked
	lastNumber int64                   // guarded by mu: the number of the last waiter
	lastAhead  int64                   // guarded by mu: the number of the last waiter when our latest node was requested
	current    *sharedPlace            // guarded by mu: the place that admits waiters, or nil if there is none
	running    bool                    // guarded by mu: whether a goroutine is in run
	acquire    *queue.Want             // guarded by mu: the acquire of a place under way, or nil if there is none
	ahead      int                     // guarded by mu: the contenders ahead of the node of that acquire when it entered the queue
	cancel     context.CancelCauseFunc // guarded by mu: cancels that acquire, or nil
	lastServed int64                   // guarded by mu: the number of the last waiter that the acquire is for: when it began, or when it last requested a node

	over atomic.Bool // whether the queue has ended and must be replaced; changed with mu held
	runs run         // the run of the newest place; used only by run
}

// A cohortKey identifies the goroutines that share a place.
type cohortKey struct {
	path string
	keep time.Duration // a negative value means that an idle place is not kept
}

// A localWaiter is a goroutine that waits for its hold.
type localWaiter struct {
	ctx    context.Context
	number int64           // increases with each waiter
	try    bool            // whether it must not wait for a holder
	admit  queue.Admission // called again when a place enters the queue; may be nil
	answer chan answer     // receives one answer when the waiter has left the queue; has room for it
}

type answer struct {
	hold *Hold
	err  error
}

// Cohorts cannot be used by clients with a lock-delay.
var cohortRecipe = &queue.Recipe{Name: "cohort", TakesDelay: true, Infix: node.LockInfix, Rule: node.AfterAll, ForSeveral: true}

var (
	// errNoWaiters ends the wait for a place when there are no more waiters.
	errNoWaiters = errors.New("no more waiters")
	// errOver is returned by a queue that has ended and has been replaced.
	errOver = errors.New("queue has ended")
)

const (
	// maxRun is how long a process keeps a lock before it releases it briefly, so that contenders
	// that do not wait can acquire it.
	maxRun        = time.Second
	shortestPause = 20 * time.Millisecond
	longestPause  = 250 * time.Millisecond
)

// localQueue returns the queue of a cohort, and creates it if necessary.
func (c *Client) localQueue(of any) *localQueue {
	q, ok := c.cohorts.Load(of)
	if !ok {
		key := of.(cohortKey)
		q, _ = c.cohorts.LoadOrStore(of, &localQueue{c: c, engine: c.engine, key: key, dir: c.root + key.path, wake: make(chan struct{}, 1)})
	}
	return q.(*localQueue)
}

// join adds the caller at the end of the queue. If the caller must not wait for a holder but would
// have to, join returns ErrLocked.
func (q *localQueue) join(ctx context.Context, try bool, admit queue.Admission) (*localWaiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ahead := len(q.waiting)
	if q.isHeld() {
		ahead++
	}
	switch {
	case q.over.Load():
		return nil, errOver
	case try && ahead > 0:
		return nil, ErrLocked
	case admit != nil && ahead+q.ahead > 0:
		if err := admit(ahead + q.ahead); err != nil {
			return nil, err
		}
	}
	q.lastNumber++
	w := &localWaiter{ctx, q.lastNumber, try, admit, make(chan answer, 1)}
	q.waiting = append(q.waiting, w)
	if q.running && q.isHeld() {
		return w, nil // run will look again when a hold ends
	}
	if !q.wakeRun() {
		q.waiting = q.waiting[:len(q.waiting)-1]
		return nil, ErrClosed
	}
	return w, nil
}

// isHeld reports whether a goroutine holds in the place. It must be called with mu held.
func (q *localQueue) isHeld() bool { return q.current != nil && q.current.isHeld() }

// wakeRun makes run check the state again, and starts it if it is not running. It returns false if the
// client is closed. It must be called with mu held.
func (q *localQueue) wakeRun() bool {
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

// await waits for the answer to a waiter, which leaves the queue if its ctx ends. If the client is
// closed, the waiter receives an answer.
func (q *localQueue) await(w *localWaiter) (*Hold, error) {
	select {
	case got := <-w.answer:
		return got.hold, got.err
	case <-w.ctx.Done():
	}
	waitedFor, withdrawn := q.withdraw(w)
	if withdrawn {
		return nil, outcome.WaitedFor(context.Cause(w.ctx), waitedFor)
	}
	got := <-w.answer
	return got.hold, got.err
}

// withdraw removes a waiter from the queue, and returns what it was waiting for. ok is false if the
// waiter has already received its answer.
func (q *localQueue) withdraw(w *localWaiter) (waitedFor string, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.waiting, w)
	if at < 0 {
		return "", false
	}
	waitedFor = q.waitsFor(at)
	q.waiting = slices.Delete(q.waiting, at, at+1)
	if len(q.waiting) == 0 && q.cancel != nil {
		q.cancel(errNoWaiters)
	}
	return waitedFor, true
}

// waitsFor returns what the waiters wait for, as seen by one with the given number of waiters before
// it. It must be called with mu held.
func (q *localQueue) waitsFor(before int) string {
	what := "a reply from the servers"
	switch {
	case q.isHeld():
		what = "a goroutine of this process that holds the lock"
	case q.acquire != nil:
		what = cmp.Or(q.acquire.WaitsFor(), what)
	}
	if before > 0 {
		what += fmt.Sprintf(", and for %d goroutines of this process", before)
	}
	return what
}

// status returns a line about the waiters, or "" if there are none.
func (q *localQueue) status() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return ""
	}
	return fmt.Sprintf("%s has %d waiting goroutines: the first waits for %s", q.dir, len(q.waiting), q.waitsFor(0))
}

// run performs one step after the other, until nothing is left to do for now.
func (q *localQueue) run() {
	timer := time.NewTimer(cohort.Forever)
	defer timer.Stop()
	for {
		do, p := q.look()
		switch do.Action {
		case cohort.Rest, cohort.End:
			return
		case cohort.Stay:
			timer.Reset(do.Wait)
			q.sleep(p, timer.C)
		case cohort.Obtain:
			q.obtain(nil)
		case cohort.Replace:
			if p.leaveNode() {
				q.obtain(p.grant)
			}
		case cohort.Release, cohort.ReleaseLong:
			q.release(p, do.Action == cohort.ReleaseLong)
		}
	}
}

// look returns what to do next, and the place that this applies to.
func (q *localQueue) look() (cohort.Step, *sharedPlace) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, now := q.current, q.engine.Requests.Link.Now()
	do := q.situation(p, now).Next()
	switch do.Action {
	case cohort.Stay:
	case cohort.Rest:
		q.running = false
	case cohort.WatchOthers:
		q.watchOthers(p, now)
	case cohort.End:
		q.running = false
		q.end()
	default:
		q.current = nil
	}
	return do, p
}

// admitFirst grants a hold to the first waiter. It must be called with mu held.
func (q *localQueue) admitFirst(p *sharedPlace, now lease.Instant) {
	w := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	w.answer <- answer{hold: p.begin(w.ctx, now)}
}

// situation returns the state that the next step depends on. It must be called with mu held.
func (q *localQueue) situation(p *sharedPlace, now lease.Instant) cohort.Situation {
	s := cohort.Situation{Over: q.engine.Requests.Life.Err() != nil, Waiting: len(q.waiting), Keep: q.key.keep}
	if p != nil {
		p.describe(&s, now)
	}
	return s
}

// sleep waits for an event after which run must check the state again.
func (q *localQueue) sleep(p *sharedPlace, timeout <-chan time.Time) {
	changed, revoked := p.events()
	select {
	case <-q.wake:
	case <-timeout:
	case <-changed:
	case <-revoked:
	case <-p.holding.ctx.Done():
	case <-q.engine.Requests.Life.Done():
	}
}

// end ends the queue. If there are still waiters, they receive ErrClosed. It must be called with mu
// held.
func (q *localQueue) end() {
	q.over.Store(true)
	q.c.cohorts.Delete(q.key)
	for _, w := range q.waiting {
		w.answer <- answer{err: ErrClosed}
	}
	q.waiting = nil
}

// obtain acquires a place for the waiters. The same transaction deletes the node of the old place,
// if old is not nil.
func (q *localQueue) obtain(old *queue.Grant) {
	w := &queue.Want{Recipe: cohortRecipe, Path: q.key.path, Dir: q.dir, Data: q.c.shared, Replaces: old, Before: q.markAhead, Admit: q.entered}
	ctx, first, done := q.beginWait(w)
	defer done()
	fresh := old == nil
	granted, err := q.acquirePlace(ctx, first != nil && first.try, w)
	if err != nil {
		if ctx.Err() != nil { // ctx belongs to no waiter; its cause is the reason
			err = context.Cause(ctx)
		}
		q.refuse(first, err)
		return
	}
	if fresh || granted.Waited {
		q.runs = run{time.Now(), max(maxRun, q.key.keep)}
	}
	q.install(granted)
}

// beginWait returns a context for the acquire w, which ends when there are no more waiters, and the
// first waiter, or nil if there is none.
func (q *localQueue) beginWait(w *queue.Want) (context.Context, *localWaiter, func()) {
	ctx, cancel := context.WithCancelCause(q.engine.Requests.Life)
	q.mu.Lock()
	defer q.mu.Unlock()
	var first *localWaiter
	if len(q.waiting) > 0 {
		first = q.waiting[0]
	} else {
		cancel(errNoWaiters)
	}
	q.acquire, q.cancel, q.lastServed = w, cancel, q.lastNumber
	return ctx, first, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.acquire, q.cancel, q.ahead = nil, nil, 0
		cancel(nil)
	}
}

// acquirePlace acquires a place in the queue of all processes. The place that w replaces leaves it even if
// that fails.
func (q *localQueue) acquirePlace(ctx context.Context, try bool, w *queue.Want) (*queue.Grant, error) {
	if try {
		return q.engine.TryObtain(ctx, w)
	}
	return q.engine.Obtain(ctx, w)
}

// markAhead records that all current waiters asked before any contender that will queue behind our next
// node.
func (q *localQueue) markAhead() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lastAhead, q.lastServed = q.lastNumber, q.lastNumber
}

// entered is called when the node of an acquire has entered the queue of all processes behind ahead
// contenders. It answers the waiters that do not wait behind so many, and returns errNoWaiters if none
// is left.
func (q *localQueue) entered(ahead int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ahead = ahead
	var remaining []*localWaiter
	for _, w := range q.waiting {
		if w.admit != nil {
			if err := w.admit(ahead + len(remaining)); err != nil {
				w.answer <- answer{err: err}
				continue
			}
		}
		remaining = append(remaining, w)
	}
	q.waiting = remaining
	if len(remaining) == 0 {
		return errNoWaiters
	}
	return nil
}

// refuse answers the waiters that called before the acquire, or before it last requested a node, with
// its error. The error says nothing about a lock that somebody has called for since: the next acquire is
// for those waiters. If first must not wait, the acquire was only for that waiter, and only it is answered.
func (q *localQueue) refuse(first *localWaiter, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if first == nil || errors.Is(err, errNoWaiters) {
		return
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(w *localWaiter) bool {
		out := w == first || !first.try && w.number <= q.lastServed
		if out {
			w.answer <- answer{err: err}
		}
		return out
	})
}

// share returns a shared place for a granted one.
func (q *localQueue) share(granted *queue.Grant) *sharedPlace {
	p := &sharedPlace{grant: granted}
	p.ended = func(h *localHold) { q.ended(p, h) }
	p.holding = &holding{
		engine: q.engine, set: &q.c.holds, recipe: cohortRecipe.Name, path: q.key.path, grant: granted, nodes: granted.Nodes(), token: granted.Token,
		quiet: true,
	}
	p.holding.release = func(why error, done func(error)) {
		q.endAll(p, why)
		granted.Release(false, done)
	}
	p.holding.begin(context.Background())
	granted.WatchSelf()
	p.holding.watchOver(granted.Nodes()[0])
	return p
}

// install grants a hold to the first waiter in a place that was just granted, if that waiter may
// have it.
func (q *localQueue) install(granted *queue.Grant) {
	p := q.share(granted)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.current, p.lastAhead, p.runs = p, q.lastAhead, q.runs
	if len(q.waiting) > 0 && p.admits(q.waiting[0].number) {
		q.admitFirst(p, q.engine.Requests.Link.Now())
	}
}

// watchOthers starts to find out whether others want the place.
func (q *localQueue) watchOthers(p *sharedPlace, now lease.Instant) {
	p.watch(now)
	// Owned by the place; ends with the requests or with the place; Close waits for it.
	if !q.engine.Requests.Calls.Run(func() { q.watched(p) }) {
		p.setOthers(nil, true)
	}
}

func (q *localQueue) watched(p *sharedPlace) {
	v, wanted, err := p.grant.WatchOthers(p.holding.ctx)
	if err != nil {
		v = nil
	}
	p.setOthers(v, wanted)
	q.changed(p) // run may be sleeping on the assumption that the place is not watched
}

// ended is called when a goroutine has released its hold. The place is free before the observer is
// called, which may take long or panic.
func (q *localQueue) ended(p *sharedPlace, h *localHold) {
	p.free()
	q.changed(p)
	p.report(observe.Released, h.since, nil)
}

// endAll reports to the observer the end of the hold in a place that was lost.
func (q *localQueue) endAll(p *sharedPlace, why error) {
	h := p.free()
	q.changed(p)
	if h != nil && !errors.Is(context.Cause(h.hold.life), ErrReleased) {
		p.report(endKind(why), h.since, why)
	}
}

// changed makes run check a place that has changed, if it is still the queue's place.
func (q *localQueue) changed(p *sharedPlace) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current == p {
		q.wakeRun()
	}
}

// release releases the place. With pause, it then waits briefly, so that contenders that poll find
// the queue empty.
func (q *localQueue) release(p *sharedPlace, pause bool) {
	began := time.Now()
	if !p.giveUp() {
		return
	}
	select {
	case <-p.holding.removed.Done():
	case <-q.engine.Requests.Life.Done():
	}
	if pause {
		session.Sleep(q.engine.Requests.Life, min(max(shortestPause, 4*time.Since(began)), longestPause))
	}
}

func (q *localQueue) String() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return fmt.Sprintf("%s %s: waiting=%d running=%t place=(%v)", cohortRecipe.Name, q.key.path, len(q.waiting), q.running, q.current)
}
