package queue

import (
	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/session"
)

// expectNobody returns what the next create counts, if ours was the only node when we last looked;
// else nil.
func (t *contender) expectNobody() *count {
	if t.recipe.limited || !t.c.MayNote(t.Dir, nil) || !t.c.mayBeAlone(t.Dir) {
		return nil
	}
	if s, ok := t.c.alone.take(t.Dir); ok {
		return &count{expected: s}
	}
	return nil
}

// mayBeAlone reports whether the next to come to dir is alone there, as far as was seen lately. It
// is not while a node of ours may still be there.
func (c *Engine) mayBeAlone(dir string) bool {
	return !c.leaving.from(dir) && c.alone.has(dir, recentLife) && !c.crowded.has(dir, crowdedLife)
}

// createWith creates our node in one transaction with what else is to happen: it deletes the
// node that ours takes the place of, leaves the note of that one, nil for none, and counts the
// nodes that exist then.
func (t *contender) createWith(data []byte, note *zk.SetDataRequest) (frames.Request, func(*frames.Answer) (struct{}, error)) {
	var ops []any
	if old := t.creation.replaces; old != nil {
		ops = append(ops, &zk.DeleteRequest{Path: old.Path(), Version: -1})
	}
	created, counted := len(ops), t.creation.counted
	ops = append(ops, t.creationOf(&t.member, data))
	if counted != nil {
		ops = append(ops, &zk.SetDataRequest{Path: t.Dir, Data: counted.expected.data, Version: counted.expected.version})
	}
	if note != nil {
		ops = append(ops, note)
	}
	read := session.ReadResults(len(ops))
	return frames.Multi(ops), func(a *frames.Answer) (none struct{}, err error) {
		answers, err := read(a)
		if err != nil {
			t.c.MayNote(t.Dir, answers[min(created, len(answers)):])
			return none, err
		}
		if counted != nil {
			counted.sawDir(answers[created+1].Stat)
		}
		return none, t.takePath(answers[created].String, a.Zxid)
	}
}

// noticeOthers remembers it if an attempt has shown that there are others where it expected none.
func (t *contender) noticeOthers(a *creation) {
	if a.showsOthers() {
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
