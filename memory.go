package zklock

import (
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// mutes remembers the directories that take no note from us: see note.
type mutes struct {
	untrusted bool // none does: see Options

	mu sync.Mutex
	of map[string]struct{} // guarded by mu
}

func newMutes(untrusted bool) *mutes { return &mutes{untrusted: untrusted, of: map[string]struct{}{}} }

// maxMute bounds how many directories are remembered.
const maxMute = 10_000

// mayNote reports whether a note in dir may succeed. If answers are those of a transaction with
// a note that the directory's ACL has refused, it remembers that.
func (m *mutes) mayNote(dir string, answers []zk.MultiResponse) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(answers) == 2 && errors.Is(answers[1].Error, zk.ErrNoAuth) {
		if len(m.of) >= maxMute {
			clear(m.of)
		}
		m.of[dir] = struct{}{}
	}
	_, mute := m.of[dir]
	return !mute && !m.untrusted
}

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
