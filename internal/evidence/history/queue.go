// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// replay replays a lock's queue and records for each node when it had its turn. Nodes that have their turn are always at the
// front of the queue, so replay handles every node a constant number of times.
func (b *book) replay(l *lock) {
	for _, r := range l.resizes {
		// A larger number can have an effect from the call on. A smaller number need not have one before the return.
		at := r.Call
		if r.Weight < l.limit(r.Call, r.Call) && r.Outcome == Granted {
			at = r.Return
		}
		l.steps = append(l.steps, step{at: at, shrink: r})
	}
	slices.SortStableFunc(l.steps, func(x, y step) int { return cmp.Compare(x.at, y.at) })

	q := queue{limit: func(at time.Duration) int { return l.limit(at, at) }, numbers: map[string]int64{}}
	early := b.tooEarly(l)
	for _, s := range l.steps {
		early(s.at, &q)
		switch {
		case s.created != nil:
			q.join(s.created)
		case s.removed != nil:
			q.leave(s.removed)
		case s.share != nil:
			s.share.shared = true
		default:
			q.resized(s.at)
		}
		q.advance(s.at)
	}
	early(never, &q)
}

// tooEarly returns a function that must be called before each step. For each grant without a turn, it records the nodes ahead.
func (b *book) tooEarly(l *lock) func(until time.Duration, q *queue) {
	var grants []*Op
	for _, op := range l.ops {
		if b.claim[op] != nil {
			grants = append(grants, op)
		}
	}
	slices.SortStableFunc(grants, byReturn)
	return func(until time.Duration, q *queue) {
		for len(grants) > 0 && grants[0].Return < until {
			if life := b.claim[grants[0]]; life.turn == never && life.op == grants[0] {
				life.before = q.ahead(life)
			}
			grants = grants[1:]
		}
	}
}

// queue is a lock's queue during a replay: the nodes that have their turn, and the waiting ones, both in order.
type queue struct {
	ready, waiting []*life
	limit          func(at time.Duration) int
	numbers        map[string]int64 // sequence number -> place of the existing node with this number
}

// join adds a node at its place. This is the end of the queue, except for a node that took over the number of another one.
func (q *queue) join(n *life) {
	if seq, ok := PlainNumber(n.path); ok {
		if place, taken := q.numbers[seq]; taken && n.shared {
			n.place = place
		} else {
			q.numbers[seq] = n.place
		}
	}
	last := len(q.ready) - 1
	if n.place != n.czxid && last >= 0 && n.place <= q.ready[last].place {
		n.turn, n.since = n.created, n.created
		q.ready = append(q.ready, n)
		return
	}
	at, _ := q.find(n)
	q.waiting = slices.Insert(q.waiting, at, n)
}

// find returns n's position among the waiting nodes.
func (q *queue) find(n *life) (int, bool) {
	return slices.BinarySearchFunc(q.waiting, n, inOrder)
}

func inOrder(x, y *life) int {
	return cmp.Or(cmp.Compare(x.place, y.place), cmp.Compare(x.czxid, y.czxid), cmp.Compare(x.path, y.path)) // one transaction can create several nodes
}

func (q *queue) leave(n *life) {
	same := func(x *life) bool { return x == n }
	q.ready = slices.DeleteFunc(q.ready, same)
	if i, _ := q.find(n); i < len(q.waiting) && q.waiting[i] == n {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	if seq, ok := PlainNumber(n.path); ok && q.numbers[seq] == n.place && n.place == n.czxid {
		delete(q.numbers, seq)
	}
}

// advance gives their turn to the nodes at the front of the waiting ones as long as they fit.
func (q *queue) advance(at time.Duration) {
	for len(q.waiting) > 0 && q.fits(q.waiting[0], at) {
		n := q.waiting[0]
		n.turn, n.since = min(n.turn, at), at
		q.ready = append(q.ready, n)
		q.waiting = q.waiting[1:]
	}
}

func (q *queue) fits(n *life, at time.Duration) bool {
	if limit := q.limit(at); limit > 0 {
		used := n.weight
		for _, r := range q.ready {
			used += r.weight
		}
		return used <= limit
	}
	for _, r := range q.ready {
		if !n.shared || !r.shared {
			return false
		}
	}
	return true
}

// resized takes the turn back from nodes that no longer fit and have not been granted yet.
func (q *queue) resized(at time.Duration) {
	used, keep := 0, q.ready[:0:0]
	var back []*life
	for _, n := range q.ready {
		if granted := n.op != nil && n.op.Return <= at; granted || used+n.weight <= q.limit(at) && len(back) == 0 {
			used += n.weight
			keep = append(keep, n)
			continue
		}
		n.since = never
		back = append(back, n)
	}
	q.ready, q.waiting = keep, append(back, q.waiting...)
	slices.SortFunc(q.waiting, inOrder) // another node of the same transaction may have waited
}

// ahead returns the names of the nodes ahead of n.
func (q *queue) ahead(n *life) []string {
	var names []string
	for _, x := range append(slices.Clone(q.ready), q.waiting...) {
		if x != n && x.place <= n.place {
			names = append(names, x.path)
		}
	}
	return names
}

// PlainNumber returns a node's sequence number, the last ten digits of its name. It returns false if the number does not give
// the order, because it is negative or the counter is exhausted.
func PlainNumber(path string) (string, bool) {
	if len(path) < 11 || strings.HasSuffix(path, "2147483647") {
		return "", false
	}
	digits := path[len(path)-10:]
	_, err := strconv.ParseUint(digits, 10, 31)
	before := strings.TrimSuffix(path, digits)
	return digits, err == nil && !strings.HasSuffix(before, "--") && !strings.HasSuffix(before, "_-")
}
