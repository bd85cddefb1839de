package history

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"
)

// Check returns every violation of h, in order of time. An empty history has none.
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
		}
	}
	if lim.Wake > 0 && b.logged() {
		b.checkGroups()
	}
	slices.SortStableFunc(b.found, func(x, y Violation) int { return cmp.Compare(x.At, y.At) })
	return b.found
}

// Contended counts the grants between from and to whose node had to wait for its turn: runs without them prove nothing.
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

// span is a time in which somebody has a claim on a lock.
type span struct {
	op       *Op
	from, to time.Duration
}

// checkClaims is P1: what was granted is there, and conflicting claims are never there at the same time.
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
			b.report("P1", l.path, op.Return, []*Op{op}, "granted %s, which was gone since %v (%s)", op.Node, life.removed, life.how)
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

// checkHolds is P2: conflicting holds never overlap, and a hold ends before its node does.
func (b *book) checkHolds(l *lock) {
	var spans []span
	for _, op := range l.ops {
		if op.Outcome != Granted {
			continue
		}
		end := b.end(op)
		if life := b.claim[op]; life != nil && end > life.removed {
			if life.how != foreign || !b.excused(op.Client, max(life.removed, op.Return), end) {
				b.report("P2", l.path, life.removed, []*Op{op}, "relied on until %v, but %s was gone at %v (%s)", end, op.Node, life.removed, life.how)
			}
			end = life.removed // the overlaps that follow from it are one fault, not many
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
	return end-gone <= b.lim.Foreign && b.calm(client, gone, end) <= notice
}

// checkLosses: a hold is not said to be lost where nothing was broken for long for its client, and its node stood.
func (b *book) checkLosses(l *lock) {
	for _, op := range l.ops {
		life := b.claim[op]
		if !b.lim.Lossless || !op.Lost || life == nil || life.removed < op.End && life.how != own {
			continue
		}
		if b.calm(op.Client, max(0, op.End-b.lim.Wake-1), op.End) > b.lim.Wake && op.End > b.lim.Wake {
			b.report("P2", l.path, op.End, []*Op{op}, "said to be lost, although nothing was broken")
		}
	}
}

// sweep reports conflicting spans that overlap. A correct history has a handful of spans open at a time, so that this is O(n log n).
func (b *book) sweep(rule string, l *lock, spans []span) {
	slices.SortStableFunc(spans, func(x, y span) int { return cmp.Compare(x.from, y.from) })
	var open []span
	for _, s := range spans {
		open = slices.DeleteFunc(open, func(o span) bool { return o.to <= s.from })
		if other := b.conflict(l, open, s.op, rule == "P2"); other != nil {
			b.report(rule, l.path, s.from, []*Op{other, s.op}, "%s and %s hold at the same time", name(other), name(s.op))
			continue
		}
		if s.to > s.from {
			open = append(open, s)
		}
	}
}

// conflict returns an operation of open that op cannot hold together with. Goroutines whose process has one place for all may
// claim the same node, one after the other or as readers: apart tells whether to look at these as well.
func (b *book) conflict(l *lock, open []span, op *Op, apart bool) *Op {
	used := weight(op)
	for _, o := range open {
		switch {
		case op.Recipe == Semaphore:
			if used += weight(o.op); used > l.limit(op.Call, op.Return) {
				return o.op
			}
		case apart && op.Cohort && o.op.Cohort && (!op.Shared || !o.op.Shared):
			return o.op
		case b.root(o.op) == b.root(op):
		case !op.Shared || !o.op.Shared:
			return o.op
		}
	}
	return nil
}

// checkTokens is P3, for each epoch of the servers by itself.
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

// checkEpoch: a token is larger than every token whose hold was over before, and no two holds share one. A reader of a
// cohort may stand in a place that its process had before it asked, and only holds that exclude it must have smaller ones.
func (b *book) checkEpoch(l *lock, holds []*Op) {
	over := slices.Clone(holds)
	slices.SortStableFunc(over, func(x, y *Op) int { return cmp.Compare(b.end(x), b.end(y)) })
	// In an exclusive recipe the grant is the instant to compare with; those that share are granted together,
	// and a slow reply may turn two grants round: there, only what was over before the call must be smaller.
	since := func(op *Op) time.Duration {
		if op.Recipe == Semaphore || op.Recipe == RW && op.Shared {
			return op.Call
		}
		return op.Return
	}
	slices.SortStableFunc(holds, func(x, y *Op) int { return cmp.Compare(since(x), since(y)) })
	var last, alone *Op // of those that are over, the ones with the largest token: of all, and of those that held alone
	used := make(map[int64]*Op, len(holds))
	for _, op := range holds {
		for len(over) > 0 && b.end(over[0]) <= since(op) && over[0] != op {
			last = larger(last, over[0])
			if !over[0].Shared {
				alone = larger(alone, over[0])
			}
			over = over[1:]
		}
		before := last
		if op.Cohort && op.Shared {
			before = alone
		}
		if twin := used[op.Token]; twin != nil {
			b.report("P3", l.path, op.Return, []*Op{twin, op}, "both have token %d", op.Token)
		} else if before != nil && op.Token <= before.Token {
			b.report("P3", l.path, op.Return, []*Op{before, op}, "token %d after token %d", op.Token, before.Token)
		}
		used[op.Token] = op
	}
	b.checkTokenOrder(l, holds)
}

// larger returns that one of two holds whose token is larger. One of them may be nil.
func larger(x, y *Op) *Op {
	if x == nil || y.Token > x.Token {
		return y
	}
	return x
}

// void reports whether op was granted a node that was gone: P1 judges that, and its token comes from outside the queue.
func (b *book) void(op *Op) bool {
	life := b.claim[op]
	return life != nil && life.removed < op.Return
}

// checkTokenOrder is P3 for holds that overlap: along the queue each token is larger than those before it, except that those
// that share are granted in any order among themselves.
func (b *book) checkTokenOrder(l *lock, holds []*Op) {
	holds = slices.DeleteFunc(holds, func(op *Op) bool { return b.claim[op] == nil })
	slices.SortStableFunc(holds, func(x, y *Op) int { return cmp.Compare(b.claim[x].czxid, b.claim[y].czxid) })
	var alone, largest *Op // the largest so far, of those that do not share and of all
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

// checkTurns is P4 and the first half of P7: nobody is granted before its turn, and no turn is left unused.
func (b *book) checkTurns(l *lock) {
	for _, life := range l.lives {
		op := life.op
		if op != nil && op.Outer == 0 && op.Return < life.turn && op.Return <= life.removed {
			b.report("P4", l.path, op.Return, []*Op{op}, "granted before its turn: %s stood before it", strings.Join(life.before, ", "))
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
		if idle, late := b.overdue(life.client, since, taken); late && !b.awaitsOthers(l, life) {
			b.report("P7", l.path, since, nil, "%s (session %#x) had its turn and nobody took it for %v", life.path, life.session, idle)
		}
	}
}

// since is from when on life's turn could have been taken: one of several that are taken together may have to wait for the others.
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

// asked is when those who stood at a semaphore's gate had a node for their permits, if ever.
func (l *lock) asked(gate *life) time.Duration {
	at := never
	for _, life := range l.lives {
		if life.created >= gate.created && acquireOf(life.path) == acquireOf(gate.path) {
			at = min(at, life.created)
		}
	}
	return at
}

// awaitsOthers reports whether a node that nobody was granted may belong to one of several that were taken together, in vain:
// another of them never had its turn, or only after this one.
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

// waitsFor reports whether another node of the same acquire of permits had its turn later.
func (x *life) waitsFor(other *life) bool {
	return other != x && acquireOf(other.path) == acquireOf(x.path) && other.since > x.since
}

// several reports whether op was taken together with others of other locks.
func (b *book) several(op *Op) bool {
	return slices.ContainsFunc(b.groups[group(op)], func(other *Op) bool { return other.Path != op.Path })
}

// checkReleases is P5 for a release that said it was done, or that it does not know, which takes a fault.
func (b *book) checkReleases(l *lock) {
	last := map[*life]*Op{} // the last release of each node, whatever its levels
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
		if op.Clean && life.removed > op.Freed {
			b.report("P5", l.path, op.Freed, []*Op{op}, "released, but %s is still there", life.path)
		}
	}
	for _, op := range l.ops {
		if b.lim.Lossless && op.Uncertain && !op.Lost && op.Freed > b.lim.Wake && b.calm(op.Client, op.Freed-b.lim.Wake-1, op.Freed) > b.lim.Wake {
			b.report("P5", l.path, op.Freed, []*Op{op}, "whether it is released was not known, although nothing was broken")
		}
	}
}

// freed is when op was released: one that never was is the last of its hold.
func (b *book) freed(op *Op) time.Duration {
	if op.Freed == 0 && op.End == 0 {
		return never
	}
	return max(op.Freed, op.End)
}

// checkReentrant: an inner level is the outer hold entered again, not a new place.
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

// checkDowngrades: when a writer was told that it is a reader, its node lets readers in.
func (b *book) checkDowngrades(l *lock) {
	for _, op := range l.ops {
		life := b.claim[op]
		if op.Shares == 0 || life == nil || life.removed <= op.Shares {
			continue
		}
		made := life.shared && life.downgraded == never // as a reader's
		if !made && life.downgraded > op.Shares {
			b.report("rw", l.path, op.Shares, []*Op{op}, "said to be a reader, but %s still keeps readers out", life.path)
		}
	}
}

// checkObservers: a leader that was seen was the first by then, with a value that it had, and no observer's view goes back.
func (b *book) checkObservers(l *lock) {
	newest := map[string]*Op{}
	for _, op := range l.seen {
		if op.Outcome != Granted {
			b.checkVacancy(l, op)
			b.checkUnseen(l, op, newest[op.Client])
			continue
		}
		if b.logged() && !slices.ContainsFunc(b.byPath[op.Node], func(life *life) bool { return life.czxid == op.Token && life.created <= op.Return }) {
			b.report("election", l.path, op.Return, []*Op{op}, "%s seen as the leader with %d, which never was there", op.Node, op.Token)
			continue
		}
		if prev := newest[op.Client]; prev != nil && op.Token < prev.Token && b.epoch(prev) == b.epoch(op) {
			b.report("election", l.path, op.Return, []*Op{prev, op}, "%s saw leader %d after leader %d", op.Client, op.Token, prev.Token)
			continue
		}
		b.checkValue(l, op, newest[op.Client])
		newest[op.Client] = op
		for _, life := range b.byPath[op.Node] {
			restored := life.created > op.Return && b.byPath[op.Node][0].created <= op.Return // it was seen before that
			if life.turn > op.Return && !restored {
				b.report("election", l.path, op.Return, []*Op{op}, "%s seen as the leader before its turn", op.Node)
			}
		}
	}
}

// checkValue: the value of a leader is one that it had by then. Who asked for what is so is not shown what was before the
// call, and nobody is shown a value that came before the last one of the same view.
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
			since = life.began(prev.Value) + 1 // the value before ended at that instant
		}
		if !life.had(op.Value, since, op.Return) {
			b.report("election", l.path, op.Return, []*Op{op}, "%s seen with %q, which it did not say between %v and then", op.Node, op.Value, since)
		}
	}
}

// checkVacancy: who asks for the leader is not told that there is none while one stands all the time.
func (b *book) checkVacancy(l *lock, op *Op) {
	if op.Outcome != Refused || b.restored(op.Call, op.Return) {
		return
	}
	for _, life := range l.lives {
		if stood(life, op) {
			b.report("election", l.path, op.Return, []*Op{op}, "no leader was seen, and %s stood there all the while", life.path)
			return
		}
	}
}

// checkRefusals is P7 for tries: one is refused because of somebody, or of one who has just left, as its server may lag, or of a
// loss that a lock-delay follows.
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
	for _, op := range l.ops {
		if op.Outcome != Refused || b.restored(op.Call, op.Return) || op.Cohort && l.isAskedBeside(op) {
			continue
		}
		last, own := time.Duration(0), int64(0)
		for _, life := range all {
			switch {
			case life.created > op.Return || op.Shared && life.shared && life.downgraded == never:
			case life.lock == l.path && life.client == op.Client && life.created >= op.Call && life.op == nil && (own == 0 || own == life.czxid) && !l.isAskedBeside(op):
				own = life.czxid // of those of the try, if it made any
			default:
				last = max(last, until[life])
			}
		}
		if last < op.Call {
			if long := b.calm(op.Client, last, op.Call); long > b.lim.Notice {
				b.report("P7", l.path, op.Return, []*Op{op}, "refused, and nobody had been there for %v", long)
			}
		}
	}
}

// isAskedBeside reports whether another goroutine of the process asked for the lock meanwhile. A node that is new can be that one's,
// and one place for both may be still to come.
func (l *lock) isAskedBeside(op *Op) bool {
	return slices.ContainsFunc(l.ops, func(o *Op) bool {
		return o != op && o.Client == op.Client && o.Cohort == op.Cohort && (!op.Cohort || o.Outcome != Refused) && o.Call <= op.Return && o.Return >= op.Call
	})
}

// gate is the queue of those that ask for permits of l, nil if it is not known.
func (b *book) gate(l *lock) *lock {
	return b.locks[l.path+"/locks"]
}

// behind is the semaphore whose queue l is, nil if it is none.
func (b *book) behind(l *lock) *lock {
	path, ok := strings.CutSuffix(l.path, "/locks")
	if of := b.locks[path]; ok && of != nil && len(of.ops) > 0 && of.ops[0].Recipe == Semaphore {
		return of
	}
	return nil
}

// checkUnseen is P7 for an observer that looked on until its caller gave up: it was shown every leader and value that lasted.
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

// began returns when a node said a value first.
func (life *life) began(text string) time.Duration {
	for _, v := range life.values {
		if v.text == text {
			return v.from
		}
	}
	return 0
}

// had reports whether a node said a value at some instant between two.
func (life *life) had(text string, from, to time.Duration) bool {
	for i, v := range life.values {
		if v.text == text && v.from <= to && life.until(i) >= from {
			return true
		}
	}
	return false
}

// until returns when a node said its i-th value no more.
func (life *life) until(i int) time.Duration {
	if i+1 < len(life.values) {
		return life.values[i+1].from
	}
	return life.removed
}

// checkPlaces is P5 and the second half of P7, for each client: nodes without an operation are ghosts, operations without a node sleep.
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

// queued is when op may no longer have a node in the queue of those that ask for permits.
func (b *book) queued(op *Op) time.Duration {
	if op.Outcome == Unknown {
		return b.sessionEnd(op)
	}
	return b.returned(op)
}

// checkGate is the second half of P7 for those that ask for permits: each has a place in the queue, or nodes for its permits.
func (b *book) checkGate(l *lock) {
	gate := b.gate(l)
	if gate == nil || b.behind(gate) != l {
		return
	}
	byClient := map[string][]change{}
	add := func(client string, from, to time.Duration, by int) {
		byClient[client] = append(byClient[client], change{from, by}, change{max(from, to), -by})
	}
	places := map[string][]Window{} // when the nodes of each acquire were there
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
		if op.Outcome == Granted { // its nodes are nobody else's place
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

// standing returns until when the owner of each node may believe that it is there. A waiter watches the one before it: that a
// third party took its own node away, it learns when that one goes.
func (b *book) standing(l *lock) iter.Seq2[*life, time.Duration] {
	return func(yield func(*life, time.Duration) bool) {
		ahead := time.Duration(0) // when the last of those that were made earlier went
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

// checkGroups is the second half of P7 for several locks that are taken together: while they are waited for, one of them at
// least has a place. Whose of the same client's it is, nobody knows, so that all its acquires are counted.
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
				continue // a process may have one place for many, and one of several stands for all
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

// change is one of a sum that is followed.
type change struct {
	at time.Duration
	by int
}

// follow calls late for each time in which the sum is positive for longer than the client may take.
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

// checkCohorts is the second half of P7 for goroutines whose process has places for all of them. While one waits to hold
// alone, its process has a node. While one waits to read, its process has a reader's node that waits for its turn: a
// reader waits for no other reader.
func (b *book) checkCohorts(l *lock) {
	type side struct {
		client string
		reads  bool
	}
	const enough = 1 << 20 // more than goroutines wait
	sides := map[side][]change{}
	add := func(s side, from, to time.Duration, by int) {
		sides[s] = append(sides[s], change{from, by}, change{max(from, to), -by})
	}
	ahead := time.Duration(0) // when the last of those that were made earlier went
	for _, life := range l.lives {
		earlier, to := ahead, min(life.removed, b.h.End+1)
		ahead = max(ahead, to)
		switch {
		case life.how == foreign: // noticed when the one before it goes
			to = max(to, earlier)
		case life.shared:
			to = min(to, life.turn)
		}
		add(side{life.client, life.shared}, life.created, to, -enough)
	}
	for _, op := range l.ops {
		if op.Cohort {
			add(side{op.Client, op.Shared}, op.Call, b.returned(op), 1)
		}
	}
	for s, changes := range sides {
		b.follow(changes, s.client, func(from, long time.Duration) {
			b.report("P7", l.path, from, nil, "a goroutine of %s waits without a place in the queue for %v", s.client, long)
		})
	}
}

// over is when op may no longer have a node.
func (b *book) over(op *Op) time.Duration {
	switch {
	case op.Outcome == Granted && op.Freed > 0:
		return op.Freed
	case op.Outcome == Granted && op.End > 0 && op.Freed == 0:
		return b.sessionEnd(op) // vanished, or lost and never released
	case op.Outcome == Granted:
		return b.h.End + 1
	case op.Outcome == Unknown:
		return b.sessionEnd(op)
	}
	return b.returned(op)
}

// sessionEnd is when the last session of op that may own a node is over: the log knows.
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
			return restored // the log knows of no end of a session that the servers have forgotten
		}
	}
	return max(at, op.Call)
}

// counter follows a sum and tells the spans in which it was positive.
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
