// Package operate is for operators of locks: it shows who holds and who waits, also among users of Curator, kazoo and
// go-zookeeper, and removes those that hang. A program that only locks needs none of it.
package operate

import (
	"context"
	"iter"

	"github.com/zklock-go/zklock"
)

// Inspect returns the holders and waiters of the lock at path, whatever library they use. It
// creates no node and changes nothing. For a path that nobody has used, the queue is empty.
//
// Where permits were granted just before a Resize to fewer, their acquire is shown as waiting until
// it has left the queue: nothing tells it from one that waits.
func Inspect(ctx context.Context, c *zklock.Client, path string) (*Queue, error) {
	return of(c).inspect(ctx, path)
}

// Queues returns the queue of the lock at path and of every lock below it, as Inspect does,
// if they have contenders. They are in the order of their paths. path may be "/". Each node
// below it costs a request. One more, a write that changes nothing, asks the quorum for all. A node
// whose name is like a contender's is taken for one, and Queues does not look below it.
//
// If path does not exist, the error wraps zk.ErrNoNode. If a node below it may not be read,
// the error wraps zk.ErrNoAuth and names it, and Queues returns all others with it.
func Queues(ctx context.Context, c *zklock.Client, path string) ([]*Queue, error) {
	return of(c).queues(ctx, path)
}

// Watch yields the queues that Queues returns, and then each queue whose contenders change.
// A queue that becomes empty is yielded once more, with no contenders. Of a queue that
// changes all the time, Watch yields a few states in a second. It watches the directories, of
// which there can be 10,000. While nothing changes, it asks of each once in a session timeout
// whether it is still as it was seen. It asks no quorum: what it yields is as late as its server.
//
// If path does not exist, Watch waits for it. Nodes below it that may not be read are left
// out. The sequence ends when the loop does, or after an error: the end of ctx, zklock.ErrClosed,
// or a refusal by the server.
//
// The client library cannot take a watch back: after the sequence has ended, one watch for
// each directory, and a goroutine of the client for it, stay until that directory changes or
// the session ends. For a look now and then, use Queues.
func Watch(ctx context.Context, c *zklock.Client, path string) iter.Seq2[*Queue, error] {
	return of(c).watch(ctx, path)
}

// Revoke asks a contender that Inspect has returned to let go of its lock. It closes the
// holder's Hold.Revoked; the holder decides whether and when to unlock. Curator's holders
// with a RevocationListener are asked in the way that they understand; holders of other
// libraries do not notice. A waiter is asked as soon as it holds, unless it loses its node
// before it is next in line.
//
// If the contender is gone, Revoke returns zklock.ErrNotHeld. If it is a member of an election with
// Latch, Revoke returns zklock.ErrInvalid and changes nothing: Curator's latches wait for the end
// of the node before their own, and a change of its data would make them wait for ever.
func Revoke(ctx context.Context, c *zklock.Client, who zklock.Contender) error {
	return of(c).revoke(ctx, who)
}

// Evict removes contenders that Inspect has returned, whatever they are doing. It is for
// operators: a process hangs, and others need its lock. Evict removes the waiters first,
// beginning with the last, so that none of them is granted in between.
//
// A holder of this library learns of it at once, with zklock.ErrLost. A holder of another library
// may go on as if it held the lock: make sure that it is stopped. A waiter of this library
// gets zklock.ErrEvicted when those ahead of it have gone, and does not queue again; so does one
// that holds without knowing it yet, and one that was stopped meanwhile. In three cases a stopped
// process does not learn that it was evicted, and queues again: the directory's data cannot be
// written or belongs to somebody else, the directory has vanished before it wakes up, or 256 others
// were evicted after it. If a contender is granted permits just when it is evicted, these are taken from it.
//
// Nodes below a contender's are deleted as well: no lock makes any, and they would keep it there.
// If that is refused, the error wraps zk.ErrNoAuth and names those who may.
//
// Evict only removes the given nodes, and only while they belong to the given sessions; a
// node that no session ends has the session 0. If a contender is gone, the error wraps
// zklock.ErrNotHeld. If several are given, the error names those that were not removed, and the
// others are removed.
func Evict(ctx context.Context, c *zklock.Client, who ...zklock.Contender) error {
	return of(c).evict(ctx, who...)
}
