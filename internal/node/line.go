package node

import (
	"cmp"
	"slices"
)

// Line is the contenders of a directory in the order of their numbers, and by name where numbers are
// equal. It is never changed, so that those who share a listing can share it.
type Line struct {
	Entries []Entry
	Permits bool // the directory of a semaphore's permits is there, too
	Delayed bool // one of the contenders is for a lock with a delay
}

// NewLine returns what the names of a directory's children show.
func NewLine(names []string) *Line {
	l := &Line{Entries: inOrder(ParseEntries(names))}
	l.Permits = slices.Contains(names, LeasesDir[1:])
	l.Delayed = slices.ContainsFunc(names, IsDelayed)
	return l
}

// level returns the contenders whose numbers do not tell their order with own.
func (l *Line) level(own Entry) (from, to int) {
	at := func(r int64) int {
		i, _ := slices.BinarySearchFunc(l.Entries, r, func(e Entry, r int64) int { return cmp.Compare(rank(e.Seq), r) })
		return i
	}
	return at(rank(own.Seq)), at(rank(own.Seq) + 1)
}

// Has reports whether a contender of that name is in the line.
func (l *Line) Has(name string) bool {
	e, ok := ParseEntry(name)
	if !ok {
		return false
	}
	from, to := l.level(e)
	return slices.ContainsFunc(l.Entries[from:to], func(e Entry) bool { return e.Name == name })
}

// Before returns those ahead of own, in order. known is false if numbers do not tell them. The
// caller must not change them.
func (l *Line) Before(own Entry) (_ []Entry, known bool) {
	from, to := l.level(own)
	known = !slices.ContainsFunc(l.Entries[from:to], func(e Entry) bool { return e.Name != own.Name })
	return l.Entries[:from:from], known
}
