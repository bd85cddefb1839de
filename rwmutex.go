// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"context"
	"fmt"

	"github.com/zklock-go/zklock/internal/bridge"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/queue"
)

// RWMutex is a lock with many readers or one writer at a time, granted first come, first served: a
// reader that arrives after a waiting writer waits behind it. An RWMutex has no state:
// all values for one path are the same lock. Curator's InterProcessReadWriteLock on that path is
// the same lock, too.
type RWMutex struct {
	owner
	path string
}

// A reader watches only the nearest writer ahead, so the release of a writer wakes only the readers
// between it and the next writer.
var (
	writerRecipe = &queue.Recipe{Name: "write", TakesDelay: true, Infix: node.WriterInfix, Rule: node.AfterAll}
	readerRecipe = &queue.Recipe{Name: "read", TakesDelay: true, Infix: node.ReaderInfix, Rule: node.AfterExclusive, Shared: true, Passes: node.IsDowngraded}
)

// memberRecipe is the recipe of package shards' members. They are readers with their own data.
var memberRecipe = &queue.Recipe{Name: "member", Infix: node.ReaderInfix, Rule: node.AfterExclusive, Shared: true, Passes: node.IsDowngraded}

func init() {
	bridge.Join = func(ctx context.Context, client any, path string, data []byte) (any, error) {
		return client.(*Client).orNone().lock(ctx, "join", memberRecipe, path, data, nil)
	}
}

// RWMutex returns the read-write lock at path, below which every contender has a node. It sends
// nothing; an invalid path is reported by the first call.
func (c *Client) RWMutex(path string) *RWMutex { return &RWMutex{owner{c}, path} }

// Lock waits until it holds the lock exclusively, and otherwise behaves like Mutex.Lock. If ctx
// belongs to any hold of this lock, Lock returns ErrDeadlock: a reader cannot become a writer,
// because two readers that tried would wait for each other.
func (m *RWMutex) Lock(ctx context.Context) (*Hold, error) {
	return m.lockWithin(ctx, nil)
}

func (m *RWMutex) lockWithin(ctx context.Context, admit queue.Admission) (*Hold, error) {
	return m.client().lock(ctx, "lock", writerRecipe, m.path, m.client().identity, admit)
}

// TryLock acquires the lock exclusively if it is free, as Mutex.TryLock does.
func (m *RWMutex) TryLock(ctx context.Context) (*Hold, error) {
	return m.client().tryLock(ctx, "try", writerRecipe, m.path, m.client().identity)
}

// RLock waits until it holds the lock, alone or together with other readers, and otherwise behaves
// like Mutex.Lock. If ctx belongs to any hold of this lock, RLock returns ErrDeadlock; to continue
// as a reader, a writer calls Hold.Downgrade.
func (m *RWMutex) RLock(ctx context.Context) (*Hold, error) {
	return reader{m}.lockWithin(ctx, nil)
}

// TryRLock acquires the lock for reading if no writer holds it or waits for it. Otherwise it
// returns ErrLocked, as Mutex.TryLock does.
func (m *RWMutex) TryRLock(ctx context.Context) (*Hold, error) {
	return m.client().tryLock(ctx, "try", readerRecipe, m.path, m.client().identity)
}

// Reader returns a Locker that acquires the lock for reading, for use with Do and LockAll. It
// sends nothing. To acquire it for writing, pass the RWMutex itself.
func (m *RWMutex) Reader() Locker { return reader{m} }

type reader struct{ *RWMutex }

func (r reader) Lock(ctx context.Context) (*Hold, error) { return r.RLock(ctx) }

func (r reader) lockWithin(ctx context.Context, admit queue.Admission) (*Hold, error) {
	return r.client().lock(ctx, "lock for reading", readerRecipe, r.path, r.client().identity, admit)
}

// Path returns the lock's path, as it was passed to the client.
func (m *RWMutex) Path() string { return m.path }

func (m *RWMutex) lockable() lockable {
	return lockable{c: m.client(), path: m.path, err: node.CheckPath(m.path)}
}

// Downgrade turns a writer's hold of an RWMutex into a reader's, in the same place in the queue. No
// other writer acquires the lock in between, and the readers directly behind it are granted the
// lock. Token, context and guard stay the same. Curator's readers keep waiting until the hold is
// unlocked.
//
// Treat the hold as a reader's as soon as you call Downgrade, even if the call fails: if ctx ended
// or the reply was lost, readers may have been granted the lock. Downgrade may be called again. For
// a hold that is not a writer's, it returns ErrInvalid and changes nothing.
func (h *Hold) Downgrade(ctx context.Context) error {
	err := h.downgrade(ctx)
	if err != nil {
		return h.holding().failure("downgrade", err)
	}
	return nil
}

func (h *Hold) downgrade(ctx context.Context) error {
	g := h.holding()
	if g.recipe != writerRecipe.Name {
		return fmt.Errorf("%w: not a writer's hold", ErrInvalid)
	}
	o, ok := node.ReadOwner(g.nodes[0].OwnData())
	if !ok {
		return fmt.Errorf("%w: the node's data is not in zklock's format", ErrInvalid)
	}
	o.Shared = true
	g.downgraded.Store(true)
	return h.rewrite(ctx, o.Encode())
}
