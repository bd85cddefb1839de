// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// removal says why a node was deleted.
type removal string

const (
	alive   removal = "still there"
	own     removal = "deleted by its own session"
	foreign removal = "deleted by a third party"
	expired removal = "its session ended"
	undone  removal = "the servers were restored"
)

// life is one contender node from its creation to its deletion, according to the transaction log.
type life struct {
	path, lock, client string
	session            int64
	shared             bool
	weight             int
	czxid              int64
	place              int64 // sort key in the queue: the czxid, or that of the node whose number it took over
	created, removed   time.Duration
	downgraded         time.Duration // when a writer's node became a reader's
	how                removal
	by                 string // the client that deleted it
	values             []value
	op                 *Op // the operation that was granted with it

	turn   time.Duration // the earliest time at which it could have its turn
	since  time.Duration // since when it has had its turn without interruption
	before []string      // the nodes ahead of it, if it was granted too early
}

// value is the value in a leader's node from a time on.
type value struct {
	from time.Duration
	text string
}

// step is one change of a lock's queue.
type step struct {
	at      time.Duration
	created *life
	removed *life
	share   *life
	shrink  *Op
}

// Limits are the time limits of the promises that have one.
type Limits struct {
	// Wake limits how long, not counting faults, a turn is left unused, a waiter has no place, and a node outlives its
	// operation. Zero skips P7 and the part of P5 about remaining nodes.
	Wake time.Duration
	// Prompt is the limit if there was no fault for as long as Wake before either, so that no effect of a fault is left.
	// Zero means Wake.
	Prompt time.Duration
	// Foreign limits how long a holder may rely on its hold after a third party deleted its node. No client can detect
	// that at once.
	Foreign time.Duration
	// Notice is the same limit for the time without a fault: about as long as an event takes. Zero means Foreign.
	Notice time.Duration
	// Redial is how much longer it is after a fault: the client library waits for a second after it has dialed each server, and
	// zklock for up to a second before it dials.
	Redial time.Duration
	// Delay is the shortest lock-delay of all clients except Stranger, or zero if there is none.
	Delay time.Duration
	// LongestDelay is the longest lock-delay of a client, if they differ. Zero means Delay.
	LongestDelay time.Duration
	Stranger     string
	// Lossless reports that without a fault, the network is fast enough for all heartbeats, so no hold may be lost.
	Lossless bool
}

// Violation is one broken promise.
type Violation struct {
	Rule string // P1 to P7, or the recipe's name
	Path string
	At   time.Duration
	Ops  []int64 // the operations concerned
	Text string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s at %v, operations %v: %s", v.Rule, v.Path, v.At, v.Ops, v.Text)
}

// never is later than every time in a history.
const never = time.Duration(1<<63 - 1)

// book is the state of one check: the indexed history.
type book struct {
	h       *History
	lim     Limits
	faults  map[string][]Window // by client: the times of faults that affect it, merged, in order
	locks   map[string]*lock
	inOrder []*lock
	byID    map[int64]*Op
	byPath  map[string][]*life
	claim   map[*Op]*life            // by granted operation: its node
	groups  map[int64][]*Op          // operations that acquired together
	ends    map[string]time.Duration // by client: the end of its last session
	epochs  []time.Duration          // when the servers were restored
	found   []Violation
}

// lock has the part of the history about one lock.
type lock struct {
	path             string
	ops              []*Op // acquires, by call
	resizes          []*Op // by call
	seen             []*Op // observations, by return
	looks, evictions []*Op // of operators
	asks             []*Op
	joins            []*Op // of a fleet's members
	lives            []*life
	steps            []step // creations, removals and resizes, in the server's order
}

func newBook(h *History, lim Limits) *book {
	b := &book{
		h: h, lim: lim, faults: map[string][]Window{},
		locks: map[string]*lock{}, byID: make(map[int64]*Op, len(h.Ops)),
		groups: map[int64][]*Op{}, byPath: map[string][]*life{}, claim: make(map[*Op]*life, len(h.Ops)), ends: map[string]time.Duration{},
	}
	b.readTxns()
	for i := range h.Ops {
		op := &h.Ops[i]
		b.byID[op.ID] = op
		if name := group(op); name != 0 {
			b.groups[name] = append(b.groups[name], op)
		}
		l := b.lock(op.Path)
		switch op.Kind {
		case Acquire:
			l.ops = append(l.ops, op)
		case Resize:
			l.resizes = append(l.resizes, op)
		case Observe:
			l.seen = append(l.seen, op)
		case Inspect:
			l.looks = append(l.looks, op)
		case Evict:
			l.evictions = append(l.evictions, op)
		case Join:
			l.joins = append(l.joins, op)
		case Ask:
			l.asks = append(l.asks, op)
		}
	}
	for _, l := range b.inOrder {
		slices.SortStableFunc(l.ops, byCall)
		slices.SortStableFunc(l.resizes, byCall)
		slices.SortStableFunc(l.seen, func(x, y *Op) int { return cmp.Compare(x.Return, y.Return) })
		for _, op := range l.ops {
			b.link(op)
		}
	}
	b.nameClients()
	return b
}

// nameClients sets the client of nodes for which the log does not name it, from the operations of the same session.
func (b *book) nameClients() {
	clients := map[int64]string{}
	for op, life := range b.claim {
		clients[life.session] = op.Client
	}
	for _, l := range b.inOrder {
		for _, life := range l.lives {
			if life.client == "" {
				life.client = clients[life.session]
			}
		}
	}
}

func byCall(x, y *Op) int { return cmp.Compare(x.Call, y.Call) }

func byReturn(x, y *Op) int { return cmp.Compare(x.Return, y.Return) }

func (b *book) lock(path string) *lock {
	l := b.locks[path]
	if l == nil {
		l = &lock{path: path}
		b.locks[path] = l
		b.inOrder = append(b.inOrder, l)
	}
	return l
}

func (b *book) report(rule, path string, at time.Duration, ops []*Op, format string, args ...any) {
	v := Violation{Rule: rule, Path: path, At: at, Text: fmt.Sprintf(format, args...)}
	for _, op := range ops {
		v.Ops = append(v.Ops, op.ID)
	}
	b.found = append(b.found, v)
}

// root returns the outermost operation to which op belongs. Levels and downgrades of one hold do not exclude each other.
func (b *book) root(op *Op) *Op {
	for op.Outer != 0 && b.byID[op.Outer] != nil {
		op = b.byID[op.Outer]
	}
	return op
}

// end returns when the holder stopped relying on the hold.
func (b *book) end(op *Op) time.Duration {
	if op.End == 0 {
		return b.h.End
	}
	return op.End
}

// returned returns when op returned, or a time after the end of the history if it did not.
func (b *book) returned(op *Op) time.Duration {
	if op.Outcome == Pending {
		return b.h.End + 1
	}
	return op.Return
}

func (b *book) logged() bool { return len(b.h.Txns) > 0 }

// faultsOf returns the times of the faults that affect a client. client can also be the name of one of its views, which is the
// client's name with a suffix. If client is empty, the owner of a node is unknown, and any fault may have affected it.
func (b *book) faultsOf(client string) []Window {
	client, _, _ = strings.Cut(client, "/")
	hits, known := b.faults[client]
	if known {
		return hits
	}
	for _, w := range b.h.Faults {
		if client != "" && len(w.Clients) > 0 && !slices.Contains(w.Clients, client) {
			w.To = w.First
		}
		if w.To > w.From {
			hits = append(hits, w)
		}
	}
	hits = merge(hits)
	b.faults[client] = hits
	return hits
}

// merge returns the windows in order and without overlap.
func merge(ws []Window) []Window {
	ws = slices.Clone(ws)
	slices.SortFunc(ws, func(x, y Window) int { return cmp.Compare(x.From, y.From) })
	var out []Window
	for _, w := range ws {
		if n := len(out); n > 0 && w.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, w.To)
		} else {
			out = append(out, w)
		}
	}
	return out
}

// calm returns the longest period between from and to without a fault that affects the client.
func (b *book) calm(client string, from, to time.Duration) time.Duration {
	return b.calmAfter(client, from, to, 0)
}

// heeds is calm, where each period after a fault begins when the client has dialed a server again.
func (b *book) heeds(client string, from, to time.Duration) time.Duration {
	return b.calmAfter(client, from, to, b.lim.Redial)
}

// calmAfter is calm, where each period after a fault begins later by redial.
func (b *book) calmAfter(client string, from, to, redial time.Duration) time.Duration {
	longest, faults := time.Duration(0), b.faultsOf(client)
	i, _ := slices.BinarySearchFunc(faults, from, func(w Window, t time.Duration) int { return cmp.Compare(w.To, t) })
	for ; i < len(faults) && faults[i].From < to; i++ {
		longest = max(longest, faults[i].From-from)
		from = max(from, faults[i].To+redial)
	}
	return max(longest, to-from)
}

// healthy returns the total time between from and to without a fault that affects the client.
func (b *book) healthy(client string, from, to time.Duration) time.Duration {
	sum := max(0, to-from)
	for _, w := range b.faultsOf(client) {
		sum -= max(0, min(to, w.To)-max(from, w.From))
	}
	return sum
}

// quiet returns the longest period between from and to without a fault that affects the client, and without one for as long as
// Wake before.
func (b *book) quiet(client string, from, to time.Duration) time.Duration {
	longest := time.Duration(0)
	for _, w := range b.faultsOf(client) {
		if w.From >= to {
			break
		}
		longest = max(longest, w.From-from)
		from = max(from, w.To+b.lim.Wake)
	}
	return max(longest, to-from)
}

// overdue is called if a client failed to make progress between from and to. It returns how much of this time counts, and
// reports whether that is too long.
func (b *book) overdue(client string, from, to time.Duration) (time.Duration, bool) {
	if long := b.calm(client, from, to); long > b.lim.Wake {
		return long, true
	}
	// Each fault can undo progress. But even with many faults, the total time without one is limited.
	if sum := b.healthy(client, from, to); sum > b.lim.Wake*3/2 {
		return sum, true
	}
	long := b.quiet(client, from, to)
	return long, b.lim.Prompt > 0 && long > b.lim.Prompt
}

// group returns the ID of the group of operations that acquired together with op, or zero if op acquired alone.
func group(op *Op) int64 {
	if op.Group < 0 {
		return op.ID
	}
	return op.Group
}

func name(op *Op) string { return fmt.Sprintf("%s's %d", op.Client, op.ID) }

func weight(op *Op) int { return max(1, op.Weight) }

// readTxns builds the lives and the steps of all locks from the transaction log.
func (b *book) readTxns() {
	current := map[string]*life{}
	remove := func(path string, t Txn, how func(*life) removal) {
		if life := current[path]; life != nil {
			delete(current, path)
			life.removed, life.how, life.by = t.Time, how(life), t.Client
			l := b.lock(life.lock)
			l.steps = append(l.steps, step{at: t.Time, removed: life})
		}
	}
	for _, t := range b.h.Txns {
		switch t.Kind {
		case Create:
			life := &life{
				path: t.Path, lock: t.Lock, client: t.Client, session: t.Session, shared: t.Shared, weight: max(1, t.Weight),
				czxid: t.Zxid, place: t.Zxid, created: t.Time, removed: never, downgraded: never, how: alive, turn: never, since: never,
			}
			life.values = []value{{t.Time, t.Value}}
			current[t.Path] = life
			b.byPath[t.Path] = append(b.byPath[t.Path], life)
			l := b.lock(t.Lock)
			l.lives = append(l.lives, life)
			l.steps = append(l.steps, step{at: t.Time, created: life})
		case Delete:
			remove(t.Path, t, func(l *life) removal {
				if t.Session == l.session || t.Client != "" && t.Client == l.client {
					return own
				}
				return foreign
			})
		case Share:
			if life := current[t.Path]; life != nil {
				life.downgraded = min(life.downgraded, t.Time) // the client may have repeated the write
				l := b.lock(life.lock)
				l.steps = append(l.steps, step{at: t.Time, share: life})
			}
		case Write:
			if life := current[t.Path]; life != nil && life.values[len(life.values)-1].text != t.Value {
				life.values = append(life.values, value{t.Time, t.Value})
			}
		case Restored:
			b.epochs = append(b.epochs, t.Time)
			for _, path := range slices.Sorted(maps.Keys(current)) {
				remove(path, t, func(*life) removal { return undone })
			}
		case Ended:
			b.ends[t.Client] = t.Time
			for _, path := range t.Gone {
				remove(path, t, func(*life) removal {
					if t.Forced {
						return foreign
					}
					return expired
				})
			}
		}
	}
}

// link finds the node of a granted operation.
func (b *book) link(op *Op) {
	if op.Outcome != Granted || op.Node == "" {
		return
	}
	for _, life := range b.byPath[op.Node] {
		if life.created <= op.Return {
			b.claim[op] = life
			if life.op == nil || op.Return < life.op.Return {
				life.op = op
			}
		}
	}
}

// limit returns the largest number of permits that may have been in force at some time between from and to.
func (l *lock) limit(from, to time.Duration) int {
	largest := 0
	for _, r := range slices.Backward(l.resizes) {
		if r.Call > to {
			continue
		}
		largest = max(largest, r.Weight)
		if r.Outcome == Granted && r.Return <= from {
			break // this one replaced all earlier numbers
		}
	}
	return largest
}

// epoch returns how many times the servers had been restored when op returned.
func (b *book) epoch(op *Op) int {
	n, _ := slices.BinarySearchFunc(b.epochs, op.Return, func(at, t time.Duration) int {
		if at <= t {
			return -1
		}
		return 1
	})
	return n
}
