package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
)

// readNote is called after the i-th contender ahead of us has left. It strikes off those that
// have left according to a note, and remembers what our own note will have to replace.
func (t *place) readNote(ctx context.Context, i int) error {
	if t.c.untrusted {
		return nil
	}
	dir, err := t.c.Get(ctx, t.Sess, t.Dir)
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return nil
	case err != nil:
		return goneIfMissing(err)
	}
	b, ours := node.ParseDirData(dir.Data)
	named := slices.IndexFunc(t.ahead, func(e node.Entry) bool { return e.Name == b.Last })
	t.leaveNote(ours && t.isTurnToNote(named, t.beyond+i), dir.Stat.Version, b.Evicted)
	if named >= 0 && t.isTimely(dir.Stat) {
		t.dropUpTo(named)
	}
	return nil
}

// isTurnToNote reports whether we are to leave a note, rather than our neighbours in the queue:
// see note. named is the index of the contender that has left the last note, or negative if
// that is not one of those ahead of us; the i-th ahead has just left. A wrong answer only costs
// requests: of two neighbours that leave a note the second is refused, and if neither does, a
// waiter lists the directory.
func (t *place) isTurnToNote(named, i int) bool {
	if named < 0 {
		return i != 1 // then it is the one ahead of us, to which i was 0
	}
	return (len(t.ahead)-named)%2 == 0
}

// isTimely reports whether a note may have been written by the transaction that has deleted a
// node that we have listed: it is newer than the listing, and a child was deleted or created at
// the same time or later. A note that was written by itself is not timely, unless it was written
// at just the right moment.
func (t *place) isTimely(dir *zk.Stat) bool {
	return dir.Mzxid > t.listed && dir.Mzxid <= dir.Pzxid
}
