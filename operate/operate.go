// SPDX-License-Identifier: Apache-2.0

// Package operate is for operators of locks. It shows who holds and who waits for a lock, including
// users of Curator, kazoo and go-zookeeper, removes contenders that hang, and checks whether servers
// are fit for locks. A program that only uses locks does not need it.
package operate

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
)

// Inspect returns the holders and waiters of the lock at path, for any client library. It is
// read-only and creates no node. For a path that has never been used, the queue is empty. If the
// client may not read the path or a contender, the error wraps zk.ErrNoAuth.
//
// If permits were granted just before a Resize to a smaller number, their acquire is shown as
// waiting until it has left the queue, because Inspect cannot distinguish it from a waiter.
//
// The shards of package shards are mutexes below their path: see InspectShards.
func Inspect(ctx context.Context, c *zklock.Client, path string) (*Queue, error) {
	return of(c).inspect(ctx, path)
}

// Queues returns the queue of the lock at path and of every lock below it, as Inspect does, if they
// have contenders. They are sorted by path. path may be "/". Queues sends one request for each node
// below path, and one write that changes nothing, with which it asks the quorum for all of them. A
// node whose name looks like a contender's is treated as one, and Queues does not look below it.
//
// If path does not exist, the error wraps zk.ErrNoNode. If a node below it cannot be read, the
// error wraps zk.ErrNoAuth and names the node, and Queues returns all other queues along with the
// error.
func Queues(ctx context.Context, c *zklock.Client, path string) ([]*Queue, error) {
	return of(c).queues(ctx, path)
}

// InspectShards returns the fleet of package shards at path. It reads every shard, as Queues does. If the
// fleet has no members, Number is zero.
func InspectShards(ctx context.Context, c *zklock.Client, path string) (*Shards, error) {
	queues, err := of(c).queues(ctx, path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	fleets, _ := GroupShards(queues)
	for _, f := range fleets {
		if f.Path == path {
			return f, nil
		}
	}
	return &Shards{Path: path}, nil
}

// Watch yields the queues that Queues returns, and then each queue whose contenders change. A queue
// that becomes empty is yielded once more, without contenders. For a queue that changes
// continuously, Watch yields a few states per second. It watches the directories. While nothing
// changes, it checks each directory once per session timeout. It does not ask a quorum: its results
// lag as far as its server does.
//
// If path does not exist, Watch waits for it. If directories below path cannot be read, or are too
// many to be watched, Watch yields an *Incomplete as its error, again whenever that changes, and
// continues. It watches 10,000 directories that have children and 1,000 that have none; the children
// of path get equal shares, so that none of them can hide the others. Once per session timeout it
// looks again at directories that are not watched, up to 1,000 of them.
//
// The sequence ends when the loop does, or after any other error: ctx ends, the client is closed
// (zklock.ErrClosed), or a server refuses a request at path itself.
//
// The client library cannot cancel a watch. After the sequence has ended, one watch and one
// goroutine of the client remain for each directory until that directory changes or the session
// ends. To poll occasionally, use Queues.
func Watch(ctx context.Context, c *zklock.Client, path string) iter.Seq2[*Queue, error] {
	return of(c).watch(ctx, path, usual)
}

// Revoke asks a contender that Inspect returned to release its lock. It closes the holder's
// Hold.Revoked; the holder decides whether and when to unlock. Curator's holders with a
// RevocationListener are asked in the way that Curator expects; holders of other libraries do not
// notice. A waiter is asked once it holds the lock, unless it loses its node before it is next in
// line.
//
// If the contender is gone, Revoke returns zklock.ErrNotHeld. If it is a member of an election with
// ElectionOptions.Latch, Revoke returns zklock.ErrInvalid and changes nothing: Curator's latches
// wait for the node before their own to be deleted, and would wait forever if its data changed.
func Revoke(ctx context.Context, c *zklock.Client, contender zklock.Contender) error {
	return of(c).revoke(ctx, contender)
}

// Evict removes contenders that Inspect returned, even if they hold the lock. It is for operators:
// use it when a process hangs and others need its lock. Evict removes waiters first, starting with
// the last, so that none of them is granted the lock in between.
//
// The context of a zklock holder ends at once, with zklock.ErrLost. Its client then asks the servers for the
// reason: the error of Do and Unlock, and from then on the cause of the hold's context, also wraps
// zklock.ErrEvicted. A holder that uses another library may continue: make
// sure that it is stopped. A zklock waiter gets
// zklock.ErrEvicted when the contenders ahead of it have gone, and does not queue again. This also
// applies to a contender that holds the lock without knowing it yet, and to a process that was stopped
// in the meantime. In three cases a stopped process does not learn that it was evicted, and queues
// again: the directory's data cannot be written or belongs to another program, the directory was
// removed before the process resumes, or 256 other contenders were evicted after it. If a contender
// is granted permits while it is being evicted, Evict removes these permits, too.
//
// The errors of evicted contenders contain the reason, which may be empty, and the host of this
// process, unless Options.Anonymous is set: "evicted by HOST: REASON". The reason has at most 200 bytes;
// otherwise Evict returns zklock.ErrInvalid. Both are stored in the lock's directory, so everybody
// who may read the directory can read them.
//
// Evict also deletes nodes below a contender's node: no lock creates any, and they would prevent
// its removal. If a server refuses that, the error wraps zk.ErrNoAuth and names who may do it.
//
// Evict removes only the given nodes, and only while they belong to the given sessions; a node that
// is not ephemeral has session 0. If a contender is gone, the error wraps zklock.ErrNotHeld. If
// several are given, Evict removes the others, and the error names the contenders that were not removed.
func Evict(ctx context.Context, c *zklock.Client, reason string, contenders ...zklock.Contender) error {
	return of(c).evict(ctx, reason, contenders...)
}

// Examine checks whether servers are fit for locks, for a client with the given options, and which
// options suit them. It connects to all servers at the same time, with new sessions that it ends, and
// tries the operations of a lock below Options.Root. Its writes are transactions that fail on purpose,
// except for one that creates a node and deletes it. So no node remains, even if Examine is
// interrupted.
//
// Examine returns an error if the options are invalid. If ctx ends first, it returns an error and the
// results so far. A fault of a server is a Check of the report: see Report.Err.
func Examine(ctx context.Context, servers []string, opts *zklock.Options) (*Report, error) {
	r, err := examine(ctx, servers, opts)
	if err != nil {
		return r, fmt.Errorf("zklock: examine: %w", err)
	}
	return r, nil
}
