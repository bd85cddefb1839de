// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"slices"
)

// Queue is the contenders of a directory, ordered by sequence number, and by name if the numbers are
// equal. It is immutable, so callers that share a listing can share it.
type Queue struct {
	Entries  []Entry
	Permits  bool // the directory of a semaphore's permits also exists
	HasDelay bool // one of the contenders is for a lock with a delay
}

// NewQueue returns the Queue of a directory whose children have these names.
func NewQueue(names []string) *Queue {
	l := &Queue{Entries: inOrder(ParseEntries(names))}
	l.Permits = slices.Contains(names, LeasesDir[1:])
	l.HasDelay = slices.ContainsFunc(names, HasDelayMark)
	return l
}

// level returns the range of contenders whose numbers do not give their order relative to own.
func (l *Queue) level(own Entry) (from, to int) {
	at := func(r int64) int {
		i, _ := slices.BinarySearchFunc(l.Entries, r, func(e Entry, r int64) int { return cmp.Compare(rank(e.Seq), r) })
		return i
	}
	return at(rank(own.Seq)), at(rank(own.Seq) + 1)
}

// Has reports whether a contender with that name is in the line.
func (l *Queue) Has(name string) bool {
	e, ok := ParseEntry(name)
	if !ok {
		return false
	}
	from, to := l.level(e)
	return slices.ContainsFunc(l.Entries[from:to], func(e Entry) bool { return e.Name == name })
}

// Before returns the contenders ahead of own, in order. known is false if the numbers do not give
// the order. The caller must not modify the result.
func (l *Queue) Before(own Entry) (_ []Entry, known bool) {
	from, to := l.level(own)
	known = !slices.ContainsFunc(l.Entries[from:to], func(e Entry) bool { return e.Name != own.Name })
	return l.Entries[:from:from], known
}
