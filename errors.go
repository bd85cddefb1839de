// SPDX-License-Identifier: Apache-2.0

package zklock

import "github.com/zklock-go/zklock/internal/outcome"

// The errors of this package. An error that a method returns wraps one of these or, if a server
// refuses the request, an error of the client library such as zk.ErrNoAuth. Test for them with
// errors.Is. The text contains the operation and the path. If a context ends while a call waits,
// the error also wraps the context's error and the last problem that occurred during the wait.
var (
	// ErrLost reports that a hold ended without Unlock: its session expired, no quorum answered in
	// time, or its node was deleted. From then on, others may hold the lock. The hold's methods
	// return this error, and the cause of the hold's context wraps it.
	ErrLost = outcome.ErrLost // lock was lost
	// ErrNotAcquired reports that an acquire failed: no lock is held. The error wraps the reason as
	// well. From Do, of any lock, it also says that the function was not called, and from Election.Run,
	// that this member did not lead when Run returned. If Do returns another error, the function was
	// called, and may have done a part of its work.
	ErrNotAcquired = outcome.ErrNotAcquired // lock was not acquired
	// ErrReleased reports that the hold was unlocked. The hold's methods return it after Unlock. It
	// wraps ErrNotHeld.
	ErrReleased = outcome.ErrReleased // lock was released
	// ErrNotHeld is returned by the methods of a nil Hold, by Proclaim if its context does not
	// belong to the leader's hold, by a slot's Mark if the hold is nil, and by Revoke and Evict if
	// the contender is gone.
	ErrNotHeld = outcome.ErrNotHeld // not held
	// ErrLocked is returned by TryLock, TryRLock, TryAcquire and TryCampaign if they would have to
	// wait, and by the Lock of AtMost if too many contenders are ahead.
	ErrLocked = outcome.ErrLocked // already locked
	// ErrDeadlock is returned by an acquire whose context belongs to a hold of the same lock: it
	// would wait for itself.
	ErrDeadlock = outcome.ErrDeadlock // already held by this context
	// ErrClosed is returned by calls on a closed client, and by calls that are waiting when the
	// client is closed. It is also the cause with which the client's holds end when it is closed.
	ErrClosed = outcome.ErrClosed // client is closed
	// ErrNotConnected is returned by calls that do not wait (TryLock, TryRLock, TryAcquire,
	// TryCampaign) if the client has no connection or loses it before the reply arrives. They also
	// return it if the servers do not complete the call within five session timeouts.
	ErrNotConnected = outcome.ErrNotConnected // no connection to a server
	// ErrUncertain is returned by Multi and Unlock, and by a slot's Mark and Do, if a request was sent
	// but no reply arrived: either all of it was done or none of it. Do returns it only if the function
	// did.
	ErrUncertain = outcome.ErrUncertain // outcome unknown: no reply received
	// ErrInvalid is returned for an invalid argument or option, in most cases before anything is
	// sent.
	ErrInvalid = outcome.ErrInvalid // invalid argument
	// ErrMismatch is returned by an acquire and by Resize if the nodes at the path show that others
	// use it with different settings: as another kind of lock, with another lock-delay, or with
	// another number of permits. All users of a path must agree on these.
	ErrMismatch = outcome.ErrMismatch // path is in use with different settings
	// ErrLimit is returned by an acquire that requests more permits than the semaphore has or than
	// fit into one request. Any acquire returns it if the client would own too many nodes: the
	// paths of all nodes of all clients on one connection may total 1,750,000 bytes.
	ErrLimit = outcome.ErrLimit // limit exceeded
	// ErrEvicted is returned by an acquire if operate.Evict removed it from the queue. The text says by which
	// host and why, if the operator has said so. A holder that is evicted gets ErrLost; the error of its Do or
	// Unlock wraps ErrEvicted as well, and so does the cause of the hold's context once the client has asked the
	// servers.
	ErrEvicted = outcome.ErrEvicted // evicted from the queue
)
