package zklock

import (
	"errors"

	"github.com/zklock-go/zklock/internal/conn"
)

// The errors of this package. An error that a method returns wraps one of these, or an
// error of the client library (such as zk.ErrNoAuth) if a server refuses; test for them
// with errors.Is. The text names the operation and the path. If the context of a wait has
// ended, the error also wraps the context's error and the last trouble that the wait met.
var (
	// ErrLost is the cause of a hold's end that was not asked for: its session has expired,
	// no quorum has answered in time, or its node was deleted. Others may hold the lock from
	// then on. The methods of the hold return it, and it is the cause of the hold's context.
	ErrLost = errors.New("lock was lost")
	// ErrReleased is the cause of a hold's end by Unlock. The hold's methods return it
	// afterwards.
	ErrReleased = errors.New("lock was released")
	// ErrNotHeld is returned by a second Unlock of a hold, by Proclaim if its context is not
	// that of a leader, by a slot's Mark without a hold, and by Revoke and Evict if the contender
	// is gone.
	ErrNotHeld = errors.New("not held")
	// ErrLocked is returned by TryLock, TryRLock and TryAcquire if they would have to wait.
	ErrLocked = errors.New("locked by another")
	// ErrDeadlock is returned by an acquire whose context is that of a hold of the same lock:
	// it would wait for itself.
	ErrDeadlock = errors.New("already held by this context")
	// ErrClosed is returned by calls on a client that is closed, or is closed while they
	// wait. It is the cause of the end of what the client held when it was closed.
	ErrClosed = errors.New("client is closed")
	// ErrNotConnected is returned by calls that do not wait (TryLock, TryRLock, TryAcquire)
	// if the client has no connection, or loses it before the answer has come.
	ErrNotConnected = errors.New("no connection to a server")
	// ErrUncertain is returned by Multi, and by a slot's Mark and Do, if a transaction was sent
	// and its answer did not come: either all of it was done or nothing.
	ErrUncertain = errors.New("answer was lost, it may have been done")
	// ErrInvalid is returned for an argument or option that cannot be right, before anything
	// is sent, and for a path whose nodes show that it is another kind of lock.
	ErrInvalid = errors.New("invalid argument")
	// ErrLimit is returned by a semaphore's methods if its number of permits is not the
	// stored one, and if an acquire asks for more permits than there are or than fit into
	// one request.
	ErrLimit = errors.New("not within the semaphore's permits")
	// ErrEvicted is returned by an acquire if operate.Evict has removed it from the queue.
	// A holder that is evicted gets ErrLost.
	ErrEvicted = errors.New("evicted from the queue")
)

// What ends an attempt inside the package. No caller sees these.
var (
	// errGone says that our own node was deleted by somebody else while we waited.
	errGone = errors.New("own node is gone")
	// errSessionOver is returned by what was begun under a session that is over.
	errSessionOver = conn.ErrSessionOver
)
