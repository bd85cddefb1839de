package queue

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/session"
)

// expectNobody makes the next create count the nodes, if ours was the only one when we last
// looked.
func (t *contender) expectNobody() {
	t.counted = nil
	if t.recipe.limited || !t.c.MayNote(t.Dir, nil) || !t.c.mayBeAlone(t.Dir) {
		return
	}
	if s, ok := t.c.alone.take(t.Dir); ok {
		t.counted = &count{expected: s}
	}
}

// mayBeAlone reports whether the next to come to dir is alone there, as far as was seen lately. It
// is not while a node of ours may still be there.
func (c *Engine) mayBeAlone(dir string) bool {
	return !c.leaving.from(dir) && c.alone.has(dir, recentLife) && !c.crowded.has(dir, crowdedLife)
}

// createWith creates our node in one transaction with what else is to happen: it deletes the
// node that ours takes the place of, leaves the note of that one, nil for none, and counts the
// nodes that exist then.
func (t *contender) createWith(data []byte, note *zk.SetDataRequest) (path string, err error) {
	var ops []any
	if t.replaces != nil {
		ops = append(ops, &zk.DeleteRequest{Path: t.replaces.Path(), Version: -1})
	}
	created := len(ops)
	ops = append(ops, t.creation(data))
	if t.counted != nil {
		ops = append(ops, &zk.SetDataRequest{Path: t.Dir, Data: t.counted.expected.data, Version: t.counted.expected.version})
	}
	if note != nil {
		ops = append(ops, note)
	}
	answers, err := session.Transact(t.c.Conn, ops)
	if err != nil {
		t.c.MayNote(t.Dir, answers[min(created, len(answers)):])
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
		t.c.crowded.put(t.Dir, struct{}{})
	}
}

// noticeSolitude remembers a listing that shows our node alone. If the directory has data, it
// reads that in the background.
func (t *contender) noticeSolitude(l session.Listing) {
	if len(l.Names) != 1 || l.Stat.DataLength > maxRewritten || t.recipe.limited || t.c.untrusted {
		return
	}
	if l.Stat.DataLength == 0 {
		t.c.alone.put(t.Dir, solitude{version: l.Stat.Version})
		return
	}
	s := t.Sess
	// Owned by the client; ends with the request; Close waits for it.
	t.c.Calls.Run(func() {
		if n, err := t.c.Get(t.c.Life, s, t.Dir); err == nil && n.Stat.Version == l.Stat.Version {
			t.c.alone.put(t.Dir, solitude{n.Stat.Version, n.Data})
		}
	})
}
