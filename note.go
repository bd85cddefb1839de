package zklock

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"
)

// A note makes a hand-off cost the same in a queue of ten and of a thousand.
//
// A waiter that was k-th knows k nodes ahead of it and watches one of them. When that one
// leaves because it held and released, all before it are gone, but the waiter has seen none
// of them go, and one by one or by a listing it would cost the more the longer the queue. So
// a holder that has waited deletes its node in one transaction with a note in the directory's
// data: its name. To have held it must have been the first: all before the one that a note
// names have left, and so has that one.
//
// The data of a directory may belong to somebody. A note is written only in place of
// nothing or of another note, and only over the very version that was seen. A waiter sees
// it before the holder ahead of it leaves; so that one must not leave a note if this one is
// to. Every second one does, and says that all before it have left, which its successor
// has seen leave by itself.
type note struct {
	may     bool     // nothing or a note was there when we looked, and it is our turn to leave one
	version int32    // of the directory's data, then
	evicted []string // which goes on standing there
}

// heedNote strikes off those of whom a note says that they have left, after the i-th ahead
// of us has. It learns what our own note will have to replace.
func (t *contender) heedNote(ctx context.Context, i int) error {
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
func (t *contender) isTurnToNote(named, i int) bool {
	if named < 0 {
		return i != 1 // then it is the one ahead of us, to which i was 0
	}
	return (len(t.ahead)-named)%2 == 0
}

// isTimely reports whether a note may be of the transaction that has deleted one whose node
// we have listed: it is newer than the listing, and a child was deleted or made at the same
// time or later. One that somebody has written by itself is not, unless it was at the right moment.
func (t *contender) isTimely(dir *zk.Stat) bool {
	return dir.Mzxid > t.listed && dir.Mzxid <= dir.Pzxid
}

// leave deletes the node, with a note if we held and somebody may need one: whoever came
// after us with no more than one ahead of us learns as much from that one.
func (t *contender) leave(ctx context.Context, s *session) error {
	if len(t.with) > 0 {
		return t.deleteAll(ctx, s)
	}
	if t.held && t.note.may && t.recipe.exclusive() && t.c.mayNote(t.dir, nil) {
		t.note.may = false // one attempt: another holder's note may have come between
		answers, err := t.c.multi(ctx, s,
			&zk.DeleteRequest{Path: t.path(), Version: t.unread},
			&zk.SetDataRequest{Path: t.dir, Data: board{t.name, t.note.evicted}.encode(), Version: t.note.version})
		if err == nil || !isRefusal(err) {
			return err
		}
		t.c.mayNote(t.dir, answers)
	}
	return t.deleteOwn(ctx, s)
}

// maxMute bounds how many directories are remembered that we may not write to.
const maxMute = 10_000

// mayNote reports whether a note in dir may succeed. Refused answers to one teach it that it may not.
func (c *Client) mayNote(dir string, answers []zk.MultiResponse) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(answers) == 2 && errors.Is(answers[1].Error, zk.ErrNoAuth) {
		if len(c.mute) >= maxMute {
			clear(c.mute)
		}
		c.mute[dir] = struct{}{}
	}
	_, mute := c.mute[dir]
	return !mute && !c.untrusted
}
