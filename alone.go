package zklock

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// expectNobody makes the next create count the nodes, if ours was the only one when we last
// looked.
func (t *contender) expectNobody() {
	t.counted = nil
	if t.recipe.limited || !t.c.mayNote(t.dir, nil) || !t.c.mayBeAlone(t.dir) {
		return
	}
	if s, ok := t.c.alone.take(t.dir); ok {
		t.counted = &count{expected: s}
	}
}

// mayBeAlone reports whether the next to come to dir is alone there, as far as was seen lately. It
// is not while a node of ours may still be there.
func (c *engine) mayBeAlone(dir string) bool {
	return !c.leaving.from(dir) && c.alone.has(dir, recentLife) && !c.crowded.has(dir, crowdedLife)
}

// createWith creates our node in one transaction with what else is to happen: it deletes the
// node that ours takes the place of, leaves the note of that one, nil for none, and counts the
// nodes that exist then.
func (t *contender) createWith(data []byte, note *zk.SetDataRequest) (path string, err error) {
	var ops []any
	if t.replaces != nil {
		ops = append(ops, &zk.DeleteRequest{Path: t.replaces.path(), Version: -1})
	}
	created := len(ops)
	ops = append(ops, t.creation(data))
	if t.counted != nil {
		ops = append(ops, &zk.SetDataRequest{Path: t.dir, Data: t.counted.expected.data, Version: t.counted.expected.version})
	}
	if note != nil {
		ops = append(ops, note)
	}
	answers, err := transact(t.c.conn, ops)
	if err != nil {
		t.c.mayNote(t.dir, answers[min(created, len(answers)):])
		return "", err
	}
	if t.counted != nil {
		t.counted.dir, t.counted.looked = answers[created+1].Stat, time.Now()
	}
	return answers[created].String, nil
}

// noticeOthers remembers that there are others where a create that counted them expected none, or that they have written.
func (t *contender) noticeOthers() {
	if t.counted != nil && (t.counted.dir != nil || errors.Is(t.createErr, zk.ErrBadVersion)) {
		t.c.crowded.put(t.dir, struct{}{})
	}
}

// noticeSolitude remembers a listing that shows our node alone. If the directory has data, it
// reads that in the background.
func (t *contender) noticeSolitude(l listing) {
	if len(l.names) != 1 || l.stat.DataLength > maxRewritten || t.recipe.limited || t.c.untrusted {
		return
	}
	if l.stat.DataLength == 0 {
		t.c.alone.put(t.dir, solitude{version: l.stat.Version})
		return
	}
	s := t.sess
	// Owned by the client; ends with the request; Close waits for it.
	t.c.calls.run(func() {
		if n, err := t.c.get(t.c.life, s, t.dir); err == nil && n.stat.Version == l.stat.Version {
			t.c.alone.put(t.dir, solitude{n.stat.Version, n.data})
		}
	})
}
