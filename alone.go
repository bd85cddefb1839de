package zklock

import (
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// An acquire that expects nobody else makes its node and counts, in one transaction, how many
// nodes there are: the transaction also writes the directory's data, the very bytes that are
// there over the very version that was seen, so nothing changes but the version, and the
// answer shows the directory as it is right after our node was made. If ours is the only
// child, nobody is ahead and nobody ever will be. So the directory need not be listed, and an
// uncontended acquire is one request.
//
// The version is known from a listing that has shown our node alone, or from the last such
// transaction. Where anything else comes out, it is forgotten until a listing shows our node
// alone again: a queue that others stand in is not written to.
//
// A directory that was deleted and made anew since could have the same version and other
// data. What is remembered is therefore used for a short time only.
type solitude struct {
	version int32 // of the directory's data
	data    []byte
	seen    time.Time
}

const (
	maxSolitudes = 10_000 // how many directories are remembered
	solitudeLife = 10 * time.Second
	maxRewritten = 1024 // of data that is written again
)

// solitudes are the directories in which we were alone when we last looked.
type solitudes struct {
	mu sync.Mutex
	of map[string]solitude // guarded by mu
}

// take returns what is known of dir, for one attempt: nobody else gets it meanwhile.
func (a *solitudes) take(dir string) (solitude, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.of[dir]
	delete(a.of, dir)
	return s, ok && time.Since(s.seen) < solitudeLife
}

func (a *solitudes) has(dir string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.of[dir]
	return ok && time.Since(s.seen) < solitudeLife
}

func (a *solitudes) put(dir string, version int32, data []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil || len(a.of) >= maxSolitudes {
		a.of = map[string]solitude{}
	}
	a.of[dir] = solitude{version, data, time.Now()}
}

// count is what a create that counts begins with and finds: see solitude.
type count struct {
	expected solitude
	dir      *zk.Stat // as it was right after the create; nil if that is not known
}

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
	t.counted.dir, t.looked = answers[1].Stat, time.Now()
	return answers[0].String, nil
}

// isAlone reports whether the create has shown that nobody else is there; then we have our place.
func (t *contender) isAlone() bool {
	if t.counted == nil || t.counted.dir == nil || t.counted.dir.NumChildren != 1 {
		return false
	}
	dir := t.counted.dir
	t.ahead, t.unsure, t.listed, t.token = nil, false, dir.Mzxid, dir.Mzxid
	t.c.alone.put(t.dir, dir.Version, t.counted.expected.data)
	return true
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
