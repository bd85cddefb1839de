package queue

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// Unnoted remembers the directories that take no note from us: see note.
type Unnoted struct {
	untrusted bool // none does: see Options
	refused   recent[struct{}]
}

func NewUnnoted(untrusted bool) *Unnoted { return &Unnoted{untrusted: untrusted} }

// MayNote reports whether a note in dir may succeed. If answers are those of a transaction whose
// second operation is a note that the directory's ACL has refused, it remembers that.
func (m *Unnoted) MayNote(dir string, answers []zk.MultiResponse) bool {
	if len(answers) > 1 && errors.Is(answers[1].Error, zk.ErrNoAuth) {
		m.refused.put(dir, struct{}{})
	}
	return !m.untrusted && !m.refused.has(dir, math.MaxInt64)
}

// An acquire that expects nobody else makes its node and counts, in one transaction, how many nodes there are: the
// transaction also writes the directory's data, the very bytes that are there over the very version that was seen. So
// nothing changes but the version, and the answer shows the directory as it is right after our node was made. If ours
// is the only child, nobody is ahead and nobody ever will be. So the directory need not be listed, and an uncontended
// acquire is one request.
//
// The version is known from a listing that has shown our node alone, or from the last such
// transaction. Where anything else comes out, it is forgotten until a listing shows our node
// alone again: a queue that others stand in is not written to. Where two come and go, either is
// alone now and then and writes over what the other has seen. So such a listing is believed only
// a while after the last meeting.
//
// A directory that was deleted and made anew since could have the same version and other
// data. What is remembered is therefore used for a short time only.
type solitude struct {
	version int32 // of the directory's data
	data    []byte
}

const maxRewritten = 1024 // of data that is written again

// recent is what was learned of directories a short while ago.
type recent[T any] struct {
	mu sync.Mutex
	of map[string]learned[T] // guarded by mu
}

type learned[T any] struct {
	what T
	at   time.Time
}

const (
	maxRecent   = 10_000 // how many directories are remembered
	recentLife  = 10 * time.Second
	crowdedLife = time.Second // how long an acquire that counted others keeps us from counting
)

// take returns what is known of dir, for one attempt: nobody else gets it meanwhile.
func (r *recent[T]) take(dir string) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.of[dir]
	delete(r.of, dir)
	return l.what, ok && time.Since(l.at) < recentLife
}

// has reports whether dir was put less than life ago and not taken since.
func (r *recent[T]) has(dir string, life time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.of[dir]
	return ok && time.Since(l.at) < life
}

func (r *recent[T]) put(dir string, what T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil || len(r.of) >= maxRecent {
		r.of = map[string]learned[T]{}
	}
	r.of[dir] = learned[T]{what, time.Now()}
}

// leavers counts, by directory, the nodes of ours that are being deleted behind their callers'
// backs.
type leavers struct {
	mu sync.Mutex
	of map[string]int // guarded by mu: those above zero
}

func (l *leavers) add(dir string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]int{}
	}
	if l.of[dir] += n; l.of[dir] == 0 {
		delete(l.of, dir)
	}
}

// from reports whether any node is leaving dir.
func (l *leavers) from(dir string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[dir] > 0
}

// recordAt is a record as a server has shown it.
type recordAt struct {
	node.Record
	sess    *session.Session // under which it was; on another, the servers may have been restored to an earlier state
	version int32
	mtime   int64 // when it was written, by the servers' clock, in milliseconds
}
