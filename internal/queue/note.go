// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// noteWith adds the request for the directory's data to b. The returned function waits for the reply;
// it is nil if notes are not trusted.
func (wa *waiter) noteWith(b *session.Bundle) func(context.Context) (session.Node, error) {
	if wa.engine.Unnoted.untrusted {
		return nil
	}
	return b.Get(wa.Dir)
}

// readNote is called after ahead[i] has left. It removes the contenders that have left according to
// a note, and records what our own note must replace. read is the result of noteWith.
func (wa *waiter) readNote(ctx context.Context, read func(context.Context) (session.Node, error), i int) error {
	if read == nil {
		return nil
	}
	dir, err := read(ctx)
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return nil
	case err != nil:
		return goneIfMissing(err)
	}
	b, ours := node.ParseDirData(dir.Data)
	named := slices.IndexFunc(wa.nearest.ahead, func(e node.Entry) bool { return e.Name == b.Last })
	wa.removal.planNote(ours && wa.isTurnToNote(named, wa.nearest.beyond+i), dir.Stat.Version, b.Evicted)
	if named >= 0 && wa.isTimely(dir.Stat) {
		wa.nearest.dropUpTo(named)
	}
	return nil
}

// isTurnToNote reports whether this contender, rather than one next to it in the queue, should
// write the note: see note. named is the index in ahead of the contender that wrote the last note,
// or negative if it is not in ahead; the i-th contender has just left. A wrong result only costs
// requests: if two neighbors write a note, the second is refused, and if neither does, a waiter
// lists the directory.
func (wa *waiter) isTurnToNote(named, i int) bool {
	if named < 0 {
		return i != 1 // if i is 1, the contender ahead of us writes the note: for it, i was 0
	}
	return (len(wa.nearest.ahead)-named)%2 == 0
}

// isTimely reports whether a note may have been written by the transaction that deleted a node that
// we have listed: the note is newer than the listing, and a child was created or deleted at the
// same time or later. A note written separately is not timely, unless it was written at just the
// right moment.
func (wa *waiter) isTimely(dir *zk.Stat) bool {
	return dir.Mzxid > wa.listed && dir.Mzxid <= dir.Pzxid
}
