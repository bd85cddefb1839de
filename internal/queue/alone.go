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
func (co *contender) expectAlone() *count {
	if co.recipe.limited || !co.engine.Unnoted.MayNote(co.Dir, nil) || !co.engine.mayBeAlone(co.Dir) {
		return nil
	}
	if s, ok := co.engine.alone.take(co.Dir); ok {
		return &count{expected: s}
	}
	return nil
}

// mayBeAlone reports whether the next contender in dir would be alone there, as far as was recently
// seen. It returns false while a node of ours may still exist there.
func (en *Engine) mayBeAlone(dir string) bool {
	return !en.deleting.from(dir) && en.alone.has(dir, recentLife) && !en.recentlyShared.has(dir, sharedLife)
}

// createWith returns the transaction that creates our node. The transaction also deletes the node
// that ours replaces, writes note, which may be nil, and counts the nodes that exist afterwards.
func (co *contender) createWith(data []byte, note *zk.SetDataRequest) (frames.Request, func(*frames.Answer) (struct{}, error)) {
	var ops []any
	if old := co.creation.replaces; old != nil {
		ops = append(ops, &zk.DeleteRequest{Path: old.Path(), Version: -1})
	}
	created, counted := len(ops), co.creation.counted
	ops = append(ops, co.creationOf(&co.member, data))
	if counted != nil {
		ops = append(ops, &zk.SetDataRequest{Path: co.Dir, Data: counted.expected.data, Version: counted.expected.version})
	}
	if note != nil {
		ops = append(ops, note)
	}
	read := session.ReadResults(len(ops))
	return frames.Multi(ops), func(a *frames.Answer) (none struct{}, err error) {
		answers, err := read(a)
		if err != nil {
			co.engine.Unnoted.MayNote(co.Dir, answers[min(created, len(answers)):])
			return none, err
		}
		if counted != nil {
			counted.dir, counted.looked = answers[created+1].Stat, time.Now()
		}
		return none, co.takePath(answers[created].String, a.Zxid)
	}
}

// noticeOthers records that an attempt found other contenders where it expected none.
func (co *contender) noticeOthers(a *creation) {
	if a.showsOthers() {
		co.engine.recentlyShared.put(co.Dir, struct{}{})
	}
}

// rememberAlone records a listing that shows only our node. If the directory has data, it reads
// the data in the background.
func (co *contender) rememberAlone(l session.Listing) {
	if len(l.Names) != 1 || l.Stat.DataLength > maxRewritten || co.recipe.limited || co.engine.Unnoted.untrusted {
		return
	}
	if l.Stat.DataLength == 0 {
		co.engine.alone.put(co.Dir, lastAlone{version: l.Stat.Version})
		return
	}
	s := co.Sess
	// Owned by the client; ends with the request; Close waits for it.
	co.engine.Requests.Calls.Run(func() {
		if n, err := co.engine.Requests.Get(co.engine.Requests.Life, s, co.Dir); err == nil && n.Stat.Version == l.Stat.Version {
			co.engine.alone.put(co.Dir, lastAlone{n.Stat.Version, n.Data})
		}
	})
}
