// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"context"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/queue"
)

// Mutex is a lock with one holder at a time, granted first come, first served. A Mutex has no state:
// all values for one path are the same lock.
type Mutex struct {
	owner
	path string
}

var mutexRecipe = &queue.Recipe{Name: "mutex", TakesDelay: true, Infix: node.LockInfix, Rule: node.AfterAll}

// Mutex returns the mutex at path. It sends nothing; an invalid path is reported by the first call.
// The path's own node is created when it is needed, and ZooKeeper removes it after it has been
// empty for a while. Each contender has a node below it.
func (c *Client) Mutex(path string) *Mutex { return &Mutex{owner{c}, path} }

// Lock waits until it holds the lock, and returns the hold. If ctx ends first, Lock leaves the
// queue and returns an error that wraps ctx.Err(). If the session expires while Lock waits, it
// queues again at the end.
//
// Once Lock has returned, the end of ctx has no effect on the hold. If ctx belongs to a hold of
// this same lock, Lock returns ErrDeadlock.
func (m *Mutex) Lock(ctx context.Context) (*Hold, error) {
	return m.lockWithin(ctx, nil)
}

func (m *Mutex) lockWithin(ctx context.Context, admit queue.Admission) (*Hold, error) {
	return m.client().lock(ctx, "lock", mutexRecipe, m.path, m.client().identity, admit)
}

// TryLock returns a hold if the lock is free. Otherwise it returns ErrLocked without waiting for
// the holder, and leaves no node behind. Without a connection, or if the servers do not complete the
// call within five session timeouts, it returns ErrNotConnected. If ctx belongs to a hold of this same
// lock, it returns ErrDeadlock. It creates a node only if it sees no
// other contender.
func (m *Mutex) TryLock(ctx context.Context) (*Hold, error) {
	return m.client().tryLock(ctx, "try", mutexRecipe, m.path, m.client().identity)
}

// Do locks, runs fn, and unlocks when fn returns or panics. The context of fn ends with ctx and
// with the hold. Do returns the errors of Lock, fn and Unlock: if the lock was lost while fn ran,
// the error wraps ErrLost as well as fn's error. Do calls Hold.Do; see there for details.
func (m *Mutex) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	hold, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	return hold.Do(ctx, fn)
}

// Path returns the lock's path, as it was passed to the client.
func (m *Mutex) Path() string { return m.path }

func (m *Mutex) lockable() lockable {
	return lockable{c: m.client(), path: m.path, err: node.CheckPath(m.path)}
}
