package zklock

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// isPlain reports whether a sequence number tells the order of creation. The counter
// sticks at its maximum (before ZooKeeper 3.6 it ran over into the negative), where
// several contenders get the same number.
func isPlain(seq int64) bool { return 0 <= seq && seq < math.MaxInt32 }

// rank returns the place that a number gives. A counter that has ended does not begin again, so
// nodes without a plain number came after those with one.
func rank(seq int64) int64 {
	if isPlain(seq) {
		return seq
	}
	return math.MaxInt32
}

// order compares two places in a queue: by number, and by czxid if the numbers do not tell them
// apart. Both entries must have their czxid then (see needCzxid).
func order(a, b entry) int {
	return cmp.Or(cmp.Compare(rank(a.seq), rank(b.seq)), cmp.Compare(a.czxid, b.czxid), strings.Compare(a.name, b.name))
}

// needCzxid reports whether the numbers do not tell which of two is ahead.
func needCzxid(a, b entry) bool { return rank(a.seq) == rank(b.seq) }

// ahead returns those of entries that are ahead of own, in order.
func ahead(entries []entry, own entry) []entry {
	first := make([]entry, 0, len(entries))
	for _, e := range entries {
		if e.name != own.name && order(e, own) < 0 {
			first = append(first, e)
		}
	}
	slices.SortFunc(first, order)
	return first
}
