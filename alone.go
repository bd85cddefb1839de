package zklock

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// expectNobody makes the next create count, if our node was alone when we last looked.
func (t *contender) expectNobody() {
	t.counted = nil
	if t.recipe.limited || !t.c.mayNote(t.dir, nil) {
		return
	}
	if s, ok := t.c.alone.take(t.dir); ok {
		t.counted = &count{expected: s}
	}
}

// createAndCount makes our node and counts those that are there.
func (t *contender) createAndCount(data []byte) (path string, err error) {
	answers, err := transact(t.c.conn, []any{
		t.creation(data),
		&zk.SetDataRequest{Path: t.dir, Data: t.counted.expected.data, Version: t.counted.expected.version},
	})
	if err != nil {
		t.c.mayNote(t.dir, answers)
		return "", err
	}
	t.counted.dir, t.counted.looked = answers[1].Stat, time.Now()
	return answers[0].String, nil
}

// noticeSolitude remembers a listing that shows our node alone. Data that is there has to be
// read, which nobody waits for.
func (t *contender) noticeSolitude(l listing) {
	if len(l.names) != 1 || l.stat.DataLength > maxRewritten || t.recipe.limited || t.c.untrusted {
		return
	}
	if l.stat.DataLength == 0 {
		t.c.alone.put(t.dir, l.stat.Version, nil)
		return
	}
	s := t.sess
	// Owned by the client; ends with the request; Close waits for it.
	t.c.calls.run(func() {
		if n, err := t.c.get(t.c.life, s, t.dir); err == nil && n.stat.Version == l.stat.Version {
			t.c.alone.put(t.dir, n.stat.Version, n.data)
		}
	})
}
