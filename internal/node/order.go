package node

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// IsPlain reports whether a sequence number tells the order of creation. The counter
// sticks at its maximum (before ZooKeeper 3.6 it ran over into the negative), where
// several contenders get the same number.
func IsPlain(seq int32) bool { return 0 <= seq && seq < math.MaxInt32 }

// rank returns the place that a number gives. A counter that has ended does not begin again, so
// nodes without a plain number came after those with one.
func rank(seq int32) int64 {
	if IsPlain(seq) {
		return int64(seq)
	}
	return math.MaxInt32
}

// Compare compares two places in a queue: by number, and by czxid if the numbers do not tell them
// apart. Both entries must have their czxid then (see needCzxid).
func Compare(a, b Entry) int {
	if ranks := cmp.Compare(rank(a.Seq), rank(b.Seq)); ranks != 0 {
		return ranks
	}
	return cmp.Or(cmp.Compare(a.Czxid, b.Czxid), strings.Compare(a.Name, b.Name))
}

// NeedCzxid reports whether the numbers do not tell which of two is ahead.
func NeedCzxid(a, b Entry) bool { return rank(a.Seq) == rank(b.Seq) }

// Ahead returns those of entries that are ahead of own, in order.
func Ahead(entries []Entry, own Entry) []Entry {
	var ahead []Entry
	for _, e := range entries {
		if e.Name != own.Name && Compare(e, own) < 0 {
			ahead = append(ahead, e)
		}
	}
	return inOrder(ahead)
}

// inOrder returns entries in their order. It sorts numbers first, each with an index, which takes a
// third of the time in a long queue.
func inOrder(entries []Entry) []Entry {
	places := make([]int64, len(entries))
	for i, e := range entries {
		places[i] = rank(e.Seq)<<32 | int64(i)
	}
	slices.Sort(places)
	first, tied := make([]Entry, len(places)), false
	for i, p := range places {
		first[i] = entries[p&math.MaxUint32]
		tied = tied || i > 0 && NeedCzxid(first[i-1], first[i])
	}
	if tied {
		slices.SortFunc(first, Compare)
	}
	return first
}
