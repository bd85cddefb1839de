package zklock

import (
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"
)

// A note makes a hand-off cost the same in a queue of ten and of a thousand.
//
// A waiter that was k-th knows k nodes ahead of it and watches the last. When that one
// leaves because it held and released, all the others are gone, but the waiter has
// seen none of them go, and one by one or by a listing it would cost the more the
// longer the queue. So a holder that has waited deletes its node in one transaction
// with a note in the directory's data: its name. To have held it must have been the
// first; who finds its predecessor's name there knows that nobody is ahead.
//
// The data of a directory may belong to somebody. A note is written only in place of
// nothing or of another note, and only over the very version that was seen.
type note struct {
	may     bool  // nothing or a note was there when we looked
	version int32 // of the directory's data, then
}

const notePrefix = "zklock: last held by "

// readNote says whether the note names e as the last holder. It learns what our own
// note will have to replace.
func (t *contender) readNote(ctx context.Context, e entry) (bool, error) {
	dir, err := t.c.get(ctx, t.sess, t.dir)
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return false, nil
	case err != nil:
		return false, goneIfMissing(err)
	}
	last, isNote := strings.CutPrefix(string(dir.data), notePrefix)
	t.note = note{may: isNote || len(dir.data) == 0, version: dir.stat.Version}
	return isNote && last == e.name, nil
}

// leave deletes the node, with a note if we held and somebody may need one: whoever came
// after us with no more than one ahead of us learns as much from that one.
func (t *contender) leave(ctx context.Context, s *session) error {
	if t.held && t.note.may && t.recipe.exclusive() {
		t.note.may = false // one attempt: another holder's note may have come between
		_, err := t.c.multi(ctx, s,
			&zk.DeleteRequest{Path: t.path(), Version: -1},
			&zk.SetDataRequest{Path: t.dir, Data: []byte(notePrefix + t.name), Version: t.note.version})
		if err == nil || !isRefusal(err) {
			return err
		}
	}
	return t.c.delete(ctx, s, t.path())
}
