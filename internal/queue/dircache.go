// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
)

// Unnoted remembers the directories in which we must not write notes: see note.
type Unnoted struct {
	untrusted bool // write no notes at all: see Options
	refused   recent[struct{}]
}

func NewUnnoted(untrusted bool) *Unnoted { return &Unnoted{untrusted: untrusted} }

// MayNote reports whether a note in dir may succeed. If answers are the results of a transaction
// whose second operation is a note, and the directory's ACL refused it, MayNote remembers that.
func (m *Unnoted) MayNote(dir string, answers []zk.MultiResponse) bool {
	if len(answers) > 1 && errors.Is(answers[1].Error, zk.ErrNoAuth) {
		m.refused.put(dir, struct{}{})
	}
	return !m.untrusted && !m.refused.has(dir, math.MaxInt64)
}

// An acquire that expects no other contenders creates its node and counts the nodes in one
// transaction: the transaction also writes the directory's data, the same bytes as before, on
// condition that the version is the one last seen. So only the version changes, and the reply shows
// the directory right after our node was created. If our node is the only child, no contender is
// ahead, and none ever will be. So the directory need not be listed, and an uncontended acquire
// takes one request.
//
// The version comes from a listing that showed only our node, or from the last such transaction.
// After any other outcome it is forgotten until a listing shows only our node again: a queue that
// has other contenders is not written to. If two clients come and go, each is alone now and then
// and overwrites the version that the other has seen. So such a listing is used only some time
// after the last meeting.
//
// A directory that was deleted and created again in the meantime could have the same version and
// other data. So what is remembered is used only for a short time.
type lastAlone struct {
	version int32 // of the directory's data
	data    []byte
}

const maxRewritten = 1024 // the maximum size of data that is rewritten

// recent remembers, for a short time, what was learned about directories.
type recent[T any] struct {
	mu sync.Mutex
	of map[string]learned[T] // guarded by mu
}

type learned[T any] struct {
	what T
	at   time.Time
}

const (
	maxRecent  = 10_000 // how many directories are remembered
	recentLife = 10 * time.Second
	sharedLife = time.Second // how long after an acquire that found others we do not count
)

// take returns what is known about dir and forgets it, so that only one attempt uses it.
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

// deletions counts, per directory, our nodes that are being deleted in the background.
type deletions struct {
	mu sync.Mutex
	of map[string]int // guarded by mu; contains only counts above zero
}

func (ds *deletions) add(dir string, n int) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.of == nil {
		ds.of = map[string]int{}
	}
	ds.of[dir] += n
	if ds.of[dir] == 0 {
		delete(ds.of, dir)
	}
}

// from reports whether any of our nodes is being deleted from dir.
func (ds *deletions) from(dir string) bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.of[dir] > 0
}

// recordAt is a record together with its state in ZooKeeper. The zero value is that of a lock without
// a record.
type recordAt struct {
	node.Record
	exists  bool
	version int32
	mtime   int64 // when it was written, by the leader's clock, in milliseconds; zero if it was not read
}
