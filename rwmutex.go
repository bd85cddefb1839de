package zklock

import (
	"context"
	"fmt"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/queue"
)

// RWMutex is a lock that many readers or one writer hold at a time, granted in the order of
// asking: a reader that comes after a waiting writer waits behind it. An RWMutex has no
// state of its own: all values for one path are the same lock, and so is Curator's
// InterProcessReadWriteLock on that path.
type RWMutex struct {
	owner
	path string
}

// A reader watches only the nearest writer ahead, so that the release of a writer wakes just
// the readers between it and the next writer.
var (
	writerRecipe = &queue.Recipe{Name: "write", Delays: true, Infix: node.WriterInfix, Rule: node.AfterAll}
	readerRecipe = &queue.Recipe{Name: "read", Delays: true, Infix: node.ReaderInfix, Rule: node.AfterExclusive, Shared: true, Passes: node.IsDowngraded}
)

// RWMutex returns the lock at path, below which every contender has a node.
func (c *Client) RWMutex(path string) *RWMutex { return &RWMutex{owner{c}, path} }

// Lock waits until it holds the lock alone, and otherwise behaves as Mutex.Lock. If ctx is
// the context of any hold of this lock, Lock returns ErrDeadlock: a reader cannot become a
// writer, because two readers that tried would wait for each other.
func (m *RWMutex) Lock(ctx context.Context) (*Hold, error) {
	return m.c().lock(ctx, "lock", writerRecipe, m.path, m.c().identity)
}

// TryLock takes the lock alone if it is free, as Mutex.TryLock does.
func (m *RWMutex) TryLock(ctx context.Context) (*Hold, error) {
	return m.c().tryLock(ctx, "try", writerRecipe, m.path, m.c().identity)
}

// RLock waits until it holds the lock, alone or with other readers, and otherwise behaves as
// Mutex.Lock. If ctx is the context of any hold of this lock, RLock returns ErrDeadlock; a
// writer that wants to go on as a reader calls Hold.Downgrade.
func (m *RWMutex) RLock(ctx context.Context) (*Hold, error) {
	return m.c().lock(ctx, "lock for reading", readerRecipe, m.path, m.c().identity)
}

// TryRLock takes the lock for reading if no writer holds it or waits. Otherwise it returns
// ErrLocked, as Mutex.TryLock does.
func (m *RWMutex) TryRLock(ctx context.Context) (*Hold, error) {
	return m.c().tryLock(ctx, "try", readerRecipe, m.path, m.c().identity)
}

// Reader returns the lock in the form in which LockAll takes it for reading. To take it for
// writing, pass the RWMutex itself.
func (m *RWMutex) Reader() Locker { return reader{m} }

type reader struct{ *RWMutex }

func (r reader) Lock(ctx context.Context) (*Hold, error) { return r.RLock(ctx) }

// Path returns the lock's path, as it was given to the client.
func (m *RWMutex) Path() string { return m.path }

func (m *RWMutex) lockable() lockable {
	return lockable{c: m.c(), path: m.path, err: node.CheckPath(m.path)}
}

// Downgrade turns a writer's hold of an RWMutex into a reader's, in the same place in the
// queue. No writer gets in between, and the readers right behind it are granted. Token,
// context and guard stay the same. Curator's readers go on waiting until it is unlocked.
//
// Use the hold as a reader's from the call on, even if Downgrade fails: if ctx ended or the
// answer was lost, readers may have been granted all the same. Downgrade may be called
// again. For a hold that is not a writer's it returns ErrInvalid and changes nothing.
func (h *Hold) Downgrade(ctx context.Context) error {
	err := h.downgrade(ctx)
	if err != nil {
		return h.of().failure("downgrade", err)
	}
	return nil
}

func (h *Hold) downgrade(ctx context.Context) error {
	if h.of().recipe != writerRecipe.Name {
		return fmt.Errorf("%w: not a writer's hold", ErrInvalid)
	}
	o, ok := node.ReadOwner(h.of().nodes[0].OwnData())
	if !ok {
		return fmt.Errorf("%w: the node's data is not ours", ErrInvalid)
	}
	o.Shared = true
	return h.rewrite(ctx, o.Encode())
}
