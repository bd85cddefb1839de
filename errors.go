package zklock

import "github.com/zklock-go/zklock/internal/outcome"

// The errors of this package. An error that a method returns wraps one of these, or an
// error of the client library (such as zk.ErrNoAuth) if a server refuses; test for them
// with errors.Is. The text names the operation and the path. If the context of a wait has
// ended, the error also wraps the context's error and the last trouble that the wait met.
var (
	// ErrLost is the cause of a hold's end that was not asked for: its session has expired,
	// no quorum has answered in time, or its node was deleted. Others may hold the lock from
	// then on. The methods of the hold return it, and it is the cause of the hold's context.
	ErrLost = outcome.ErrLost
	// ErrReleased is the cause of a hold's end by Unlock. The hold's methods return it
	// afterwards.
	ErrReleased = outcome.ErrReleased
	// ErrNotHeld is returned by a second Unlock of a hold and by Proclaim if its context is not
	// that of a leader. A slot's Mark returns it without a hold, and Revoke and Evict if the
	// contender is gone.
	ErrNotHeld = outcome.ErrNotHeld
	// ErrLocked is returned by TryLock, TryRLock, TryAcquire and TryCampaign if they would have to wait.
	ErrLocked = outcome.ErrLocked
	// ErrDeadlock is returned by an acquire whose context is that of a hold of the same lock:
	// it would wait for itself.
	ErrDeadlock = outcome.ErrDeadlock
	// ErrClosed is returned by calls on a client that is closed, or is closed while they
	// wait. It is the cause of the end of what the client held when it was closed.
	ErrClosed = outcome.ErrClosed
	// ErrNotConnected is returned by calls that do not wait (TryLock, TryRLock, TryAcquire,
	// TryCampaign) if the client has no connection, or loses it before the answer has come. So is
	// it where the servers do nothing for five session timeouts.
	ErrNotConnected = outcome.ErrNotConnected
	// ErrUncertain is returned by Multi, by Unlock and Do, and by a slot's Mark and Do, if
	// something was sent and its answer did not come: either all of it was done or nothing.
	ErrUncertain = outcome.ErrUncertain
	// ErrInvalid is returned for an argument or option that cannot be right, mostly before
	// anything is sent.
	ErrInvalid = outcome.ErrInvalid
	// ErrMismatch is returned by an acquire and by Resize if the nodes at the path show that others use it
	// differently: as another kind of lock, with another lock-delay, or with another number of
	// permits. All users of a path must agree on these.
	ErrMismatch = outcome.ErrMismatch
	// ErrLimit is returned by an acquire that asks a semaphore for more permits than there are
	// or than fit into one request. It is returned by any acquire for which the client would own
	// too many nodes: the paths of all of them, and of all clients of one connection, may have 1,750,000 bytes.
	ErrLimit = outcome.ErrLimit
	// ErrEvicted is returned by an acquire if operate.Evict has removed it from the queue.
	// A holder that is evicted gets ErrLost.
	ErrEvicted = outcome.ErrEvicted
)
