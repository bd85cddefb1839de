package zklock

import (
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"
)

// mutes knows the directories that take no note from us: see note.
type mutes struct {
	untrusted bool // none does: see Options

	mu sync.Mutex
	of map[string]struct{} // guarded by mu
}

func newMutes(untrusted bool) *mutes { return &mutes{untrusted: untrusted, of: map[string]struct{}{}} }

// maxMute bounds how many directories are remembered that we may not write to.
const maxMute = 10_000

// mayNote reports whether a note in dir may succeed. Refused answers to one teach it that it may not.
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
