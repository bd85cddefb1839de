// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/queue"
)

// Cohort is a mutex for goroutines of one process that share a place in the queue, so passing the
// lock from one goroutine to the next takes one request. The place is in the same queue as every
// Mutex of the path. A Cohort has no state: all values of one client for one path,
// with the same options, share a place.
//
// Each hold has its own node, and therefore its own token and guard. A node that had to wait for
// other processes is used only by a goroutine that asked before the node was created. A process that
// queues behind a hold waits for that hold alone.
//
// Within a process, goroutines acquire the lock in the order in which they asked. A process that
// uses the lock all the time releases it briefly once a second, or once per Keep if that is longer.
// This lets callers that do not wait, such as Mutex.TryLock, acquire the lock.
//
// To pass the lock between goroutines without any request, hold a Mutex and send the work to one
// goroutine: see docs/recipes/cohort.md.
//
// A process that is killed or stopped while it keeps the place, whether or not a goroutine holds
// the lock, blocks others for a session timeout.
type Cohort struct{ lock localLock }

// CohortOptions configures a Cohort. A nil *CohortOptions means the defaults.
type CohortOptions struct {
	// Keep is how long the place is kept while no goroutine holds the lock or waits for it, unless
	// another process wants it. Default 100 ms; if it is negative, the place is not kept.
	Keep time.Duration
}

const defaultKeep = 100 * time.Millisecond

// Cohort returns the cohort lock at path, with one place for the goroutines of this client. It
// sends nothing; an invalid path is reported by the first call. The options can be left out; of
// several, the last ones count. If Options.LockDelay is set, its methods return ErrInvalid.
func (c *Client) Cohort(path string, opts ...*CohortOptions) *Cohort {
	err := node.CheckPath(path)
	if err == nil && c.orNone().engine.Delay > 0 {
		err = fmt.Errorf("%w: Cohort does not support a lock-delay, and Options.LockDelay is set", ErrInvalid)
	}
	k := new(Cohort)
	k.lock.init(c, cohortKey{path, cmp.Or(lastOf(opts).Keep, defaultKeep)}, err)
	return k
}

// Lock waits until it holds the lock, and returns the hold. It behaves like Mutex.Lock, except that
// Unlock does not wait for a server, because the place is passed on or kept. If the place is lost,
// its hold ends, and the waiting goroutines queue again in the same order.
//
// After operate.Revoke, no other goroutine acquires the lock in the revoked place: the waiting
// goroutines rejoin the end of the queue. If operate.Evict removes a waiting place, the goroutines
// that called before the place entered the queue get ErrEvicted. The others queue again.
func (co *Cohort) Lock(ctx context.Context) (*Hold, error) { return co.lockWithin(ctx, nil) }

func (co *Cohort) lockWithin(ctx context.Context, admit queue.Admission) (*Hold, error) {
	return co.lock.take(ctx, "lock", false, admit)
}

// TryLock returns a hold if the lock is free, or if this process keeps it and no goroutine holds
// it. Otherwise it returns ErrLocked without waiting for the holder, and leaves no node behind.
// Without a connection it returns ErrNotConnected.
func (co *Cohort) TryLock(ctx context.Context) (*Hold, error) {
	return co.lock.take(ctx, "try", true, nil)
}

// Do locks, runs fn, and unlocks, as Mutex.Do does.
func (co *Cohort) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	hold, err := co.Lock(ctx)
	if err != nil {
		return err
	}
	return hold.Do(ctx, fn)
}

// Path returns the lock's path, as it was passed to the client.
func (co *Cohort) Path() string { return co.lock.path }

func (co *Cohort) lockable() lockable {
	return lockable{c: co.lock.client(), path: co.lock.path, err: co.lock.err()}
}

// localLock acquires one lock for the goroutines of a client that share places.
type localLock struct {
	owner
	path string
	key  any   // the cohortKey, by which the client finds its queues
	bad  error // an invalid argument

	known atomic.Pointer[localQueue] // the queue that was used last
}

// init must be called before any other method.
func (ll *localLock) init(c *Client, key cohortKey, err error) {
	ll.owner, ll.path, ll.key, ll.bad = owner{c}, key.path, key, err
}

// err returns why the lock cannot be used, or nil if it can.
func (ll *localLock) err() error {
	if ll.client() == none {
		return errNotMade
	}
	return ll.bad
}

// take returns a hold, and reports the success or the failure to the observer.
func (ll *localLock) take(ctx context.Context, verb string, try bool, admit queue.Admission) (*Hold, error) {
	start := time.Now()
	c := ll.client()
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	h, err := ll.obtain(ctx, try, admit)
	if err != nil {
		err = notAcquired(verb, ll.path, err)
		if ll.err() == nil {
			c.observeFailure(ctx, &attempt{verb: verb, path: ll.path}, time.Since(start), err)
		}
		return nil, err
	}
	if c.engine.Reporter.To != nil {
		h.observeSuccess(time.Since(start), 0)
	}
	return h, nil
}

// obtain waits behind the other goroutines of the process and returns a hold.
func (ll *localLock) obtain(ctx context.Context, try bool, admit queue.Admission) (*Hold, error) {
	c := ll.client()
	switch {
	case ll.err() != nil:
		return nil, ll.err()
	case ctx.Err() != nil:
		return nil, outcome.CauseOf(ctx, ctx.Err())
	case c.holdsUnder(ctx, ll.path, ""):
		return nil, ErrDeadlock
	}
	if !c.acquires.Enter() {
		return nil, ErrClosed
	}
	defer c.acquires.Done()
	if try {
		return queue.WithoutWaiting(ctx, c.engine, func(ctx context.Context) (*Hold, error) { return ll.wait(ctx, true, nil) })
	}
	return ll.wait(ctx, false, admit)
}

// queue returns the lock's current queue.
func (ll *localLock) queue() *localQueue {
	q := ll.known.Load()
	if q == nil || q.over.Load() {
		q = ll.client().localQueue(ll.key)
		ll.known.Store(q)
	}
	return q
}

// wait waits behind the other goroutines of the process.
func (ll *localLock) wait(ctx context.Context, try bool, admit queue.Admission) (*Hold, error) {
	for {
		q := ll.queue()
		w, err := q.join(ctx, try, admit)
		switch {
		case errors.Is(err, errOver):
			continue // it has been replaced by now
		case err != nil:
			return nil, err
		}
		h, err := q.await(w)
		if err != nil && !errors.Is(err, ErrClosed) {
			err = ll.engine().Requests.Explain(ctx, err)
		}
		return h, err
	}
}
