package history

import (
	"slices"
	"time"
)

// checkInspections: who looks at a queue is shown those that stand in it all the while, nobody who was not there, and who holds.
func (b *book) checkInspections(l *lock) {
	for _, op := range l.looks {
		if op.Outcome != Granted || slices.ContainsFunc(b.epochs, func(at time.Duration) bool { return op.Call <= at && at <= op.Return }) {
			continue
		}
		for _, node := range op.Nodes {
			if !slices.ContainsFunc(b.byPath[node], func(life *life) bool { return life.created <= op.Return && life.removed >= op.Call }) {
				b.report("inspect", l.path, op.Return, []*Op{op}, "%s was shown, and was not there", node)
			}
		}
		for _, life := range l.lives {
			if stood(life, op) && op.Recipe != Semaphore && !slices.Contains(op.Nodes, life.path) {
				b.report("inspect", l.path, op.Return, []*Op{op}, "%s stood in the queue all the while, and was not shown", life.path)
			}
		}
		b.checkHolders(l, op)
	}
}

// stood reports whether a node was there from before op was called until after it has returned.
func stood(life *life, op *Op) bool { return life.created < op.Call && life.removed > op.Return }

// checkHolders judges whom look shows as holders.
func (b *book) checkHolders(l *lock, look *Op) {
	for _, op := range l.ops {
		life := b.claim[op]
		if op.Outcome != Granted || life == nil || op.Return >= look.Call || b.end(op) <= look.Return || !stood(life, look) {
			continue
		}
		if op.Shared && len(look.Holders) == 0 && b.besideALoss(l, look.Return) || l.shrunk(op.Call, look.Return) {
			continue
		}
		alone := !op.Shared && op.Recipe != Semaphore
		switch {
		case !slices.Contains(look.Holders, op.Node):
			b.report("inspect", l.path, look.Return, []*Op{op, look}, "%s held all the while, and was not shown as a holder", op.Node)
		case alone && len(look.Holders) > 1:
			b.report("inspect", l.path, look.Return, []*Op{op, look}, "%s held alone, and %q were shown as holders", op.Node, look.Holders)
		case alone && look.Token != op.Token:
			b.report("inspect", l.path, look.Return, []*Op{op, look}, "%s held with token %d, and was shown with %d", op.Node, op.Token, look.Token)
		}
	}
}

// besideALoss reports whether the lock-delay of a writer that had become a reader may run. Nobody is shown as a holder then: what the
// servers keep does not tell the readers who hold beside it from those that wait.
func (b *book) besideALoss(l *lock, at time.Duration) bool {
	return b.lim.Delay > 0 && slices.ContainsFunc(l.lives, func(life *life) bool {
		released := life.how == own && slices.ContainsFunc(l.ops, func(op *Op) bool { return b.claim[op] == life && op.Clean && !op.Lost })
		return life.downgraded != never && life.removed <= at && !released
	})
}

// shrunk reports whether a smaller number of permits came into force between two instants. While the place in the queue of an
// acquire stands that was granted just before, nothing tells it from one that waits for the number to grow again.
func (l *lock) shrunk(from, to time.Duration) bool {
	return slices.ContainsFunc(l.resizes, func(r *Op) bool { return from <= r.Call && r.Call <= to && r.Weight < l.limit(from, from) })
}

// checkEvictions: of those that wait an operator removes the last first, so that nobody is granted the lock between two removals.
func (b *book) checkEvictions(l *lock) {
	for _, op := range l.evictions {
		var last *life // the one that was removed last so far
		for _, node := range slices.Backward(op.Nodes) {
			for _, life := range b.byPath[node] {
				if life.by != op.Client || life.removed < op.Call || life.removed > b.returned(op) {
					continue
				}
				if last != nil && life.removed < last.removed {
					b.report("evict", l.path, life.removed, []*Op{op}, "%s was removed before %s, which stood behind it", life.path, last.path)
				}
				last = life
			}
		}
	}
}
