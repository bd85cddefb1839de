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

// recent remembers the newest fact about each directory. Its users decide how long a fact is valid.
type recent[T any] struct {
	mu    sync.Mutex
	begun time.Time             // guarded by mu: when the first thing was learned
	of    map[string]learned[T] // guarded by mu
}

type learned[T any] struct {
	what T
	at   time.Duration // after begun; a third of a time.Time, and there can be 10,000
}

const (
	maxRecent  = 10_000 // how many directories are remembered
	recentLife = 10 * time.Second
)

// take returns the fact about dir and forgets it, so that only one attempt uses it.
func (r *recent[T]) take(dir string) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.of[dir]
	delete(r.of, dir)
	return l.what, ok && r.age(l) < recentLife
}

// get returns the fact about dir, and whether there is one that is younger than life.
func (r *recent[T]) get(dir string, life time.Duration) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.of[dir]
	if !ok || r.age(l) >= life {
		return *new(T), false
	}
	return l.what, true
}

// has reports whether dir was put less than life ago and not taken since.
func (r *recent[T]) has(dir string, life time.Duration) bool {
	_, ok := r.get(dir, life)
	return ok
}

func (r *recent[T]) put(dir string, what T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil || len(r.of) >= maxRecent {
		r.of = map[string]learned[T]{}
	}
	if r.begun.IsZero() {
		r.begun = time.Now()
	}
	r.of[dir] = learned[T]{what, time.Since(r.begun)}
}

// age must be called with mu held.
func (r *recent[T]) age(l learned[T]) time.Duration { return time.Since(r.begun) - l.at }

// recordAt is a record together with its state in ZooKeeper. The zero value means that the lock has no
// record.
type recordAt struct {
	node.Record
	exists  bool
	version int32
	mtime   int64 // when it was written, by the leader's clock, in milliseconds; zero if it was not read
}
