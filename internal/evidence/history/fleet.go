// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"path"
	"slices"
	"time"
)

// checkFleet checks that all shards of a fleet are held, and that the loads of its members differ by at most one, whenever there
// was no fault for as long as Wake, and no member has joined or left. A network on which holds are lost without a fault excuses
// it.
func (b *book) checkFleet(l *lock) {
	if len(l.joins) == 0 || !b.lim.Lossless {
		return
	}
	changes := []Window{{From: 0, To: 0}, {From: b.h.End, To: b.h.End}}
	changes = append(changes, b.h.Faults...)
	for _, m := range l.joins {
		changes = append(changes, Window{From: m.Call, To: m.Call}, Window{From: b.left(m), To: b.returned(m)})
	}
	changes = merge(changes)
	for i := range changes[1:] {
		from, to := changes[i].To+b.lim.Wake, changes[i+1].From
		if from < to {
			b.checkBalance(l, from)
			b.checkBalance(l, to-1)
		}
	}
}

// checkBalance checks the holders of a fleet's shards at a time.
func (b *book) checkBalance(l *lock, at time.Duration) {
	loads, n := map[int64]int{}, 0
	for _, m := range l.joins {
		if m.Call <= at && at < b.left(m) {
			loads[m.ID], n = 0, m.Weight
		}
	}
	for shard := range n {
		var holder *Op
		if of := b.locks[fmt.Sprintf("%s/%04d", l.path, shard)]; of != nil {
			i := slices.IndexFunc(of.ops, func(op *Op) bool { return op.Outcome == Granted && op.Return <= at && b.end(op) > at })
			if i >= 0 {
				holder = of.ops[i]
			}
		}
		if holder == nil {
			b.report(string(Shards), l.path, at, nil, "nobody holds shard %d of %d members, although nothing has changed for long", shard, len(loads))
			return
		}
		loads[holder.Member]++
	}
	least, most := n, 0
	for _, load := range loads {
		least, most = min(least, load), max(most, load)
	}
	if n > 0 && most > least+1 {
		b.report(string(Shards), l.path, at, nil, "one member holds %d shards and another one %d, although nothing has changed for long", most, least)
	}
}

// left returns when a member began to leave its fleet.
func (b *book) left(m *Op) time.Duration {
	if m.End > 0 {
		return m.End
	}
	return b.returned(m)
}

// membersOf returns the members of the fleet to which a shard belongs, or nil if the lock is no shard. A member waits for its shards
// without an operation for each.
func (b *book) membersOf(shard *lock) []*Op {
	if fleet := b.locks[path.Dir(shard.path)]; fleet != nil {
		return fleet.joins
	}
	return nil
}

// waitsSince returns since when op may have waited: for the hold of a shard, since its member has joined.
func (b *book) waitsSince(op *Op) time.Duration {
	if m := b.byID[op.Member]; m != nil {
		return m.Call
	}
	return op.Call
}
