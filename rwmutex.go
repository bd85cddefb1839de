package zklock

import (
	"context"
	"fmt"
)

// RWMutex is a lock that many readers or one writer hold at a time, granted in the order
// of asking: a reader behind a writer that waits, waits as well. It has no state of its
// own: all that are made for one path are the same lock. Curator's
// InterProcessReadWriteLock on that path is the same lock, too.
type RWMutex struct {
	c    *Client
	path string
}

const (
	writerInfix = "-__WRIT__"
	readerInfix = "-__READ__"
)

// A reader waits for the nearest writer ahead and watches nobody else, so that a
// writer's release wakes just the readers between it and the next writer.
var (
	writerRecipe = &recipe{name: "write", infix: writerInfix, rule: afterAll}
	readerRecipe = &recipe{name: "read", infix: readerInfix, rule: afterExclusive, passes: isDowngraded}
)

// RWMutex returns the lock at path, below which every contender has a node.
func (c *Client) RWMutex(path string) *RWMutex { return &RWMutex{c, path} }

// Lock waits until the lock is held alone, as Mutex.Lock does. Under the context of any
// hold on this lock it returns ErrDeadlock: a reader cannot become a writer, because two
// that try would wait for each other.
func (m *RWMutex) Lock(ctx context.Context) (*Hold, error) {
	return m.c.lock(ctx, "lock", writerRecipe, m.path, m.c.identity)
}

// TryLock is Lock as Mutex.TryLock does it.
func (m *RWMutex) TryLock(ctx context.Context) (*Hold, error) {
	return m.c.tryLock(ctx, writerRecipe, m.path, m.c.identity)
}

// RLock waits until the lock is held, alone or with other readers. Under the context of
// any hold on this lock it returns ErrDeadlock: see Hold.Downgrade.
func (m *RWMutex) RLock(ctx context.Context) (*Hold, error) {
	return m.c.lock(ctx, "lock for reading", readerRecipe, m.path, m.c.identity)
}

// TryRLock is RLock without waiting for anybody: ErrLocked if a writer holds or waits.
func (m *RWMutex) TryRLock(ctx context.Context) (*Hold, error) {
	return m.c.tryLock(ctx, readerRecipe, m.path, m.c.identity)
}

// Reader is the lock as LockAll takes it for reading; for writing it takes the RWMutex itself.
func (m *RWMutex) Reader() Locker { return reader{m} }

type reader struct{ *RWMutex }

func (r reader) Lock(ctx context.Context) (*Hold, error) { return r.RLock(ctx) }

func (m *RWMutex) lockable() lockable { return lockable{c: m.c, path: m.path, err: checkPath(m.path)} }

// Downgrade makes a writer's hold of an RWMutex a reader's, in its place: no writer gets
// between, and the readers right behind it hold as well. Token, context and guard stay
// what they are. Readers of Curator's go on waiting until it is unlocked.
//
// From the call on the hold is to be used as a reader's, whatever comes of it: if ctx
// ends first, or the answer is lost, readers may have been let in. It may be called
// again. A hold of anything else is ErrInvalid.
func (h *Hold) Downgrade(ctx context.Context) error {
	err := h.downgrade(ctx)
	if err != nil {
		return h.failure("downgrade", err)
	}
	return nil
}

func (h *Hold) downgrade(ctx context.Context) error {
	if h.recipe != writerRecipe.name {
		return fmt.Errorf("%w: not a writer's hold", ErrInvalid)
	}
	o, ok := readOwner(h.parts[0].ownData())
	if !ok {
		return fmt.Errorf("%w: the node's data is not ours", ErrInvalid)
	}
	o.Shared = true
	return h.rewrite(ctx, o.encode())
}

// isDowngraded says whether a writer has become a reader.
func isDowngraded(data []byte) bool {
	o, ok := readOwner(data)
	return ok && o.Shared
}
