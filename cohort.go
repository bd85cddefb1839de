package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/internal/lease"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/queue"
)

// Cohort is a mutex whose goroutines in one process share a place in the queue. So the lock goes
// from one to the next with one request or with none. It stands in the same queue as every Mutex
// of its path. A Cohort has no state of its own: all values of one client for one path, with the
// same options, share a place.
//
// Goroutines that read share a place, too, and hold there at a time. Beside other processes that
// read, they go on sharing it. Then the Cohort is the same lock as every RWMutex of its path.
//
// Inside the process, goroutines hold in the order in which they asked; readers and those that
// hold alone stand in the queue as two processes do. A place that had to wait admits only goroutines
// that asked before its node was created. Where nobody else was there, other processes wait for the
// goroutine that holds, and for at most 100 that asked before the client saw them. None of these
// begins more than a tenth of a second after that. Once a second, or after Keep if that is longer,
// a process that uses the lock all the time lets go of it for a moment. That is for others that
// do not wait, such as Mutex.TryLock. Readers that hold for longer than 20 ms then go on.
//
// A reader never waits for other readers. If it cannot share its process's place, because
// somebody waits to hold alone or the connection was lost meanwhile, it gets another place.
//
// A process that is killed or stopped while it keeps the place, holding or not, blocks others
// for a session timeout.
type Cohort struct{ alone, readers localLock }

// CohortOptions configures a Cohort. A nil *CohortOptions means the defaults.
type CohortOptions struct {
	// Unfenced lets the lock go from one goroutine to the next without a request, as long as no
	// other process wants it. Holds that follow one another in this way have the same token, and
	// no guard: a store cannot refuse the late write of one goroutine of this process while
	// another holds. Against other processes the token protects as ever. Default false: each
	// hold has a token and a guard of its own, which takes one request.
	Unfenced bool
	// Keep is how long the place is kept while no goroutine holds or waits, unless another
	// process wants it. Default 100 ms; if it is negative, the place is not kept.
	Keep time.Duration
}

const defaultKeep = 100 * time.Millisecond

// Cohort returns the lock at path, with one place for the goroutines of this client. With
// Options.LockDelay, its methods return ErrInvalid.
func (c *Client) Cohort(path string, opts *CohortOptions) *Cohort {
	if opts == nil {
		opts = new(CohortOptions)
	}
	err := node.CheckPath(path)
	if err == nil && (owner{c}).c().engine.Delay > 0 {
		err = fmt.Errorf("%w: a Cohort has no lock-delay, and this client has one", ErrInvalid)
	}
	k, keep := new(Cohort), cmp.Or(opts.Keep, defaultKeep)
	k.alone.init(c, cohortKey{path, cohortRecipe, opts.Unfenced, keep}, err)
	k.readers.init(c, cohortKey{path, cohortReaderRecipe, true, keep}, err)
	return k
}

// Lock waits until it holds the lock, and returns the hold. It behaves as Mutex.Lock does, with
// this difference: Unlock does not wait for a server, because the place is passed on or kept.
// If the place is lost, the hold that it has ends, and goroutines that wait queue again, in their
// order.
//
// After operate.Revoke no other goroutine holds in the place that was asked for: they queue again
// at the end. operate.Evict of a place that waits gives ErrEvicted to all that wait there.
func (k *Cohort) Lock(ctx context.Context) (*Hold, error) { return k.alone.take(ctx, "lock", false) }

// TryLock returns a hold if the lock is free, or kept by this process and not held. Otherwise it
// returns ErrLocked without waiting for the holder, and leaves no node behind. Without a
// connection it returns ErrNotConnected.
func (k *Cohort) TryLock(ctx context.Context) (*Hold, error) {
	return k.alone.take(ctx, "try", true)
}

// RLock waits until it holds the lock, alone or with other readers, and returns the hold. Readers
// of this process that hold at a time or follow one another take no request, as long as nobody
// waits to hold alone. Their holds are as with Unfenced: they have the token of their place, and
// no guard. That token is larger than those of all earlier holds that were alone. But a reader of
// another process that has come and gone meanwhile may have had a larger one. Otherwise RLock
// behaves as Lock does, and as RWMutex.RLock.
func (k *Cohort) RLock(ctx context.Context) (*Hold, error) {
	return k.readers.take(ctx, "lock for reading", false)
}

// TryRLock takes the lock for reading if nobody holds it alone or waits for that. Otherwise it
// returns ErrLocked, as TryLock does.
func (k *Cohort) TryRLock(ctx context.Context) (*Hold, error) {
	return k.readers.take(ctx, "try", true)
}

// Do locks, runs fn, and unlocks, as Mutex.Do does.
func (k *Cohort) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	hold, err := k.Lock(ctx)
	if err != nil {
		return err
	}
	return hold.Do(ctx, fn)
}

// Reader returns the lock in the form in which LockAll takes it for reading. To take it for
// writing, pass the Cohort itself.
func (k *Cohort) Reader() Locker { return cohortReader{k} }

type cohortReader struct{ *Cohort }

func (r cohortReader) Lock(ctx context.Context) (*Hold, error) { return r.RLock(ctx) }

// Path returns the lock's path, as it was given to the client.
func (k *Cohort) Path() string { return k.alone.path }

func (k *Cohort) lockable() lockable {
	return lockable{c: k.alone.c(), path: k.alone.path, err: k.alone.err()}
}

// localLock is how the goroutines of a client that share places take a lock.
type localLock struct {
	owner
	path string
	key  any   // the cohortKey, as the client's queues are found by it
	bad  error // a bad argument

	known atomic.Pointer[localQueue] // the one that was found last
}

// init must be called before anything else.
func (k *localLock) init(c *Client, key cohortKey, err error) {
	k.owner, k.path, k.key, k.bad = owner{c}, key.path, key, err
}

// err returns what is wrong with the lock, nil if nothing is.
func (k *localLock) err() error {
	if k.c() == none {
		return errNotMade
	}
	return k.bad
}

// take returns a hold, and tells the observer of it or of its failure.
func (k *localLock) take(ctx context.Context, verb string, try bool) (*Hold, error) {
	start := k.c().engine.Link.Now()
	h, err := k.obtain(ctx, start, try)
	if err != nil {
		err = fmt.Errorf("zklock: %s %s: %w", verb, node.Printable(k.path), err)
		if k.err() == nil {
			k.c().observeFailure(ctx, &attempt{verb: verb, recipe: k.key.(cohortKey).recipe.Name, path: k.path}, time.Since(start.Mono), err)
		}
		return nil, err
	}
	if k.c().engine.To != nil {
		h.observeSuccess(time.Since(start.Mono), 0)
	}
	return h, nil
}

// obtain returns a hold at once if it can. Otherwise it waits in line behind the other goroutines of
// the process.
func (k *localLock) obtain(ctx context.Context, now lease.Instant, try bool) (*Hold, error) {
	switch {
	case k.err() != nil:
		return nil, k.err()
	case ctx.Err() != nil:
		return nil, outcome.CauseOf(ctx, ctx.Err())
	case k.c().holdsUnder(ctx, k.path, ""):
		return nil, ErrDeadlock
	}
	if h := k.queue().enter(ctx, now); h != nil {
		return h, nil
	}
	if !k.c().acquires.Enter() {
		return nil, ErrClosed
	}
	defer k.c().acquires.Leave()
	if try {
		return queue.AtOnce(ctx, k.c().engine, func(ctx context.Context) (*Hold, error) { return k.wait(ctx, true) })
	}
	return k.wait(ctx, false)
}

// queue returns the queue that the lock has now.
func (k *localLock) queue() *localQueue {
	q := k.known.Load()
	if q == nil || q.over.Load() {
		q = k.c().localQueue(k.key)
		k.known.Store(q)
	}
	return q
}

// wait waits in line behind the other goroutines of the process.
func (k *localLock) wait(ctx context.Context, try bool) (*Hold, error) {
	for {
		q := k.queue()
		w, err := q.join(ctx, try)
		switch {
		case errors.Is(err, errOver):
			continue // there is another one by now
		case errors.Is(err, errBehind):
			return q.tryApart(ctx)
		case err != nil:
			return nil, err
		}
		h, err := q.await(w)
		if err != nil && !errors.Is(err, ErrClosed) {
			err = k.c().engine.Explain(ctx, err)
		}
		return h, err
	}
}
