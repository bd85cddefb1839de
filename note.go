package zklock

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"
)

// heedNote strikes off those of whom a note says that they have left, after the i-th ahead
// of us has. It learns what our own note will have to replace.
func (t *place) heedNote(ctx context.Context, i int) error {
	if t.c.untrusted {
		return nil
	}
	dir, err := t.c.get(ctx, t.sess, t.dir)
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return nil
	case err != nil:
		return goneIfMissing(err)
	}
	b, ours := parseBoard(dir.data)
	named := slices.IndexFunc(t.ahead, func(e entry) bool { return e.name == b.last })
	t.note = note{may: ours && t.isTurnToNote(named, i), version: dir.stat.Version, evicted: b.evicted}
	if named >= 0 && t.isTimely(dir.stat) {
		t.ahead = slices.Delete(t.ahead, 0, named+1)
	}
	return nil
}

// isTurnToNote reports whether we are to leave a note, and not the one ahead of us or the one
// behind: see note. named is the index of the one that has left the last note, negative if that
// is none of those ahead of us; the i-th ahead has just left. It is about cost alone: of two
// that leave one, the second is refused; where none is, a waiter lists the directory.
func (t *place) isTurnToNote(named, i int) bool {
	if named < 0 {
		return i != 1 // then it is the one ahead of us, to which i was 0
	}
	return (len(t.ahead)-named)%2 == 0
}

// isTimely reports whether a note may be of the transaction that has deleted one whose node
// we have listed: it is newer than the listing, and a child was deleted or made at the same
// time or later. One that somebody has written by itself is not, unless it was at the right moment.
func (t *place) isTimely(dir *zk.Stat) bool {
	return dir.Mzxid > t.listed && dir.Mzxid <= dir.Pzxid
}
