// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"
)

// Check returns every violation in h, in order of time.
func Check(h *History, lim Limits) []Violation {
	b := newBook(h, lim)
	for _, l := range b.inOrder {
		b.replay(l)
	}
	for _, l := range b.inOrder {
		b.checkClaims(l)
		b.checkHolds(l)
		b.checkTokens(l)
		b.checkTurns(l)
		b.checkReleases(l)
		b.checkRefusals(l)
		b.checkReentrant(l)
		b.checkDowngrades(l)
		b.checkObservers(l)
		b.checkRequests(l)
		if b.logged() {
			b.checkInspections(l)
			b.checkEvictions(l)
		}
		if lim.Delay > 0 {
			b.checkDelay(l)
		}
		if lim.Wake > 0 {
			b.checkLosses(l)
			b.checkPlaces(l)
			b.checkFleet(l)
		}
	}
	if lim.Wake > 0 && b.logged() {
		b.checkGroups()
	}
	slices.SortStableFunc(b.found, func(x, y Violation) int { return cmp.Compare(x.At, y.At) })
	return b.found
}

// Contended counts the grants between from and to whose node had to wait for its turn. A run without contended grants is no
// evidence.
func Contended(h *History, from, to time.Duration) int {
	b, n := newBook(h, Limits{}), 0
	for _, l := range b.inOrder {
		b.replay(l)
		for _, op := range l.ops {
			life := b.claim[op]
			if life != nil && op.Return >= from && op.Return < to && life.turn != never && life.turn > life.created {
				n++
			}
		}
	}
	return n
}

// span is the time of an operation's claim on a lock.
type span struct {
	op       *Op
	from, to time.Duration
}

// checkClaims checks P1: a granted node exists, and nodes of conflicting grants never exist at the same time.
func (b *book) checkClaims(l *lock) {
	if !b.logged() {
		return
	}
	var spans []span
	for _, op := range l.ops {
		if op.Outcome != Granted {
			continue
		}
		life := b.claim[op]
		if life == nil {
			b.report("P1", l.path, op.Return, []*Op{op}, "granted %s, which was never created", op.Node)
			continue
		}
		late := op.Return - life.removed
		if late > 0 && !(life.how == foreign && b.excused(op.Client, life.removed, op.Return)) {
			b.report("P1", l.path, op.Return, []*Op{op}, "granted %s, which was deleted at %v (%s)", op.Node, life.removed, life.how)
			continue
		}
		if late <= 0 {
			to := life.removed
			if !op.Shared {
				to = max(op.Return, min(to, life.downgraded))
			}
			spans = append(spans, span{op, op.Return, to})
		}
	}
	b.sweep("P1", l, spans)
}

// checkHolds checks P2: conflicting holds never overlap, and a hold ends before its node is deleted.
func (b *book) checkHolds(l *lock) {
	var spans []span
	for _, op := range l.ops {
		if op.Outcome != Granted {
			continue
		}
		end := b.end(op)
		if life := b.claim[op]; life != nil && end > life.removed {
			if life.how != foreign || !b.excused(op.Client, max(life.removed, op.Return), end) {
				b.report("P2", l.path, life.removed, []*Op{op}, "relied on until %v, but %s was deleted at %v (%s)", end, op.Node, life.removed, life.how)
			}
			end = life.removed // so that the same defect is not reported again as an overlap
		}
		if end >= op.Return {
			spans = append(spans, span{op, op.Return, end})
		}
	}
	b.sweep("P2", l, spans)
}

// excused reports whether a client may have relied until end on a node that a third party deleted at gone.
func (b *book) excused(client string, gone, end time.Duration) bool {
	notice := b.lim.Notice
	if notice == 0 {
		notice = b.lim.Foreign
	}
	return end-gone <= b.lim.Foreign && b.heeds(client, gone, end) <= notice
}

// checkLosses checks that no hold is lost while its node exists and its client has not had a fault for long.
func (b *book) checkLosses(l *lock) {
	for _, op := range l.ops {
		life := b.claim[op]
		if !b.lim.Lossless || !op.Lost || life == nil || life.removed < op.End && life.how != own {
			continue
		}
		if b.calm(op.Client, max(0, op.End-b.lim.Wake-1), op.End) > b.lim.Wake && op.End > b.lim.Wake {
			b.report("P2", l.path, op.End, []*Op{op}, "reported as lost without a fault")
		}
	}
}

// sweep reports conflicting spans that overlap. In a correct history only a few spans are open at the same time, so this is
// O(n log n).
func (b *book) sweep(rule string, l *lock, spans []span) {
	slices.SortStableFunc(spans, func(x, y span) int { return cmp.Compare(x.from, y.from) })
	var open []span
	for _, s := range spans {
		open = slices.DeleteFunc(open, func(o span) bool { return o.to <= s.from })
		if other := b.conflict(l, open, s.op); other != nil {
			b.report(rule, l.path, s.from, []*Op{other, s.op}, "%s and %s hold at the same time", name(other), name(s.op))
			continue
		}
		if s.to > s.from {
			open = append(open, s)
		}
	}
}

// conflict returns an operation in open that conflicts with op, or nil if there is none.
func (b *book) conflict(l *lock, open []span, op *Op) *Op {
	used := weight(op)
	for _, o := range open {
		switch {
		case op.Recipe == Semaphore:
			if used += weight(o.op); used > l.limit(op.Call, op.Return) {
				return o.op
			}
		case b.root(o.op) == b.root(op):
		case !op.Shared || !o.op.Shared:
			return o.op
		}
	}
	return nil
}

// checkTokens checks P3 for each epoch of the servers.
func (b *book) checkTokens(l *lock) {
	epochs := make([][]*Op, len(b.epochs)+1)
	for _, op := range l.ops {
		if op.Outcome == Granted && b.root(op) == op && !b.void(op) {
			n := b.epoch(op)
			epochs[n] = append(epochs[n], op)
		}
	}
	for _, holds := range epochs {
		b.checkEpoch(l, holds)
	}
}

// checkEpoch checks that a token is larger than the tokens of all holds that ended before, and that no two holds have the same
// token.
func (b *book) checkEpoch(l *lock, holds []*Op) {
	over := slices.Clone(holds)
	slices.SortStableFunc(over, func(x, y *Op) int { return cmp.Compare(b.end(x), b.end(y)) })
	// In an exclusive recipe, holds that ended before the grant count. Shared holds are granted together, and a slow reply
	// can swap two grants, so there only holds that ended before the call count.
	since := func(op *Op) time.Duration {
		if op.Recipe == Semaphore || op.Recipe == RW && op.Shared {
			return op.Call
		}
		return op.Return
	}
	slices.SortStableFunc(holds, func(x, y *Op) int { return cmp.Compare(since(x), since(y)) })
	var last *Op // the hold with the largest token among those that have ended
	used := make(map[int64]*Op, len(holds))
	for _, op := range holds {
		for len(over) > 0 && b.end(over[0]) <= since(op) && over[0] != op {
			last = larger(last, over[0])
			over = over[1:]
		}
		if twin := used[op.Token]; twin != nil {
			b.report("P3", l.path, op.Return, []*Op{twin, op}, "both have token %d", op.Token)
		} else if last != nil && op.Token <= last.Token {
			b.report("P3", l.path, op.Return, []*Op{last, op}, "token %d after token %d", op.Token, last.Token)
		}
		used[op.Token] = op
	}
	b.checkTokenOrder(l, holds)
}

// larger returns the hold with the larger token. x may be nil.
func larger(x, y *Op) *Op {
	if x == nil || y.Token > x.Token {
		return y
	}
	return x
}

// void reports whether op's node was deleted before the grant. P1 covers this case, and P3 ignores the token.
func (b *book) void(op *Op) bool {
	life := b.claim[op]
	return life != nil && life.removed < op.Return
}

// checkTokenOrder checks P3 for holds that overlap: tokens grow along the queue, except among shared holds, which are granted in
// any order.
func (b *book) checkTokenOrder(l *lock, holds []*Op) {
	holds = slices.DeleteFunc(holds, func(op *Op) bool { return b.claim[op] == nil })
	slices.SortStableFunc(holds, func(x, y *Op) int { return cmp.Compare(b.claim[x].czxid, b.claim[y].czxid) })
	var alone, largest *Op // the holds with the largest token so far, among exclusive holds and among all
	for _, op := range holds {
		shares := op.Shared || op.Recipe == Semaphore
		before := largest
		if shares {
			before = alone
		}
		if before != nil && op.Token <= before.Token {
			b.report("P3", l.path, op.Return, []*Op{before, op}, "token %d behind token %d in the queue", op.Token, before.Token)
		}
		if largest == nil || op.Token > largest.Token {
			largest = op
		}
		if !shares && (alone == nil || op.Token > alone.Token) {
			alone = op
		}
	}
}

// checkTurns checks P4, that no grant comes before its turn, and the first half of P7, that no turn is left unused.
func (b *book) checkTurns(l *lock) {
	for _, life := range l.lives {
		op := life.op
		if op != nil && op.Outer == 0 && op.Return < life.turn && op.Return <= life.removed {
			b.report("P4", l.path, op.Return, []*Op{op}, "granted before its turn: %s was ahead", strings.Join(life.before, ", "))
		}
		since := b.since(life)
		if b.lim.Wake == 0 || since == never {
			continue
		}
		taken := min(life.removed, b.h.End)
		if op != nil {
			taken = min(taken, op.Return)
		}
		if of := b.behind(l); of != nil {
			taken = min(taken, of.asked(life))
		}
		since = max(since, b.delayedAgain(l, life, taken))
		if idle, late := b.overdue(life.client, since, taken); late && !b.awaitsOthers(l, life) {
			b.report("P7", l.path, since, nil, "%s (session %#x) had its turn and did not use it for %v", life.path, life.session, idle)
		}
	}
}

// since returns when life's turn could be used. If several locks are acquired together, it may have to wait for the others.
func (b *book) since(life *life) time.Duration {
	since := life.since
	if life.op == nil || since == never {
		return since
	}
	for _, other := range b.groups[group(life.op)] {
		claim := b.claim[other]
		if claim == nil {
			return never
		}
		since = max(since, claim.since)
	}
	return since
}

// asked returns when the owner of a place in a semaphore's queue created the first node for its permits, or never.
func (l *lock) asked(gate *life) time.Duration {
	at := never
	for _, life := range l.lives {
		if life.created >= gate.created && acquireOf(life.path) == acquireOf(gate.path) {
			at = min(at, life.created)
		}
	}
	return at
}

// awaitsOthers reports whether an unused node may belong to an acquire of several locks or permits that did not succeed, because
// another node never had its turn, or had it only after this one.
func (b *book) awaitsOthers(l *lock, life *life) bool {
	return life.op == nil && slices.ContainsFunc(l.ops, func(op *Op) bool {
		if op.Group == 0 || op.Client != life.client || op.Call > life.since || life.since > b.returned(op) {
			return false
		}
		if op.Recipe == Semaphore && !b.several(op) {
			return slices.ContainsFunc(l.lives, life.waitsFor)
		}
		return true
	})
}

// waitsFor reports whether other is another node of the same acquire of permits, and had its turn later.
func (x *life) waitsFor(other *life) bool {
	return other != x && acquireOf(other.path) == acquireOf(x.path) && other.since > x.since
}

// several reports whether op is part of an acquire of several locks.
func (b *book) several(op *Op) bool {
	return slices.ContainsFunc(b.groups[group(op)], func(other *Op) bool { return other.Path != op.Path })
}

// checkReleases checks P5 for releases. If a release returned nil, the node is gone. A release returns ErrUncertain only after
// a fault.
func (b *book) checkReleases(l *lock) {
	last := map[*life]*Op{} // by node: the operation that was released last, of all levels
	for _, op := range l.ops {
		life := b.claim[op]
		if life == nil {
			continue
		}
		if prev := last[life]; prev == nil || b.freed(op) > b.freed(prev) {
			last[life] = op
		}
	}
	for life, op := range last {
		if op.Clean && life.removed > op.Freed && !b.endsLate(op, life) {
			b.report("P5", l.path, op.Freed, []*Op{op}, "released, but %s is still there", life.path)
		}
	}
	for _, op := range l.ops {
		if b.lim.Lossless && op.Uncertain && !op.Lost && op.Freed > b.lim.Wake && b.calm(op.Client, op.Freed-b.lim.Wake-1, op.Freed) > b.lim.Wake {
			b.report("P5", l.path, op.Freed, []*Op{op}, "the release was uncertain without a fault")
		}
	}
}

// endsLate reports whether the node of a released operation stayed until its session ended, and a leader without a quorum can
// have told the client of that end before it could commit it: a fault came just before the release, and the end came soon after the
// faults.
func (b *book) endsLate(op *Op, life *life) bool {
	return life.how == expired && b.calm(op.Client, op.Freed-b.lim.Wake, op.Freed) < b.lim.Wake &&
		b.calm(op.Client, op.Freed, life.removed) <= b.lim.Wake
}

// freed returns when op was released, or never if it was not.
func (b *book) freed(op *Op) time.Duration {
	if op.Freed == 0 && op.End == 0 {
		return never
	}
	return max(op.Freed, op.End)
}

// checkReentrant checks that an inner level is the outer hold entered again, without a new node.
func (b *book) checkReentrant(l *lock) {
	for _, op := range l.ops {
		outer := b.byID[op.Outer]
		if op.Recipe != Reentrant || op.Outcome != Granted || outer == nil {
			continue
		}
		switch {
		case op.Token != outer.Token:
			b.report("reentrant", l.path, op.Return, []*Op{outer, op}, "the inner token %d is not the outer one %d", op.Token, outer.Token)
		case op.Node != outer.Node:
			b.report("reentrant", l.path, op.Return, []*Op{outer, op}, "the inner node %s is not the outer one %s", op.Node, outer.Node)
		case op.Call > b.end(outer):
			b.report("reentrant", l.path, op.Return, []*Op{outer, op}, "entered again after the outer hold had ended at %v", b.end(outer))
		}
	}
}

// checkDowngrades checks that a writer's node admits readers when Downgrade has returned nil.
func (b *book) checkDowngrades(l *lock) {
	for _, op := range l.ops {
		life := b.claim[op]
		if op.Shares == 0 || life == nil || life.removed <= op.Shares {
			continue
		}
		made := life.shared && life.downgraded == never // created as a reader's node
		if !made && life.downgraded > op.Shares {
			b.report("rw", l.path, op.Shares, []*Op{op}, "downgraded, but %s still excludes readers", life.path)
		}
	}
}

// checkObservers checks that each observed leader was at the front of the queue by then, with a value that it had, and that an
// observer is not shown an earlier leader after a later one.
func (b *book) checkObservers(l *lock) {
	newest := map[string]*Op{}
	for _, op := range l.seen {
		if op.Outcome != Granted {
			b.checkVacancy(l, op)
			b.checkUnseen(l, op, newest[op.Client])
			continue
		}
		if b.logged() && !slices.ContainsFunc(b.byPath[op.Node], func(life *life) bool { return life.czxid == op.Token && life.created <= op.Return }) {
			b.report("election", l.path, op.Return, []*Op{op}, "%s observed as the leader with token %d, but there was no such node", op.Node, op.Token)
			continue
		}
		if prev := newest[op.Client]; prev != nil && op.Token < prev.Token && b.epoch(prev) == b.epoch(op) {
			b.report("election", l.path, op.Return, []*Op{prev, op}, "%s observed leader %d after leader %d", op.Client, op.Token, prev.Token)
			continue
		}
		b.checkValue(l, op, newest[op.Client])
		newest[op.Client] = op
		for _, life := range b.byPath[op.Node] {
			restored := life.created > op.Return && b.byPath[op.Node][0].created <= op.Return // observed before the restoration
			if life.turn > op.Return && !restored {
				b.report("election", l.path, op.Return, []*Op{op}, "%s observed as the leader before its turn", op.Node)
			}
		}
	}
}

// checkValue checks that the leader had the observed value by then. A caller that requests the current value must not be shown an
// older one than at the call, and a view must not be shown an older value than its last one.
func (b *book) checkValue(l *lock, op, prev *Op) {
	for _, life := range b.byPath[op.Node] {
		if life.czxid != op.Token {
			continue
		}
		since := time.Duration(0)
		switch {
		case op.Fresh:
			since = op.Call
		case prev != nil && prev.Node == op.Node:
			since = life.began(prev.Value) + 1 // the value before that one ended at this time
		}
		if !life.had(op.Value, since, op.Return) {
			b.report("election", l.path, op.Return, []*Op{op}, "%s observed with value %q, which it did not have between %v and then", op.Node, op.Value, since)
		}
	}
}

// checkVacancy checks that a query for the leader does not report that there is none if a candidate was there all the time.
func (b *book) checkVacancy(l *lock, op *Op) {
	if op.Outcome != Refused || b.restored(op.Call, op.Return) {
		return
	}
	for _, life := range l.lives {
		if stood(life, op) {
			b.report("election", l.path, op.Return, []*Op{op}, "no leader was reported, but %s was there during the whole call", life.path)
			return
		}
	}
}

// checkRefusals checks P7 for tries. A try may be refused only if another contender is there, if one has just left (the server may
// lag), or during a lock-delay. A restore can bring back the record of a hold that has ended since, and its lock-delay begins when a
// contender sees the record. So with a lock-delay, no refusal is judged from a restore until a contender is granted the lock: one that
// waits for the end of the delay may not be in the way of the try, because both are readers.
func (b *book) checkRefusals(l *lock) {
	if !b.logged() || b.lim.Notice == 0 {
		return
	}
	all := l.lives
	if gate := b.gate(l); gate != nil {
		all = slices.Concat(all, gate.lives)
	}
	until := map[*life]time.Duration{}
	for _, life := range all {
		until[life] = b.excludesUntil(l, life)
	}
	served := l.served()
	for _, op := range l.ops {
		if op.Behind > 0 {
			b.checkBound(l, op, served)
		}
		if op.Outcome != Refused || b.restored(op.Call, op.Return) {
			continue
		}
		meanwhile := l.meanwhile(op)
		if op.Cohort && slices.ContainsFunc(meanwhile, func(o *Op) bool { return o.Cohort && o.Outcome != Refused }) {
			continue // both may still be waiting for a common place
		}
		// If the try is alone, a new node of the process is its own.
		alone := !slices.ContainsFunc(meanwhile, func(o *Op) bool { return !op.Cohort || !o.Cohort })
		var others []time.Duration // until when each other contender counts
		own, granted := int64(0), time.Duration(0)
		for _, life := range all {
			if life.op != nil && life.op.Return <= op.Return {
				granted = max(granted, life.op.Return)
			}
			switch {
			case life.created > op.Return || op.Shared && life.shared && life.downgraded == never:
			case op.Behind > 0 && life.lock != b.waiting(l).path: // of a semaphore, only the callers in its queue count
			case (life.lock == l.path || op.Behind > 0) && life.client == op.Client && life.created >= op.Call && life.op == nil && (own == 0 || own == life.czxid) && alone && !b.mayCreateLate(l, op):
				own = life.czxid // the transaction of the try's own nodes, if it created any
			default:
				others = append(others, until[life])
			}
		}
		last := time.Duration(0)
		if slices.Sort(others); len(others) >= max(1, op.Behind) {
			last = others[len(others)-max(1, op.Behind)]
		}
		// The delay of a hold from before a restoration begins when somebody sees its record, and ends before the first hold afterwards.
		if last < op.Call && !(max(b.lim.Delay, b.lim.LongestDelay) > 0 && b.restored(granted, op.Call)) {
			notice := b.lim.Notice
			if op.Behind > 0 {
				notice = 0 // it counts in a listing that has its own node
			}
			if long := b.calm(op.Client, last, op.Call); long > notice {
				b.report("P7", l.path, op.Return, []*Op{op}, "refused, but there had not been %d other contenders for %v", max(1, op.Behind), long)
			}
		}
	}
}

// waiting returns the queue in which the callers of l wait: l, or that of a semaphore.
func (b *book) waiting(l *lock) *lock {
	if gate := b.gate(l); gate != nil {
		return gate
	}
	return l
}

// checkBound checks P4 for a call of a lock of AtMost that was granted: if there was no fault, it did not enter the queue behind more
// contenders than its bound. Contenders that left soon after that do not count, and neither do callers that had their permits: see served.
func (b *book) checkBound(l *lock, op *Op, served map[string]time.Duration) {
	claim, lives := b.claim[op], b.waiting(l).lives
	if op.Outcome != Granted || op.Outer != 0 || claim == nil {
		return
	}
	i := slices.IndexFunc(lives, func(own *life) bool {
		return own == claim || op.Recipe == Semaphore && acquireOf(own.path) == acquireOf(claim.path)
	})
	if i < 0 {
		return
	}
	own, ahead := lives[i], 0
	until := own.created + b.lim.Notice
	for _, other := range lives {
		if other.place >= own.place || other.created > own.created || other.removed <= until {
			continue
		}
		// One that had its permits does not wait, even if its process ended before its place was deleted.
		if turn, had := served[acquireOf(other.path)]; op.Recipe != Semaphore || !had || turn > until {
			ahead++
		}
	}
	if ahead >= op.Behind && b.calm(op.Client, op.Call, until) == until-op.Call {
		b.report("P4", l.path, op.Return, []*Op{op}, "waited behind %d contenders, although it is refused behind %d", ahead, op.Behind)
	}
}

// served returns when each acquire of a semaphore had its first permit.
func (l *lock) served() map[string]time.Duration {
	turns := map[string]time.Duration{}
	for _, permit := range l.lives {
		acquire := acquireOf(permit.path)
		if turn, had := turns[acquire]; !had || permit.turn < turn {
			turns[acquire] = permit.turn
		}
	}
	return turns
}

// meanwhile returns the calls of other goroutines of the process at the same time.
func (l *lock) meanwhile(op *Op) (ops []*Op) {
	for _, o := range l.ops {
		if o != op && o.Client == op.Client && o.Call <= op.Return && o.Return >= op.Call {
			ops = append(ops, o)
		}
	}
	return ops
}

// mayCreateLate reports whether a call of the process failed shortly before op, and the request that creates its node may have been under
// way since. The caller does not wait for the reply. Such a node is in the way of op until the process has deleted it.
func (b *book) mayCreateLate(l *lock, op *Op) bool {
	return slices.ContainsFunc(l.ops, func(o *Op) bool {
		return o.Client == op.Client && o.Outcome == Failed && o.Return < op.Call && op.Call-o.Return <= b.lim.Notice
	})
}

// gate returns the queue of the semaphore l, or nil if there is none.
func (b *book) gate(l *lock) *lock {
	return b.locks[l.path+"/locks"]
}

// behind returns the semaphore whose queue l is, or nil if l is not a queue.
func (b *book) behind(l *lock) *lock {
	path, ok := strings.CutSuffix(l.path, "/locks")
	if of := b.locks[path]; ok && of != nil && len(of.ops) > 0 && of.ops[0].Recipe == Semaphore {
		return of
	}
	return nil
}

// checkUnseen checks P7 for an observer that waited for the next change until its context was done: there was no leader or value that
// lasted for long and that it was not shown.
func (b *book) checkUnseen(l *lock, op, shown *Op) {
	if !op.View || b.lim.Wake == 0 {
		return
	}
	for _, life := range l.lives {
		for i, v := range life.values {
			if shown != nil && shown.Node == life.path && shown.Value == v.text {
				continue
			}
			from, to := max(op.Call, life.turn, v.from), min(op.Return, life.until(i))
			if from >= to {
				continue
			}
			if long, late := b.overdue(op.Client, from, to); late {
				b.report("P7", l.path, from, []*Op{op}, "%s was not shown that %s leads with %q, for %v", op.Client, life.path, v.text, long)
			}
		}
	}
}

// began returns when a node first had a value.
func (life *life) began(text string) time.Duration {
	for _, v := range life.values {
		if v.text == text {
			return v.from
		}
	}
	return 0
}

// had reports whether a node had a value at some time between from and to.
func (life *life) had(text string, from, to time.Duration) bool {
	for i, v := range life.values {
		if v.text == text && v.from <= to && life.until(i) >= from {
			return true
		}
	}
	return false
}

// until returns when a node stopped having its i-th value.
func (life *life) until(i int) time.Duration {
	if i+1 < len(life.values) {
		return life.values[i+1].from
	}
	return life.removed
}

// checkPlaces checks P5 and the second half of P7 for each client: every node belongs to an operation, and every waiting operation has
// a node.
func (b *book) checkPlaces(l *lock) {
	if !b.logged() {
		return
	}
	type change struct {
		at         time.Duration
		spare, due int // nodes beyond the operations that may have one; waiters beyond the nodes that wait
	}
	b.checkCohorts(l)
	byClient := map[string][]change{}
	add := func(client string, from, to time.Duration, spare, due int) {
		byClient[client] = append(byClient[client], change{from, spare, due}, change{to, -spare, -due})
	}
	for life, to := range b.standing(l) {
		if life.client == "" {
			continue
		}
		add(life.client, life.created, min(life.removed, b.h.End+1), 1, 0)
		if life.op != nil {
			to = min(to, life.op.Return)
		}
		add(life.client, life.created, max(to, life.created), 0, -1)
	}
	b.checkGate(l)
	if of := b.behind(l); of != nil {
		for _, op := range of.ops {
			if op.Outer == 0 {
				add(op.Client, op.Call, b.queued(op), -1, 0)
			}
		}
	}
	for _, m := range b.membersOf(l) { // one node waits while another is released
		add(m.Client, m.Call, b.over(m), -2, 0)
	}
	for _, op := range l.ops {
		add(op.Client, op.Call, b.over(op), -1, 0)
		if op.Group == 0 && op.Outer == 0 && !op.Cohort { // of unknown outcome is one that waited until its process vanished
			add(op.Client, op.Call, b.returned(op), 0, 1)
		}
	}
	for client, changes := range byClient {
		slices.SortStableFunc(changes, func(x, y change) int { return cmp.Compare(x.at, y.at) })
		var spare, due counter
		for _, c := range changes {
			spare.add(c.at, c.spare, func(from, to time.Duration) {
				if long, late := b.overdue(client, from, min(to, b.h.End)); late {
					b.report("P5", l.path, from, nil, "a node of %s has no operation for %v", client, long)
				}
			})
			due.add(c.at, c.due, func(from, to time.Duration) {
				if long, late := b.overdue(client, from, min(to, b.h.End)); late {
					b.report("P7", l.path, from, nil, "%s waits without a place in the queue for %v", client, long)
				}
			})
		}
	}
}

// queued returns when op must no longer have a node in a semaphore's queue.
func (b *book) queued(op *Op) time.Duration {
	if op.Outcome == Unknown {
		return b.sessionEnd(op)
	}
	return b.returned(op)
}

// checkGate checks the second half of P7 for semaphores: each caller has a place in the queue, or nodes for its permits.
func (b *book) checkGate(l *lock) {
	gate := b.gate(l)
	if gate == nil || b.behind(gate) != l {
		return
	}
	byClient := map[string][]change{}
	add := func(client string, from, to time.Duration, by int) {
		byClient[client] = append(byClient[client], change{from, by}, change{max(from, to), -by})
	}
	places := map[string][]Window{} // by acquire: when its nodes existed
	owner := map[string]string{}
	stands := func(life *life, to time.Duration) {
		name := acquireOf(life.path)
		places[name] = append(places[name], Window{From: life.created, To: to})
		owner[name] = life.client
	}
	for life, to := range b.standing(gate) {
		stands(life, to)
	}
	for _, life := range l.lives {
		stands(life, min(life.removed, b.h.End+1))
	}
	for name, there := range places {
		for _, w := range merge(there) {
			add(owner[name], w.From, w.To, -1)
		}
	}
	for _, op := range l.ops {
		if op.Outer != 0 {
			continue
		}
		if !b.several(op) {
			add(op.Client, op.Call, b.returned(op), 1)
		}
		if op.Outcome == Granted { // its nodes do not count as the place of another caller
			to := b.over(op)
			if life := b.claim[op]; life != nil {
				to = min(to, life.removed)
			}
			add(op.Client, op.Return, to, 1)
		}
	}
	for client, changes := range byClient {
		b.follow(changes, client, func(from, long time.Duration) {
			b.report("P7", l.path, from, nil, "%s waits for permits without a place in the queue for %v", client, long)
		})
	}
}

// standing returns, for each node, until when its owner may believe that it exists. A waiter watches the node ahead, so if a
// third party deletes the waiter's own node, the waiter notices it only when the node ahead is deleted.
func (b *book) standing(l *lock) iter.Seq2[*life, time.Duration] {
	return func(yield func(*life, time.Duration) bool) {
		ahead := time.Duration(0) // when the last of the earlier nodes was deleted
		for _, life := range l.lives {
			to := min(life.removed, b.h.End+1)
			earlier := ahead
			ahead = max(ahead, to)
			if life.how == foreign {
				to = max(to, earlier)
			}
			if !yield(life, to) {
				return
			}
		}
	}
}

// checkGroups checks the second half of P7 for acquires of several locks: while such an acquire waits, it has a place in at least
// one queue. Since the nodes of a client cannot be assigned to its acquires, checkGroups counts all acquires of the client.
func (b *book) checkGroups() {
	places, asleep := map[string][]change{}, map[string]bool{}
	for _, l := range b.inOrder {
		for life, to := range b.standing(l) {
			if life.op != nil {
				to = min(to, life.op.Return)
			}
			places[life.client] = append(places[life.client], change{life.created, -1}, change{max(life.created, to), 1})
		}
		for _, op := range l.ops {
			if op.Cohort || op.Outer != 0 || op.Group > 0 {
				continue // the goroutines of a cohort share one place, and one operation of a group represents all
			}
			asleep[op.Client] = asleep[op.Client] || b.several(op)
			places[op.Client] = append(places[op.Client], change{op.Call, 1}, change{b.returned(op), -1})
		}
	}
	for client, changes := range places {
		if !asleep[client] {
			continue
		}
		b.follow(changes, client, func(from time.Duration, long time.Duration) {
			b.report("P7", "", from, nil, "%s waits for several locks without a place in any queue for %v", client, long)
		})
	}
}

// change is a change of a sum at a time.
type change struct {
	at time.Duration
	by int
}

// follow adds up the changes, and calls late for each period in which the sum is positive for too long.
func (b *book) follow(changes []change, client string, late func(from, long time.Duration)) {
	slices.SortStableFunc(changes, func(x, y change) int { return cmp.Compare(x.at, y.at) })
	var sum counter
	for _, c := range changes {
		sum.add(c.at, c.by, func(from, to time.Duration) {
			if long, is := b.overdue(client, from, min(to, b.h.End)); is {
				late(from, long)
			}
		})
	}
}

// checkCohorts checks the second half of P7 for cohorts: while a goroutine of a cohort waits, its process has a node.
func (b *book) checkCohorts(l *lock) {
	const enough = 1 << 20 // more than the number of waiting goroutines
	clients := map[string][]change{}
	add := func(client string, from, to time.Duration, by int) {
		clients[client] = append(clients[client], change{from, by}, change{max(from, to), -by})
	}
	ahead := time.Duration(0) // when the last of the earlier nodes was deleted
	for _, life := range l.lives {
		earlier, to := ahead, min(life.removed, b.h.End+1)
		ahead = max(ahead, to)
		if life.how == foreign { // noticed when the node ahead is deleted
			to = max(to, earlier)
		}
		if !life.shared {
			add(life.client, life.created, to, -enough)
		}
	}
	for _, op := range l.ops {
		if op.Cohort {
			add(op.Client, op.Call, b.returned(op), 1)
		}
	}
	for client, changes := range clients {
		b.follow(changes, client, func(from, long time.Duration) {
			b.report("P7", l.path, from, nil, "a goroutine of %s waits without a place in the queue for %v", client, long)
		})
	}
}

// over returns when op must no longer have a node.
func (b *book) over(op *Op) time.Duration {
	switch {
	case op.Outcome == Granted && op.Freed > 0:
		return op.Freed
	case op.Outcome == Granted && op.End > 0 && op.Freed == 0:
		return b.sessionEnd(op) // the process ended, or the hold was lost and never released
	case op.Outcome == Granted:
		return b.h.End + 1
	case op.Outcome == Unknown:
		return b.sessionEnd(op)
	}
	return b.returned(op)
}

// sessionEnd returns when, according to the log, the last session that may own a node of op ended.
func (b *book) sessionEnd(op *Op) time.Duration {
	if life := b.claim[op]; life != nil {
		return min(life.removed, b.h.End+1)
	}
	at, ok := b.ends[op.Client]
	if !ok {
		return b.h.End + 1
	}
	for _, restored := range b.epochs {
		if at < op.Call && op.Call < restored {
			return restored // the restoration discarded the session, so the log does not have its end
		}
	}
	return max(at, op.Call)
}

// counter is a sum that reports the periods in which it was positive.
type counter struct {
	n     int
	since time.Duration
}

func (c *counter) add(at time.Duration, d int, positive func(from, to time.Duration)) {
	was := c.n
	c.n += d
	switch {
	case was <= 0 && c.n > 0:
		c.since = at
	case was > 0 && c.n <= 0:
		positive(c.since, at)
	}
}
