// Package locks is what the command makes of queues that it watches: since when a holder holds, which locks are busiest,
// and which sessions wait for each other in a circle.
package locks

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
)

// Lock is a queue, and since when its holders were seen to hold.
type Lock struct {
	Queue *operate.Queue
	Seen  time.Time
	Held  map[string]Grant // by node
	first Grant            // of those that hold
}

// Grant is when a contender was seen to have become a holder.
type Grant struct {
	At      time.Time
	AtLeast bool // it was one when we came
}

// Table has the locks in use.
type Table struct {
	begun time.Time
	locks map[string]*Lock
}

// NewTable returns a table of queues that are watched from now on.
func NewTable(now time.Time) *Table { return &Table{now, map[string]*Lock{}} }

// Settling is how long after the begin a holder counts as one that was there before.
const Settling = 2 * time.Second

// Update takes a queue in.
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
	if t.locks[q.Path] = next; len(q.Contenders) == 0 {
		delete(t.locks, q.Path)
	}
	return next
}

// Len returns how many locks are in use.
func (t *Table) Len() int { return len(t.locks) }

// Waiting returns how many contenders wait for all locks together.
func (t *Table) Waiting() int {
	n := 0
	for _, l := range t.locks {
		n += l.Waiting()
	}
	return n
}

// Lock returns the lock at a path, or nil if it is not in use.
func (t *Table) Lock(path string) *Lock { return t.locks[path] }

// Busiest returns the locks with most waiters first, and of those alike the one that is held longest.
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

// Holding returns how many contenders hold.
func (l *Lock) Holding() int { return len(l.Held) }

// Waiting returns how many contenders wait.
func (l *Lock) Waiting() int { return len(l.Queue.Contenders) - len(l.Held) }

// Longest returns the first grant of those that hold now.
func (l *Lock) Longest() Grant { return l.first }

// Holder returns the first of those that hold.
func (l *Lock) Holder() (zklock.Contender, bool) {
	i := slices.IndexFunc(l.Queue.Contenders, func(who zklock.Contender) bool { return who.Holds })
	if i < 0 {
		return zklock.Contender{}, false
	}
	return l.Queue.Contenders[i], true
}

// IsDelayed reports whether nobody holds because of a lock-delay.
func (l *Lock) IsDelayed() bool { return IsDelayed(l.Queue) }

// IsDelayed reports whether contenders of a queue wait and nobody holds, because of a lock-delay.
func IsDelayed(q *operate.Queue) bool {
	holds := func(who zklock.Contender) bool { return who.Holds }
	return len(q.Contenders) > 0 && q.Permits == 0 && !slices.ContainsFunc(q.Contenders, holds)
}
