// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/session"
)

// expectAlone returns what the next create should count if our node was the only one when we last
// looked; otherwise it returns nil.
func (t *contender) expectAlone() *count {
	if t.recipe.limited || !t.engine.Unnoted.MayNote(t.Dir, nil) || !t.engine.mayBeAlone(t.Dir) {
		return nil
	}
	if s, ok := t.engine.alone.take(t.Dir); ok {
		return &count{expected: s}
	}
	return nil
}

// mayBeAlone reports whether the next contender in dir would be alone there, as far as was recently
// seen. It returns false while a node of ours may still exist there.
func (c *Engine) mayBeAlone(dir string) bool {
	return !c.deleting.from(dir) && c.alone.has(dir, recentLife) && !c.recentlyShared.has(dir, sharedLife)
}

// createWith returns the transaction that creates our node. The transaction also deletes the node
// that ours replaces, writes note, which may be nil, and counts the nodes that exist afterwards.
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
			t.engine.Unnoted.MayNote(t.Dir, answers[min(created, len(answers)):])
			return none, err
		}
		if counted != nil {
			counted.dir, counted.looked = answers[created+1].Stat, time.Now()
		}
		return none, t.takePath(answers[created].String, a.Zxid)
	}
}

// noticeOthers records that an attempt found other contenders where it expected none.
func (t *contender) noticeOthers(a *creation) {
	if a.showsOthers() {
		t.engine.recentlyShared.put(t.Dir, struct{}{})
	}
}

// rememberAlone records a listing that shows only our node. If the directory has data, it reads
// the data in the background.
func (t *contender) rememberAlone(l session.Listing) {
	if len(l.Names) != 1 || l.Stat.DataLength > maxRewritten || t.recipe.limited || t.engine.Unnoted.untrusted {
		return
	}
	if l.Stat.DataLength == 0 {
		t.engine.alone.put(t.Dir, lastAlone{version: l.Stat.Version})
		return
	}
	s := t.Sess
	// Owned by the client; ends with the request; Close waits for it.
	t.engine.Requests.Calls.Run(func() {
		if n, err := t.engine.Requests.Get(t.engine.Requests.Life, s, t.Dir); err == nil && n.Stat.Version == l.Stat.Version {
			t.engine.alone.put(t.Dir, lastAlone{n.Stat.Version, n.Data})
		}
	})
}
