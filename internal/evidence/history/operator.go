// SPDX-License-Identifier: Apache-2.0

package history

import (
	"path"
	"slices"
	"strings"
	"time"
)

// checkInspections checks that an inspection shows all contenders that were in the queue during the whole call, no contender
// that was not there, and the holders.
func (b *book) checkInspections(l *lock) {
	for _, op := range l.looks {
		if op.Outcome != Granted || b.restored(op.Call, op.Return) {
			continue
		}
		for _, node := range op.Nodes {
			if !slices.ContainsFunc(b.byPath[node], func(life *life) bool { return life.created <= op.Return && life.removed >= op.Call }) {
				b.report("inspect", l.path, op.Return, []*Op{op}, "%s was shown, but was not in the queue", node)
			}
		}
		for _, life := range l.lives {
			if stood(life, op) && op.Recipe != Semaphore && !slices.Contains(op.Nodes, life.path) {
				b.report("inspect", l.path, op.Return, []*Op{op}, "%s was in the queue during the whole call, but was not shown", life.path)
			}
		}
		b.checkHolders(l, op)
	}
}

// stood reports whether a node existed from before the call of op until after its return.
func stood(life *life, op *Op) bool { return life.created < op.Call && life.removed > op.Return }

// checkHolders checks which contenders look shows as holders.
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
			b.report("inspect", l.path, look.Return, []*Op{op, look}, "%s held during the whole call, but was not shown as a holder", op.Node)
		case alone && len(look.Holders) > 1:
			b.report("inspect", l.path, look.Return, []*Op{op, look}, "%s held alone, but %q were shown as holders", op.Node, look.Holders)
		case alone && look.Token != op.Token:
			b.report("inspect", l.path, look.Return, []*Op{op, look}, "%s held with token %d, but was shown with %d", op.Node, op.Token, look.Token)
		}
	}
}

// besideALoss reports whether the lock-delay of a downgraded writer may be running. During this time, no contender is shown as a
// holder, because the servers' data does not distinguish readers that held with the writer from waiting ones.
func (b *book) besideALoss(l *lock, at time.Duration) bool {
	return b.lim.Delay > 0 && slices.ContainsFunc(l.lives, func(life *life) bool {
		released := life.how == own && slices.ContainsFunc(l.ops, func(op *Op) bool { return b.claim[op] == life && op.Clean && !op.Lost })
		return life.downgraded != never && life.removed <= at && !released
	})
}

// shrunk reports whether the number of permits was reduced between from and to. An acquire that was granted just before that and
// still has its place in the queue cannot be distinguished from one that waits for more permits.
func (l *lock) shrunk(from, to time.Duration) bool {
	return slices.ContainsFunc(l.resizes, func(r *Op) bool { return from <= r.Call && r.Call <= to && r.Weight < l.limit(from, r.Call) })
}

// acquireOf returns the common prefix of the names of all nodes of one acquire: for a semaphore, the place in the queue and the
// permits. For another library's node it returns the name, since its acquires have only one node.
func acquireOf(node string) string {
	name := path.Base(node)
	if !strings.HasPrefix(name, "_c_7a6b6") {
		return name
	}
	return name[:min(len(name), len("_c_7a6b6c")+14)]
}

// checkEvicted checks that no node of an evicted contender remains when Evict has returned nil.
func (b *book) checkEvicted(l *lock, op *Op) {
	if op.Outcome != Granted || op.Error != "" || b.restored(op.Call, op.Return) {
		return
	}
	for _, node := range op.Nodes {
		for _, life := range l.lives {
			if acquireOf(life.path) == acquireOf(node) && life.created <= op.Return && life.removed > op.Return {
				b.report("evict", l.path, op.Return, []*Op{op}, "%s was evicted, but %s remains", node, life.path)
			}
		}
	}
}

// checkEvictions checks that an operator removes the last waiters first, so that no one is granted the lock between two removals.
func (b *book) checkEvictions(l *lock) {
	for _, op := range l.evictions {
		b.checkEvicted(l, op)
		var last *life // the node that was removed last so far
		for _, node := range slices.Backward(op.Nodes) {
			for _, life := range b.byPath[node] {
				if life.by != op.Client || life.removed < op.Call || life.removed > b.returned(op) {
					continue
				}
				if last != nil && life.removed < last.removed {
					b.report("evict", l.path, life.removed, []*Op{op}, "%s was removed before %s, which was behind it", life.path, last.path)
				}
				last = life
			}
		}
	}
}

// checkRequests checks that a contender is notified if an operator asks it to release, even if it is granted the lock only later,
// and that no other contender is notified.
func (b *book) checkRequests(l *lock) {
	for _, op := range l.ops {
		if op.Asked > 0 && !b.requested(b.places(op), op.Asked) {
			b.report("ask", l.path, op.Asked, []*Op{op}, "%s was notified of a request to release, but there was no request", op.Node)
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
			if long := b.heeds(op.Client, from, to); b.lim.Notice > 0 && from < to && long > b.lim.Notice {
				b.report("ask", l.path, to, []*Op{ask, op}, "%s was asked to release, but was not notified for %v", op.Node, long)
			}
		}
	}
}

// requested reports whether an operator had asked the owner of one of these nodes to release by then.
func (b *book) requested(nodes []string, by time.Duration) bool {
	return slices.ContainsFunc(b.inOrder, func(l *lock) bool {
		return slices.ContainsFunc(l.asks, func(ask *Op) bool { return ask.Call <= by && slices.Contains(nodes, ask.Node) })
	})
}

// places returns the nodes through which op could be asked to release: the nodes of all locks acquired with it, and its earlier
// ones, because a request remains valid if a waiter queues again. The node of a cohort can be older than op.
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
			if life.client == x.Client && life.created <= x.Return && (life.created >= b.waitsSince(x) || x.Cohort && life.how != own) {
				nodes = append(nodes, life.path)
			}
		}
	}
	return nodes
}

// restored reports whether the servers were restored to an earlier state between from and to.
func (b *book) restored(from, to time.Duration) bool {
	return slices.ContainsFunc(b.epochs, func(at time.Duration) bool { return from <= at && at <= to })
}
