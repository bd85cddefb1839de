// SPDX-License-Identifier: Apache-2.0

// Package locks analyses queues for the command: how long a holder has held, which locks are busiest, and which sessions
// wait for each other in a cycle.
package locks

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
)

// Lock is a queue with the times at which its holders were first seen holding.
type Lock struct {
	Queue *operate.Queue
	Seen  time.Time
	Held  map[string]Grant // by node
	first Grant            // the earliest grant among the current holders
}

// Grant says when a contender was first seen holding.
type Grant struct {
	At      time.Time
	AtLeast bool // the contender already held when watching began
}

// Table holds the locks in use.
type Table struct {
	begun time.Time
	locks map[string]*Lock
}

// NewTable returns an empty table of queues that are watched from now on.
func NewTable(now time.Time) *Table { return &Table{now, map[string]*Lock{}} }

// Settling is how long after watching began a new holder counts as one that already held before.
const Settling = 2 * time.Second

// Update records the state of a queue and returns its lock.
func (t *Table) Update(q *operate.Queue, now time.Time) *Lock {
	before := t.locks[q.Path]
	next := &Lock{Queue: q, Seen: now, Held: map[string]Grant{}}
	for _, who := range q.Contenders {
		if !who.Holds {
			continue
		}
		g := Grant{At: now, AtLeast: before == nil && now.Sub(t.begun) < Settling}
		if before != nil {
			if known, ok := before.Held[who.Node]; ok {
				g = known
			}
		}
		next.Held[who.Node] = g
		if next.first.At.IsZero() || g.At.Before(next.first.At) {
			next.first = g
		}
	}
	t.locks[q.Path] = next
	if len(q.Contenders) == 0 {
		delete(t.locks, q.Path)
	}
	return next
}

// Len returns the number of locks in use.
func (t *Table) Len() int { return len(t.locks) }

// Waiting returns the total number of waiters.
func (t *Table) Waiting() int {
	n := 0
	for _, l := range t.locks {
		n += l.Waiting()
	}
	return n
}

// Lock returns the lock at path, or nil if it is not in use.
func (t *Table) Lock(path string) *Lock { return t.locks[path] }

// Busiest returns the locks, those with the most waiters first. Locks with equally many waiters are ordered by how long they
// have been held, the longest first.
func (t *Table) Busiest() []*Lock {
	var all []*Lock
	for _, l := range t.locks {
		all = append(all, l)
	}
	slices.SortFunc(all, func(x, y *Lock) int {
		return cmp.Or(y.Waiting()-x.Waiting(), x.first.At.Compare(y.first.At), strings.Compare(x.Queue.Path, y.Queue.Path))
	})
	return all
}

// Holding returns the number of holders.
func (l *Lock) Holding() int { return len(l.Held) }

// Waiting returns the number of waiters.
func (l *Lock) Waiting() int { return len(l.Queue.Contenders) - len(l.Held) }

// Longest returns the earliest grant among the current holders, or a zero Grant if there are none.
func (l *Lock) Longest() Grant { return l.first }

// Holder returns the first holder in the queue. ok is false if there is none.
func (l *Lock) Holder() (zklock.Contender, bool) {
	i := slices.IndexFunc(l.Queue.Contenders, func(who zklock.Contender) bool { return who.Holds })
	if i < 0 {
		return zklock.Contender{}, false
	}
	return l.Queue.Contenders[i], true
}

// IsDelayed reports whether the lock has waiters but no holder, because of a lock delay.
func (l *Lock) IsDelayed() bool { return IsDelayed(l.Queue) }

// IsDelayed reports whether a queue has waiters but no holder, because of a lock delay.
func IsDelayed(q *operate.Queue) bool {
	holds := func(who zklock.Contender) bool { return who.Holds }
	return len(q.Contenders) > 0 && q.Permits == 0 && !slices.ContainsFunc(q.Contenders, holds)
}
