package zklock

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// expectNobody makes the next create count the nodes, if ours was the only one when we last
// looked.
func (t *contender) expectNobody() {
	t.counted = nil
	if t.recipe.limited || !t.c.mayNote(t.dir, nil) {
		return
	}
	if s, ok := t.c.alone.take(t.dir); ok {
		t.counted = &count{expected: s}
	}
}

// createAndCount creates our node and counts the nodes that exist.
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

// noticeSolitude remembers a listing that shows our node alone. If the directory has data, it
// reads that in the background.
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
