package history

import (
	"path"
	"slices"
	"strings"
	"time"
)

// checkInspections: who looks at a queue is shown those that stand in it all the while, nobody who was not there, and who holds.
func (b *book) checkInspections(l *lock) {
	for _, op := range l.looks {
		if op.Outcome != Granted || b.restored(op.Call, op.Return) {
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

// acquireOf returns what the names of all nodes of one acquire of this library begin with: the place in the queue for permits, and
// those. A node of another library's is the only one of its acquire.
func acquireOf(node string) string {
	name := path.Base(node)
	if !strings.HasPrefix(name, "_c_7a6b6") {
		return name
	}
	return name[:min(len(name), len("_c_7a6b6c")+14)]
}

// checkEvicted: nothing of those that an operator has removed stands when that is said to be done.
func (b *book) checkEvicted(l *lock, op *Op) {
	if op.Outcome != Granted || op.Error != "" || b.restored(op.Call, op.Return) {
		return
	}
	for _, node := range op.Nodes {
		for _, life := range l.lives {
			if acquireOf(life.path) == acquireOf(node) && life.created <= op.Return && life.removed > op.Return {
				b.report("evict", l.path, op.Return, []*Op{op}, "%s was evicted, and %s stands", node, life.path)
			}
		}
	}
}

// checkEvictions: of those that wait an operator removes the last first, so that nobody is granted the lock between two removals.
func (b *book) checkEvictions(l *lock) {
	for _, op := range l.evictions {
		b.checkEvicted(l, op)
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

// checkRequests: whom an operator asks to let go is told, also one that holds later, and nobody else is.
func (b *book) checkRequests(l *lock) {
	for _, op := range l.ops {
		if op.Asked > 0 && !b.requested(b.places(op), op.Asked) {
			b.report("ask", l.path, op.Asked, []*Op{op}, "%s was told to let go, which nobody had asked of it", op.Node)
		}
	}
	for _, ask := range l.asks {
		if ask.Outcome != Granted {
			continue
		}
		for _, op := range l.ops {
			if op.Node != ask.Node || op.Heeds == 0 || b.restored(ask.Call, op.Heeds) {
				continue
			}
			from, to := max(ask.Return, op.Return), op.Heeds
			if op.Asked > 0 {
				to = op.Asked
			}
			if op.End > 0 {
				to = min(to, op.End)
			}
			if long := b.calm(op.Client, from, to); b.lim.Notice > 0 && from < to && long > b.lim.Notice {
				b.report("ask", l.path, to, []*Op{ask, op}, "%s was asked to let go, and was not told for %v", op.Node, long)
			}
		}
	}
}

// requested reports whether one of these nodes was asked for by then.
func (b *book) requested(nodes []string, by time.Duration) bool {
	return slices.ContainsFunc(b.inOrder, func(l *lock) bool {
		return slices.ContainsFunc(l.asks, func(ask *Op) bool { return ask.Call <= by && slices.Contains(nodes, ask.Node) })
	})
}

// places are the nodes at which op could be asked to let go: those of all that were taken with it, and those that it had before,
// as a request outlives the place of one that queues again. The place of a process was there before some of its guests asked.
func (b *book) places(op *Op) (nodes []string) {
	if outer := b.byID[op.Outer]; outer != nil {
		nodes = b.places(outer)
	}
	taken := b.groups[group(op)]
	if len(taken) == 0 {
		taken = []*Op{op}
	}
	for _, x := range taken {
		nodes = append(nodes, x.Node)
		for _, life := range b.lock(x.Path).lives {
			if life.client == x.Client && life.created <= x.Return && (life.created >= x.Call || x.Cohort && life.how != own) {
				nodes = append(nodes, life.path)
			}
		}
	}
	return nodes
}

// restored reports whether the servers went back to an earlier state between two instants.
func (b *book) restored(from, to time.Duration) bool {
	return slices.ContainsFunc(b.epochs, func(at time.Duration) bool { return from <= at && at <= to })
}
